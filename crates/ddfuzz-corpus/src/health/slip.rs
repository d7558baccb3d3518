//! Crashes that are met while kept files are trimmed.

use std::sync::{Mutex, PoisonError};

use ddfuzz_exec::Target;
use ddfuzz_minimize::Slip;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::{EntryId, Kind, Store, StoreError};
use ddfuzz_triage::{Crash, Found};

/// Files a candidate that crashed while the content `of` was trimmed: `test` is the index of its
/// test, `None` for a check. Gives its entry; `None` where the slip has no record, which stands
/// for another of the same keys, or for a crash that did not come again. The group is minimized by
/// the next [`quarantine`](super::quarantine).
///
/// # Errors
/// When something cannot be written. Filing again then goes on where this call stopped.
pub fn file_slip(
    store: &Mutex<Store>,
    target: &Target,
    of: ContentHash,
    slip: &Slip,
    test: Option<u64>,
) -> Result<Option<EntryId>, StoreError> {
    let Some(crash) = &slip.crash else {
        return Ok(None);
    };
    let found = Found::Slip {
        of: of.short().to_string(),
        test,
    };
    let crash = Crash {
        found: Some(found),
        ..(**crash).clone()
    };
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let filed = store.file(Kind::of_class(&crash.class), &crash, &slip.input)?;
    store.write_reproduce(&filed.id, &target.by_main())?;
    Ok(Some(filed.id))
}
