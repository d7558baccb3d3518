//! Why a minimization came to no result.

use super::log::LogError;
use super::{CallbackError, OracleError, Rate, UnknownSearch};
use ddfuzz_delta::Outcome;

/// Why a minimization came to no result.
#[derive(Debug, thiserror::Error)]
pub enum MinimizeError {
    /// The input does not fail: half of the axiom does not hold.
    #[error("the input does not fail: of {tries} runs the last gave {last}")]
    NotFailing {
        /// The outcome of the last run.
        last: Outcome,
        /// Runs made.
        tries: u64,
    },
    /// The input or the empty input fails now and then, and both do: the test does not depend on
    /// what it is given.
    #[error(
        "not reproducible: the outcome does not depend on the input: the input failed in {rate}, \
         the empty input in {empty}"
    )]
    Alternating {
        /// How often the input failed.
        rate: Rate,
        /// How often the empty input failed.
        empty: Rate,
    },
    /// What should pass fails: the other half of the axiom does not hold, which maximizing and
    /// isolating need.
    #[error("{what} fails, but a passing input is needed to start with")]
    NotPassing {
        /// What should pass: the empty input, or the passing one.
        what: &'static str,
    },
    /// The caller asked to stop. The state is in the log: resuming goes on from there.
    #[error("interrupted at {size} bytes after {executed} tests; the state is in the log")]
    Interrupted {
        /// Size of the best so far, in bytes.
        size: u64,
        /// Tests executed so far.
        executed: u64,
    },
    /// No search has this name.
    #[error(transparent)]
    UnknownSearch(#[from] UnknownSearch),
    /// The log cannot be written, or does not belong to this minimization.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The target cannot be run any more.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A reproducer, or another crash that was met, could not be kept.
    #[error("{what} could not be stored: {source}")]
    Callback {
        /// What was to be kept.
        what: &'static str,
        /// Why not.
        source: CallbackError,
    },
}
