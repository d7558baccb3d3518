//! Rebuilds a result from its log (`replay`), and re-runs the tests that its claim rests on (`verify`).

use ddfuzz_delta::Outcome;
use ddfuzz_exec::TimeLimit;
use std::{collections::BTreeMap, ops::Range};

use crate::candidate_texts::remove;
use crate::certificate::runs;
use crate::log::{ContentHash, Line, Log, LogError, TestLine};
use crate::progress::Progress;
use crate::{
    Claim, Counts, CutOff, Kind, MinimizeError, Minimized, Oracle, OracleError, Proved, SlipKeys,
};

/// A minimization rebuilt without its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The best text that the log leads to.
    pub text: Vec<u8>,
    /// Tests by kind.
    pub counts: Counts,
    /// The limit on the time of a run that was learned, if one was.
    pub time_limit: Option<TimeLimit>,
    /// Runs of each candidate that did not fail: more than one where the input is flaky.
    pub votes: u64,
    /// The result; `None` where the log has no end yet.
    pub minimized: Option<Minimized>,
}

/// Rebuilds the result of a log from `input`: feeds every logged outcome to the search and checks
/// that it asks for just the logged candidates, in their order, with the logged hashes, and that
/// size, hash, claim, proof and counts of the end follow.
///
/// # Errors
/// [`LogError::Disagrees`] names the first line that does not hold; [`LogError::Mismatch`] says
/// that the log is of another input; [`LogError::Empty`] that there is nothing to replay. A search
/// that this version does not have is [`MinimizeError::UnknownSearch`].
pub fn replay(input: &[u8], log: &Log) -> Result<Replayed, MinimizeError> {
    let progress = feed_all(input, log, &mut |_, _| ())?;
    Ok(Replayed {
        text: progress.result().to_vec(),
        counts: progress.texts().counts,
        time_limit: progress.time_limit(),
        votes: progress.votes(),
        minimized: progress.minimized(),
    })
}

/// The least input by which tests ran into another bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastSlip {
    /// The keys of that bug.
    pub keys: SlipKeys,
    /// The test, the first of those with an input of this size.
    pub test: u64,
    /// Its candidate.
    pub input: Vec<u8>,
}

/// For each other bug that tests of the search or the proof ran into the least input, in the order
/// of keys.
///
/// # Errors
/// Those of [`replay`].
pub fn least_slips(input: &[u8], log: &Log) -> Result<Vec<LeastSlip>, MinimizeError> {
    let mut least: BTreeMap<SlipKeys, LeastSlip> = BTreeMap::new();
    feed_all(input, log, &mut |progress, line| {
        let Line::Test(TestLine {
            i,
            slip: Some(keys),
            ..
        }) = line
        else {
            return;
        };
        let text = progress.texts().text();
        let is_less = |known: &LeastSlip| text.len() < known.input.len();
        if least.get(keys).is_none_or(is_less) {
            let slip = LeastSlip {
                keys: *keys,
                test: *i,
                input: text.to_vec(),
            };
            least.insert(*keys, slip);
        }
    })?;
    Ok(least.into_values().collect())
}

/// Feeds all lines of a log. After each line, `each` sees it, while the text is still that of the
/// line.
fn feed_all(
    input: &[u8],
    log: &Log,
    each: &mut dyn FnMut(&Progress, &Line),
) -> Result<Progress, MinimizeError> {
    let start = log.start.as_ref().ok_or(LogError::Empty)?;
    if start.input_blake3 != ContentHash::of(input) {
        return Err(LogError::Mismatch { what: "input" }.into());
    }
    if start.size != input.len() as u64 {
        let why = "its size is not that of the input".to_owned();
        return Err(LogError::Disagrees { line: 1, why }.into());
    }
    let mut progress = Progress::new(input, start)?;
    for (line, content) in &log.lines {
        let line = *line;
        progress
            .feed(content)
            .map_err(|why| LogError::Disagrees { line, why })?;
        each(&progress, content);
    }
    Ok(progress)
}

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
