//! What all workers write: contents and counts.

use std::io;
use std::path::Path;

use super::held::Held;
use super::progress::Progress;
use super::reading::NotRead;
use super::spool::Spool;
use super::table::Table;
use super::tally::Tally;
use crate::ContentId;
use crate::journal::Place;
use ddfuzz_model::files::FileError;

/// All that is known of the files so far.
pub(super) struct Ledger {
    pub(super) table: Table,
    /// The bytes of the first entries.
    pub(super) held: Held,
    pub(super) spool: Spool,
    pub(super) tally: Tally,
    pub(super) progress: Progress,
}

/// What came of the contents that were run.
#[derive(Default)]
pub(super) struct Ran {
    /// The records of contents, by their numbers, and whether they did not end well.
    pub(super) records: Vec<(usize, Place, bool)>,
    /// Contents that could not be read again.
    pub(super) lost: Vec<(usize, NotRead)>,
}

impl Ledger {
    /// One that knows of no file, and keeps paths there.
    pub(super) fn new(spool: Spool) -> Ledger {
        Ledger {
            table: Table::default(),
            held: Held::default(),
            spool,
            tally: Tally::default(),
            progress: Progress::default(),
        }
    }

    /// A file was read, and has this content.
    pub(super) fn meet(
        &mut self,
        content: &ContentId,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        self.count(content.size());
        let (number, _) = self.table.entry(content);
        let entry = self.table.get_mut(number);
        let failed = |error: io::Error| FileError::at("note the path", path)(error);
        let Some(at) = entry.path() else {
            entry.set_path(self.spool.keep(path).map_err(failed)?);
            self.held.hold(bytes);
            self.progress.contents += 1;
            return Ok(());
        };
        self.tally.duplicates.add(content.size());
        // Which of the files stands for the content is not left to the order of the directory.
        if path < self.spool.path(at).map_err(failed)? {
            entry.set_path(self.spool.keep(path).map_err(failed)?);
        }
        Ok(())
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

    /// Counts the contents of which the journal has a record.
    pub(super) fn count_known(&mut self) {
        for entry in self.table.entries() {
            let known = entry.record().is_some();
            self.progress.reused += u64::from(known);
            self.progress.suspicious += u64::from(known && entry.suspicious);
        }
    }

    /// Contents were run, or could not be read again.
    pub(super) fn take(&mut self, ran: Ran) {
        for (number, place, suspicious) in ran.records {
            self.progress.runs += 1;
            self.progress.suspicious += u64::from(suspicious);
            self.table.get_mut(number).set_record(place, suspicious);
        }
        for (number, why) in ran.lost {
            self.lose(number, &why);
        }
    }

    /// A file was read once, and could not be again.
    fn lose(&mut self, number: usize, why: &NotRead) {
        let entry = self.table.get_mut(number);
        let size = entry.content.size();
        let path = entry.path().and_then(|at| self.spool.path(at).ok());
        let path = path.unwrap_or_default();
        self.progress.contents -= 1;
        if *why == NotRead::Vanished {
            self.tally.before.remove(size);
            self.tally.vanished.add(&path, 0, || why.to_string());
        } else {
            self.tally.unread.add(&path, size, || why.to_string());
        }
    }
}
