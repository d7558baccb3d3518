//! Why files could not be trimmed.

use ddfuzz_exec::{ExecError, Way};
use ddfuzz_minimize::{CallbackError, MinimizeError};
use ddfuzz_model::files::FileError;

/// Why files could not be trimmed.
#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Runs tell no coverage.
    #[error(
        "run by {way} the target reports no coverage: trimming needs a libFuzzer harness, a \
         program compiled by AFL++ or a bundled target"
    )]
    NoCoverage {
        /// The way of execution.
        way: Way,
    },
    /// A minimization failed; also where the caller asked to stop, which
    /// [`TrimError::is_interrupted`] tells.
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
    /// Something could not be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The caller asked to stop between two files.
    #[error("interrupted; files that are trimmed already are not trimmed again")]
    Interrupted,
    /// The caller could not take a result.
    #[error("a trimmed file could not be stored: {0}")]
    Callback(CallbackError),
}

impl TrimError {
    /// Whether the caller asked to stop: calling again goes on.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            TrimError::Interrupted | TrimError::Minimize(MinimizeError::Interrupted { .. })
        )
    }
}
