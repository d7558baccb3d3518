//! What the core costs on an input of 10⁶ bytes: a step of each search, and making a candidate; and
//! how many tests it takes to find a few needed bytes.
//!
//! `cargo bench --bench core`; behind `--`, `tests N` measures only the tests, over N seeds (400 by
//! default). Promised: `next` and `tell` take at most 5 µs a test, a minimization
//! less than 200 MB, and writing and hashing a candidate at most twice what copying and hashing the
//! same bytes takes. The floor is measured in the same run and printed beside it.
//!
//! `cargo test` only sees whether it still runs, on a small input.

mod failure;
#[path = "../minimizers/families/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "a few of the families are measured here"
)]
mod families;
mod means;
#[path = "../promise/mod.rs"]
mod promise;
mod steps;
mod writing;

/// Seeds that a mean is of, unless the command line has a number.
const SEEDS: u64 = 400;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Cargo says so when it is to measure.
    let measures = arguments.iter().any(|argument| argument == "--bench");
    let (size, tests, rounds, seeds) = match measures {
        true => (1_000_000, 20_000, 201, SEEDS),
        false => (10_000, 200, 3, 1),
    };
    let only_tests = arguments.iter().position(|argument| argument == "tests");
    if let Some(at) = only_tests.filter(|_| measures) {
        let wanted = arguments.get(at + 1).and_then(|word| word.parse().ok());
        return means::print(wanted.unwrap_or(seeds));
    }
    steps::print(size, tests);
    println!();
    writing::print(size, rounds);
    println!();
    means::print(seeds);
}
