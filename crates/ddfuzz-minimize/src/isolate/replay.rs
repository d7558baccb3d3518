//! Rebuilding both ends from the inputs and the log alone.

use super::progress::Progress;
use super::start::{check_inputs, difference_of};
use super::{Isolated, Side, Subject};
use crate::log::{Log, LogError};
use crate::{Counts, MinimizeError};

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
