//! Tells which runs of one utility over their time limit hang, and which are only slow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use ddfuzz_exec::{AbandonWhen, Ended, ExecError, Freshness, Limits, TimeLimit, start};
use ddfuzz_triage::{Crash, Key, Subject};

/// A run that exceeds its time limit is repeated with a limit this many times as long; if it
/// exceeds the longer limit, too, it is a hang.
const HANG_FACTOR: u32 = 10;
/// Greatest number of runs over their time limit, for one utility, that are repeated with a longer
/// limit to tell hangs from slow runs. Later runs count as slow.
const MAX_LONG_RUNS: u32 = 6;
/// If this many runs that exceeded the time limit at one position in the program have ended within
/// a longer limit, later runs that exceed it at the same position count as slow, and are not
/// repeated.
const MAX_LONG_RUNS_AT_ONE: u32 = 3;

/// What is known of one utility's runs over their time limit, by the position in the program where
/// they were stopped: which are hangs, and which are only slow. It is updated in the order of the
/// runs, and kept for the next calls of ddfuzz, so that results do not depend on chance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::study) struct Hangs {
    places: BTreeMap<Key, HangSite>,
    /// Number of runs that exceeded their time limit and were repeated with a longer limit so far.
    asked: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct HangSite {
    /// Whether a run that was stopped at this position in the program also exceeded a longer limit,
    /// so that all runs stopped at this position count as hangs.
    is_real: bool,
    /// Number of runs stopped at this position in the program that ended by themselves within a
    /// longer limit, and so were only slow.
    slow: u32,
}

impl Hangs {
    /// Decides whether a run of `input` that exceeded its time limit hangs (true) or is only slow
    /// (false). It hangs if an earlier run that was stopped at the same position in the program,
    /// which `crash` records, was found to hang. Otherwise runs `subject` again with a longer
    /// limit, and records the result for the position; but if enough runs were repeated already, or
    /// the program cannot be started, the run counts as slow. `None`, and nothing recorded, if
    /// the longer run is abandoned, or the call of ddfuzz is stopped meanwhile (`abandon_when`).
    pub(super) fn is_hang(
        &mut self,
        input: &[u8],
        crash: &Crash,
        subject: &Subject,
        abandon_when: &AbandonWhen,
    ) -> Option<bool> {
        let known = self.places.get(&crash.keys.major);
        let known = known.copied().unwrap_or_default();
        if known.is_real || self.asked >= MAX_LONG_RUNS || known.slow >= MAX_LONG_RUNS_AT_ONE {
            return Some(known.is_real);
        }
        let outlasts = outlasts(input, crash.limits, subject, abandon_when);
        // The user's Ctrl-C may have ended the longer run, too.
        if !matches!(outlasts, Ok(true)) && abandon_when.is_met() {
            return None;
        }
        self.asked += 1;
        // The workers report a program that can no longer be started.
        let Ok(is_real) = outlasts else {
            return Some(false);
        };
        let place = self.places.entry(crash.keys.major).or_default();
        place.is_real = is_real;
        place.slow += u32::from(!is_real);
        Some(is_real)
    }
}

/// Runs `input`. Returns true if the run does not end within [`HANG_FACTOR`] times its time limits
/// `limits`, and false if it does. Fails with [`ExecError::Abandoned`] if the run is abandoned
/// (`abandon_when`).
pub(super) fn outlasts(
    input: &[u8],
    limits: Limits,
    subject: &Subject,
    abandon_when: &AbandonWhen,
) -> Result<bool, ExecError> {
    let patient = TimeLimit::from(limits).times(HANG_FACTOR).within(limits);
    let Some(target) = subject.target.target(patient) else {
        return Ok(false);
    };
    let target = target.abandoned_when(abandon_when.clone());
    let mut started = start(&target, Some(subject.target.way), Freshness::Fresh)?;
    Ok(started.executor.run(input)?.ended == Ended::Timeout)
}
