//! The measured contents of a corpus: access to their observations, paths and bytes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::gather::NotRead;
use super::{FileCounts, MeasureProgress, gather};
use crate::journal::{Journal, JournalState, Observation, RecordPosition};
use crate::{ContentId, Feature};
use ddfuzz_exec::{Freshness, NotCovered};
use ddfuzz_model::files::FileError;
use ddfuzz_model::files::regular::Unread;

/// The distinct file contents of a corpus, each of which was run, including failing ones. They are
/// numbered in ascending order of [`ContentId`] (shorter ones first). Memory holds 64 bytes per
/// content; features are read from the journal, and paths from a temporary file.
#[derive(Debug)]
pub struct Contents {
    pub(super) entries: Vec<Entry>,
    pub(super) journal: Journal,
    pub(super) spool: PathSpool,
    /// Journal positions of the records of reruns, by content and number of the rerun (from 1).
    pub(super) repeats: HashMap<(ContentId, u32), RecordPosition>,
    /// Counts of the corpus's files: duplicates, oversized, unreadable and vanished ones.
    pub file_counts: FileCounts,
    /// Counts of the files read, the contents found, and the runs made while measuring.
    pub progress: MeasureProgress,
    /// What was found when the journal was opened: intact records, and damaged bytes that were cut
    /// off.
    pub opened: JournalState,
    /// Number of instrumented places (edges) of the target; `None` if it reports no coverage.
    pub places: Option<usize>,
    /// Why the target reports no coverage; `None` if it reports coverage, or the reason is not
    /// known.
    pub not_covered: Option<NotCovered>,
    /// Whether several runs of the target shared a process, or each had a separate one.
    pub freshness: Freshness,
    /// Whether measuring was stopped: files and contents may be missing then.
    pub interrupted: bool,
}

impl Contents {
    /// Returns the number of distinct contents in the corpus, including failing ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the corpus has no content that could be read and run.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the id (size and hash) of the content that has the index `number` among all contents
    /// of the corpus.
    ///
    /// # Panics
    /// If no content has this index. The other methods that take a `number` panic then, too.
    pub fn id(&self, number: usize) -> ContentId {
        self.entries[number].content
    }

    /// Returns the number (index) of the content with the id `content` among all contents; `None`
    /// if the corpus does not contain it.
    pub fn find(&self, content: &ContentId) -> Option<usize> {
        let place = |entry: &Entry| entry.content.cmp(content);
        self.entries.binary_search_by(place).ok()
    }

    /// Returns true if the first run of the content with the index `number` may have failed; see
    /// [`Observation::suspicious`].
    pub fn is_suspicious(&self, number: usize) -> bool {
        self.entries[number].suspicious
    }

    /// Reads from the journal what the first run of the content with the index `number` did.
    pub fn first_run(&self, number: usize) -> Result<Observation, FileError> {
        Ok(self.journal.read(self.place(number)?)?.1)
    }

    /// Replaces `features` by the features that the content with the index `number` reached when it
    /// was first run, in ascending order. Returns what else this run has reported, such as its
    /// stack depth.
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

    /// Returns the path of a file that has the content with the index `number`: of all files with
    /// this content, the one whose path sorts first.
    pub fn path(&self, number: usize) -> Result<PathBuf, FileError> {
        path_of(&self.entries[number], &self.spool)
    }

    /// Replaces `bytes` by the content with the index `number`, read from its file; fails if the
    /// file has changed.
    pub fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        read_entry(&self.entries[number], &self.spool, bytes)
    }
}

fn path_of(entry: &Entry, spool: &PathSpool) -> Result<PathBuf, FileError> {
    let path = match entry.path() {
        Some(at) => spool.path(at),
        None => Err(std::io::Error::other("a content without a file")),
    };
    path.map_err(FileError::at("read", Path::new("the list of paths")))
}

/// Replaces `bytes` by the bytes of a content, read from its file; fails if the file was changed
/// since it was hashed.
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

