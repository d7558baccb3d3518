//! What a run costs by each way of execution, beside floors that are measured in the same run.
//!
//! `cargo bench --bench ways [-- PROGRAM] [ROUNDS]`: a tiny program (`-- tiny`: only this) and the
//! bundled `ul` by default, or PROGRAM, on 1000 printable bytes; 11 rounds by default. Prints wall
//! and CPU time of a run, the ratio to the first line, and what is promised beside what was
//! measured. CPU time is that of all processes of a subject, from its start to its end, less what
//! starting and ending cost.
//!
//! `cargo bench --bench ways -- filters [NAME...]`: some twenty filters of the system, or those of
//! them that are named, beside `posix_spawn`, a bare fork loop and `afl-fuzz -n`.
//!
//! `cargo bench --bench ways -- afl`: the way `forkserver` on `afl_plain.c` and `afl_persistent.c`
//! beside `afl-fuzz` itself, where `afl-clang-fast` and `afl-fuzz` are installed. By default also
//! these.
//!
//! `cargo test` only sees whether each subject still runs, with a few runs, and on a few of the filters,
//! that measure nothing.

#[path = "../cost/mod.rs"]
mod cost;
mod difference;
mod filters;
mod programs;
#[path = "../promise/mod.rs"]
mod promise;
mod sheet;
mod sheets;
mod subjects;

use std::path::Path;

use programs::Programs;

/// How much is measured.
pub struct Plan {
    /// Runs of one round.
    pub runs: u32,
    /// How many rounds the medians are of.
    pub rounds: usize,
    /// How many of the listed filters are measured, spread over the list.
    pub filters: usize,
}

fn main() {
    // Cargo says so when it is to measure; else any other word is a filter for tests.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let words = std::env::args()
        .skip(1)
        .filter(|arg| measures && !arg.starts_with('-'));
    let (numbers, words): (Vec<_>, Vec<_>) = words.partition(|word| word.parse::<usize>().is_ok());
    let program = words.first();
    let asked = numbers.first().and_then(|rounds| rounds.parse().ok());
    let (runs, rounds, filters) = if measures {
        (1000, asked.unwrap_or(11), usize::MAX)
    } else {
        (20, 1, 4)
    };
    let plan = Plan {
        runs,
        rounds,
        filters,
    };
    let programs = Programs::new();
    println!("{runs} runs a round, medians of {rounds} rounds");
    let sheets = match program {
        Some(word) if word == "filters" => {
            return filters::compare(&programs, &plan, &words[1..]);
        }
        Some(word) if word == "afl" => vec![
            sheets::afl_plain(&programs),
            sheets::afl_persistent(&programs),
        ],
        Some(word) if word == "tiny" => vec![sheets::tiny(&programs)],
        Some(path) => vec![sheets::other(&programs, Path::new(path))],
        None => vec![
            sheets::tiny(&programs),
            sheets::ul(&programs),
            sheets::afl_plain(&programs),
            sheets::afl_persistent(&programs),
        ],
    };
    let is_all = program.is_none();
    for mut sheet in sheets {
        sheet.measure(&plan);
        sheet.print();
    }
    if is_all {
        filters::compare(&programs, &plan, &[]);
    }
}
