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
use ddfuzz_exec::Freshness;
use ddfuzz_model::files::FileError;
use ddfuzz_model::files::regular::Unread;

/// The measured contents of a corpus, including failing ones, in ascending order of [`ContentId`]
/// (shorter ones first), by number. Memory holds 64 bytes per content; features are read from the
/// journal, and paths from a temporary file.
#[derive(Debug)]
pub struct Contents {
    pub(super) entries: Vec<Entry>,
    pub(super) journal: Journal,
    pub(super) spool: PathSpool,
    /// Positions of the records of reruns, by content and round.
    pub(super) repeats: HashMap<(ContentId, u32), RecordPosition>,
    /// Counts of the corpus's files: duplicates, oversized, unreadable and vanished ones.
    pub tally: FileCounts,
    /// Counts of the files read, the contents found, and the runs made.
    pub progress: MeasureProgress,
    /// State of the journal when it was opened.
    pub opened: JournalState,
    /// Number of instrumented places (edges) of the target; `None` if it reports no coverage.
    pub places: Option<usize>,
    /// Whether the runs shared processes.
    pub freshness: Freshness,
    /// Whether measuring was stopped: files and contents may be missing then.
    pub interrupted: bool,
}

impl Contents {
    /// Number of distinct contents in the corpus.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the corpus has no content.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the id of the content with this number.
    ///
    /// # Panics
    /// Here and in the other methods: if no content has this number.
    pub fn id(&self, number: usize) -> ContentId {
        self.entries[number].content
    }

    /// Returns the number of a content; `None` if the corpus does not have it.
    pub fn find(&self, content: &ContentId) -> Option<usize> {
        let place = |entry: &Entry| entry.content.cmp(content);
        self.entries.binary_search_by(place).ok()
    }

    /// Whether the content's run may have failed; see [`Observation::suspicious`].
    pub fn is_suspicious(&self, number: usize) -> bool {
        self.entries[number].suspicious
    }

    /// Returns the observation of the content's first run.
    pub fn seen(&self, number: usize) -> Result<Observation, FileError> {
        Ok(self.journal.read(self.place(number)?)?.1)
    }

    /// Replaces `features` by the content's features in its first run, ascending. The returned
    /// observation has no features.
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

    /// Returns the file that stands for the content: of all files with this content the one with
    /// the least path.
    pub fn path(&self, number: usize) -> Result<PathBuf, FileError> {
        path_of(&self.entries[number], &self.spool)
    }

    /// Replaces `bytes` by the content's bytes, read from its file.
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

/// Reads the file of a content; fails if the file was changed.
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

/// The contents found so far, and counts of the files.
#[derive(Debug)]
pub(super) struct ContentIndex {
    pub(super) table: ContentTable,
    /// Cached bytes of the first contents.
    pub(super) held: ContentCache,
    pub(super) spool: PathSpool,
    pub(super) tally: FileCounts,
    pub(super) progress: MeasureProgress,
}

/// Results of running contents, to be added to the index.
#[derive(Default)]
pub(super) struct RunResults {
    /// Number of a content, position of its record in the journal, and whether its run may have
    /// failed.
    pub(super) records: Vec<(usize, RecordPosition, bool)>,
    /// Contents whose files could not be read again, and why.
    pub(super) lost: Vec<(usize, NotRead)>,
}

impl ContentIndex {
    /// Makes an empty index that stores paths in `spool`.
    pub(super) fn new(spool: PathSpool) -> ContentIndex {
        ContentIndex {
            table: ContentTable::default(),
            held: ContentCache::default(),
            spool,
            tally: FileCounts::default(),
            progress: MeasureProgress::default(),
        }
    }

    /// Adds a file with this content; counts it as a duplicate if the content is known.
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
        self.tally.duplicates.add(content.size());
        // The file that stands for a content must not depend on the order of the directory.
        if path < self.spool.path(at).map_err(failed)? {
            entry.set_path(self.spool.keep(path).map_err(failed)?);
        }
        Ok(())
    }

