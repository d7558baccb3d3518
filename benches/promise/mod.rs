//! A figure of a bench beside its goal. All benches that promise something include it.
//!
//! If the environment variable [`RECORD`] names a file, each figure is appended to it as a line of
//! JSON. `cargo bench --bench promises` makes one table of these lines.
#![allow(dead_code, reason = "each bench that includes this uses a part of it")]

use std::fmt;
use std::io::Write;

/// The environment variable that names the file of recorded figures.
pub const RECORD: &str = "DDFUZZ_PROMISES";

/// The limit that a figure is to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The figure is this or more.
    AtLeast(f64),
    /// The figure is this or less.
    AtMost(f64),
}

impl Goal {
    /// Whether a measured figure keeps the limit.
    pub fn is_met_by(self, measured: f64) -> bool {
        match self {
            Goal::AtLeast(least) => measured >= least,
            Goal::AtMost(most) => measured <= most,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::AtLeast(least) => write!(f, "≥ {least}"),
            Goal::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// Returns the word for a goal that is reached or not.
pub fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Compares a figure with its goal, records it, and returns `goal ≥ 20: met`.
pub fn compare(figure: &str, measured: f64, unit: &str, goal: Goal) -> String {
    record(&serde_json::json!({
        "figure": figure,
        "measured": measured,
        "unit": unit,
        "goal": goal.to_string(),
        "met": goal.is_met_by(measured),
    }));
    format!("goal {goal}: {}", verdict(goal.is_met_by(measured)))
}

/// Records that a figure, or all figures of a table, could not be measured, and returns
/// `not measured: REASON`.
pub fn not_measured(figure: &str, why: &str) -> String {
    record(&serde_json::json!({ "figure": figure, "why": why }));
    format!("not measured: {why}")
}

fn record(line: &serde_json::Value) {
    let Some(file) = std::env::var_os(RECORD) else {
        return;
    };
    let file = std::fs::OpenOptions::new().append(true).open(file);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    if let Err(why) = written {
        eprintln!("{} is not recorded: {RECORD}: {why}", line["figure"]);
    }
}
