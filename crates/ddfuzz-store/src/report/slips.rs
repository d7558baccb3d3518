//! Number of runs that ended in a group of crashes while inputs of other groups were minimized.

use std::collections::BTreeSet;

use crate::{Entry, EntryId, Group, StoreError, group, layout, reader};
use ddfuzz_minimize::log::{Line, Source};
use ddfuzz_model::files::regular;
use ddfuzz_triage::{Found, Key};

/// Maximum size, in bytes, of a minimization log that is searched; a larger one is left out.
const LARGEST_LOG: u64 = 64 << 20;

/// Returns how many runs ended in `group` while inputs of other groups were minimized. Counted are
/// the runs in the logs of those minimizations that found one of the `entries` of `group`. The
/// result is at least the number of these entries, because some runs are in no log: runs that a
/// worker made ahead of the search, and that the search did not need.
pub(super) fn runs(group: &Group, entries: &[Entry]) -> Result<u64, StoreError> {
    let mut found = 0;
    let mut minimized = BTreeSet::new();
    for entry in entries {
        if let Some(Found::Slip { of, .. }) = &entry.crash.found {
            found += 1;
            minimized.insert(of.as_str());
        }
    }
    if minimized.is_empty() {
        return Ok(0);
    }
    let mut logged = 0;
    for (kind, major) in group::all(group.root())? {
        for id in group::entry_ids(group.root(), kind, &major)? {
            if minimized.contains(id.hash()) {
                logged += runs_of_entry(group, &id)?;
            }
        }
    }
    Ok(found.max(logged))
}

/// Counts the runs that ended in `group` in all logs of minimizations of the entry `id`: that of
/// the current minimization, and archived ones. A log that cannot be read counts as empty.
fn runs_of_entry(group: &Group, id: &EntryId) -> Result<u64, StoreError> {
    let folder = id.folder(group.root());
    let is_log = |name: &str| name.starts_with(layout::LOG);
    let mut runs = 0;
    for name in reader::sorted_names(&folder, is_log)? {
        // A log that cannot be read counts nothing.
        let log = regular::read(&folder.join(name), LARGEST_LOG).unwrap_or_default();
        runs += runs_in_log(&log, group.record.major);
    }
    Ok(runs)
}

/// Returns how many runs in the text of a minimization log crashed with the major key `major`,
/// which is not the key of the crash that was minimized.
fn runs_in_log(log: &[u8], major: Key) -> u64 {
    let text = String::from_utf8_lossy(log);
    let name = major.to_string();
    // Parsing each line of a long log would take much longer.
    let lines = text.lines().filter(|line| line.contains(&name));
    let slips = lines.filter_map(|line| match serde_json::from_str(line).ok()? {
        Line::Test(test) if test.source == Source::Run => test.slip,
        Line::Check(check) => check.slip,
        _ => None,
    });
    slips.filter(|slip| slip.major == major).count() as u64
}
