//! The cost of one run, as the difference between many and one.

use std::time::Duration;

use crate::cost::{Cost, cpu};

/// What of a [`Cost`] is looked at.
pub type Of = fn(&Cost) -> Duration;

/// Both, with their names.
pub const BOTH: [(&str, Of); 2] = [("wall", |cost| cost.wall), ("CPU", |cost| cost.cpu)];

/// Runs `few` and `many` runs, each from the start of whatever serves them to its end, and gives
/// the cost of one: the CPU time of start and end, which both have, is taken away. Both give the
/// wall time of their runs alone.
pub fn difference(runs: u32, mut series: impl FnMut(u32) -> Duration) -> Cost {
    let before = cpu();
    series(1);
    let between = cpu();
    let wall = series(runs + 1);
    let after = cpu();
    let extra = (after - between).saturating_sub(between - before);
    Cost {
        wall: wall / (runs + 1),
        cpu: extra / runs,
    }
}

/// The value in the middle.
pub fn median<T: PartialOrd + Copy>(values: impl IntoIterator<Item = T>) -> T {
    let mut all: Vec<T> = values.into_iter().collect();
    all.sort_by(|a, b| a.partial_cmp(b).expect("no costs are incomparable"));
    all[all.len() / 2]
}
