//! The result for people.

use crate::campaign::Finished;
use crate::minimize::MinRecord;
use crate::minimize::log::OsText;
use crate::report::{hexdump, size};

/// What people see of a result.
pub(super) fn text(record: &MinRecord, finished: &Finished) -> String {
    let path = |path: &Option<OsText>| {
        path.as_ref()
            .map(|path| path.0.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let claim = match record.proved.done == record.proved.of && record.proved.of > 0 {
        true => format!(
            "{}, proved by {}",
            record.claim,
            size::counted(record.proved.of, "test")
        ),
        false => format!(
            "{}, {} of {} proved",
            record.claim,
            size::grouped(record.proved.done),
            size::grouped(record.proved.of)
        ),
    };
    format!(
        "{} in {}: {claim}\ninput  {}\nfile   {}\nlog    {}",
        size::reduction(record.size_before, record.size_after),
        size::counted(record.tests.executed, "test"),
        hexdump::line(&finished.minimized.text, 16),
        path(&record.output),
        path(&record.log),
    )
}
