//! Reads and hashes all files of a corpus by several workers, and runs each new content once.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::again::{Inputs, RunOrder, run_in_order};
use super::contents::{ContentIndex, Contents, PathSpool, RunResults, read_entry};
use super::runner::Runners;
use super::{MeasureError, MeasureProgress, MeasureSettings, journal_of};
use crate::ContentId;
use crate::journal::{self, Journal, JournalIdentity, RecordPosition};
use crate::listing::Listing;
use ddfuzz_exec::{Freshness, NotCovered};
use ddfuzz_model::files::FileError;
use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_model::pool::{TaskPool, Worker, lock};

/// The distinct file contents of a corpus, which were read and hashed, but not yet run.
#[derive(Debug)]
pub struct Gathered {
    index: ContentIndex,
    out: PathBuf,
    places: Option<usize>,
    not_covered: Option<NotCovered>,
    freshness: Freshness,
}

/// Lists, reads and hashes the inputs at `roots`. The output directory `out` must exist and be
/// locked by the caller; only a temporary file without a name is written there. `progress` is
/// called ten times a second.
///
/// # Errors
/// When a root cannot be listed, or the target cannot be started. Unreadable files below the roots
/// are in [`Contents::file_counts`].
pub fn gather(
    roots: &[PathBuf],
    out: &Path,
    settings: &MeasureSettings<'_>,
    progress: &mut dyn FnMut(&MeasureProgress),
) -> Result<Gathered, MeasureError> {
    let mut listing = Listing::new(roots, Some(out))?;
    let runner = Runners::take(settings)?;
    let (places, freshness) = (runner.counter_count(), runner.freshness());
    let not_covered = runner.not_covered();
    Runners::give_back(settings, runner);
    let spool = PathSpool::create(out).map_err(FileError::at("make a file in", out))?;
    let shared = Shared {
        settings,
        index: Mutex::new(ContentIndex::new(spool)),
    };
    let mut look = || {
        let now = lock(&shared.index).progress;
        progress(&now);
    };
    let batches = std::iter::from_fn(|| {
        let batch: Vec<_> = listing.by_ref().take(MANY).collect();
        (!batch.is_empty()).then_some(batch)
    });
    let goes_on = || !settings.stopped();
    let work = |worker: &Worker<'_, _, _, _>| shared.work(worker);
    let pool = TaskPool::new(settings.jobs, &goes_on);
    let done = pool.run(batches, work, |failed| {
        look();
        failed.unwrap_or(Ok(()))
    });
    look();
    done?;
    let index = shared.index.into_inner();
    let mut index = index.unwrap_or_else(PoisonError::into_inner);
    index.file_counts.listing = listing.into_report();
    Ok(Gathered {
        index,
        out: out.to_owned(),
        places,
        not_covered,
        freshness,
    })
}

impl Gathered {
    /// Returns the number of distinct file contents in the corpus.
    pub fn len(&self) -> usize {
        self.index.table.entries().len()
    }

    /// Returns true if the corpus has no content that could be read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of files that were not read because they are longer than the maximum.
    pub fn oversized(&self) -> u64 {
        self.index.file_counts.oversized.amount().files
    }

    /// Runs once each content that is not in the journal of the output directory, and returns all
    /// contents with what their runs did.
    pub fn run(
        self,
        settings: &MeasureSettings<'_>,
        progress: &mut dyn FnMut(&MeasureProgress),
    ) -> Result<Contents, MeasureError> {
        let mut index = self.index;
        let (places, freshness) = (self.places, self.freshness);
        let identity = JournalIdentity::of(settings.target, settings.way, places)?;
        let mut repeats = HashMap::new();
        let path = self.out.join(journal_of(settings.freshness));
        let table = &mut index.table;
        let (mut journal, opened) = Journal::open(&path, &identity, &mut |place, head| {
            if head.round > 0 {
                repeats.insert((head.content, head.round), place);
            } else if let Some(number) = table.find(&head.content) {
                table.get_mut(number).set_record(place, head.suspicious);
            }
        })?;
        index.count_known();
        let contents = index.table.entries();
        let mut numbers: Vec<usize> = (0..contents.len()).collect();
        numbers.sort_unstable_by_key(|number| contents[*number].content);
        let ran = run_unknown(settings, &index, &numbers, &mut journal, progress)?;
        journal.sync()?;
        index.take(ran);
        let ContentIndex {
            table,
            spool,
            file_counts,
            progress,
            ..
        } = index;
        let entries = numbers.into_iter().map(|number| table.entries()[number]);
        let entries = entries.filter(|entry| entry.path().is_some() && entry.record().is_some());
        let entries: Vec<_> = entries.collect();
        Ok(Contents {
            entries,
            journal,
            spool,
            repeats,
            file_counts,
            progress,
            opened,
            places,
            not_covered: self.not_covered,
            freshness,
            interrupted: settings.stopped(),
        })
    }
}