/// The distinct contents that were found so far while a corpus is read, with their paths, and
/// counts of the corpus's files.
#[derive(Debug)]
pub(super) struct ContentIndex {
    pub(super) table: ContentTable,
    /// Bytes of the contents that were found first, as far as they fit into the cache, so that
    /// their files need not be read again for the runs.
    pub(super) held: ContentCache,
    pub(super) spool: PathSpool,
    pub(super) file_counts: FileCounts,
    pub(super) progress: MeasureProgress,
}

/// Results of running contents, to be added to the `ContentIndex`.
#[derive(Default)]
pub(super) struct RunResults {
    /// For each content that was run: its number, the position of its record in the journal, and
    /// whether the run may have failed.
    pub(super) records: Vec<(usize, RecordPosition, bool)>,
    /// Numbers of contents whose files could not be read again, and why.
    pub(super) lost: Vec<(usize, NotRead)>,
}

impl ContentIndex {
    /// Creates an empty index of contents, which stores their paths in `spool`.
    pub(super) fn new(spool: PathSpool) -> ContentIndex {
        ContentIndex {
            table: ContentTable::default(),
            held: ContentCache::default(),
            spool,
            file_counts: FileCounts::default(),
            progress: MeasureProgress::default(),
        }
    }

    /// Counts a file with this content, and adds the content if it is new; otherwise counts the
    /// file as a duplicate.
    pub(super) fn add_file(
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
        self.file_counts.duplicates.add(content.size());
        // The file that stands for a content must not depend on the order of the directory.
        if path < self.spool.path(at).map_err(failed)? {
            entry.set_path(self.spool.keep(path).map_err(failed)?);
        }
        Ok(())
    }

    /// Counts a file of the corpus that was not read, with the reason `why`.
    pub(super) fn exclude(&mut self, path: &Path, why: &NotRead) {
        let (aside, size) = match why {
            NotRead::Vanished => {
                self.progress.files += 1;
                self.file_counts.vanished.add(path, 0, || why.to_string());
                return;
            }
            NotRead::Oversized { size, .. } => (&mut self.file_counts.oversized, *size),
            NotRead::Refused { size, .. } => (&mut self.file_counts.unread, *size),
            NotRead::Changed => (&mut self.file_counts.unread, 0),
        };
        aside.add(path, size, || why.to_string());
        self.count(size);
    }

    fn count(&mut self, size: u64) {
        self.file_counts.before.add(size);
        self.progress.files += 1;
        self.progress.bytes += size;
    }

    /// Counts, in the progress, the contents that need not be run because the journal has their
    /// record.
    pub(super) fn count_known(&mut self) {
        for entry in self.table.entries() {
            let known = entry.record().is_some();
            self.progress.reused += u64::from(known);
            self.progress.suspicious += u64::from(known && entry.suspicious);
        }
    }

    /// Stores the results of runs in the entries of the contents, and counts them.
    pub(super) fn take(&mut self, ran: RunResults) {
        for (number, place, suspicious) in ran.records {
            self.progress.runs += 1;
            self.progress.suspicious += u64::from(suspicious);
            self.table.get_mut(number).set_record(place, suspicious);
        }
        for (number, why) in ran.lost {
            self.lose(number, &why);
        }
    }

    /// Excludes the content `number` from the corpus, because its file could not be read again to
    /// be run, and counts the file as unreadable or vanished, with the reason `why`.
    fn lose(&mut self, number: usize, why: &NotRead) {
        let entry = self.table.get_mut(number);
        let size = entry.content.size();
        let path = entry.path().and_then(|at| self.spool.path(at).ok());
        let path = path.unwrap_or_default();
        self.progress.contents -= 1;
        if *why == NotRead::Vanished {
            self.file_counts.before.remove(size);
            self.file_counts.vanished.add(&path, 0, || why.to_string());
        } else {
            self.file_counts.unread.add(&path, size, || why.to_string());
        }
    }
}

/// Maximum number of bytes of contents that a `ContentCache` holds.
const MOST: usize = 64 << 20;

