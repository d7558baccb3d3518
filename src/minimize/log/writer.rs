//! Writing a log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Line, LogError};

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

impl Medium for File {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
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
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        let file = file.map_err(LogError::io("creating", path))?;
        Ok(LogWriter::on(Box::new(file), path))
    }

    /// Goes on with a log file after its first `whole` bytes; a torn line behind them is cut off.
    ///
    /// # Errors
    /// When it cannot be opened or shortened.
    pub fn resume(path: &Path, whole: u64) -> Result<LogWriter, LogError> {
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(LogError::io("opening", path))?;
        file.set_len(whole)
            .map_err(LogError::io("shortening", path))?;
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
