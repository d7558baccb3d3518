//! Choosing and bookkeeping: `next` and `tell` of each search.

use std::time::{Duration, Instant};

use ddfuzz::delta::{Edit, Outcome};
use ddfuzz::minimize::{SEARCHES, search_by_name};

use crate::failure::Failure;
use crate::promise::verdict;

/// What is promised of a test.
const MOST_TIME: Duration = Duration::from_micros(5);
/// What is promised of a minimization, in bytes.
const MOST_MEMORY: u64 = 200 << 20;

/// Prints the cost of at most `tests` tests of each search on inputs of `size` bytes.
pub fn print(size: usize, tests: usize) {
    println!("next + tell at {size} bytes, at most {tests} tests");
    println!(
        "{:<12}{:<22}{:>8}{:>12}{:>12}{:>10}  5 µs, 200 MB",
        "search", "failure", "tests", "µs a test", "longest µs", "peak MB"
    );
    for search in SEARCHES {
        for failure in Failure::all(size) {
            let cost = run(search, &failure, tests);
            let mean = cost.time / cost.tests.max(1) as u32;
            println!(
                "{search:<12}{:<22}{:>8}{:>12.2}{:>12.0}{:>10.1}  {}",
                failure.name,
                cost.tests,
                mean.as_secs_f64() * 1e6,
                cost.longest.as_secs_f64() * 1e6,
                cost.peak as f64 / f64::from(1 << 20),
                verdict(mean <= MOST_TIME && cost.peak < MOST_MEMORY),
            );
        }
    }
}

/// What a search cost.
#[derive(Default)]
struct Cost {
    tests: usize,
    time: Duration,
    longest: Duration,
    /// Largest resident size of this process meanwhile, in bytes.
    peak: u64,
}

/// Runs a search; the texts are built and tested outside of what is timed.
fn run(search: &str, failure: &Failure, most: usize) -> Cost {
    forget_peak();
    let original = &failure.input;
    let mut machine = search_by_name(search, original).expect("the search is of the list");
    let (mut best, mut text) = (original.clone(), Vec::new());
    let mut cost = Cost::default();
    while cost.tests < most {
        let began = Instant::now();
        let Some(candidate) = machine.next() else {
            break;
        };
        let chosen = began.elapsed();
        candidate.write_into(original, &best, &mut text);
        let outcome = failure.test(&text);
        let began = Instant::now();
        machine.tell(outcome);
        let step = chosen + began.elapsed();
        cost.time += step;
        cost.longest = cost.longest.max(step);
        cost.tests += 1;
        let is_smaller = !matches!(candidate.edit, Edit::Keep(_)) || text.len() < best.len();
        if outcome == Outcome::Fail && is_smaller {
            std::mem::swap(&mut best, &mut text);
        }
    }
    cost.peak = peak();
    cost
}

/// Makes the peak of this process what it holds now.
fn forget_peak() {
    // Where the kernel does not allow it, the peak is that of all searches before, too.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Largest resident size since then, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}
