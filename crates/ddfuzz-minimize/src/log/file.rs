//! Reads and writes the file of a log, and says why one cannot be used.

use ddfuzz_model::files::{Appender, FileError};
use std::io;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::log::{Line, StartLine, VERSION};

/// A log as read: its whole lines, each with its number, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The first line; `None` where not even that is whole.
    pub start: Option<StartLine>,
    /// The lines after the first.
    pub lines: Vec<(u64, Line)>,
    /// Length of the whole lines, in bytes. What stands behind is a torn line and is dropped.
    pub whole: u64,
}

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`Log::parse`].
    pub fn read(path: &Path) -> Result<Log, LogError> {
        let bytes = std::fs::read(path).map_err(LogError::io("reading the log", path))?;
        Log::parse(&bytes)
    }

    /// The first line of a log; `None` where it cannot be read, or is no start line of this
    /// version.
    pub fn read_start(path: &Path) -> Option<StartLine> {
        let mut line = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        BufReader::new(file).read_until(b'\n', &mut line).ok()?;
        Log::parse(&line).ok()?.start
    }

    /// Reads the lines of a log. A last line without its newline was torn when the writer died,
    /// and is dropped.
    ///
    /// # Errors
    /// When a whole line is not understood, when the first is no start line, or when the log has
    /// another version.
    pub fn parse(bytes: &[u8]) -> Result<Log, LogError> {
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        let mut log = Log {
            start: None,
            lines: Vec::new(),
            whole: whole as u64,
        };
        for (line, json) in (1..).zip(bytes[..whole].split_inclusive(|byte| *byte == b'\n')) {
            let malformed = |why: String| LogError::Malformed { line, why };
            if line > 1 {
                let parsed = serde_json::from_slice(json);
                log.lines
                    .push((line, parsed.map_err(|error| malformed(error.to_string()))?));
                continue;
            }
            if let Some(found) = version(json).filter(|found| *found != VERSION) {
                return Err(LogError::Version { found });
            }
            match serde_json::from_slice(json) {
                Ok(Line::Start(start)) => log.start = Some(*start),
                Ok(other) => {
                    return Err(malformed(format!(
                        "it is a {} line, not a start",
                        other.kind()
                    )));
                }
                Err(error) => return Err(malformed(error.to_string())),
            }
        }
        Ok(log)
    }
}

/// The version that a first line names.
fn version(json: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    value.get("v")?.as_u64()?.try_into().ok()
}

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

/// Why a log cannot be read, written, or gone on with. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// The log.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A line is not of this format.
    #[error("line {line} is not a line of a minimization log: {why}")]
    Malformed {
        /// The line.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The log is of another version.
    #[error(
        "the log has version {found}, this ddfuzz reads version {}",
        crate::log::VERSION
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The log has no whole line.
    #[error("the log is empty")]
    Empty,
    /// The log belongs to another minimization.
    #[error("the log was written with another {what}")]
    Mismatch {
        /// What differs: `input`, `search`, `target`, `key`, `test`, `call`, `cache` or `difference`.
        what: &'static str,
    },
    /// A line cannot follow from those before it.
    #[error("line {line} of the log is inconsistent: {why}")]
    Disagrees {
        /// The first such line.
        line: u64,
        /// What does not hold.
        why: String,
    },
}

impl LogError {
    /// An error of the system, with what was being done.
    pub fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> LogError {
        let path = path.to_owned();
        move |source| LogError::Io { what, path, source }
    }
}
