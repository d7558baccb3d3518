//! The journal of a cleanup: what each content did when it was run, so that no run is repeated,
//! even after ddfuzz was killed.
//!
//! An append-only file of binary records with checksums. The first record identifies the target;
//! each further one describes a run of a content. Everything after the first damaged record is cut
//! off, and the contents of the lost records are run again. Memory holds the positions of records;
//! features are read on demand.

mod record;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::{ContentId, Feature, Features};
use ddfuzz_campaign::{CampaignError, identity};
use ddfuzz_exec::{Target, Way};
use ddfuzz_model::files::{Appender, FileError, atomic};
use ddfuzz_model::pool::lock;
use record::HEAD;

pub use ddfuzz_model::files::Position as RecordPosition;
pub use record::{Observation, RecordHead, encode};

/// Time after which a record that is not synced to the device yet makes the next append sync the
/// journal.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// What was found in a journal of runs when it was opened: intact records and damaged bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalState {
    /// Number of intact records of runs that the opened journal contains.
    pub records: u64,
    /// Number of bytes after the last intact record, which were cut off when the journal was
    /// opened.
    pub cut: u64,
    /// Whether the journal's file was replaced by an empty one when it was opened, because it was
    /// not a journal, or belonged to another target or build.
    pub replaced: bool,
}

/// An open journal of the runs of a target, to which records are appended. The lock of the output
/// directory ensures that one process writes it at a time.
#[derive(Debug)]
pub struct Journal {
    file: Appender,
    /// Time of the first append since the last sync; `None` if all records are synced.
    unsynced: Option<Instant>,
    ahead: Mutex<ReadAhead>,
}

