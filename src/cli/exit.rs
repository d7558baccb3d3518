//! The exit codes; their comments are the manual.

use std::process::ExitCode;

/// How ddfuzz ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing found, or the job done.
    Done = 0,
    /// Crashes found (`run`, `triage`, `watch`), or what was checked does not hold (`log replay`,
    /// `log verify`, `check`, the last check of `clean`).
    Found = 1,
    /// Wrong usage: an option, a file given or an output directory that cannot be used.
    Usage = 2,
    /// The baseline failed: the target does not start, the input does not fail, or not again.
    Baseline = 3,
    /// Only groups known before.
    Known = 4,
    /// An internal error.
    Internal = 70,
    /// Interrupted; the state is saved.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
