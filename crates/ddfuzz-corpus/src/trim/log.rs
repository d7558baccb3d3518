//! The log of one trimmed file.

use std::io;
use std::path::Path;

use ddfuzz_minimize::Journal;
use ddfuzz_minimize::log::{Log, LogError, LogWriter, Medium, StartLine};
use ddfuzz_model::files::{Appender, FileError};

/// How an end line begins.
const END: &[u8] = br#"{"kind":"end""#;

/// Begins the log at `path`, or goes on with it.
///
/// # Errors
/// As [`Journal::resume`].
pub(super) fn open(path: &Path, start: StartLine) -> Result<Journal, LogError> {
    let log = match path.try_exists().map_err(LogError::io("reading", path))? {
        true => Log::read(path)?,
        false => Log::parse(&[])?,
    };
    let file = Appender::open(path).map_err(system_error);
    let file = file.map_err(LogError::io("opening", path))?;
    let medium = SyncedAtEnd { file, ended: false };
    Journal::go_on(log, start, LogWriter::on(Box::new(medium), path))
}

/// A file that is synced when it is whole. What a power cut takes of it before is made again: a
/// sync for each reduction would take longer than the tests.
struct SyncedAtEnd {
    file: Appender,
    ended: bool,
}

impl Medium for SyncedAtEnd {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.ended = line.starts_with(END);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.file.append(line).map_err(system_error)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.ended {
            true => self.file.sync().map_err(system_error),
            false => Ok(()),
        }
    }
}

/// The system's error alone: what was done to which file, errors of the log say themselves.
fn system_error(error: FileError) -> io::Error {
    match error.io().raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.io().kind(), error.to_string()),
    }
}
