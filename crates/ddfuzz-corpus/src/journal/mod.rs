//! The journal of a cleanup: what each content did when it was run, so that nothing is run twice,
//! even after ddfuzz was killed.
//!
//! An append-only file of binary records, each with a checksum. The first names the target; all
//! others are runs of contents. What follows the first damage is cut off, and its contents
//! are run again. Memory holds the positions of records; their features are read on demand.
//!
//! Localized here: `blake3` (checksums and the identity).

mod record;
mod scan;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{ContentId, Feature, Features};
use ddfuzz_campaign::{CampaignError, identity};
use ddfuzz_exec::{Target, Way};
use ddfuzz_model::files::{FileError, atomic};

pub use record::{Head, Observation, encode};

/// Time between two syncs.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// What was found on opening a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Whole records of runs of this target.
    pub records: u64,
    /// Bytes after the last whole record, which were cut off.
    pub cut: u64,
    /// Whether there was a journal of another target, or build of it, or nothing that can be read
    /// as a journal, which was replaced.
    pub replaced: bool,
}

/// An open journal. One process writes it at a time, by the lock of the output directory.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length of the whole records, in bytes.
    length: u64,
    /// Whether a part of a record may follow them.
    torn: bool,
    /// When it was last synced, if anything was appended since.
    unsynced: Option<Instant>,
}

