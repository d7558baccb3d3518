//! The log of an interrupted minimization, which a new one resumes.

use std::path::Path;

use crate::log::{Line, Log, LogError, LogWriter, StartLine};

/// A log being written, with the lines that it has already.
///
/// The lines of an interrupted minimization are fed to [`minimize`](crate::minimize) before
/// anything is run, and new lines are appended after them. The finished log equals that of an
/// undisturbed minimization, `us` aside.
pub struct Journal {
    start: StartLine,
    past: Vec<(u64, Line)>,
    writer: LogWriter,
}

impl Journal {
    /// A new log file.
    ///
    /// # Errors
    /// When it exists already, or cannot be written.
    pub fn create(path: &Path, start: StartLine) -> Result<Journal, LogError> {
        Journal::begin(start, LogWriter::create(path)?)
    }

    /// Goes on with a log file; a missing one, or one without a whole first line, is begun.
    ///
    /// # Errors
    /// When it cannot be read or written, when a whole line is not understood, or when it belongs
    /// to another input, search, target, key or rule of caching. It is not changed then.
    pub fn resume(path: &Path, start: StartLine) -> Result<Journal, LogError> {
        if !path.try_exists().map_err(LogError::io("reading", path))? {
            return Journal::create(path, start);
        }
        let log = Log::read(path)?;
        check_same(&log, &start)?;
        let writer = LogWriter::resume(path)?;
        Journal::go_on(log, start, writer)
    }

    /// A new log on any medium.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(start: StartLine, mut writer: LogWriter) -> Result<Journal, LogError> {
        writer.append(&Line::Start(Box::new(start.clone())))?;
        Ok(Journal {
            start,
            past: Vec::new(),
            writer,
        })
    }

    /// Resumes a log as read; `writer` appends after its whole lines.
    ///
    /// # Errors
    /// As [`Journal::resume`].
    pub fn go_on(log: Log, start: StartLine, writer: LogWriter) -> Result<Journal, LogError> {
        check_same(&log, &start)?;
        match log.start {
            Some(start) => Ok(Journal {
                start,
                past: log.lines,
                writer,
            }),
            None => Journal::begin(start, writer),
        }
    }

    /// The first line.
    pub fn start(&self) -> &StartLine {
        &self.start
    }

    /// Takes the lines that it has already, after the first.
    pub(super) fn take_past(&mut self) -> Vec<(u64, Line)> {
        std::mem::take(&mut self.past)
    }

    /// Appends a line.
    pub(super) fn append(&mut self, line: &Line) -> Result<(), LogError> {
        self.writer.append(line)
    }
}

/// Whether a log is of this minimization.
fn check_same(log: &Log, start: &StartLine) -> Result<(), LogError> {
    let Some(logged) = &log.start else {
        return Ok(());
    };
    let same_input = logged.input_blake3 == start.input_blake3 && logged.size == start.size;
    let differences = [
        (!same_input, "input"),
        (logged.search != start.search, "search"),
        (!logged.target.same_target(&start.target), "target"),
        (logged.key != start.key, "key"),
        (logged.hold_minor != start.hold_minor, "minor key"),
        (logged.test != start.test, "test"),
        (!same_coverage(logged, start), "coverage"),
        (logged.call != start.call, "call"),
        (logged.cache != start.cache, "cache"),
        (!same_difference(logged, start), "difference"),
    ];
    match differences.into_iter().find(|(differs, _)| *differs) {
        Some((_, what)) => Err(LogError::Mismatch { what }),
        None => Ok(()),
    }
}

/// Whether both hold the same coverage of the same build, or none.
fn same_coverage(logged: &StartLine, start: &StartLine) -> bool {
    match (&logged.coverage, &start.coverage) {
        (Some(one), Some(other)) => one.same_coverage(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Whether both are of the same `diff` or `max`, or of none.
fn same_difference(logged: &StartLine, start: &StartLine) -> bool {
    match (&logged.difference, &start.difference) {
        (Some(one), Some(other)) => one.same_search(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
