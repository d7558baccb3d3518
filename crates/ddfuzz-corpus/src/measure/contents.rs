//! All contents of a corpus, in the order of results.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::gather::{self, NotRead};
use super::index::{Entry, PathSpool};
use super::{FileCounts, MeasureProgress};
use crate::journal::{Journal, Observation, Opened, RecordPosition};
use crate::{ContentId, Feature};
use ddfuzz_exec::Freshness;
use ddfuzz_model::files::FileError;
use ddfuzz_model::files::regular::Unread;

/// All contents of a corpus that were measured, those that did not end well among them, in
/// ascending order of their [`ContentId`]s: shorter ones first. In memory are 64 bytes of each;
/// what it reaches stands in the journal, and its path in a file.
#[derive(Debug)]
pub struct Contents {
    pub(super) entries: Vec<Entry>,
    pub(super) journal: Journal,
    pub(super) spool: PathSpool,
    /// Records of repeats.
    pub(super) repeats: HashMap<(ContentId, u32), RecordPosition>,
    pub(super) tally: FileCounts,
    pub(super) progress: MeasureProgress,
    pub(super) opened: Opened,
    pub(super) places: Option<usize>,
    pub(super) freshness: Freshness,
    pub(super) interrupted: bool,
}

impl Contents {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The content with this number, from 0.
    ///
    /// # Panics
    /// Here and in the others: where there is none of this number.
    pub fn id(&self, number: usize) -> ContentId {
        self.entries[number].content
    }

    /// The number of this content; `None` where it is not among them.
    pub fn find(&self, content: &ContentId) -> Option<usize> {
        let place = |entry: &Entry| entry.content.cmp(content);
        self.entries.binary_search_by(place).ok()
    }

    /// Whether its run may be a failure; see [`Observation::suspicious`].
    pub fn is_suspicious(&self, number: usize) -> bool {
        self.entries[number].suspicious
    }

    /// The observation of its run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn seen(&self, number: usize) -> Result<Observation, FileError> {
        Ok(self.journal.read(self.place(number)?)?.1)
    }

    /// Reads what it reaches into `features`, ascending, which is emptied before. The returned
    /// observation has no features.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn features(
        &self,
        number: usize,
        features: &mut Vec<Feature>,
    ) -> Result<Observation, FileError> {
        Ok(self.journal.read_into(self.place(number)?, features)?.1)
    }

    fn place(&self, number: usize) -> Result<RecordPosition, FileError> {
        self.entries[number].record().ok_or_else(|| {
            let why = std::io::Error::other("a content without a record");
            FileError::at("read", self.journal.path())(why)
        })
    }

    /// The file that stands for it: of all that have this content the one with the least path, by
    /// bytes.
    ///
    /// # Errors
    /// When the file of paths cannot be read.
    pub fn path(&self, number: usize) -> Result<PathBuf, FileError> {
        path_of(&self.entries[number], &self.spool)
    }

    /// Reads its bytes again.
    ///
    /// # Errors
    /// When its file is gone, cannot be read, or holds something else by now.
    pub fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        read_entry(&self.entries[number], &self.spool, bytes)
    }

    /// What became of the files.
    pub fn tally(&self) -> &FileCounts {
        &self.tally
    }

    /// What was done.
    pub fn progress(&self) -> MeasureProgress {
        self.progress
    }

    /// The state of the journal when it was opened.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// How many places of the target are instrumented; `None` where it reports no coverage.
    pub fn places(&self) -> Option<usize> {
        self.places
    }

    /// Whether the runs shared processes.
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Whether it was stopped: there may be more files, and contents that were not run.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

fn path_of(entry: &Entry, spool: &PathSpool) -> Result<PathBuf, FileError> {
    let path = match entry.path() {
        Some(at) => spool.path(at),
        None => Err(std::io::Error::other("a content without a file")),
    };
    path.map_err(FileError::at("read", Path::new("the list of paths")))
}

/// Reads the file of a content; an error where the file was changed.
pub(super) fn read_entry(
    entry: &Entry,
    spool: &PathSpool,
    bytes: &mut Vec<u8>,
) -> Result<(), NotRead> {
    let size = entry.content.size();
    let path = path_of(entry, spool).map_err(|error| NotRead::Refused {
        size,
        why: Unread::Refused(error.to_string()),
    })?;
    match gather::read(&path, size, bytes) {
        Ok(()) if ContentId::of(bytes) == entry.content => Ok(()),
        // It has grown.
        Ok(()) | Err(NotRead::Oversized { .. }) => Err(NotRead::Changed),
        Err(why) => Err(why),
    }
}
