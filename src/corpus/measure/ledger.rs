//! What all workers write: contents, records, counts.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::progress::Progress;
use super::reading::NotRead;
use super::spool::Spool;
use super::table::Table;
use super::tally::Tally;
use crate::corpus::ContentId;
use crate::corpus::journal::{Journal, Place};
use crate::files::FileError;

/// Where a record stands among those that are appended at once.
pub(super) struct Part {
    pub(super) content: ContentId,
    pub(super) from: usize,
    pub(super) length: usize,
    pub(super) suspicious: bool,
}

/// All that is known of the files so far.
pub(super) struct Ledger {
    pub(super) table: Table,
    pub(super) journal: Journal,
    pub(super) spool: Spool,
    pub(super) tally: Tally,
    pub(super) progress: Progress,
}

impl Ledger {
    /// A file was read. Says whether its content is to be run, by who asks: it is neither in the
    /// journal nor anybody else's.
    pub(super) fn meet(&mut self, content: &ContentId, path: &Path) -> Result<bool, FileError> {
        self.count(content.size());
        let (number, _) = self.table.entry(content);
        let entry = self.table.get_mut(number);
        let failed = |error: io::Error| FileError::at("note the path", path)(error);
        let Some(at) = entry.path() else {
            entry.set_path(self.spool.keep(path).map_err(failed)?);
            self.progress.contents += 1;
            let known = entry.record().is_some();
            self.progress.reused += u64::from(known);
            self.progress.suspicious += u64::from(known && entry.suspicious);
            return Ok(!known);
        };
        self.tally.duplicates.add(content.size());
        // Which of the files stands for the content is not left to the order of the directory.
        if path < self.spool.path(at).map_err(failed)? {
            entry.set_path(self.spool.keep(path).map_err(failed)?);
        }
        Ok(false)
    }

    /// A file gave no content.
    pub(super) fn lay_aside(&mut self, path: &Path, why: &NotRead) {
        let (aside, size) = match why {
            NotRead::Vanished => {
                self.progress.files += 1;
                self.tally.vanished.add(path, 0, || why.to_string());
                return;
            }
            NotRead::Oversized { size, .. } => (&mut self.tally.oversized, *size),
            NotRead::Refused { size, .. } => (&mut self.tally.unread, *size),
            NotRead::Changed => (&mut self.tally.unread, 0),
        };
        aside.add(path, size, || why.to_string());
        self.count(size);
    }

    fn count(&mut self, size: u64) {
        self.tally.before.add(size);
        self.progress.files += 1;
        self.progress.bytes += size;
    }

    /// Contents were run: appends their records.
    pub(super) fn record(&mut self, records: &[u8], parts: &[Part]) -> Result<(), FileError> {
        let start = self.journal.append(records)?;
        for part in parts {
            let place = Place {
                at: start + part.from as u64,
                length: part.length as u32,
            };
            let (number, _) = self.table.entry(&part.content);
            self.table
                .get_mut(number)
                .set_record(place, part.suspicious);
            self.progress.runs += 1;
            self.progress.suspicious += u64::from(part.suspicious);
        }
        Ok(())
    }
}

/// Whoever held it has failed, and says so; what it holds is whole all the same.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
