//! What the core costs on an input of 10⁶ bytes: a step of each search, and making a candidate.
//!
//! `cargo bench --bench core`. Promised: `next` and `tell` take at most 5 µs a test, a minimization
//! less than 200 MB, and writing and hashing a candidate at most twice what copying and hashing the
//! same bytes takes. The floor is measured in the same run and printed beside it.
//!
//! `cargo test` only sees whether it still runs, on a small input.

mod failure;
mod steps;
mod writing;

fn main() {
    // Cargo says so when it is to measure.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let (size, tests, rounds) = match measures {
        true => (1_000_000, 20_000, 201),
        false => (10_000, 200, 3),
    };
    steps::print(size, tests);
    println!();
    writing::print(size, rounds);
}

/// Whether a promise is kept, in a word.
fn verdict(holds: bool) -> &'static str {
    match holds {
        true => "met",
        false => "missed",
    }
}