/// Cache of the bytes of the first contents of a corpus, so that their files are not read again for
/// the runs.
#[derive(Debug, Default)]
pub(super) struct ContentCache {
    bytes: Vec<u8>,
    /// For each cached content, the offset of its end in the buffer that holds the bytes of all of
    /// them.
    ends: Vec<usize>,
    /// Whether a content did not fit into the cache; after the first such content no further one is
    /// cached.
    is_full: bool,
}

impl ContentCache {
    /// Adds `bytes`, the next content of the corpus, to the cache, if they fit.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.is_full |= self.bytes.len() + bytes.len() > MOST;
        if !self.is_full {
            self.bytes.extend_from_slice(bytes);
            self.ends.push(self.bytes.len());
        }
    }

    /// Returns the bytes of the content with the index `number` in the corpus; `None` if they are
    /// not cached.
    pub(super) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

/// Stands for a missing position: a content's record is not in the journal, or its path is not in
/// the temporary file of paths.
const NO_POSITION: u64 = u64::MAX;

/// A content with the position of its record in the journal and of its path in the `PathSpool`;
/// takes 64 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) content: ContentId,
    at: u64,
    path: u64,
    length: u32,
    pub(super) suspicious: bool,
}

impl Entry {
    /// Returns the position of the content's record in the journal; `None` if it was not run yet.
    pub(super) fn record(&self) -> Option<RecordPosition> {
        (self.at != NO_POSITION).then_some(RecordPosition {
            at: self.at,
            length: self.length,
        })
    }

    pub(super) fn set_record(&mut self, place: RecordPosition, suspicious: bool) {
        (self.at, self.length) = (place.at, place.length);
        self.suspicious = suspicious;
    }

    /// Returns the position of the content's path in the `PathSpool`; `None` if no file of the
    /// corpus with this content was found.
    pub(super) fn path(&self) -> Option<u64> {
        (self.path != NO_POSITION).then_some(self.path)
    }

    pub(super) fn set_path(&mut self, path: u64) {
        self.path = path;
    }
}

/// A hash table with linear probing of the entries of all contents of a corpus.
#[derive(Debug, Default)]
pub(super) struct ContentTable {
    entries: Vec<Entry>,
    /// Hash table: each slot holds the number of an entry plus 1, or 0 if it is free. The length is
    /// a power of two; at least half of the slots are free.
    slots: Vec<u32>,
}

impl ContentTable {
    /// Returns the number of the entry of a content, and whether the entry is new: a content
    /// without an entry gets one.
    pub(super) fn entry(&mut self, content: &ContentId) -> (usize, bool) {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        let at = match self.look(content) {
            Ok(number) => return (number, false),
            Err(at) => at,
        };
        self.entries.push(Entry {
            content: *content,
            at: NO_POSITION,
            path: NO_POSITION,
            length: 0,
            suspicious: false,
        });
        self.slots[at] = self.entries.len() as u32;
        (self.entries.len() - 1, true)
    }

    /// Returns the number of a content's entry in the table; `None` if the table does not contain
    /// the content.
    pub(super) fn find(&self, content: &ContentId) -> Option<usize> {
        match self.slots.is_empty() {
            true => None,
            false => self.look(content).ok(),
        }
    }

