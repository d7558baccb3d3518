//! Runs per second of each way of execution, side by side in one run.
//!
//! `cargo bench --bench ways [-- PROGRAM]`: the bundled `ul` by default, on inputs of 1000
//! printable bytes. Prints wall and CPU time a run (this process and all its children), and the
//! ratio to `command`. A promise of the README rests on it: `inject` >= 2.5 x `command`.
//!
//! `cargo test` only sees whether each way still runs, with a few runs that measure nothing.

use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Freshness, Program, Target, Way, start};

/// How much is measured.
struct Plan {
    /// Runs of one measurement.
    runs: u32,
    /// How many measurements the median is of.
    rounds: usize,
}

fn main() {
    // Cargo says so when it is to measure; else any other word is a filter for tests.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let program = std::env::args().nth(1);
    let target = match program.filter(|arg| measures && !arg.starts_with('-')) {
        Some(path) => Target::new(Program::Path(path.into())),
        None => Target::new(Program::Bundled("ul".to_owned())),
    };
    let (runs, rounds) = if measures { (2000, 5) } else { (20, 1) };
    let plan = Plan { runs, rounds };
    println!("{runs} runs a round, median of {rounds} rounds");
    println!(
        "{:<18}{:>12}{:>12}{:>12}{:>10}",
        "way", "runs/s", "wall µs", "CPU µs", "ratio"
    );
    let mut floor = None;
    for (way, freshness, name) in [
        (Way::Command, Freshness::Shared, "command"),
        (Way::Inject, Freshness::Shared, "inject"),
        (Way::Harness, Freshness::Fresh, "harness, fresh"),
        (Way::Harness, Freshness::Shared, "harness, shared"),
    ] {
        match measure(&plan, &target, way, freshness) {
            Ok((wall, cpu)) => {
                let base = *floor.get_or_insert(wall);
                println!(
                    "{name:<18}{:>12.0}{:>12.1}{:>12.1}{:>9.1}x",
                    1.0 / wall.as_secs_f64(),
                    wall.as_secs_f64() * 1e6,
                    cpu.as_secs_f64() * 1e6,
                    base.as_secs_f64() / wall.as_secs_f64(),
                );
            }
            Err(error) => println!("{name:<18} {error}"),
        }
    }
}

/// Median wall and CPU time of one run.
fn measure(
    plan: &Plan,
    target: &Target,
    way: Way,
    freshness: Freshness,
) -> Result<(Duration, Duration), ddfuzz::exec::ExecError> {
    let mut executor = start(target, Some(way), freshness)?.executor;
    let input: Vec<u8> = (0..1000u32)
        .map(|i| {
            if i % 60 == 59 {
                b'\n'
            } else {
                b' ' + (i % 90) as u8
            }
        })
        .collect();
    let mut rounds: Vec<(Duration, Duration)> = Vec::new();
    for _ in 0..plan.rounds {
        let (began, cpu) = (Instant::now(), machine_cpu());
        for _ in 0..plan.runs {
            let ended = executor.run(&input)?.ended;
            assert!(matches!(ended, Ended::Exit(_)), "{ended}");
        }
        rounds.push((
            began.elapsed() / plan.runs,
            (machine_cpu() - cpu) / plan.runs,
        ));
    }
    rounds.sort();
    Ok(rounds[plan.rounds / 2])
}

/// CPU time that the whole machine has spent: servers are no children of ours that rusage
/// would count while they live.
fn machine_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: u64 = stat
        .lines()
        .next()
        .into_iter()
        .flat_map(|line| line.split_whitespace().skip(1).take(3))
        .flat_map(str::parse::<u64>)
        .sum();
    Duration::from_millis(ticks * 10)
}
