//! Reads and hashes all files of a corpus, by workers side by side, and runs each new content
//! once.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::again::{Inputs, RunOrder, run_in_order};
use super::contents::{Contents, read_entry};
use super::index::{ContentCache, ContentIndex, Entry, PathSpool, RunResults};
use super::runner::{CrashSuspicion, Runners};
use super::{MeasureError, MeasureProgress, MeasureSettings, journal_of};
use crate::ContentId;
use crate::journal::{self, Journal, JournalIdentity, RecordPosition};
use crate::listing::Listing;
use crate::lock;
use ddfuzz_exec::Freshness;
use ddfuzz_model::files::FileError;
use ddfuzz_model::files::regular::{self, Unread};

/// The different contents of a corpus, and a target to run them.
pub struct Gathered {
    ledger: ContentIndex,
    out: PathBuf,
    places: Option<usize>,
    freshness: Freshness,
}

/// Lists, reads and hashes the inputs at `roots`, which are only read. Nothing is written to the
/// output directory `out`, which is there and locked by the caller. `progress` is told ten times a
/// second how far that is.
///
/// # Errors
/// When a root cannot be listed, or the target not be started. What cannot be read below the roots
/// is in the tally of the [`Contents`].
pub fn gather(
    roots: &[PathBuf],
    out: &Path,
    settings: &MeasureSettings<'_>,
    progress: &mut dyn FnMut(&MeasureProgress),
) -> Result<Gathered, MeasureError> {
    let listing = Listing::new(roots, Some(out))?;
    let suspicion = CrashSuspicion::of(settings)?;
    let runner = Runners::take(settings, suspicion)?;
    let (places, freshness) = (runner.places(), runner.freshness());
    Runners::give_back(settings, runner);
    let spool = PathSpool::create(out).map_err(FileError::at("make a file in", out))?;
    let shared = Shared {
        settings,
        listing: Mutex::new(listing),
        ledger: Mutex::new(ContentIndex::new(spool)),
        failed: AtomicBool::new(false),
    };
    let worker = || Worker::new(&shared).work();
    side_by_side(settings.jobs, &shared.failed, &worker, &mut || {
        let now = lock(&shared.ledger).progress;
        progress(&now);
    })?;
    let listing = shared.listing.into_inner();
    let ledger = shared.ledger.into_inner();
    let mut ledger = ledger.unwrap_or_else(PoisonError::into_inner);
    let listing = listing.unwrap_or_else(PoisonError::into_inner);
    ledger.tally.listing = listing.into_report();
    Ok(Gathered {
        ledger,
        out: out.to_owned(),
        places,
        freshness,
    })
}

impl Gathered {
    /// How many contents there are.
    pub fn len(&self) -> usize {
        self.ledger.table.entries().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs each content once, as far as the journal in the output directory does not know what it
    /// does.
    ///
    /// # Errors
    /// When the target cannot be run, or the journal cannot be read or written.
    pub fn run(
        self,
        settings: &MeasureSettings<'_>,
        progress: &mut dyn FnMut(&MeasureProgress),
    ) -> Result<Contents, MeasureError> {
        let mut ledger = self.ledger;
        let (places, freshness) = (self.places, self.freshness);
        let identity = JournalIdentity::of(settings.target, settings.way, places)?;
        let mut repeats = HashMap::new();
        let path = self.out.join(journal_of(settings.freshness));
        let table = &mut ledger.table;
        let (mut journal, opened) = Journal::open(&path, &identity, &mut |place, head| {
            if head.round > 0 {
                repeats.insert((head.content, head.round), place);
            } else if let Some(number) = table.find(&head.content) {
                table.get_mut(number).set_record(place, head.suspicious);
            }
        })?;
        ledger.count_known();
        let ran = run_unknown(settings, &ledger, &mut journal, progress)?;
        journal.sync()?;
        ledger.take(ran);
        let ContentIndex {
            table,
            spool,
            tally,
            progress,
            ..
        } = ledger;
        let mut entries = table.into_entries();
        entries.retain(|entry| entry.path().is_some() && entry.record().is_some());
        entries.sort_unstable_by_key(|entry| entry.content);
        Ok(Contents {
            entries,
            journal,
            spool,
            repeats,
            tally,
            progress,
            opened,
            places,
            freshness,
            interrupted: settings.stopped(),
        })
    }
}

/// Runs the contents without a record, and those that share a process with them: in the order of
/// results, so that what a content reaches does not depend on the order of a directory.
fn run_unknown(
    settings: &MeasureSettings<'_>,
    ledger: &ContentIndex,
    journal: &mut Journal,
    progress: &mut dyn FnMut(&MeasureProgress),
) -> Result<RunResults, MeasureError> {
    let entries = ledger.table.entries();
    let mut numbers: Vec<usize> = (0..entries.len()).collect();
    numbers.sort_unstable_by_key(|number| entries[*number].content);
    let is_unknown = |at: usize| entries[numbers[at]].record().is_none();
    let inputs = UnknownContents::of(ledger, entries, &numbers);
    let now = Mutex::new(ledger.progress);
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

/// Contents that the journal does not know.
struct UnknownContents<'a> {
    entries: &'a [Entry],
    spool: &'a PathSpool,
    held: &'a ContentCache,
    numbers: &'a [usize],
}

impl UnknownContents<'_> {
    fn of<'a>(
        ledger: &'a ContentIndex,
        entries: &'a [Entry],
        numbers: &'a [usize],
    ) -> UnknownContents<'a> {
        UnknownContents {
            entries,
            spool: &ledger.spool,
            held: &ledger.held,
            numbers,
        }
    }
}