impl Journal {
    /// Opens or creates the journal at `path`, and calls `each` with the position and head of each
    /// record of a run, in order. A journal of another target is replaced by an empty one. Returns
    /// the journal, and what was found in it.
    pub fn open(
        path: &Path,
        identity: &JournalIdentity,
        each: &mut dyn FnMut(RecordPosition, RecordHead),
    ) -> Result<(Journal, JournalState), FileError> {
        let mut opened = JournalState::default();
        let whole = match File::open(path) {
            Ok(file) => {
                let found = file.metadata().map_err(FileError::at("read", path))?;
                let counted = &mut |place, head| {
                    opened.records += 1;
                    each(place, head);
                };
                let whole = scan(&file, Some(identity), counted);
                let whole = whole.map_err(FileError::at("read", path))?;
                opened.cut = found.len() - whole.unwrap_or(0).min(found.len());
                whole
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(FileError::at("open", path)(error)),
        };
        if whole.is_none() {
            opened.replaced = opened.cut > 0;
            opened.cut = 0;
            // What a power cut takes of it is measured again.
            atomic::write_unsynced(path, &first_record(identity))?;
        }
        let journal = Journal {
            file: Appender::open_after(path, whole.unwrap_or(u64::MAX))?,
            unsynced: None,
            ahead: Mutex::default(),
        };
        Ok((journal, opened))
    }

    /// Appends encoded records ([`encode`]) by one `write`, and returns the position of the first.
    /// They survive the death of the process at once, and a power failure after some seconds.
    ///
    /// # Errors
    /// When not all bytes could be written; a partial write is undone.
    pub fn append(&mut self, records: &[u8]) -> Result<u64, FileError> {
        let at = self.file.append_record(records)?.at;
        let since = *self.unsynced.get_or_insert_with(Instant::now);
        if since.elapsed() >= SYNC_EVERY {
            self.sync()?;
        }
        Ok(at)
    }

    /// Syncs the journal: writes all appended records through to the device.
    pub fn sync(&mut self) -> Result<(), FileError> {
        self.file.sync()?;
        self.unsynced = None;
        Ok(())
    }

    /// Returns the record at the position `place`: the content and number of the run, and what the
    /// run did.
    pub fn read(&self, place: RecordPosition) -> Result<(RecordHead, Observation), FileError> {
        self.read_by(place, |record| decode_whole(record, place))
    }

    /// Reads the record of a run at the position `place` of the journal. Returns what
    /// [`read`](Journal::read) returns, but without features: those that the run reached replace
    /// the content of `features`, in ascending order.
    ///
    /// # Errors
    /// As [`Journal::read`].
    pub fn read_into(
        &self,
        place: RecordPosition,
        features: &mut Vec<Feature>,
    ) -> Result<(RecordHead, Observation), FileError> {
        self.read_by(place, |record| decode(record, place, features))
    }

    fn read_by<T>(
        &self,
        place: RecordPosition,
        decode: impl FnOnce(&[u8]) -> io::Result<T>,
    ) -> Result<T, FileError> {
        let mut ahead = lock(&self.ahead);
        let record = ahead.read(self.file.file(), place);
        let found = record.and_then(|record| decode(&record));
        found.map_err(FileError::at("read", self.path()))
    }

    /// Returns the path of the journal.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the length of the journal's file, in bytes.
    pub fn length(&self) -> u64 {
        self.file.len()
    }
}

/// Decodes the record of a run that is stored at `place`; its features replace those in `features`.
fn decode(
    record: &[u8],
    place: RecordPosition,
    features: &mut Vec<Feature>,
) -> io::Result<(RecordHead, Observation)> {
    let decoded = record::body(record).and_then(|body| record::decode(body, features));
    decoded.ok_or_else(|| {
        let why = format!("there is no whole record at byte {}", place.at);
        io::Error::new(ErrorKind::InvalidData, why)
    })
}

/// Decodes the record of a run that is stored at `place`, with its features.
fn decode_whole(record: &[u8], place: RecordPosition) -> io::Result<(RecordHead, Observation)> {
    let mut features = Vec::new();
    let (head, mut seen) = decode(record, place, &mut features)?;
    if seen.features.is_some() {
        seen.features = Some(Features::from_unsorted(features));
    }
    Ok((head, seen))
}

/// Number of bytes of a journal that are read ahead when its records are read in their order.
const AHEAD: usize = 1 << 16;

/// The part of a journal that was read last. If records are read in the order in which they were
/// written, many of them take one system call.
#[derive(Debug, Default)]
struct ReadAhead {
    /// Offset in the journal's file of the first byte that is held in memory.
    at: u64,
    bytes: Vec<u8>,
    /// Offset in the journal's file of the end of the record that was read last.
    next: u64,
}

impl ReadAhead {
    /// Returns the bytes of the record at `place`. If the record before it was read last, also
    /// reads the bytes that follow, for later calls. They stay valid, since records are never
    /// changed.
    fn read(&mut self, file: &File, place: RecordPosition) -> io::Result<Cow<'_, [u8]>> {
        let length = place.length as usize;
        let follows = place.at == self.next;
        self.next = place.at + u64::from(place.length);
        let is_held = place.at >= self.at && self.next <= self.at + self.bytes.len() as u64;
        if !is_held {
            if !follows {
                return place.read(file).map(Cow::Owned);
            }
            self.fill(file, place.at, length)?;
        }
        let from = (place.at - self.at) as usize;
        Ok(Cow::Borrowed(&self.bytes[from..from + length]))
    }

