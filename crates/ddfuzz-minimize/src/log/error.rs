//! Why a log cannot be used.

use std::io;
use std::path::PathBuf;

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
        super::VERSION
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
