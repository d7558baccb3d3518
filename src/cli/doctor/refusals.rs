//! How many runs of a target the way of execution `snapshot` (many runs in one process) cannot
//! make, and why.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::campaign::Plan;
use crate::exec::{ExecError, Freshness, RefusalReason, Target, Way, start};
use crate::report::size;

/// Number of generated inputs that are run by the way `snapshot` (many runs in one process) to find
/// out which runs it refuses, that is, leaves to new processes.
const RUNS: u64 = 100;
/// Least time limit for running all generated inputs; it suffices for a program that does not hang.
const ENOUGH_TIME: Duration = Duration::from_secs(2);
/// Maximum length in bytes of the generated inputs that are run by the way `snapshot` (many runs in
/// one process) to see which runs it refuses.
const LONGEST: u64 = 4096;

/// A reason for which the way of execution `snapshot` has refused runs (left them to new
/// processes), and how many.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// What each of the refused runs would have done, in a few words such as `write to a file`.
    pub reason: String,
    /// Number of runs that were refused (left to new processes) for this reason.
    pub runs: u64,
}

/// How many runs of a series were refused, by the reason: runs that the way `snapshot` could not
/// make in its one process and left to new processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusals {
    /// Number of all runs of the series, refused ones included.
    pub runs: u64,
    /// Whether the way `snapshot` stopped making many runs in one process, because an input ran
    /// there differently than in a new process.
    pub differs: bool,
    /// The reasons why runs of the series were refused (left to new processes), most frequent
    /// first.
    pub reasons: Vec<Refusal>,
}

/// Runs 100 generated inputs (random characters, from `seed`) by the way `snapshot`, or fewer if
/// `time` is over or `stop` turns true, and returns how many runs were refused (left to new
/// processes), and why. Fails if the target cannot be run.
pub fn survey(
    target: &Target,
    seed: u64,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Refusals, ExecError> {
    let began = Instant::now();
    let mut executor = start(target, Some(Way::Snapshot), Freshness::Shared)?.executor;
    let plan = Plan {
        seed,
        max_len: LONGEST,
    };
    let mut input = Vec::new();
    let mut runs = 0;
    while runs < RUNS && began.elapsed() < time.max(ENOUGH_TIME) && !stop.load(Ordering::Relaxed) {
        input.clear();
        plan.input(runs).write_into(&mut input);
        executor.run(&input)?;
        runs += 1;
    }
    Ok(Refusals::of(runs, &executor.refusals()))
}

impl Refusals {
    /// Sums up the numbers of refused runs in `refused` by reason; `runs` is the number of runs in
    /// the series.
    pub fn of(runs: u64, refused: &[(RefusalReason, u64)]) -> Refusals {
        let mut reasons: Vec<Refusal> = Vec::new();
        let differs = |reason: RefusalReason| reason == RefusalReason::Differs;
        for (reason, runs) in refused.iter().filter(|(reason, _)| !differs(*reason)) {
            let (reason, runs) = (reason.to_string(), *runs);
            match reasons.iter_mut().find(|known| known.reason == reason) {
                Some(known) => known.runs += runs,
                None => reasons.push(Refusal { reason, runs }),
            }
        }
        reasons.sort_by_key(|refusal| std::cmp::Reverse(refusal.runs));
        Refusals {
            runs,
            differs: refused.iter().any(|(reason, _)| differs(*reason)),
            reasons,
        }
    }

    /// Formats the refusals for users: "refused 12 of 100 runs: write to a file
    /// (11), dup2 (1)".
    pub fn text(&self) -> String {
        let refused: u64 = self.reasons.iter().map(|refusal| refusal.runs).sum();
        let mut text = format!("refused {refused} of {} runs", self.runs);
        let reasons: Vec<String> = (self.reasons.iter())
            .map(|refusal| format!("{} ({})", refusal.reason, size::grouped(refusal.runs)))
            .collect();
        if !reasons.is_empty() {
            text.push_str(&format!(": {}", reasons.join(", ")));
        }
        if self.differs {
            text.push_str("; runs differ from those of new processes, so each one is forked");
        }
        text
    }
}
