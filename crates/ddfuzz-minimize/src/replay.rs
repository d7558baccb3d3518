//! Rebuilds a result from the input and the log alone.

use ddfuzz_exec::TimeLimit;
use std::collections::BTreeMap;

use crate::log::{ContentHash, Line, Log, LogError, TestLine};
use crate::progress::Progress;
use crate::{Counts, MinimizeError, Minimized, SlipKeys};

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
