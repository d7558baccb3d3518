//! Loops: what is left of a campaign's runs where its inputs come upon a loop without end.

use std::path::Path;
use std::time::Duration;

use crate::builds::{Builds, Kind, NO_BUG, Subject};
use crate::counted::Counted;
use crate::options::Options;
use crate::planted::seeds;
use crate::promise::{Goal, compare};
use crate::speed::median;
use crate::tools::{Campaign, Tool};
use crate::watched::{Watched, end_orphans};

/// As many of the runs without a loop are promised with one.
const KEPT: f64 = 0.8;

/// Where the loop is, by the number that the program has it under.
const DEPTHS: [(i32, &str); 3] = [
    (1, "a record of no length"),
    (2, "an item of a list"),
    (3, "a chain of names"),
];

const TOOLS: [Tool; 3] = [
    Tool::Harness,
    Tool::Afl(Kind::AflPersistent),
    Tool::LibFuzzerFork,
];

/// Measures, and prints the table.
pub fn table(options: &Options, builds: &Builds, folder: &Path) -> Result<(), String> {
    println!(
        "\nLOOPS: runs per second of CPU time in {} s of it, and what is left of them with a loop; \
         median of {} rounds",
        options.cpu, options.rounds
    );
    let tools = TOOLS.into_iter();
    let tools: Vec<Tool> = tools
        .filter(|tool| options.chooses_tool(tool.name()))
        .collect();
    print!("{:<24}", "loop");
    for tool in &tools {
        print!("{:>24}", tool.name());
    }
    println!();
    let without: Vec<Option<f64>> = row(options, builds, folder, &tools, NO_BUG);
    print_row("none", &without, &without);
    let mut least: Option<f64> = None;
    for (depth, name) in DEPTHS {
        let with = row(options, builds, folder, &tools, depth);
        print_row(name, &with, &without);
        let ours = tools.iter().position(|tool| *tool == Tool::Harness);
        if let Some((with, without)) = ours.and_then(|at| with[at].zip(without[at])) {
            let kept = with / without;
            least = Some(least.map_or(kept, |least| least.min(kept)));
        }
    }
    if let Some(least) = least {
        let figure = "runs a CPU second beside a loop without end, the worst depth";
        let verdict = compare(figure, least, "x", Goal::AtLeast(KEPT));
        println!("ddfuzz keeps {least:.2} of the runs, {verdict}");
    }
    Ok(())
}

fn print_row(name: &str, rates: &[Option<f64>], without: &[Option<f64>]) {
    print!("{name:<24}");
    for (rate, without) in rates.iter().zip(without) {
        let cell = match (rate, without) {
            (Some(rate), Some(without)) => {
                format!("{rate:.0} ({:.1} %)", 100.0 * rate / without.max(1e-9))
            }
            _ => "-".to_owned(),
        };
        print!("{cell:>24}");
    }
    println!();
}

/// The medians of all tools. A round of all of them at a time, so that what else the machine does
/// meets all.
fn row(
    options: &Options,
    builds: &Builds,
    folder: &Path,
    tools: &[Tool],
    depth: i32,
) -> Vec<Option<f64>> {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); tools.len()];
    for round in 1..=options.rounds {
        for (tool, rates) in tools.iter().zip(&mut rates) {
            match rate(options, builds, folder, *tool, (depth, round as u64)) {
                Ok(rate) => rates.push(rate),
                Err(why) => eprintln!("{}: {why}", tool.name()),
            }
        }
    }
    rates.iter_mut().map(|rates| median(rates)).collect()
}

/// Runs per second of CPU time of one campaign.
fn rate(
    options: &Options,
    builds: &Builds,
    folder: &Path,
    tool: Tool,
    (only, seed): (i32, u64),
) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    let work = tempfile::tempdir_in(folder).map_err(text)?;
    let counted = Counted::create(work.path()).map_err(text)?;
    let campaign = Campaign {
        subject: &Subject::program("loops"),
        only,
        seed,
        runs: u64::from(u32::MAX),
        seeds: &seeds("loops"),
        work: work.path(),
    };
    let mut command = tool.command(builds, &campaign)?;
    // A hang does not end it.
    command
        .env("RUNS", counted.path())
        .env_remove("AFL_BENCH_UNTIL_CRASH");
    let (most, mut spent) = (Duration::from_secs(options.cpu), Duration::ZERO);
    let watched = Watched::start(&mut command).map_err(text)?;
    let mut runs = 0;
    let ended = watched.until(|cpu| {
        (spent, runs) = (cpu, counted.count()?.runs);
        Ok(cpu >= most)
    });
    end_orphans().map_err(text)?;
    ended.map_err(text)?;
    match runs {
        0 => Err("it has made no run".to_owned()),
        runs => Ok(runs as f64 / spent.as_secs_f64().max(1e-9)),
    }
}
