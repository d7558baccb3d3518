//! Runs per second of each way of execution, side by side in one run.
//!
//! `cargo bench --bench ways [-- PROGRAM]`: the bundled `ul` by default, on inputs of 1000
//! printable bytes. Prints wall and CPU time a run (this process and all its children), and the
//! ratio to `command`. A promise of the README rests on it: `inject` >= 2.5 x `command`.
//!
//! `cargo test` only sees whether each way still runs, with a few runs that measure nothing.

use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Executor, Freshness, Program, Target, Way, start};

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
    let (runs, rounds) = if measures { (1000, 11) } else { (20, 1) };
    let plan = Plan { runs, rounds };
    println!("{runs} runs a round, median of {rounds} rounds");
    println!(
        "{:<18}{:>12}{:>12}{:>12}{:>10}",
        "way", "runs/s", "wall µs", "CPU µs", "ratio"
    );
    let ways = [
        (Way::Command, Freshness::Shared, "command"),
        (Way::Inject, Freshness::Shared, "inject"),
        (Way::Forkserver, Freshness::Fresh, "forkserver, fresh"),
        (Way::Forkserver, Freshness::Shared, "forkserver"),
        (Way::Harness, Freshness::Fresh, "harness, fresh"),
        (Way::Harness, Freshness::Shared, "harness, shared"),
    ];
    let mut subjects = Vec::new();
    for (way, freshness, name) in ways {
        match start(&target, Some(way), freshness) {
            Ok(started) => subjects.push(Subject::new(name, started.executor)),
            Err(error) => println!("{name:<18} {error}"),
        }
    }
    // Round by round, each way in its turn, so that a busy moment of the machine hits all alike.
    for _ in 0..plan.rounds {
        for subject in &mut subjects {
            subject.measure(plan.runs);
        }
    }
    let floor = subjects[0].median(|round| round.wall);
    for subject in &mut subjects {
        let (wall, cpu) = (
            subject.median(|round| round.wall),
            subject.median(|round| round.cpu),
        );
        println!(
            "{:<18}{:>12.0}{:>12.1}{:>12.1}{:>9.1}x",
            subject.name,
            1.0 / wall.as_secs_f64(),
            wall.as_secs_f64() * 1e6,
            cpu.as_secs_f64() * 1e6,
            floor.as_secs_f64() / wall.as_secs_f64(),
        );
    }
}

/// What one run of a round cost.
#[derive(Clone, Copy)]
struct Round {
    wall: Duration,
    cpu: Duration,
}

/// One way under measurement.
struct Subject {
    name: &'static str,
    executor: Box<dyn Executor>,
    rounds: Vec<Round>,
}

impl Subject {
    fn new(name: &'static str, executor: Box<dyn Executor>) -> Subject {
        Subject {
            name,
            executor,
            rounds: Vec::new(),
        }
    }

    fn measure(&mut self, runs: u32) {
        let input = input();
        let (began, cpu) = (Instant::now(), machine_cpu());
        for _ in 0..runs {
            let ended = self.executor.run(&input).expect("the target runs").ended;
            assert!(matches!(ended, Ended::Exit(_)), "{ended}");
        }
        let (wall, cpu) = (began.elapsed() / runs, (machine_cpu() - cpu) / runs);
        self.rounds.push(Round { wall, cpu });
    }

    fn median(&self, of: impl Fn(&Round) -> Duration) -> Duration {
        let mut all: Vec<Duration> = self.rounds.iter().map(of).collect();
        all.sort();
        all[all.len() / 2]
    }
}

/// Lines of 59 printable bytes, 1000 bytes in all.
fn input() -> Vec<u8> {
    let byte = |i: u32| match i % 60 {
        59 => b'\n',
        _ => b' ' + (i % 90) as u8,
    };
    (0..1000).map(byte).collect()
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