    /// Returns `Ok` with the number of a content's entry, or `Err` with the index of the free hash
    /// table slot for it.
    fn look(&self, content: &ContentId) -> Result<usize, usize> {
        let mut at = self.home(content);
        loop {
            match self.slots[at] {
                0 => return Err(at),
                number if self.entries[number as usize - 1].content == *content => {
                    return Ok(number as usize - 1);
                }
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Returns the entries of all contents, in the order in which they were added.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Entry {
        &mut self.entries[number]
    }

    fn home(&self, content: &ContentId) -> usize {
        let mut first = [0; 8];
        first.copy_from_slice(&content.blake3()[..8]);
        (u64::from_le_bytes(first) as usize) & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(1024);
        self.slots = vec![0; size];
        for number in 0..self.entries.len() {
            let mut at = self.home(&self.entries[number].content);
            while self.slots[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = number as u32 + 1;
        }
    }
}

/// Number of bytes of paths that a `PathSpool` collects in memory before it writes them to its
/// file.
const AT_ONCE: usize = 64 * 1024;
/// Number of bytes in which a `PathSpool` stores the length of a path, before the path.
const LENGTH: usize = 4;

/// Stores paths in an unlinked temporary file, since the paths of a million files would take much
/// memory.
#[derive(Debug)]
pub(super) struct PathSpool {
    file: File,
    /// Length in bytes of the temporary file of paths; paths stored later are still in memory.
    written: u64,
    tail: Vec<u8>,
}

impl PathSpool {
    /// Makes an empty `PathSpool` (list of paths on disk), whose temporary file is in `folder`.
    pub(super) fn create(folder: &Path) -> io::Result<PathSpool> {
        Ok(PathSpool {
            file: tempfile::tempfile_in(folder)?,
            written: 0,
            tail: Vec::new(),
        })
    }

    /// Stores a path, and returns the position at which [`PathSpool::path`] finds it.
    pub(super) fn keep(&mut self, path: &Path) -> io::Result<u64> {
        if self.tail.len() >= AT_ONCE {
            self.file.write_all_at(&self.tail, self.written)?;
            self.written += self.tail.len() as u64;
            self.tail.clear();
        }
        let at = self.written + self.tail.len() as u64;
        let bytes = path.as_os_str().as_bytes();
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.tail.extend_from_slice(&length.to_le_bytes());
        self.tail.extend_from_slice(bytes);
        Ok(at)
    }

    /// Returns the path that [`PathSpool::keep`] has stored at the position `at`.
    pub(super) fn path(&self, at: u64) -> io::Result<PathBuf> {
        let mut length = [0; LENGTH];
        self.read(at, &mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.read(at + LENGTH as u64, &mut bytes)?;
        Ok(OsStr::from_bytes(&bytes).into())
    }

    /// Fills `bytes` with those bytes of the stored paths that begin at position `at`. They are
    /// either all in the temporary file or all still in memory.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(behind) = at.checked_sub(self.written) else {
            return self.file.read_exact_at(bytes, at);
        };
        let from = behind as usize;
        let found = self.tail.get(from..from + bytes.len());
        let found = found.ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_held_in_their_order_until_there_is_no_room() {
        let mut held = ContentCache::default();
        for bytes in [&b"abc"[..], b"", b"d", &vec![0; MOST], b"e"] {
            held.hold(bytes);
        }
        let found = [0, 1, 2, 3, 4].map(|number| held.get(number));
        assert_eq!(
            found,
            [Some(&b"abc"[..]), Some(b""), Some(b"d"), None, None]
        );
    }

    #[test]
    fn each_content_has_one_entry() {
        let mut table = ContentTable::default();
        let contents: Vec<ContentId> = (0..5000_u32)
            .map(|n| ContentId::of(&n.to_le_bytes()))
            .collect();
        assert_eq!(table.find(&contents[0]), None);
        for (number, content) in contents.iter().enumerate() {
            assert_eq!(table.entry(content), (number, true));
            assert_eq!(table.find(content), Some(number));
        }
        for (number, content) in contents.iter().enumerate() {
            assert_eq!(table.entry(content), (number, false));
        }
        assert_eq!(size_of::<Entry>(), 64);
    }

    #[test]
    fn paths_come_back_from_memory_and_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = PathSpool::create(folder.path()).unwrap();
        let path = |n: u32| PathBuf::from(OsStr::from_bytes(format!("/a\n/\u{e9}{n}").as_bytes()));
        let odd = Path::new(OsStr::from_bytes(b"/\xff\xfe\0"));
        let places: Vec<u64> = (0..10_000).map(|n| spool.keep(&path(n)).unwrap()).collect();
        let last = spool.keep(odd).unwrap();
        for (n, at) in places.iter().enumerate() {
            assert_eq!(spool.path(*at).unwrap(), path(n as u32));
        }
        assert_eq!(spool.path(last).unwrap(), odd);
        assert!(spool.path(last + 1000).is_err());
    }
}
