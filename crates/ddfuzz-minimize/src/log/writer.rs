//! Writing a log.

use std::io;
use std::path::{Path, PathBuf};

use super::{Line, LogError};
use ddfuzz_model::files::{Appender, FileError};

/// Where lines are appended.
pub trait Medium: Send {
    /// Appends a line by one write.
    ///
    /// # Errors
    /// When it cannot be written whole.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;

    /// Makes what was appended survive a power cut.
    ///
    /// # Errors
    /// When that fails.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for Appender {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        Appender::append(self, line.strip_suffix(b"\n").unwrap_or(line)).map_err(system_error)
    }

    fn sync(&mut self) -> io::Result<()> {
        Appender::sync(self).map_err(system_error)
    }
}

/// The system's error alone: what was done to which file, errors of the log say themselves.
fn system_error(error: FileError) -> io::Error {
    match error.io().raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.io().kind(), error.to_string()),
    }
}

/// Appends lines: one write each, synced at each `reduce` and at `end`.
pub struct LogWriter {
    medium: Box<dyn Medium>,
    path: PathBuf,
}

impl LogWriter {
    /// A new log file.
    ///
    /// # Errors
    /// When it exists already, or cannot be created.
    pub fn create(path: &Path) -> Result<LogWriter, LogError> {
        if path.exists() {
            let exists = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(LogError::io("creating", path)(exists));
        }
        let file = Appender::open(path).map_err(system_error);
        let file = file.map_err(LogError::io("creating", path))?;
        Ok(LogWriter::on(Box::new(file), path))
    }

    /// Goes on with a log file; a torn last line is cut off.
    ///
    /// # Errors
    /// When it cannot be opened or shortened.
    pub fn resume(path: &Path) -> Result<LogWriter, LogError> {
        let file = Appender::open(path).map_err(system_error);
        let file = file.map_err(LogError::io("opening", path))?;
        Ok(LogWriter::on(Box::new(file), path))
    }

    /// A log on another medium; `path` is what errors name.
    pub fn on(medium: Box<dyn Medium>, path: &Path) -> LogWriter {
        LogWriter {
            medium,
            path: path.to_owned(),
        }
    }

    /// Appends a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &Line) -> Result<(), LogError> {
        let json = line.to_json().map_err(io::Error::from);
        let written = json.and_then(|json| self.medium.append(&json));
        written.map_err(LogError::io("writing", &self.path))?;
        if matches!(line, Line::Reduce(_) | Line::End(_)) {
            self.medium
                .sync()
                .map_err(LogError::io("syncing", &self.path))?;
        }
        Ok(())
    }
}
