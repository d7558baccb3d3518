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

/// What a figure cannot be better than: the same work with nothing around it, measured in the same
/// run.
#[derive(Clone, Copy, Debug)]
pub struct Floor<'a> {
    /// The work, such as `one -merge=1`.
    pub work: &'a str,
    /// Its figure, in the unit of the other one.
    pub measured: f64,
}

/// By which factor a figure may miss its floor and still counts as one at the floor.
const NEAR: f64 = 1.3;

impl Floor<'_> {
    /// Whether a figure with this goal is near the floor.
    fn is_near(self, measured: f64, goal: Goal) -> bool {
        match goal {
            Goal::AtLeast(_) => measured * NEAR >= self.measured,
            Goal::AtMost(_) => measured <= self.measured * NEAR,
        }
    }
}

/// Returns the word for a goal that is reached or not.
pub fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Compares a figure with its goal, records it, and returns `goal ≥ 20: met`.
pub fn compare(figure: &str, measured: f64, unit: &str, goal: Goal) -> String {
    judge(figure, measured, unit, (goal, None))
}

/// The same for a figure that has a floor: where the goal is missed, the text also says what the
/// floor is, and whether the figure is near it.
pub fn compare_to_floor(
    figure: &str,
    measured: f64,
    unit: &str,
    goal: Goal,
    floor: Floor<'_>,
) -> String {
    judge(figure, measured, unit, (goal, Some(floor)))
}

fn judge(figure: &str, measured: f64, unit: &str, (goal, floor): (Goal, Option<Floor>)) -> String {
    let is_met = goal.is_met_by(measured);
    let is_near = floor.map(|floor| floor.is_near(measured, goal));
    record(&serde_json::json!({
        "figure": figure,
        "measured": measured,
        "unit": unit,
        "goal": goal.to_string(),
        "met": is_met,
        "floor": floor.map(|floor| floor.measured),
        "work": floor.map(|floor| floor.work),
        "near": is_near,
    }));
    let word = match (is_met, is_near) {
        (false, Some(true)) => "at the floor",
        _ => verdict(is_met),
    };
    let floor = floor.filter(|_| !is_met);
    let floor = floor.map(|floor| format!(" ({}: {:.2} {unit})", floor.work, floor.measured));
    format!("goal {goal}: {word}{}", floor.unwrap_or_default())
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
