//! What runs cost: wall time, and CPU time of all processes that took part.

use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// The cost of one run, the mean over a round.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub wall: Duration,
    pub cpu: Duration,
}

/// What of a [`Cost`] is looked at.
pub type Of = fn(&Cost) -> Duration;

/// Both, with their names.
pub const BOTH: [(&str, Of); 2] = [("wall", |cost| cost.wall), ("CPU", |cost| cost.cpu)];

/// CPU time (user and system) of this process and of all its descendants that have ended and
/// were waited for, each by its parent. What else runs on the machine has no part in it.
pub fn cpu() -> Duration {
    let of = |who| {
        let usage: Usage = getrusage(who).expect("getrusage cannot fail with these arguments");
        let both = usage.user_time() + usage.system_time();
        Duration::from_micros(both.num_microseconds().try_into().unwrap_or(0))
    };
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}

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
