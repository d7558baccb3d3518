//! Runs again the tests that a claim rests on.

use ddfuzz_delta::Outcome;
use std::ops::Range;

use crate::candidate_texts::remove;
use crate::certificate::runs;
use crate::log::Log;
use crate::{Claim, CutOff, Kind, MinimizeError, Oracle, OracleError, Proved, replay};

/// Why a log could not be verified at all.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The log itself does not hold.
    #[error(transparent)]
    Replay(#[from] MinimizeError),
    /// The log has no end: no claim was made.
    #[error(
        "the log has no end, so nothing is claimed yet: finish the minimization with --resume first"
    )]
    Unfinished,
    /// The target cannot be run.
    #[error(transparent)]
    Oracle(#[from] OracleError),
}

/// A removal after which the result still fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The run of equal bytes of the result, one of which was removed.
    pub at: Range<usize>,
    /// The smaller text that fails.
    pub text: Vec<u8>,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The claim.
    pub claim: Claim,
    /// The outcome of the result, run again.
    pub result: Outcome,
    /// Distinct removals found not to fail, of those that the claim is about (none for
    /// [`Claim::BestSoFar`]).
    pub proved: Proved,
    /// The first removal that fails.
    pub counterexample: Option<Counterexample>,
    /// Removals whose run was cut off in time, which proves nothing.
    pub cut_off: u64,
}

impl Verified {
    /// Whether the claim holds: the result fails and every removal was found not to.
    pub fn holds(&self) -> bool {
        self.result == Outcome::Fail && self.proved.done == self.proved.of
    }
}

/// Replays a log, then runs its result again (where it is flaky, until it fails, as often as a
/// candidate was) and, where it claims minimality, every distinct
/// removal of one byte, each in a fresh process. `on_progress` is called after each removal. It
/// ends at the first removal that fails.
///
/// # Errors
/// When the log does not hold, has no end, or the target cannot be run. A claim that turns out
/// false is no error: see [`Verified::holds`].
pub fn verify(
    input: &[u8],
    log: &Log,
    oracle: &mut dyn Oracle,
    mut on_progress: impl FnMut(Proved),
) -> Result<Verified, VerifyError> {
    let replayed = replay(input, log)?;
    let minimized = replayed.minimized.ok_or(VerifyError::Unfinished)?;
    if let Some(limit) = replayed.time_limit {
        oracle.limit_time(limit);
    }
    let mut result = oracle.ask_fresh(&minimized.text, Kind::Deleting)?.outcome;
    for _ in 1..replayed.votes {
        if result == Outcome::Fail {
            break;
        }
        result = oracle.ask_fresh(&minimized.text, Kind::Deleting)?.outcome;
    }
    let mut verified = Verified {
        claim: minimized.claim,
        result,
        proved: Proved::default(),
        counterexample: None,
        cut_off: 0,
    };
    if minimized.claim == Claim::BestSoFar {
        return Ok(verified);
    }
    verified.proved.of = runs(&minimized.text).count() as u64;
    let mut text = Vec::new();
    for at in runs(&minimized.text) {
        remove(&at).write_into(input, &minimized.text, &mut text);
        let answer = oracle.ask_fresh(&text, Kind::Deleting)?;
        if answer.outcome == Outcome::Fail {
            verified.counterexample = Some(Counterexample { at, text });
            break;
        }
        match answer.cut_off {
            Some(CutOff::Time) => verified.cut_off += 1,
            _ => verified.proved.done += 1,
        }
        on_progress(verified.proved);
    }
    Ok(verified)
}
