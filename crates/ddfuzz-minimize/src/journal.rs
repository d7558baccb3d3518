//! The journal of a minimization: a log that is being written, and the lines that an interrupted
//! minimization left in it.

use std::path::Path;

use crate::log::{Line, Log, LogError, LogWriter, StartLine};

/// The log of a minimization that is being written, with the lines that it already has from an
/// earlier, interrupted call.
///
/// [`minimize`](crate::minimize) uses these lines as answers before it runs anything, and appends
/// new lines. Except for the measured times, the finished log is the same as without the
/// interruption.
pub struct Journal {
    start: StartLine,
    past: Vec<(u64, Line)>,
    writer: LogWriter,
}

impl Journal {
    /// Creates a log file with the first line `start`.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn create(path: &Path, start: StartLine) -> Result<Journal, LogError> {
        Journal::begin(start, LogWriter::create(path)?)
    }

    /// Resumes the log file at `path`, and returns it, open for further lines. A file that is
    /// missing, or has no complete first line, is started anew.
    ///
    /// # Errors
    /// If the file cannot be read or written, if a complete line is invalid, or if the first line
    /// is not that of this minimization (input, search, target, key, caching rule and others). The
    /// file is not changed then.
    pub fn resume(path: &Path, start: StartLine) -> Result<Journal, LogError> {
        if !path.try_exists().map_err(LogError::io("reading", path))? {
            return Journal::create(path, start);
        }
        check_same(&Log::read(path)?, &start)?;
        let writer = LogWriter::resume(path)?;
        // What another process wrote until then belongs to it.
        Journal::go_on(Log::read(path)?, start, writer)
    }

    /// Resumes and returns the log file at `path`, or starts it if it is missing, like
    /// [`Journal::resume`]. But if the file is the log of another minimization, such as one with
    /// another build of the program, it is replaced by a new log.
    ///
    /// # Errors
    /// As [`Journal::resume`]; if the file cannot be removed.
    pub fn resume_or_begin(path: &Path, start: StartLine) -> Result<Journal, LogError> {
        if !Journal::continues(path, &start) {
            std::fs::remove_file(path).map_err(LogError::io("removing", path))?;
        }
        Journal::resume(path, start)
    }

    /// Checks whether the log file at `path` can be resumed for the minimization that `start`
    /// describes: false if its first line is that of another one. True if the file is missing, or
    /// has no first line that can be read.
    pub fn continues(path: &Path, start: &StartLine) -> bool {
        let logged = Log::read_start(path);
        logged.is_none_or(|logged| difference(&logged, start).is_none())
    }

    /// Starts a new log: writes its first line `start` with `writer`.
    ///
    /// # Errors
    /// If the first line cannot be written.
    pub fn begin(start: StartLine, mut writer: LogWriter) -> Result<Journal, LogError> {
        writer.append(&Line::Start(Box::new(start.clone())))?;
        Ok(Journal {
            start,
            past: Vec::new(),
            writer,
        })
    }

    /// Returns `log`, which was read before, as a log to be continued; `writer` appends to its
    /// complete lines. A log without a complete first line is started anew.
    ///
    /// # Errors
    /// If `start` does not match the first line of the log, or a line cannot be written.
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

    /// Returns the first line of the log, which describes the minimization.
    pub fn start(&self) -> &StartLine {
        &self.start
    }

    /// Takes out the lines that the log already had when it was resumed, except its first line, each
    /// with its line number. A second call returns none.
    pub(super) fn take_past(&mut self) -> Vec<(u64, Line)> {
        std::mem::take(&mut self.past)
    }

    /// Appends a line to the log file.
    pub(super) fn append(&mut self, line: &Line) -> Result<(), LogError> {
        self.writer.append(line)
    }
}

/// Checks that a log belongs to the minimization that `start` describes. `Err` names the first
/// setting that differs.
fn check_same(log: &Log, start: &StartLine) -> Result<(), LogError> {
    let logged = log.start.as_ref();
    match logged.and_then(|logged| difference(logged, start)) {
        Some(what) => Err(LogError::Mismatch { what }),
        None => Ok(()),
    }
}

/// Returns the first setting in which two start lines differ, so that they belong to different
/// minimizations; `None` if they belong to the same one.
fn difference(logged: &StartLine, start: &StartLine) -> Option<&'static str> {
    let same_input = logged.input_blake3 == start.input_blake3 && logged.size == start.size;
    let differences = [
        (!same_input, "input"),
        (logged.search != start.search, "search"),
        (other_structure(logged, start), "structure"),
        (!logged.target.same_target(&start.target), "target"),
        (logged.key != start.key, "key"),
        (logged.hold_minor != start.hold_minor, "minor key"),
        (logged.test != start.test, "test"),
        (!same_coverage(logged, start), "coverage"),
        (logged.call != start.call, "call"),
        (logged.cache != start.cache, "cache"),
        (!same_difference(logged, start), "difference"),
        (other_build(logged, start), "build of the program"),
        (logged.limits != start.limits, "limit (of time or memory)"),
    ];
    let first = differences.into_iter().find(|(differs, _)| *differs);
    first.map(|(_, what)| what)
}

/// Checks whether the user has named a structure other than the one in the log. A structure that
/// was recognized by the content of the input is the same as in the log, and is not compared.
fn other_structure(logged: &StartLine, start: &StartLine) -> bool {
    start.structure_is_named && logged.structure != start.structure
}

/// Checks whether two start lines name different builds of the program; older logs name none.
fn other_build(logged: &StartLine, start: &StartLine) -> bool {
    let builds = logged.build.zip(start.build);
    builds.is_some_and(|(logged, now)| logged != now)
}

/// Checks whether two start lines require the same coverage of the same build, or both require
/// none.
fn same_coverage(logged: &StartLine, start: &StartLine) -> bool {
    match (&logged.coverage, &start.coverage) {
        (Some(one), Some(other)) => one.same_coverage(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Checks whether two start lines belong to the same search of `diff` or `max`, or both to none.
fn same_difference(logged: &StartLine, start: &StartLine) -> bool {
    match (&logged.difference, &start.difference) {
        (Some(one), Some(other)) => one.same_search(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
