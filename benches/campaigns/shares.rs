//! Share and workers: what inline minimization costs the fuzzing, and what a second worker brings.
//! Both are campaigns of ddfuzz alone, that end by time.

use std::path::Path;
use std::process::Command;

use crate::asked::{Made, output};
use crate::builds::{Builds, Kind, NO_BUG, Subject};
use crate::cost::Cost;
use crate::options::Options;
use crate::planted::seeds;
use crate::promise::{Goal, compare as promise, not_measured};
use crate::speed::median;
use crate::tools::{LONGEST, Tool, binary, is_offered};

/// The share of the worker's time that is promised to be left by minimization: in campaigns of a
/// minute or more, and in shorter ones.
const KEPT: (f64, f64) = (0.95, 0.9);
/// So many times the runs of one worker are promised of two.
const TWO: f64 = 1.7;

/// What a campaign of ddfuzz has come to.
struct Campaign {
    made: Made,
    groups: usize,
    crashes: u64,
    /// The share of the worker's wall time that minimization took, by the campaign's clock.
    minimizing: f64,
}

/// Measures what inline minimization leaves of the fuzzing, and prints it.
///
/// The promise is judged by the worker's time outside of minimization. The runs of a campaign with
/// minimization and of one without are printed beside it: one of them often meets the known bugs
/// half as often again as the other, and a crash costs as much as a hundred runs, so that the
/// ratio of their runs says nothing about single rounds (0.83 to 1.42 in five).
pub fn share(options: &Options, builds: &Builds, folder: &Path) -> Result<(), String> {
    let (seconds, rounds) = (options.seconds, options.rounds);
    println!("\nSHARE: time of the fuzzing, ten groups in {seconds} s, median of {rounds} rounds");
    let program = builds.program(&Subject::program("groups"), Kind::LibFuzzer, NO_BUG)?;
    let with = |minimize: &'static str| ["--jobs", "1", "--minimize", minimize];
    let mut kept = Vec::new();
    let mut ratio = Vec::new();
    for round in 1..=rounds {
        let inline = campaign(options, folder, &program, &with("inline"), round)?;
        let off = campaign(options, folder, &program, &with("off"), round)?;
        kept.push(1.0 - inline.minimizing);
        ratio.push(inline.made.per_cpu_second() / off.made.per_cpu_second().max(1e-9));
        let said = |campaign: &Campaign| {
            let Campaign {
                made,
                groups,
                crashes,
                ..
            } = campaign;
            format!("{} runs, {crashes} crashes, {groups} groups", made.runs)
        };
        println!(
            "  round {round}: {}; without: {}",
            said(&inline),
            said(&off)
        );
    }
    let figure = format!("share of time kept with inline minimization, {seconds} s");
    let promised = if seconds >= 60 { KEPT.0 } else { KEPT.1 };
    match median(&mut kept).zip(median(&mut ratio)) {
        None => println!("{figure}: {}", not_measured(&figure, "no round was made")),
        Some((kept, ratio)) => {
            let verdict = promise(&figure, kept, "x", Goal::AtLeast(promised));
            println!("{figure}: {kept:.3} (runs in the same CPU time: {ratio:.3}), {verdict}");
        }
    }
    Ok(())
}

/// Measures what a second worker brings, and prints it.
pub fn workers(options: &Options, builds: &Builds, folder: &Path) -> Result<(), String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "\nWORKERS: runs in {} s, median of {} rounds; {processors} processors, and it says \
         something only where nothing else uses them",
        options.seconds, options.rounds
    );
    let program = builds.program(&Subject::parser("tree"), Kind::LibFuzzer, NO_BUG)?;
    let with = |jobs: &'static str| ["--jobs", jobs, "--minimize", "inline"];
    let ratio = compare(options, folder, &program, &with("2"), &with("1"))?;
    verdict("runs of two workers, of those of one", ratio, TWO);
    Ok(())
}

fn verdict(what: &str, ratio: Option<(f64, f64)>, promised: f64) {
    let Some((by_wall, by_cpu)) = ratio else {
        println!("{what}: {}", not_measured(what, "no round was made"));
        return;
    };
    let verdict = promise(what, by_wall, "x", Goal::AtLeast(promised));
    println!("{what}: {by_wall:.3} in the same time ({by_cpu:.3} in the same CPU time), {verdict}");
}

/// The medians of the ratios of runs, in the same wall time and in the same CPU time.
fn compare(
    options: &Options,
    folder: &Path,
    program: &Path,
    one: &[&str],
    other: &[&str],
) -> Result<Option<(f64, f64)>, String> {
    let (mut by_wall, mut by_cpu) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let [one, other] = [one, other].map(|args| campaign(options, folder, program, args, round));
        let (one, other) = (one?, other?);
        let per_second = |campaign: &Campaign| {
            campaign.made.runs as f64 / campaign.made.cost.wall.as_secs_f64().max(1e-9)
        };
        by_wall.push(per_second(&one) / per_second(&other).max(1e-9));
        by_cpu.push(one.made.per_cpu_second() / other.made.per_cpu_second().max(1e-9));
        println!(
            "  round {round}: {} runs and {} groups; {} runs and {} groups",
            one.made.runs, one.groups, other.made.runs, other.groups
        );
    }
    Ok(median(&mut by_wall).zip(median(&mut by_cpu)))
}

fn campaign(
    options: &Options,
    folder: &Path,
    program: &Path,
    args: &[&str],
    seed: usize,
) -> Result<Campaign, String> {
    let work = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
    let mut command = Command::new(binary());
    command.args(["run", "--json", "-q", "--exec", "harness"]);
    command.args(["--seed", &seed.to_string()]);
    command.args(["--time", &format!("{}s", options.seconds)]);
    command.args(["--max-len", &LONGEST.to_string()]).args(args);
    if is_offered("--seeds") {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('-').next().unwrap_or_default();
        command.arg("--seeds").arg(seeds(name));
    }
    command.arg("-o").arg(work.path().join("out"));
    command.arg("--").arg(program).current_dir(work.path());
    let (text, cost) = output(command, work.path())?;
    let runs = Tool::Harness.said(work.path(), &text)?;
    let groups = text.matches("\"major\"").count();
    let last = last_statistics(&work.path().join("out"))?;
    // Minimizations that are under way when the time is over are finished: that is no fuzzing.
    let wall = cost
        .wall
        .min(std::time::Duration::from_secs(options.seconds));
    let made = Made {
        runs,
        cost: Cost { wall, ..cost },
    };
    Ok(Campaign {
        made,
        groups,
        crashes: last["crashes"].as_u64().unwrap_or_default(),
        minimizing: last["minimizer_share"].as_f64().unwrap_or(1.0),
    })
}

/// The last line of a campaign's statistics.
fn last_statistics(out: &Path) -> Result<serde_json::Value, String> {
    let file = out.join("stats.jsonl");
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| format!("{}: {error}", file.display()))
}