impl Inputs for UnknownContents<'_> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        let number = self.numbers[number];
        match self.held.get(number) {
            Some(held) => {
                bytes.clear();
                bytes.extend_from_slice(held);
                Ok(())
            }
            None => read_entry(&self.entries[number], self.spool, bytes),
        }
    }
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let contents = self.len();
        f.debug_struct("Gathered")
            .field("out", &self.out)
            .field("contents", &contents)
            .finish_non_exhaustive()
    }
}

/// Files that a worker takes at once.
const MANY: usize = 128;
/// Bytes that a worker reads before it adds them to the index, not counting the last file.
pub(super) const WAITING: usize = 4 << 20;

/// The state that workers share.
pub(super) struct Shared<'a> {
    pub(super) settings: &'a MeasureSettings<'a>,
    pub(super) listing: Mutex<Listing>,
    pub(super) ledger: Mutex<ContentIndex>,
    /// Whether a worker has failed.
    pub(super) failed: AtomicBool,
}

impl Shared<'_> {
    fn goes_on(&self) -> bool {
        !self.settings.stopped() && !self.failed.load(Ordering::Relaxed)
    }
}

/// A worker: takes files, reads and hashes them.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    /// Files that were read, and are not in the index yet.
    read: Vec<(PathBuf, ContentId, Vec<u8>)>,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
}

impl Worker<'_> {
    pub(super) fn new<'a>(shared: &'a Shared<'a>) -> Worker<'a> {
        Worker {
            shared,
            read: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Takes files until none is left, or it has to stop.
    pub(super) fn work(mut self) -> Result<(), MeasureError> {
        while self.shared.goes_on() {
            let found: Vec<_> = lock(&self.shared.listing).by_ref().take(MANY).collect();
            if found.is_empty() {
                break;
            }
            let mut bytes = 0;
            for found in found {
                bytes += self.read(found.path);
                if bytes >= WAITING {
                    self.note()?;
                    bytes = 0;
                }
            }
            self.note()?;
        }
        Ok(())
    }

    /// Reads a file and returns its size.
    fn read(&mut self, path: PathBuf) -> usize {
        let mut bytes = self.spare.pop().unwrap_or_default();
        match read(&path, self.shared.settings.max_len, &mut bytes) {
            Ok(()) => {
                let length = bytes.len();
                self.read.push((path, ContentId::of(&bytes), bytes));
                length
            }
            Err(why) => {
                lock(&self.shared.ledger).exclude(&path, &why);
                self.give_back(bytes);
                0
            }
        }
    }

    fn note(&mut self) -> Result<(), MeasureError> {
        let mut read = std::mem::take(&mut self.read);
        let mut ledger = lock(&self.shared.ledger);
        for (path, content, bytes) in &read {
            ledger.add_file(content, path, bytes)?;
        }
        drop(ledger);
        for (_, _, bytes) in read.drain(..) {
            self.give_back(bytes);
        }
        self.read = read;
        Ok(())
    }

    /// Keeps a buffer for the next file, unless it is large or there are many.
    fn give_back(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MANY && bytes.capacity() <= WAITING / MANY {
            self.spare.push(bytes);
        }
    }
}

/// Time between two calls of `look`.
const LOOK: Duration = Duration::from_millis(100);

/// Runs `jobs` workers, and calls `look` ten times a second until all have ended, and once more
/// then. `failed` turns true when one of them fails.
pub(super) fn side_by_side(
    jobs: usize,
    failed: &AtomicBool,
    worker: &(dyn Fn() -> Result<(), MeasureError> + Sync),
    look: &mut dyn FnMut(),
) -> Result<(), MeasureError> {
    let (sender, ends) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let sender = sender.clone();
            scope.spawn(move || {
                let done = worker();
                if done.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                // Whoever listens does so until all have ended.
                let _ = sender.send(done);
            });
        }
        drop(sender);
        let mut result = Ok(());
        loop {
            match ends.recv_timeout(LOOK) {
                Ok(done) => result = result.and(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            look();
        }
        result
    })
}

/// How often a file is read that changes its length meanwhile.
const TRIES: usize = 3;

/// Why a file gave no input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// It is gone.
    #[error("it no longer exists")]
    Vanished,
    /// It is longer than what is run.
    #[error("it has {size} bytes, more than the {limit} of --max-len")]
    Oversized {
        /// Its length, in bytes.
        size: u64,
        /// The greatest length, in bytes.
        limit: u64,
    },
    /// It was changed since it was measured, or changes all the time.
    #[error("another program is changing it")]
    Changed,
    /// Anything else.
    #[error("{why}")]
    Refused {
        /// Its length, where it could be opened, in bytes.
        size: u64,
        /// The system's error.
        why: Unread,
    },
}

/// Reads a file of at most `limit` bytes into `bytes`, as a whole: one that changes its length
/// meanwhile is read again.
///
/// # Errors
/// Why the file is not usable.
pub fn read(path: &Path, limit: u64, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
    for _ in 0..TRIES {
        let (mut file, facts) = regular::open(path).map_err(|why| match why {
            Unread::Missing => NotRead::Vanished,
            why => NotRead::Refused { size: 0, why },
        })?;
        let size = facts.len();
        if size > limit {
            return Err(NotRead::Oversized { size, limit });
        }
        // More than memory has room for is more than any limit of use.
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

/// Reads what should be `size` bytes. False where there are more, or fewer.
fn fill(file: &mut File, size: usize, bytes: &mut Vec<u8>) -> io::Result<bool> {
    // With room for one more, the read that ends early shows the end of the file, too.
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
