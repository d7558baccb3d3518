//! Computes a result from its log without the target (`replay`), and re-runs the tests that its
//! claim rests on (`verify`).

use ddfuzz_delta::Outcome;
use ddfuzz_exec::TimeLimit;
use std::{collections::BTreeMap, ops::Range};

use crate::candidate_texts::remove;
use crate::certificate::{count_runs, runs};
use crate::log::{ContentHash, Line, Log, LogError, StartLine, TestLine};
use crate::progress::Progress;
use crate::steadiness::ESTIMATING;
use crate::{
    Answer, Claim, Counts, CutOff, Kind, MinimizeError, Minimized, Oracle, OracleError, Proved,
    SlipKeys,
};

/// The state of a minimization that was computed from its log, without the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The result that the log leads to: the smallest failing text; the original input if the
    /// smallest failing text failed in none of its confirmations.
    pub text: Vec<u8>,
    /// Numbers of the minimization's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub counts: Counts,
    /// The time limit of runs that was learned from runs of the input; `None` if none was learned.
    pub time_limit: Option<TimeLimit>,
    /// Number of runs without failure after which a candidate counts as not failing; more than one
    /// if the input is flaky.
    pub votes: u64,
    /// The result of the minimization; `None` if the log has no end line.
    pub minimized: Option<Minimized>,
}

/// Computes the result of a log from `input`. It feeds every logged outcome to the search and
/// checks that the search asks for exactly the logged candidates, in this order and with these
/// hashes, and that size, hash, claim, proof and counts of the end line follow.
///
/// # Errors
/// [`LogError::Disagrees`] names the first invalid line; [`LogError::Mismatch`] means that the log
/// belongs to another input; [`LogError::Empty`] that it has no complete line;
/// [`MinimizeError::UnknownSearch`] that this version has no such search.
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

/// The smallest candidate of a minimization that ran into one particular bug other than the
/// minimized one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastSlip {
    /// Major and minor key (hash of the call path) of the crash in the other bug.
    pub keys: SlipKeys,
    /// Index, in the log, of the test of this candidate; of the first such test if several
    /// candidates of the same size ran into the bug.
    pub test: u64,
    /// The bytes of the smallest candidate that ran into the other bug.
    pub input: Vec<u8>,
}

/// Finds, for each other bug that tests of the search or the proof ran into, the smallest input
/// that shows it. Returns them in ascending order of crash keys.
///
/// # Errors
/// As [`replay`].
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

/// Feeds all lines of a log to a new state of its minimization, and returns the state. `each` is
/// called after each line, while the text of the line is still available.
fn feed_all<'a>(
    input: &'a [u8],
    log: &Log,
    each: &mut dyn FnMut(&Progress<'_>, &Line),
) -> Result<Progress<'a>, MinimizeError> {
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

/// Why a log could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The log is invalid, or does not follow from the input.
    #[error(transparent)]
    Replay(#[from] MinimizeError),
    /// The log has no end, so nothing is claimed.
    #[error(
        "the log has no end, so nothing is claimed yet: finish the minimization with --resume first"
    )]
    Unfinished,
    /// The target cannot be run to verify the log.
    #[error(transparent)]
    Oracle(#[from] OracleError),
}

/// A removal of one byte after which the result still fails, so that it is not minimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// Position of the removed byte: the range of a sequence of equal bytes of the result, one of
    /// which was removed.
    pub at: Range<usize>,
    /// The result without the removed byte, which still fails.
    pub text: Vec<u8>,
}

/// The result of verifying a log by running its claim's tests again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The claim in the end line of the log, such as 1-minimality.
    pub claim: Claim,
    /// Outcome of the new run of the minimized input: FAIL if it still fails.
    pub result: Outcome,
    /// Number of removals of single bytes that made the failure go away when they were run again,
    /// and number of all removals that the claim is about; both 0 for [`Claim::BestSoFar`].
    pub proved: Proved,
    /// The first removal of a single byte after which the result still fails; `None` if there is
    /// none.
    pub counterexample: Option<Counterexample>,
    /// Number of removals of single bytes whose test exceeded its time limit, which proves nothing.
    pub cut_off: u64,
}

impl Verified {
    /// Checks whether the claim of the log holds: the result fails in the new run, and all removals
    /// of single bytes that the claim is about were run again and made the failure go away. For
    /// [`Claim::BestSoFar`], only the result must fail.
    pub fn holds(&self) -> bool {
        self.result == Outcome::Fail && self.proved.done == self.proved.of
    }
}

/// Replays a log, and then runs its result again and, if minimality is claimed, each removal of a
/// single byte, in fresh processes; stops at the first removal after which the result still fails.
/// A flaky result is run until it fails, at most as often as a candidate was or 20 times, whichever
/// is more. `on_progress` is called after each removal.
///
/// # Errors
/// If the log is invalid or has no end, or if the target cannot be run. A false claim is not an
/// error: see [`Verified::holds`].
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
    let held_minor = log.start.as_ref().and_then(StartLine::held_minor);
    let mut ask = |text: &[u8]| -> Result<Answer, OracleError> {
        let mut answer = oracle.ask_fresh(text, Kind::Deleting)?;
        if answer.minor.is_some() && held_minor.is_some() && answer.minor != held_minor {
            answer.outcome = Outcome::Unresolved;
        }
        Ok(answer)
    };
    let mut result = ask(&minimized.text)?.outcome;
    let votes = match minimized.flaky() {
        Some(_) => replayed.votes.max(ESTIMATING),
        None => replayed.votes,
    };
    for _ in 1..votes {
        if result == Outcome::Fail {
            break;
        }
        result = ask(&minimized.text)?.outcome;
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
    verified.proved.of = count_runs(&minimized.text);
    let mut text = Vec::new();
    for at in runs(&minimized.text) {
        remove(&at).write_into(input, &minimized.text, &mut text);
        let answer = ask(&text)?;
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
