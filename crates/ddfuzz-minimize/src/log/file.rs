//! Reads and writes the file of a minimization log, and explains why a log cannot be used.

use ddfuzz_model::files::{Appender, FileError};
use std::io;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::log::{Line, StartLine, VERSION};

/// A minimization log that was read from its file: its complete lines, with line numbers from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The first line, which describes the minimization; `None` if even this line is incomplete.
    pub start: Option<StartLine>,
    /// The complete lines after the first, each with its line number, counted from 1.
    pub lines: Vec<(u64, Line)>,
    /// Length of the log's complete lines together, in bytes, without an incomplete last line.
    pub whole: u64,
}

impl Log {
    /// Reads and parses the minimization log at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, or as [`Log::parse`].
    pub fn read(path: &Path) -> Result<Log, LogError> {
        let bytes = std::fs::read(path).map_err(LogError::io("reading the log", path))?;
        Log::parse(&bytes)
    }

    /// Reads only the first line of a log file; `None` if it cannot be read or is not a start line
    /// of this version of the log format.
    pub fn read_start(path: &Path) -> Option<StartLine> {
        let mut line = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        BufReader::new(file).read_until(b'\n', &mut line).ok()?;
        Log::parse(&line).ok()?.start
    }

    /// Parses the lines of a log. A last line without its newline is ignored, because its writer
    /// was killed while writing it.
    ///
    /// # Errors
    /// If a complete line is invalid, the first line is not a start line, or the log has another
    /// version.
    pub fn parse(bytes: &[u8]) -> Result<Log, LogError> {
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        if whole == 0 && !begins_a_log(bytes) {
            let why = "it does not begin as one".to_owned();
            return Err(LogError::Malformed { line: 1, why });
        }
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

/// Checks whether bytes without a line end may be what a killed writer has left of a log's first
/// line.
fn begins_a_log(bytes: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"v\":";
    let length = bytes.len().min(BEGINNING.len());
    bytes[..length] == BEGINNING[..length]
}

/// Returns the format version that the first line `json` of a log states; `None` if it states none.
fn version(json: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    value.get("v")?.as_u64()?.try_into().ok()
}

/// A medium to which the lines of a log are appended, such as a file.
pub trait Medium: Send {
    /// Appends one log line, with its newline, by a single write.
    ///
    /// # Errors
    /// If the line cannot be written completely.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;

    /// Makes the appended lines durable, as `fsync` does for a file.
    ///
    /// # Errors
    /// If the system cannot do so.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for Appender {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        (self.append_record(line).map(drop)).map_err(FileError::into_io)
    }

    fn sync(&mut self) -> io::Result<()> {
        Appender::sync(self).map_err(FileError::into_io)
    }
}

/// Appends lines to a log: one write for each line, and a sync after each `reduce` and `end` line.
pub struct LogWriter {
    medium: Box<dyn Medium>,
    path: PathBuf,
    /// Whether the writer syncs the log itself; if false, its caller does.
    is_synced: bool,
}

impl LogWriter {
    /// Creates a new, empty log file at `path`. As long as the writer lives, no other can be opened
    /// on the file.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub fn create(path: &Path) -> Result<LogWriter, LogError> {
        if path.exists() {
            let exists = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(LogError::io("creating", path)(exists));
        }
        let file = Appender::open_alone(path).map_err(FileError::into_io);
        let file = file.map_err(LogError::io("creating", path))?;
        Ok(LogWriter::on(Box::new(file), path))
    }

    /// Opens a log file to append to it, and cuts off an incomplete last line. As long as the
    /// writer lives, no other can be opened on the file.
    ///
    /// # Errors
    /// If the file cannot be opened or shortened, or has a writer already.
    pub fn resume(path: &Path) -> Result<LogWriter, LogError> {
        let file = Appender::open_alone(path).map_err(FileError::into_io);
        let file = file.map_err(LogError::io("opening", path))?;
        Ok(LogWriter::on(Box::new(file), path))
    }

    /// Makes a writer that appends lines to `medium`; its errors name `path` as the log.
    pub fn on(medium: Box<dyn Medium>, path: &Path) -> LogWriter {
        LogWriter {
            medium,
            path: path.to_owned(),
            is_synced: true,
        }
    }

    /// Makes the writer leave syncs to its caller, for a log whose syncs would take longer than its
    /// tests: lines that a power cut takes can be computed again.
    pub fn unsynced(self) -> LogWriter {
        LogWriter {
            is_synced: false,
            ..self
        }
    }

    /// Appends `line` to the log as JSON; after a `reduce` or `end` line, syncs the file, unless
    /// the caller does.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub fn append(&mut self, line: &Line) -> Result<(), LogError> {
        let json = line.to_json().map_err(io::Error::from);
        let written = json.and_then(|json| self.medium.append(&json));
        written.map_err(LogError::io("writing", &self.path))?;
        if self.is_synced && matches!(line, Line::End(_) | Line::Reduce(_)) {
            self.medium
                .sync()
                .map_err(LogError::io("syncing", &self.path))?;
        }
        Ok(())
    }
}

/// Why a log cannot be read, written or resumed: an error of its file, invalid lines, or another
/// minimization than asked for. Line numbers count from 1.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file of the log cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The operation on the log that failed, such as "reading".
        what: &'static str,
        /// Path of the log that could not be read or written.
        path: PathBuf,
        /// The error that the operating system returned for the operation on the log.
        source: io::Error,
    },
    /// A complete line of the log is not valid in the log format.
    #[error("line {line} is not a line of a minimization log: {why}")]
    Malformed {
        /// Number of the invalid line, counted from 1.
        line: u64,
        /// Message that says what is wrong with the invalid line.
        why: String,
    },
    /// The log was written in another version of the format.
    #[error(
        "the log has version {found}, this ddfuzz reads version {}",
        crate::log::VERSION
    )]
    Version {
        /// Version of the format that the log states.
        found: u32,
    },
    /// The log has no complete line.
    #[error("the log is empty")]
    Empty,
    /// The log belongs to another minimization, for example to one of another input.
    #[error("the log was written with another {what}")]
    Mismatch {
        /// Part of the start line that differs, such as `input`, `search`, `target` or `key`.
        what: &'static str,
    },
    /// A line does not follow from earlier lines: the same search would have written another line.
    #[error("line {line} of the log is inconsistent: {why}")]
    Disagrees {
        /// Number of the first inconsistent line, counted from 1; 0 for a line that was not read
        /// from the log, but was to be written to it, which is an error of ddfuzz.
        line: u64,
        /// Message that says in which way the line does not follow from earlier ones.
        why: String,
    },
}

impl LogError {
    /// Returns true if the log itself is at fault: it is empty, damaged, or of another version of
    /// the format. False if it cannot be read or written, or belongs to another minimization.
    pub fn is_damage(&self) -> bool {
        match self {
            LogError::Malformed { .. } | LogError::Version { .. } | LogError::Empty => true,
            LogError::Disagrees { line, .. } => *line > 0,
            LogError::Io { .. } | LogError::Mismatch { .. } => false,
        }
    }

    /// Returns a function that turns an I/O error into a log error. `what` names the failed
    /// operation ("reading"), `path` the log.
    pub fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> LogError {
        let path = path.to_owned();
        move |source| LogError::Io { what, path, source }
    }
}
