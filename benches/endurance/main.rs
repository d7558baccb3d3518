//! A million runs leave nothing behind.
//!
//! `cargo bench --bench endurance [-- RUNS] [NAME...]`: RUNS runs (1 000 000 by default) by each way
//! that serves many of them, and of some filters of the system by `snapshot`, or of those that are
//! named; and what ddfuzz, its servers and the system hold before, and after 10 %, 50 % and all of
//! them. Ends with status 1 where any of it has grown. Servers are replaced from time to time by
//! design; that is a part of what is looked at. Of `snapshot` only those are that die of a crash.
//!
//! `cargo test` only sees whether it still runs, with a few hundred runs.

mod filters;
mod holdings;
mod instrumented;
mod system;

use std::process::ExitCode;
use std::time::Instant;

use ddfuzz::exec::{Ended, Executor, Freshness, Program, Target, Way, start};

use filters::Filter;
use holdings::Holdings;
use instrumented::Instrumented;
use system::Before;

/// One run in so many crashes.
const CRASH_EVERY: u64 = 1000;
/// Runs before the first look: whatever is set up at first.
const WARM_UP: u64 = 2 * CRASH_EVERY;

fn main() -> ExitCode {
    // Cargo says so when it is to measure; else a number is a filter for tests.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let mut asked = std::env::args().filter_map(|arg| arg.replace('_', "").parse().ok());
    let runs = match asked.next_back() {
        Some(runs) if measures => runs,
        _ if measures => 1_000_000,
        _ => 300,
    };
    let is_number = |word: &String| word.replace('_', "").parse::<u64>().is_ok();
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| measures && !word.starts_with('-') && !is_number(word))
        .collect();
    println!("{runs} runs by each way, of the bundled program one in {CRASH_EVERY} a crash");
    // It has its place before anything is counted.
    let instrumented = Instrumented::ul();
    let before = Before::now();
    let is_meant = |name: &str| names.is_empty() || names.iter().any(|word| word == name);
    let mut grown = false;
    for (name, target, way) in subjects(&instrumented) {
        if is_meant(name) {
            println!("\n{name}\n{:>10}  {}", "runs", Holdings::TITLES);
            grown |= endure_way(&target, way, runs, &before);
        }
    }
    for filter in filters::ALL.iter().filter(|filter| is_meant(filter.name)) {
        println!("\nsnapshot, {filter}\n{:>10}  {}", "runs", Holdings::TITLES);
        grown |= endure_filter(filter, runs, &before);
    }
    // What other programs do meanwhile may look like growth: a test must not depend on it.
    match grown && measures {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// The bundled `ul`, by each way that can run it.
fn subjects(instrumented: &Result<Instrumented, String>) -> Vec<(&'static str, Target, Way)> {
    let ul = |args: &[&str], program: Program| {
        let mut target = Target::new(program);
        target.args = args.iter().map(Into::into).collect();
        target
    };
    let bundled = || Program::Bundled("ul".to_owned());
    let mut subjects = vec![
        ("harness, shared", ul(&[], bundled()), Way::Harness),
        ("inject", ul(&[], bundled()), Way::Inject),
        ("inject, @@", ul(&["@@"], bundled()), Way::Inject),
        ("snapshot", ul(&[], bundled()), Way::Snapshot),
        ("snapshot, @@", ul(&["@@"], bundled()), Way::Snapshot),
    ];
    match instrumented {
        Ok(program) => {
            let target = ul(&[], Program::Path(program.path.clone()));
            subjects.push(("forkserver", target, Way::Forkserver));
        }
        Err(why) => println!("\nforkserver is not looked at: {why}"),
    }
    subjects
}

/// Runs the bundled program by one way; says whether anything has grown.
fn endure_way(target: &Target, way: Way, runs: u64, before: &Before) -> bool {
    let executor = match start(target, Some(way), Freshness::Shared) {
        Ok(started) => started.executor,
        Err(error) => {
            println!("{error}");
            return true;
        }
    };
    let mut series = Series::default();
    endure(executor, WARM_UP, runs, before, |executor, until| {
        series.run(executor, until);
    })
}

/// Runs a filter of the system; says whether anything has grown, or its runs had a process each.
fn endure_filter(filter: &Filter, runs: u64, before: &Before) -> bool {
    let executor = match filter.start() {
        Ok(executor) => executor,
        Err(why) => {
            println!("not looked at: {why}");
            return false;
        }
    };
    let mut series = filters::Series::new();
    let warm_up = filters::WARM_UP;
    let grown = endure(executor, warm_up, runs, before, |executor, until| {
        series.run(executor, until);
    });
    grown | !series.shares_processes()
}

/// Runs it `warm_up` times and then so often, and looks four times; says whether anything has grown.
/// `run` makes runs until there are so many in all.
fn endure(
    mut executor: Box<dyn Executor>,
    warm_up: u64,
    runs: u64,
    before: &Before,
    mut run: impl FnMut(&mut dyn Executor, u64),
) -> bool {
    let warm_up = warm_up.min(runs);
    run(&mut *executor, warm_up);
    let first = Holdings::look(None, before);
    println!("{:>10}  {first}", 0);
    let began = Instant::now();
    for part in [runs / 10, runs / 2, runs] {
        run(&mut *executor, warm_up + part);
        let now = Holdings::look(Some(&first), before);
        println!("{part:>10}  {now}");
        let grown = now.grown_since(&first);
        if !grown.is_empty() {
            println!("grown: {}", grown.join(", "));
            return true;
        }
    }
    println!("{:.0} runs/s", runs as f64 / began.elapsed().as_secs_f64());
    drop(executor);
    let left = holdings::descendants().len();
    if left > 0 {
        println!("{left} processes are left after its end");
    }
    left > 0
}

/// Runs of one executor.
#[derive(Default)]
struct Series {
    done: u64,
}

impl Series {
    fn run(&mut self, executor: &mut dyn Executor, until: u64) {
        // The bundled `ul` dies of 516 printable characters before a newline.
        let (input, crash) = (b"a\x08_b\n", [&[b'x'; 516][..], b"\n"].concat());
        while self.done < until {
            self.done += 1;
            let (input, expected) = match self.done % CRASH_EVERY {
                0 => (&crash[..], Ended::Signal(libc::SIGSEGV)),
                _ => (&input[..], Ended::Exit(0)),
            };
            let ended = executor.run(input).expect("the target runs").ended;
            assert_eq!(ended, expected, "run {}", self.done);
        }
    }
}
