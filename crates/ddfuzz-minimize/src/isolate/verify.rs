//! Replays a log of `diff` or `max`, and re-runs the tests that its claim rests on.

use ddfuzz_delta::{Outcome, Rule};

use crate::isolate::driver::{check_inputs, difference_of};
use crate::isolate::progress::Progress;
use crate::isolate::sides::refuted_by;
use crate::isolate::{Isolated, Side, Subject};
use crate::log::{Log, LogError};
use crate::{Claim, Counts, CutOff, Kind, MinimizeError, Oracle, Proved, VerifyError};

/// A single delta (byte or edit) that refutes the claim of a log of `diff` or `max`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FalseDelta {
    /// The side that was changed: the passing side still passes with the delta, or the failing side
    /// still fails without it.
    pub side: Side,
    /// The text of the changed side, which has the same outcome as before the change.
    pub text: Vec<u8>,
}

/// The result of verifying a log of `diff` or `max` by running its claim's tests again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSides {
    /// The claim in the end line of the log, such as that both sides differ by a 1-minimal set of
    /// deltas (bytes or edits).
    pub claim: Claim,
    /// Outcome of the passing side (text) when it was run again.
    pub passing: Outcome,
    /// Outcome of the failing side (text) when it was run again.
    pub failing: Outcome,
    /// Number of tests that confirmed the claim when they were run again, and of all tests that the
    /// claim rests on; both 0 for [`Claim::BestSoFar`].
    pub proved: Proved,
    /// The first delta (byte or edit) that refutes the claim; `None` if no delta does.
    pub refuted: Option<FalseDelta>,
    /// Number of the claim's tests whose run exceeded its time limit, which proves nothing.
    pub cut_off: u64,
}

impl VerifiedSides {
    /// Checks whether the claim of the log holds: both sides have their outcomes in the new runs,
    /// and all tests that the claim rests on confirm it. For [`Claim::BestSoFar`], only the failing
    /// side must fail.
    pub fn holds(&self) -> bool {
        let passes = self.claim == Claim::BestSoFar || self.passing == Outcome::Pass;
        passes && self.failing == Outcome::Fail && self.proved.done == self.proved.of
    }
}

/// Verifies a log of `diff` or `max`: replays it, then runs both sides again in fresh processes
/// and, if it claims something, each test on which the claim rests. Stops at the first test that
/// refutes the claim.
///
/// # Errors
/// If the log is invalid or has no end, or if the target cannot be run. A false claim is not an
/// error: see [`VerifiedSides::holds`].
pub fn verify_sides(
    passing: &[u8],
    failing: &[u8],
    log: &Log,
    oracle: &mut dyn Oracle,
    mut on_progress: impl FnMut(Proved),
) -> Result<VerifiedSides, VerifyError> {
    let progress = feed_all(passing, failing, log).map_err(MinimizeError::from)?;
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
    for neighbour in progress.sides().neighbours() {
        let (rule, config) = progress.sides().tested(neighbour);
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

/// The passing and the failing side that a log leads to, computed without the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedSides {
    /// Text of the passing side after the last line of the log.
    pub passing: Vec<u8>,
    /// Text of the failing side after the last line of the log.
    pub failing: Vec<u8>,
    /// Numbers of the search's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub counts: Counts,
    /// The result of the search; `None` if the log has no end line.
    pub isolated: Option<Isolated>,
}

/// Computes the result of a log of `diff` or `max` from its inputs, without running the target.
///
/// # Errors
/// [`LogError::Disagrees`] names the first invalid line; [`LogError::Mismatch`] means that the log
/// belongs to other inputs; [`LogError::Empty`] that it has no complete line.
pub fn replay_sides(
    passing: &[u8],
    failing: &[u8],
    log: &Log,
) -> Result<ReplayedSides, MinimizeError> {
    Ok(
        feed_all(passing, failing, log).map(|progress| ReplayedSides {
            passing: progress.sides().end(Side::Passing),
            failing: progress.sides().end(Side::Failing),
            counts: progress.sides().counts,
            isolated: progress.isolated(),
        })?,
    )
}

/// Feeds all lines of a log of `diff` or `max` to a new state of its search between `passing` and
/// `failing`, and returns the state.
pub(super) fn feed_all(passing: &[u8], failing: &[u8], log: &Log) -> Result<Progress, LogError> {
    let start = log.start.as_ref().ok_or(LogError::Empty)?;
    let record = difference_of(start)?;
    // Checked before the inputs are compared, which may take long.
    check_inputs(passing, failing, start, record)?;
    let subject = Subject::new(record.units, passing, failing);
    let mut progress = Progress::new(&subject, start)?;
    for (line, content) in &log.lines {
        let fed = progress.feed(content);
        fed.map_err(|why| LogError::Disagrees { line: *line, why })?;
    }
    Ok(progress)
}
