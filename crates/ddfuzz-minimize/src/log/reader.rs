//! Reading a log.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::{Line, LogError, StartLine, VERSION};

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