/// Runs the target on the contents that have no record in the journal. If runs share processes,
/// other contents are run as well in the processes of these, but not recorded again. Appends the
/// new records to `journal`, and returns where they are, and which contents could not be read.
/// `numbers` has the numbers of all contents, sorted by size and hash. Contents are divided among
/// processes in this order, so that their features do not depend on the order of files in a
/// directory. `progress` is called ten times a second.
fn run_unknown(
    settings: &MeasureSettings<'_>,
    index: &ContentIndex,
    numbers: &[usize],
    journal: &mut Journal,
    progress: &mut dyn FnMut(&MeasureProgress),
) -> Result<RunResults, MeasureError> {
    let entries = index.table.entries();
    let is_unknown = |at: usize| entries[numbers[at]].record().is_none();
    let inputs = UnknownContents { index, numbers };
    let now = Mutex::new(index.progress);
    let (mut ran, mut records, mut parts) = (RunResults::default(), Vec::new(), Vec::new());
    let order = RunOrder::of((0..numbers.len() as u32).collect(), &is_unknown);
    let each = &mut |told: Vec<(usize, Result<journal::Observation, NotRead>)>| {
        for (at, seen) in told.into_iter().filter(|(at, _)| is_unknown(*at)) {
            let number = numbers[at];
            let seen = match seen {
                Ok(seen) => seen,
                Err(why) => {
                    ran.lost.push((number, why));
                    continue;
                }
            };
            let from = records.len();
            journal::encode(&mut records, &entries[number].content, 0, &seen);
            parts.push((number, from, records.len() - from, seen.suspicious));
        }
        let start = journal.append(&records)?;
        let mut now = lock(&now);
        for (number, from, length, suspicious) in parts.drain(..) {
            let place = RecordPosition {
                at: start + from as u64,
                length: length as u32,
            };
            now.runs += 1;
            now.suspicious += u64::from(suspicious);
            ran.records.push((number, place, suspicious));
        }
        records.clear();
        Ok(())
    };
    run_in_order(settings, &inputs, order, each, &mut || {
        let now = *lock(&now);
        progress(&now);
    })?;
    Ok(ran)
}

/// The contents of a `ContentIndex` as inputs to run, read from its cache or from their files.
struct UnknownContents<'a> {
    index: &'a ContentIndex,
    numbers: &'a [usize],
}

impl Inputs for UnknownContents<'_> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        let number = self.numbers[number];
        match self.index.held.get(number) {
            Some(held) => {
                bytes.clear();
                bytes.extend_from_slice(held);
                Ok(())
            }
            None => read_entry(
                &self.index.table.entries()[number],
                &self.index.spool,
                bytes,
            ),
        }
    }
}

/// Number of files that a worker thread takes from the listing at a time, to read them.
const MANY: usize = 128;
/// Number of bytes of contents that a worker thread reads before it passes them on, either to the
/// shared index or to the target.
pub(super) const WAITING: usize = 4 << 20;

/// What the worker threads that read and hash the files of a corpus share.
struct Shared<'a> {
    settings: &'a MeasureSettings<'a>,
    index: Mutex<ContentIndex>,
}

