//! Whether a log is about these inputs.

use super::Subject;
use crate::log::{ContentHash, DifferenceRecord, LogError, StartLine};
use ddfuzz_delta::Dd;

/// The first line does not hold.
fn at_start(why: &str) -> LogError {
    let why = why.to_owned();
    LogError::Disagrees { line: 1, why }
}

/// What a start line says of the difference, if it is about this one.
pub(super) fn record_of<'a>(
    subject: &Subject,
    start: &'a StartLine,
) -> Result<&'a DifferenceRecord, LogError> {
    let record = difference_of(start)?;
    if start.search != Dd::NAME {
        return Err(at_start("its search is not dd"));
    }
    check_inputs(subject.passing(), subject.failing(), start, record)?;
    if record.units != subject.units() || record.deltas != subject.deltas() as u64 {
        return Err(at_start("it counts other deltas than these inputs give"));
    }
    Ok(record)
}

/// What a start line says of the difference.
pub(super) fn difference_of(start: &StartLine) -> Result<&DifferenceRecord, LogError> {
    let record = start.difference.as_ref();
    record.ok_or_else(|| at_start("it is not of a difference"))
}

/// Whether a start line is about these inputs.
pub(super) fn check_inputs(
    passing: &[u8],
    failing: &[u8],
    start: &StartLine,
    record: &DifferenceRecord,
) -> Result<(), LogError> {
    let same_failing = start.input_blake3 == ContentHash::of(failing);
    if !same_failing || start.size != failing.len() as u64 {
        return Err(LogError::Mismatch { what: "input" });
    }
    let empty = ContentHash::of(b"");
    let logged = record.passing.as_ref().map_or(empty, |one| one.blake3);
    match logged == ContentHash::of(passing) {
        true => Ok(()),
        false => Err(LogError::Mismatch {
            what: "passing input",
        }),
    }
}