    /// Counts a file that was not read, with the reason.
    pub(super) fn exclude(&mut self, path: &Path, why: &NotRead) {
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

    /// Counts the contents that have a record in the journal.
    pub(super) fn count_known(&mut self) {
        for entry in self.table.entries() {
            let known = entry.record().is_some();
            self.progress.reused += u64::from(known);
            self.progress.suspicious += u64::from(known && entry.suspicious);
        }
    }

    /// Records the results of runs in the entries of the contents.
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

    /// Excludes a content whose file could not be read again.
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

/// Size of the cache of contents, in bytes.
const MOST: usize = 64 << 20;

/// Cache of the bytes of the first contents, which are then not read again to be run.
#[derive(Debug, Default)]
pub(super) struct ContentCache {
    bytes: Vec<u8>,
    /// End of each content in `bytes`.
    ends: Vec<usize>,
    /// Whether a content did not fit; no later one is cached.
    is_full: bool,
}

impl ContentCache {
    /// Caches the bytes of the next content, if they fit.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.is_full |= self.bytes.len() + bytes.len() > MOST;
        if !self.is_full {
            self.bytes.extend_from_slice(bytes);
            self.ends.push(self.bytes.len());
        }
    }

    /// Returns the bytes of a content; `None` if they are not cached.
    pub(super) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

/// Marks a missing position in the journal or in the path spool.
const NOWHERE: u64 = u64::MAX;

/// A content with the positions of its record and its path; takes 64 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) content: ContentId,
    at: u64,
    path: u64,
    length: u32,
    pub(super) suspicious: bool,
}

impl Entry {
    /// Returns the position of the content's record in the journal.
    pub(super) fn record(&self) -> Option<RecordPosition> {
        (self.at != NOWHERE).then_some(RecordPosition {
            at: self.at,
            length: self.length,
        })
    }

    pub(super) fn set_record(&mut self, place: RecordPosition, suspicious: bool) {
        (self.at, self.length) = (place.at, place.length);
        self.suspicious = suspicious;
    }

    /// Returns the position of the content's path in the spool; `None` if no file with it was found
    /// in this call.
    pub(super) fn path(&self) -> Option<u64> {
        (self.path != NOWHERE).then_some(self.path)
    }

    pub(super) fn set_path(&mut self, path: u64) {
        self.path = path;
    }
}

/// The entries of all contents, in a hash table with linear probing.
#[derive(Debug, Default)]
pub(super) struct ContentTable {
    entries: Vec<Entry>,
    /// Number of an entry plus 1, or 0 for a free slot. The length is a power of two; at least half
    /// are free.
    slots: Vec<u32>,
}

impl ContentTable {
    /// Returns the number of a content's entry, and whether it was added by this call.
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
            at: NOWHERE,
            path: NOWHERE,
            length: 0,
            suspicious: false,
        });
        self.slots[at] = self.entries.len() as u32;
        (self.entries.len() - 1, true)
    }

    /// Returns the number of a content's entry; `None` if it has none.
    pub(super) fn find(&self, content: &ContentId) -> Option<usize> {
        match self.slots.is_empty() {
            true => None,
            false => self.look(content).ok(),
        }
    }

    /// Returns the number of a content's entry, or else the free slot for it.
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

    /// Returns all entries, in the order in which they were added.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Entry {
        &mut self.entries[number]
    }

    /// Returns all entries, and drops the hash table.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
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

/// Bytes of paths that are written to the file at once.
const AT_ONCE: usize = 64 * 1024;
/// Size of the length before each path, in bytes.
const LENGTH: usize = 4;

/// Stores paths in an unlinked temporary file, since those of a million files would take much
/// memory.
#[derive(Debug)]
pub(super) struct PathSpool {
    file: File,
    /// Length of the file, in bytes; later bytes are still in `tail`.
    written: u64,
    tail: Vec<u8>,
}

impl PathSpool {
    /// Creates the temporary file in `folder`.
    pub(super) fn create(folder: &Path) -> io::Result<PathSpool> {
        Ok(PathSpool {
            file: tempfile::tempfile_in(folder)?,
            written: 0,
            tail: Vec::new(),
        })
    }

    /// Stores a path and returns its position.
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

    /// Returns the path at a position.
    pub(super) fn path(&self, at: u64) -> io::Result<PathBuf> {
        let mut length = [0; LENGTH];
        self.read(at, &mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.read(at + LENGTH as u64, &mut bytes)?;
        Ok(OsStr::from_bytes(&bytes).into())
    }

    /// Reads from the file or from `tail`; a path never extends over both.
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