    /// Reads at least `length` bytes from offset `at` of the file, and up to 64 KiB if the file has
    /// more.
    fn fill(&mut self, file: &File, at: u64, length: usize) -> io::Result<()> {
        self.at = at;
        self.bytes.resize(length.max(AHEAD), 0);
        let mut done = 0;
        while done < length {
            match file.read_at(&mut self.bytes[done..], at + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(done);
        match done < length {
            true => Err(ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }
}

/// Read-only access to a journal of runs: looks up what the first run of each content did.
#[derive(Debug)]
pub struct JournalView {
    path: PathBuf,
    file: File,
    places: HashMap<ContentId, RecordPosition>,
}

impl JournalView {
    /// Opens the journal at `path` for reading; `None` if the file does not exist or is not a
    /// journal.
    pub fn open(path: &Path) -> Result<Option<JournalView>, FileError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(FileError::at("open", path))?,
        };
        let mut places = HashMap::new();
        let each = &mut |place, head: self::RecordHead| {
            if head.round == 0 {
                places.insert(head.content, place);
            }
        };
        let whole = scan(&file, None, each).map_err(FileError::at("read", path))?;
        if whole.is_none() {
            return Ok(None);
        }
        Ok(Some(JournalView {
            path: path.to_owned(),
            file,
            places,
        }))
    }

    /// Reads what the first run of a content did; `None` if the content was not run.
    pub fn first_run(&self, content: &ContentId) -> Result<Option<Observation>, FileError> {
        let Some(place) = self.places.get(content) else {
            return Ok(None);
        };
        let record = place.read(&self.file);
        let seen = record.and_then(|record| decode_whole(&record, *place));
        Ok(Some(seen.map_err(FileError::at("read", &self.path))?.1))
    }
}

/// Version of the numbering of features and of the format of run records. It is part of the
/// identity that a journal must match, so journals of other versions are not used.
const VERSION: u32 = 1;

/// Identifies all that determines what runs reach: the target's program, arguments, environment and
/// limits ([`identity`]), the way of execution and the number of instrumented places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalIdentity([u8; 32]);

impl JournalIdentity {
    /// Computes the identity of `target` executed by `way`, with its number of instrumented places
    /// (`None` if it reports no coverage).
    pub fn of(
        target: &Target,
        way: Way,
        places: Option<usize>,
    ) -> Result<JournalIdentity, CampaignError> {
        let places = places.map_or("none".to_owned(), |places| places.to_string());
        let text = format!("{VERSION}\n{}\n{way}\n{places}", identity(target)?);
        Ok(JournalIdentity(*blake3::hash(text.as_bytes()).as_bytes()))
    }
}

/// Name and version of the journal's file format, as written in its first record.
const NAME: &[u8] = b"ddfuzz clean.journal 1\n";
/// Number of bytes that are read at once when a whole journal is scanned.
const AT_ONCE: u64 = 1 << 20;

/// Encodes the first record of a journal, which identifies the target.
fn first_record(identity: &JournalIdentity) -> Vec<u8> {
    let mut bytes = Vec::new();
    record::frame(&mut bytes, |body| {
        body.push(record::IDENTITY);
        body.extend_from_slice(NAME);
        body.extend_from_slice(&identity.0);
    });
    bytes
}

/// Reads a journal from the start, and calls `each` for each record of a run. Returns the length in
/// bytes of the part without damage. `None` if the file is not a journal, or is the journal of
/// another target than `identity`.
fn scan(
    file: &File,
    identity: Option<&JournalIdentity>,
    each: &mut dyn FnMut(RecordPosition, RecordHead),
) -> io::Result<Option<u64>> {
    let mut records = Records::new(file);
    let Some(first) = records.next()? else {
        return Ok(None);
    };
    let found = record::body(first)
        .and_then(|body| body.strip_prefix(&[record::IDENTITY])?.strip_prefix(NAME))
        .and_then(|bytes| bytes.try_into().ok())
        .map(JournalIdentity);
    if found.is_none_or(|found| identity.is_some_and(|identity| *identity != found)) {
        return Ok(None);
    }
    let mut at = first.len() as u64;
    while let Some(record) = records.next()? {
        // An intact record of another kind was not written by this version.
        let Some(head) = record::body(record).and_then(record::head) else {
            break;
        };
        let Ok(length) = u32::try_from(record.len()) else {
            break;
        };
        each(RecordPosition { at, length }, head);
        at += u64::from(length);
    }
    Ok(Some(at))
}

/// Reads the records of a journal one after the other, by the lengths that they begin with.
/// Checksums are not verified.
struct Records<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// Offset in the buffer of the start of the next record to return.
    from: usize,
}

impl Records<'_> {
    fn new(file: &File) -> Records<'_> {
        Records {
            file,
            buffer: Vec::new(),
            from: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if !self.have(HEAD)? {
            return Ok(None);
        }
        let Some(body) = record::body_length(&self.buffer[self.from..]) else {
            return Ok(None);
        };
        let length = HEAD + body;
        if !self.have(length)? {
            return Ok(None);
        }
        let from = self.from;
        self.from += length;
        Ok(Some(&self.buffer[from..self.from]))
    }

    /// Reads more of the journal's file until the buffer holds at least `count` bytes that were not
    /// used yet. Returns true if the buffer holds so many, and false if the file ends before.
    fn have(&mut self, count: usize) -> io::Result<bool> {
        while self.buffer.len() - self.from < count {
            self.buffer.drain(..self.from);
            self.from = 0;
            // In steps, since a damaged length may be huge.
            let mut step = self.file.take(AT_ONCE);
            let read = step.read_to_end(&mut self.buffer)?;
            if read == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
