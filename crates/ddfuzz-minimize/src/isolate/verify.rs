//! Replays a log between two ends, and runs again the tests that its claim rests on.

use ddfuzz_delta::{Outcome, Rule};

use crate::isolate::driver::{check_inputs, difference_of};
use crate::isolate::progress::Progress;
use crate::isolate::sides::refuted_by;
use crate::isolate::{Isolated, Side, Subject};
use crate::log::{Log, LogError};
use crate::{Claim, Counts, CutOff, Kind, MinimizeError, Oracle, Proved, VerifyError};

/// A single delta that refutes a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FalseDelta {
    /// The end next to which it was tested: added to the passing one it still passes, or taken
    /// from the failing one it still fails.
    pub side: Side,
    /// The text that it gives.
    pub text: Vec<u8>,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSides {
    /// The claim.
    pub claim: Claim,
    /// The outcome of the passing end, run again.
    pub passing: Outcome,
    /// The outcome of the failing end, run again.
    pub failing: Outcome,
    /// Tests of single deltas found as claimed, of those that the claim is about (none for
    /// [`Claim::BestSoFar`]).
    pub proved: Proved,
    /// The first that was not.
    pub refuted: Option<FalseDelta>,
    /// Runs cut off in time, which prove nothing.
    pub cut_off: u64,
}

impl VerifiedSides {
    /// Whether the claim holds. [`Claim::BestSoFar`] claims only that the failing end fails.
    pub fn holds(&self) -> bool {
        let passes = self.claim == Claim::BestSoFar || self.passing == Outcome::Pass;
        passes && self.failing == Outcome::Fail && self.proved.done == self.proved.of
    }
}

/// Replays a log of `diff` or `max`, then runs both ends again and, where a claim was made, every
/// single delta that it rests on, each in a fresh process. It ends at the first that refutes it.
///
/// # Errors
/// When the log does not hold, has no end, or the target cannot be run. A claim that turns out
/// false is no error: see [`VerifiedSides::holds`].
pub fn verify_sides(
    passing: &[u8],
    failing: &[u8],
    log: &Log,
    oracle: &mut dyn Oracle,
    mut on_progress: impl FnMut(Proved),
) -> Result<VerifiedSides, VerifyError> {
    let progress = fed(passing, failing, log).map_err(MinimizeError::from)?;
    let isolated = progress.isolated().ok_or(VerifyError::Unfinished)?;
    let mut verified = VerifiedSides {
        claim: isolated.claim,
        passing: oracle.ask_fresh(&isolated.passing, Kind::Deleting)?.outcome,
        failing: oracle.ask_fresh(&isolated.failing, Kind::Deleting)?.outcome,
        proved: Proved::default(),
        refuted: None,
        cut_off: 0,
    };
    if isolated.claim == Claim::BestSoFar {
        return Ok(verified);
    }
    verified.proved.of = isolated.proved.of;
    for (rule, config) in progress.sides().neighbours() {
        let text = progress.sides().subject.text(&config);
        let answer = oracle.ask_fresh(&text, Kind::Deleting)?;
        if answer.outcome == refuted_by(rule) {
            let side = match rule {
                Rule::Complement => Side::Failing,
                _ => Side::Passing,
            };
            verified.refuted = Some(FalseDelta { side, text });
            break;
        }
        let in_time = answer.cut_off != Some(CutOff::Time);
        verified.proved.done += u64::from(in_time);
        verified.cut_off += u64::from(!in_time);
        on_progress(verified.proved);
    }
    Ok(verified)
}

/// Both ends, rebuilt without the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedSides {
    /// The passing end that the log leads to.
    pub passing: Vec<u8>,
    /// The failing end that the log leads to.
    pub failing: Vec<u8>,
    /// Tests by kind.
    pub counts: Counts,
    /// The result; `None` where the log has no end yet.
    pub isolated: Option<Isolated>,
}

/// Rebuilds the result of a log of `diff` or `max` from its inputs, as
/// [`replay`](crate::replay()) does that of `min`.
///
/// # Errors
/// [`LogError::Disagrees`] names the first line that does not hold; [`LogError::Mismatch`] says
/// that the log is of other inputs; [`LogError::Empty`] that there is nothing to replay.
pub fn replay_sides(
    passing: &[u8],
    failing: &[u8],
    log: &Log,
) -> Result<ReplayedSides, MinimizeError> {
    Ok(fed(passing, failing, log).map(|progress| ReplayedSides {
        passing: progress.sides().end(Side::Passing),
        failing: progress.sides().end(Side::Failing),
        counts: progress.sides().counts,
        isolated: progress.isolated(),
    })?)
}

/// The search as the whole log leaves it.
pub(super) fn fed(passing: &[u8], failing: &[u8], log: &Log) -> Result<Progress, LogError> {
    let start = log.start.as_ref().ok_or(LogError::Empty)?;
    let record = difference_of(start)?;
    // Before they are compared, which may take long.
    check_inputs(passing, failing, start, record)?;
    let subject = Subject::new(record.units, passing, failing);
    let mut progress = Progress::new(&subject, start)?;
    for (line, content) in &log.lines {
        let fed = progress.feed(content);
        fed.map_err(|why| LogError::Disagrees { line: *line, why })?;
    }
    Ok(progress)
}
