//! What a study of utilities costs, beside one process a run.
//!
//! `cargo bench --bench study [-- --runs N] [--utilities N]`: each utility of Debian's list that is
//! installed and takes its input by stdin or as a file makes N runs (200 unless said) on small
//! inputs, in the sandbox, by the way that `revisit` takes and by `command`. It prints runs per
//! second of CPU time, the ratio, its median, and what 74 utilities of 1200 runs would take on two
//! cores; and how long a crash on a megabyte takes from the run to the proven reproducer.
//!
//! `cargo test` only sees that it is built.

#[path = "../cost/mod.rs"]
mod cost;
mod megabyte;
mod utilities;

use std::time::Duration;

use utilities::Row;

/// The utilities and inputs of the study of 2020.
const UTILITIES: u32 = 74;
const INPUTS: u32 = 1200;
const CORES: u32 = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Cargo says so when it is to measure.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let number = |option: &str, usual: usize| {
        let at = arguments.iter().position(|argument| argument == option);
        let text = at.and_then(|at| arguments.get(at + 1));
        text.and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let rows = utilities::measure(number("--runs", 200), number("--utilities", usize::MAX));
    println!("runs per second of CPU time\n");
    println!(
        "{:24} {:>10} {:>10} {:>8}  way",
        "utility", "revisit", "command", "ratio"
    );
    for row in &rows {
        let (ours, spawned) = (row.rate(row.ours), row.rate(row.spawned));
        let ratio = row.ratio();
        println!(
            "{:24} {ours:>10.0} {spawned:>10.0} {ratio:>7.2}x  {}",
            row.utility, row.way
        );
    }
    summary(&rows);
    megabyte::measure();
}

fn summary(rows: &[Row]) {
    let mut ratios: Vec<f64> = rows.iter().map(Row::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(median) = ratios.get(ratios.len() / 2) else {
        println!("no utility of the list is installed");
        return;
    };
    let mut each: Vec<Duration> = rows.iter().map(|row| row.ours / row.runs as u32).collect();
    let mean = each.iter().sum::<Duration>() / each.len().max(1) as u32;
    each.sort();
    let typical = each[each.len() / 2];
    println!(
        "\nmedian ratio of {} utilities: {median:.2}x (promised: 3x)",
        rows.len()
    );
    let projected = |one: Duration| one * UTILITIES * INPUTS / CORES;
    println!(
        "{UTILITIES} utilities, {INPUTS} small inputs each, on {CORES} cores: {:.0} s by the median \
         utility, {:.0} s by the mean one (promised: less than 300 s)",
        projected(typical).as_secs_f64(),
        projected(mean).as_secs_f64(),
    );
}