impl Journal {
    /// Opens the journal at `path`, or makes it, and tells `each` of its records in the order in
    /// which they were written. One of another target is replaced by an empty one.
    ///
    /// # Errors
    /// When it cannot be opened, read, cut or replaced.
    pub fn open(
        path: &Path,
        identity: &JournalIdentity,
        each: &mut dyn FnMut(RecordPosition, Head),
    ) -> Result<(Journal, Opened), FileError> {
        let mut opened = Opened::default();
        let whole = match File::open(path) {
            Ok(file) => {
                let found = file.metadata().map_err(FileError::at("read", path))?;
                let counted = &mut |place, head| {
                    opened.records += 1;
                    each(place, head);
                };
                let whole = scan::scan(&file, identity, counted);
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
            atomic::write(path, &scan::first_record(identity))?;
        }
        let file = OpenOptions::new().read(true).append(true).open(path);
        let file = file.map_err(FileError::at("open", path))?;
        if let (Some(whole), 1..) = (whole, opened.cut) {
            let cut = file.set_len(whole);
            cut.map_err(FileError::at("cut off the damaged end of", path))?;
        }
        let length = file.metadata().map_err(FileError::at("read", path))?.len();
        let journal = Journal {
            path: path.to_owned(),
            file,
            length,
            torn: false,
            unsynced: None,
        };
        Ok((journal, opened))
    }

    /// Appends whole records ([`encode`]) by one `write`, and gives where the first of them
    /// stands. They survive the death of the process at once, and a power cut after some seconds.
    ///
    /// # Errors
    /// When not all could be written; the part that was is taken back.
    pub fn append(&mut self, records: &[u8]) -> Result<u64, FileError> {
        let failed = |error| FileError::at("append to", &self.path)(error);
        if self.torn {
            self.file.set_len(self.length).map_err(failed)?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(records) {
            // Should taking it back fail too, it is tried again before the next records.
            self.torn = self.file.set_len(self.length).is_err();
            return Err(failed(error));
        }
        let at = self.length;
        self.length += records.len() as u64;
        let since = *self.unsynced.get_or_insert_with(Instant::now);
        if since.elapsed() >= SYNC_EVERY {
            self.sync()?;
        }
        Ok(at)
    }

    /// Writes all that was appended through to the device.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&mut self) -> Result<(), FileError> {
        let synced = self.file.sync_data();
        synced.map_err(FileError::at("sync", &self.path))?;
        self.unsynced = None;
        Ok(())
    }

    /// Reads what was seen in the run whose record stands there.
    ///
    /// # Errors
    /// When it cannot be read, or is no whole record any more (somebody else has written there).
    pub fn read(&self, place: RecordPosition) -> Result<(Head, Observation), FileError> {
        read_whole(&self.file, place).map_err(FileError::at("read", &self.path))
    }

    /// The same with the features in `features`, ascending, which is emptied before; those of what
    /// is given are none, where any were told.
    ///
    /// # Errors
    /// Those of [`Journal::read`].
    pub fn read_into(
        &self,
        place: RecordPosition,
        features: &mut Vec<Feature>,
    ) -> Result<(Head, Observation), FileError> {
        read_record(&self.file, place, features).map_err(FileError::at("read", &self.path))
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// What was seen in the run whose record stands there.
fn read_whole(file: &File, place: RecordPosition) -> io::Result<(Head, Observation)> {
    let mut features = Vec::new();
    let (head, mut seen) = read_record(file, place, &mut features)?;
    if seen.features.is_some() {
        seen.features = Some(Features::from_unsorted(features));
    }
    Ok((head, seen))
}

/// The same with the features in `features`.
fn read_record(
    file: &File,
    place: RecordPosition,
    features: &mut Vec<Feature>,
) -> io::Result<(Head, Observation)> {
    let mut record = vec![0; place.length as usize];
    file.read_exact_at(&mut record, place.at)?;
    let decoded = record::body(&record).and_then(|body| record::decode(body, features));
    decoded.ok_or_else(|| {
        let why = format!("there is no whole record at byte {}", place.at);
        io::Error::new(ErrorKind::InvalidData, why)
    })
}

/// What a journal says of the first runs of contents. Nothing in it is changed.
#[derive(Debug)]
pub struct JournalView {
    path: PathBuf,
    file: File,
    places: HashMap<ContentId, RecordPosition>,
}

impl JournalView {
    /// Looks into the journal at `path`; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn into(path: &Path) -> Result<Option<JournalView>, FileError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(FileError::at("open", path))?,
        };
        let read = || FileError::at("read", path);
        let Some(identity) = scan::identity_of(&file).map_err(read())? else {
            return Ok(None);
        };
        let again = File::open(path).map_err(FileError::at("open", path))?;
        let mut places = HashMap::new();
        let each = &mut |place, head: self::Head| {
            if head.round == 0 {
                places.insert(head.content, place);
            }
        };
        scan::scan(&again, &identity, each).map_err(read())?;
        Ok(Some(JournalView {
            path: path.to_owned(),
            file,
            places,
        }))
    }

    /// What was seen of this content; `None` where it was not run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn seen(&self, content: &ContentId) -> Result<Option<Observation>, FileError> {
        let Some(place) = self.places.get(content) else {
            return Ok(None);
        };
        let seen = read_whole(&self.file, *place).map_err(FileError::at("read", &self.path))?;
        Ok(Some(seen.1))
    }
}

/// The version of what features are numbered by, and of the records; another one makes another
/// identity.
const VERSION: u32 = 1;

/// Names a target as far as what its runs reach depends on it: program, arguments, environment,
/// limits ([`identity`]), the way of execution and the number of instrumented places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalIdentity([u8; 32]);

impl JournalIdentity {
    /// That of `target` as `way` runs it, which tells of so many places; `None` where it tells no
    /// coverage.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn of(
        target: &Target,
        way: Way,
        places: Option<usize>,
    ) -> Result<JournalIdentity, CampaignError> {
        let places = places.map_or("none".to_owned(), |places| places.to_string());
        let text = format!("{VERSION}\n{}\n{way}\n{places}", identity(target)?);
        Ok(JournalIdentity(*blake3::hash(text.as_bytes()).as_bytes()))
    }

    /// The one of these bytes.
    fn from_bytes(bytes: [u8; 32]) -> JournalIdentity {
        JournalIdentity(bytes)
    }

    /// As bytes.
    fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Where a record stands in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// Its offset, in bytes.
    pub at: u64,
    /// Its length with all that stands before its body, in bytes.
    pub length: u32,
}
