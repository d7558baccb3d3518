//! Finding: in which run each of the planted bugs happens first, by each tool.

use std::path::Path;
use std::time::Duration;

use crate::builds::{Builds, Subject};
use crate::counted::Counted;
use crate::options::Options;
use crate::planted::{BUGS, Bug, seeds};
use crate::promise::{Goal, compare, not_measured};
use crate::tools::{Campaign, FINDERS, Tool};
use crate::watched::{Watched, end_orphans};

/// The runs that are promised until all bugs are found, in relation to the best peer's.
const RUNS: f64 = 0.7;

/// The median of a tool on a bug.
#[derive(Clone, Copy, Debug)]
struct Median {
    /// Runs until the bug happened; the budget where it did not.
    runs: u64,
    /// Campaigns in which it happened.
    found: usize,
}

/// Measures, and prints the table.
pub fn table(options: &Options, builds: &Builds, folder: &Path) -> Result<(), String> {
    println!(
        "\nFINDING: runs until a planted bug happens first, median of {} seeds; budget {} runs and \
         {} s of CPU time",
        options.seeds, options.runs, options.cpu
    );
    let tools = chosen(options);
    print!("{:<16}", "bug");
    for tool in &tools {
        print!("{:>20}", tool.name());
    }
    println!("  behind");
    let mut columns: Vec<Vec<Option<Median>>> = vec![Vec::new(); tools.len()];
    for bug in BUGS.iter().filter(|bug| options.chooses_bug(bug.name)) {
        print!("{:<16}", bug.name);
        for (tool, column) in tools.iter().zip(&mut columns) {
            let measured = median(options, builds, folder, *tool, bug);
            if let Err(why) = &measured {
                eprintln!("\n{} with {}: {why}", bug.name, tool.name());
            }
            let measured = measured.ok();
            print!("{:>20}", cell(measured, options));
            column.push(measured);
        }
        println!("  {}", bug.behind);
    }
    sums(&tools, &columns);
    Ok(())
}

fn chosen(options: &Options) -> Vec<Tool> {
    let chosen = |tool: &Tool| options.chooses_tool(tool.name());
    FINDERS.into_iter().filter(chosen).collect()
}

/// `RUNS FOUND/SEEDS`, with `>` where the median is the budget.
fn cell(median: Option<Median>, options: &Options) -> String {
    match median {
        None => "-".to_owned(),
        Some(median) => {
            let sign = if median.runs >= options.runs { ">" } else { "" };
            format!(
                "{sign}{} {:>2}/{}",
                median.runs.min(options.runs),
                median.found,
                options.seeds
            )
        }
    }
}

fn sums(tools: &[Tool], columns: &[Vec<Option<Median>>]) {
    let sum = |column: &Vec<Option<Median>>| -> Option<u64> {
        column
            .iter()
            .map(|median| Some(median.as_ref()?.runs))
            .sum()
    };
    print!("{:<16}", "sum of medians");
    for column in columns {
        let sum = sum(column).map_or("-".to_owned(), |sum| sum.to_string());
        print!("{sum:>20}");
    }
    print!("\n{:<16}", "bugs found");
    for column in columns {
        let found = column.iter().flatten().filter(|median| median.found > 0);
        print!("{:>20}", format!("{}/{}", found.count(), column.len()));
    }
    println!();
    let of = |tool: &Tool, column: &Vec<Option<Median>>| Some((tool.name(), sum(column)?));
    let all = || tools.iter().zip(columns);
    let ours = all().filter(|(tool, _)| **tool == Tool::Harness);
    let ours = ours.filter_map(|(tool, column)| of(tool, column)).next();
    let peers = all().filter(|(tool, _)| !tool.is_ours());
    let best = peers.filter_map(|(tool, column)| of(tool, column));
    let best = best.min_by_key(|(_, sum)| *sum);
    if let (Some((_, ours)), Some((peer, theirs))) = (ours, best) {
        let figure = format!("planted bugs, runs in sum, to the best peer ({peer})");
        let ratio = ours as f64 / theirs.max(1) as f64;
        let verdict = compare(&figure, ratio, "x", Goal::AtMost(RUNS));
        println!("ddfuzz {ours} runs, {peer} {theirs}: {ratio:.2}, {verdict}");
    } else {
        let figure = "planted bugs, runs in sum, to the best peer";
        let why = "no two tools came to the end of all bugs";
        println!("{figure}: {}", not_measured(figure, why));
    }
    behind(tools, columns);
}

/// Says for how many bugs a peer has found them in more campaigns than ddfuzz.
fn behind(tools: &[Tool], columns: &[Vec<Option<Median>>]) {
    let found = |column: &[Option<Median>], bug: usize| {
        let median = column.get(bug).copied().flatten();
        median.map_or(0, |median| median.found)
    };
    let all = || tools.iter().zip(columns);
    let Some((_, ours)) = all().find(|(tool, _)| **tool == Tool::Harness) else {
        return;
    };
    let is_behind = |bug: &usize| {
        let mut peers = all().filter(|(tool, _)| !tool.is_ours());
        peers.any(|(_, theirs)| found(theirs, *bug) > found(ours, *bug))
    };
    let count = (0..ours.len()).filter(is_behind).count();
    let figure = "planted bugs that a peer finds more often";
    let verdict = compare(figure, count as f64, "bugs", Goal::AtMost(0.0));
    println!("{figure}: {count} of {}, {verdict}", ours.len());
}

fn median(
    options: &Options,
    builds: &Builds,
    folder: &Path,
    tool: Tool,
    bug: &Bug,
) -> Result<Median, String> {
    let mut firsts = Vec::new();
    for seed in 1..=options.seeds {
        firsts.push(first(options, builds, folder, tool, bug, seed)?);
    }
    let found = firsts.iter().flatten().count();
    let mut runs: Vec<u64> = firsts
        .into_iter()
        .map(|first| first.unwrap_or(options.runs).min(options.runs))
        .collect();
    runs.sort_unstable();
    let upper = runs[runs.len() / 2];
    let lower = runs[(runs.len() - 1) / 2];
    Ok(Median {
        runs: lower.midpoint(upper),
        found,
    })
}

/// In which run of a campaign the bug happens first; `None` where it does not, within the budget.
fn first(
    options: &Options,
    builds: &Builds,
    folder: &Path,
    tool: Tool,
    bug: &Bug,
    seed: u64,
) -> Result<Option<u64>, String> {
    let text = |error: std::io::Error| error.to_string();
    let work = tempfile::tempdir_in(folder).map_err(text)?;
    let counted = Counted::create(work.path()).map_err(text)?;
    let campaign = Campaign {
        subject: &Subject::parser(bug.parser),
        only: bug.number,
        seed,
        runs: options.runs,
        seeds: &seeds(bug.parser),
        work: work.path(),
    };
    let mut command = tool.command(builds, &campaign)?;
    command.env("RUNS", counted.path());
    let most = Duration::from_secs(options.cpu);
    let watched = Watched::start(&mut command).map_err(text)?;
    let ended = watched.until(|cpu| {
        let count = counted.count()?;
        Ok(count.first.is_some() || count.runs >= options.runs || cpu >= most)
    });
    end_orphans().map_err(text)?;
    ended.map_err(text)?;
    let count = counted.count().map_err(text)?;
    if count.runs == 0 {
        return Err("it has made no run".to_owned());
    }
    Ok(count.first.filter(|first| *first <= options.runs))
}
