//! How many runs of a target the way `snapshot` refuses, and why.

use serde::Serialize;

use crate::campaign::Plan;
use crate::exec::{ExecError, Freshness, RefusalReason, Target, Way, start};

/// Number of inputs of the classic generator that are run.
const RUNS: u64 = 100;
/// Maximum length of an input in bytes.
const LONGEST: u64 = 4096;

/// A reason for which a process that runs many inputs has refused runs, and how many.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// What a refused run would have done, in a few words such as `write to a file`.
    pub reason: String,
    /// Number of runs refused for this reason.
    pub runs: u64,
}

/// The runs of a series that the way `snapshot` refused, by reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusals {
    /// Number of runs in the series, refused ones included.
    pub runs: u64,
    /// Whether the process that runs many inputs was given up, because it ran an input otherwise
    /// than a new process.
    pub differs: bool,
    /// The reasons, most frequent first.
    pub reasons: Vec<Refusal>,
}

/// Runs 100 inputs of the classic generator with the seed `seed` by `snapshot`, and returns which
/// runs were refused. Fails if the target cannot be run.
pub fn survey(target: &Target, seed: u64) -> Result<Refusals, ExecError> {
    let mut executor = start(target, Some(Way::Snapshot), Freshness::Shared)?.executor;
    let plan = Plan {
        seed,
        max_len: LONGEST,
    };
    let mut input = Vec::new();
    for run in 0..RUNS {
        input.clear();
        plan.input(run).write_into(&mut input);
        executor.run(&input)?;
    }
    Ok(Refusals::of(RUNS, &executor.refusals()))
}

impl Refusals {
    /// Sums up `refused`, the refused runs by reason, of a series of `runs` runs.
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

    /// Formats the refusals for users: "refused 12 of 100 runs (write to a file 12)".
    pub fn text(&self) -> String {
        let refused: u64 = self.reasons.iter().map(|refusal| refusal.runs).sum();
        let mut text = format!("refused {refused} of {} runs", self.runs);
        let reasons: Vec<String> = (self.reasons.iter())
            .map(|refusal| format!("{} {}", refusal.reason, refusal.runs))
            .collect();
        if !reasons.is_empty() {
            text.push_str(&format!(" ({})", reasons.join(", ")));
        }
        if self.differs {
            text.push_str("; runs differ from those of new processes, so each one is forked");
        }
        text
    }
}
