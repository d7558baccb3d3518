//! Whether a log is about these inputs.

use crate::delta::Dd;
use crate::minimize::log::{ContentHash, DifferenceRecord, LogError, StartLine};

/// The first line does not hold.
pub(super) fn at_start(why: &str) -> LogError {
    let why = why.to_owned();
    LogError::Disagrees { line: 1, why }
}

/// What a start line says of the difference, if it is about these inputs.
pub(super) fn record_of<'a>(
    passing: &[u8],
    failing: &[u8],
    start: &'a StartLine,
) -> Result<&'a DifferenceRecord, LogError> {
    let record = start.difference.as_ref();
    let record = record.ok_or_else(|| at_start("it is not of a difference"))?;
    if start.search != Dd::NAME {
        return Err(at_start("its search is not dd"));
    }
    let same_failing = start.input_blake3 == ContentHash::of(failing);
    if !same_failing || start.size != failing.len() as u64 {
        return Err(LogError::Mismatch { what: "input" });
    }
    let empty = ContentHash::of(b"");
    let logged = record.passing.as_ref().map_or(empty, |one| one.blake3);
    match logged == ContentHash::of(passing) {
        true => Ok(record),
        false => Err(LogError::Mismatch {
            what: "passing input",
        }),
    }
}