impl Shared<'_> {
    /// Reads and hashes files of the listing until none is left, or this worker thread must stop.
    fn work(
        &self,
        worker: &Worker<'_, Vec<PathBuf>, (), MeasureError>,
    ) -> Result<(), MeasureError> {
        while let Some(found) = worker.next_task() {
            let (mut contents, mut size) = (Vec::new(), 0);
            let mut last = LastDirectory::default();
            for path in found {
                let mut bytes = Vec::new();
                match last.read(&path, self.settings.max_len, &mut bytes) {
                    Ok(()) => {
                        size += bytes.len();
                        contents.push((path, ContentId::of(&bytes), bytes));
                    }
                    Err(why) => lock(&self.index).exclude(&path, &why),
                }
                if size >= WAITING {
                    self.add(&mut contents)?;
                    size = 0;
                }
            }
            self.add(&mut contents)?;
        }
        Ok(())
    }

    /// Adds `contents`, which this worker thread has read, to the index that all worker threads
    /// share, and empties the list.
    fn add(&self, contents: &mut Vec<(PathBuf, ContentId, Vec<u8>)>) -> Result<(), MeasureError> {
        let mut index = lock(&self.index);
        for (path, content, bytes) in &*contents {
            index.add_file(content, path, bytes)?;
        }
        drop(index);
        contents.clear();
        Ok(())
    }
}

/// Maximum number of attempts to read a file whose length changes meanwhile.
const TRIES: usize = 3;

/// Why a file could not be read as an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// The file no longer exists.
    #[error("it no longer exists")]
    Vanished,
    /// The file is longer than the greatest allowed length of an input (`--max-len`).
    #[error("it has {size} bytes, more than the {limit} of --max-len")]
    Oversized {
        /// Length of the file that is too long, in bytes.
        size: u64,
        /// Greatest allowed length of an input (`--max-len`), in bytes.
        limit: u64,
    },
    /// The file was changed since it was hashed, or keeps changing while it is read.
    #[error("another program is changing it")]
    Changed,
    /// The file could not be read for another reason, such as missing permission.
    #[error("{why}")]
    Refused {
        /// Length in bytes of the file that could not be read; 0 if it could not be opened.
        size: u64,
        /// Why the file could not be read: an error of the system, or it is not a regular file.
        why: Unread,
    },
}

/// The directory of the file that was read last, held open, since most files that are read
/// successively are in one directory.
#[derive(Default)]
struct LastDirectory {
    path: PathBuf,
    /// The open directory; `None` if no file was read yet, or if the directory could not be opened.
    opened: Option<File>,
}

impl LastDirectory {
    /// Reads the file at `path` as [`read()`] does, but opens it by its name in the open directory.
    /// Opens its directory first if that is not the one of the last file.
    fn read(&mut self, path: &Path, limit: u64, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return read(path, limit, bytes);
        };
        if self.path != directory || self.opened.is_none() {
            self.opened = File::open(directory).ok();
            self.path = directory.to_owned();
        }
        let opened = self.opened.as_ref();
        let open = || {
            opened.map_or_else(
                || regular::open(path),
                |opened| regular::open_in(opened, name),
            )
        };
        read_opened(open, limit, bytes)
    }
}

/// Replaces `bytes` by the content of a file of at most `limit` bytes. A file whose length changes
/// meanwhile is read again.
///
/// # Errors
/// When the file cannot be used as an input; the [`NotRead`] says why.
pub fn read(path: &Path, limit: u64, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
    read_opened(|| regular::open(path), limit, bytes)
}

/// Replaces `bytes` by the content of the file that `open` opens, with the same limit, repetitions
/// and errors as [`read()`].
fn read_opened(
    open: impl Fn() -> Result<(File, Metadata), Unread>,
    limit: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), NotRead> {
    for _ in 0..TRIES {
        let (mut file, facts) = open().map_err(|why| match why {
            Unread::Missing => NotRead::Vanished,
            why => NotRead::Refused { size: 0, why },
        })?;
        let size = facts.len();
        if size > limit {
            return Err(NotRead::Oversized { size, limit });
        }
        // A file larger than memory fails to allocate below.
        let room = usize::try_from(size).unwrap_or(usize::MAX - 1);
        let whole = fill(&mut file, room, bytes).map_err(|error| NotRead::Refused {
            size,
            why: Unread::Refused(error.to_string()),
        })?;
        if whole {
            return Ok(());
        }
    }
    Err(NotRead::Changed)
}

/// Replaces `bytes` by the content of an open file. Returns true if the file has exactly `size`
/// bytes, and false if it has more or fewer.
fn fill(file: &mut File, size: usize, bytes: &mut Vec<u8>) -> io::Result<bool> {
    // One extra byte, so that a short read also detects the end of the file.
    bytes.resize(size + 1, 0);
    let mut done = 0;
    loop {
        match file.read(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if done >= size {
            break;
        }
    }
    bytes.truncate(size);
    Ok(done == size)
}
