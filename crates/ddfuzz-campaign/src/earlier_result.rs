//! Reuse of the result of an earlier minimization of an entry (stored finding), so that a later
//! minimization with other options does not replace it by a larger one.

use std::path::Path;
use std::sync::Mutex;

use crate::{CampaignError, Minimizing, StoreWriter, lock};
use ddfuzz_exec::Ended;
use ddfuzz_minimize::{
    Claim, Journal,
    log::{Line, Log, StartLine},
};
use ddfuzz_store::{Archived, Entry, EntryId, Kind};
use ddfuzz_triage::{Triager, Verdict};

impl Minimizing {
    /// Lets a minimization of `entry` continue its log with the limits of runs that the log
    /// records, although the user has given other limits. Sets the limits in `start`, the first
    /// line of the new log, to the recorded ones if the two first lines differ in nothing else and
    /// the log has a result (a reduction, or a claim other than best-so-far). If the minimization
    /// is not complete (only best-so-far is claimed), also sets them in these settings, and returns
    /// a note for the user. `None` in all other cases.
    pub(crate) fn keep_limits(&mut self, entry: &Entry, start: &mut StartLine) -> Option<String> {
        let logged = Log::read_start(&entry.log())?;
        if logged.limits == start.limits {
            return None;
        }
        let log = Log::read(&entry.log()).ok()?;
        let given = std::mem::replace(&mut start.limits, logged.limits);
        let is_proven = matches!(log.lines.last(), Some((_, Line::End(end)))
            if end.claim != Claim::BestSoFar);
        let is_reduced = log
            .lines
            .iter()
            .any(|(_, line)| matches!(line, Line::Reduce(_)));
        if !(is_proven || is_reduced) || !Journal::continues(&entry.log(), start) {
            start.limits = given;
            return None;
        }
        if is_proven {
            return None;
        }
        self.target.limits = logged.limits;
        // A run is a hang only by the limit that it was found with.
        if !matches!(entry.crash.ended, Ended::Timeout | Ended::OutOfMemory) {
            self.learn_limit = logged.learn_limit;
        }
        Some(format!(
            "{} goes on within the limits of its log, within which its result was reached; to \
             minimize within others, minimize {} into a file",
            entry.id.major(),
            entry.original().display()
        ))
    }

    /// Stores a smaller result of an earlier minimization of `entry` as a further entry of its
    /// group, to be minimized later. Takes the smallest archived result that has fewer than `size`
    /// bytes (the size of the present result) and still crashes in this group; results are archived
    /// when, for example, another search or build is used. Returns the new entry; `None` if there
    /// is no such result.
    pub(crate) fn file_smaller_archived<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        entry: &Entry,
        size: usize,
    ) -> Result<Option<EntryId>, CampaignError> {
        let mut archived = entry.archived()?;
        archived.retain(|one| one.reproducer.len() < size);
        archived.sort_by_key(|one| one.reproducer.len());
        if archived.is_empty() {
            return Ok(None);
        }
        let mut triager = Triager::of_target(&self.target, self.way)?;
        for Archived { reproducer, log } in archived {
            let Verdict::Crash(crash) = triager.examine(&reproducer)? else {
                continue;
            };
            let kind = Kind::of_class(&crash.class);
            if kind != entry.id.kind() || crash.keys.major != entry.crash.keys.major {
                continue;
            }
            let crash = crash.into_slip(entry.id.hash(), &entry.crash, last_reduction(&log));
            return Ok(Some(lock(store).file(kind, &crash, &reproducer)?.id));
        }
        Ok(None)
    }
}

/// Returns the index of the test that made the last reduction in the log at `path`; `None` if there
/// is none, or the log cannot be read.
fn last_reduction(path: &Path) -> Option<u64> {
    let log = Log::read(path).ok()?;
    log.lines.iter().rev().find_map(|(_, line)| match line {
        Line::Reduce(reduce) => Some(reduce.i),
        _ => None,
    })
}
