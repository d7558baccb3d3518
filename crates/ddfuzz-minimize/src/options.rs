//! How a minimization is bounded and watched, and why it may fail.

use ddfuzz_delta::{Outcome, Rule};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::log::{Line, LogError};
use crate::{OracleError, Proved, Rate, Slip, UnknownSearch};

/// Why a callback failed; it ends the minimization.
pub type CallbackError = Box<dyn Error + Send + Sync>;

/// Takes a new best text.
pub type OnReduce<'a> = Box<dyn FnMut(&[u8]) -> Result<(), CallbackError> + 'a>;

/// Takes a slip and the index of its test, `None` for a check.
pub type OnSlip<'a> = Box<dyn FnMut(&Slip, Option<u64>) -> Result<(), CallbackError> + 'a>;

/// Takes the status.
pub type OnStanding<'a> = Box<dyn FnMut(&MinimizeStatus) + 'a>;

/// Bounds and callbacks. None of them changes the order of tests.
pub struct Options<'a> {
    /// Largest number of executed tests; what is best then is the result.
    pub budget_tests: Option<u64>,
    /// Longest time for tests, those of resumed runs included.
    pub budget_time: Option<Duration>,
    /// Microseconds of this call that were spent in callbacks; they do not count as time of tests.
    pub stood_still: Option<&'a AtomicU64>,
    /// When it turns true, the minimization stops with its state in the log.
    pub stop: Option<&'a AtomicBool>,
    /// Whether candidates are written into the log.
    pub log_inputs: bool,
    /// Called with each new best text, after its `reduce` line is synced, and once with the best so
    /// far after a resume. It has to write it atomically.
    pub on_reduce: OnReduce<'a>,
    /// Called once per (major, minor) with a crash that a candidate slipped into, before its line
    /// is written. Called again after a resume that lost the line. A slip without a record may be
    /// followed by one that has it. Without an index, like that of a check, is also a crash that a
    /// test met which was run ahead in vain: once per (major, minor), and where a test of the log
    /// slips into the same later, it is called for that as if nothing had been before.
    pub on_slip: OnSlip<'a>,
    /// Called after each line that is written.
    pub on_line: Box<dyn FnMut(&Line) + 'a>,
    /// Called with the status before the first line, and then after lines, at most ten times a
    /// second.
    pub on_standing: Option<OnStanding<'a>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            budget_tests: None,
            budget_time: None,
            stood_still: None,
            stop: None,
            log_inputs: false,
            on_reduce: Box::new(|_| Ok(())),
            on_slip: Box::new(|_, _| Ok(())),
            on_line: Box::new(|_| ()),
            on_standing: None,
        }
    }
}

impl Options<'_> {
    /// Whether the caller asked to stop.
    pub(super) fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// How many more tests the budget allows.
    pub(super) fn left(&self, executed: u64) -> Option<u64> {
        self.budget_tests
            .map(|budget| budget.saturating_sub(executed))
    }

    /// The time since `begin`, less that in which it stood still.
    pub(super) fn worked(&self, begin: Instant) -> Duration {
        let still = (self.stood_still).map_or(0, |still| still.load(Ordering::Relaxed));
        begin.elapsed().saturating_sub(Duration::from_micros(still))
    }

    /// Whether a budget is used up.
    pub(super) fn spent(&self, executed: u64, time: Duration) -> bool {
        self.budget_tests.is_some_and(|budget| executed >= budget)
            || self.budget_time.is_some_and(|budget| time >= budget)
    }
}

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

/// The phase of a minimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinimizePhase {
    /// The input is run as it is, and the empty input.
    Baseline,
    /// The search runs; the rule made its candidate.
    Search(Option<Rule>),
    /// What the search left open is proved.
    Proof,
    /// The result is run again.
    Confirm,
}

impl std::fmt::Display for MinimizePhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            MinimizePhase::Baseline => "baseline",
            MinimizePhase::Search(Some(rule)) => rule.name(),
            MinimizePhase::Search(None) => "search",
            MinimizePhase::Proof => "proof",
            MinimizePhase::Confirm => "confirm",
        })
    }
}

/// The status of a minimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimizeStatus {
    /// Its phase.
    pub doing: MinimizePhase,
    /// Size of the best, in bytes.
    pub size: u64,
    /// Size of the input, in bytes.
    pub size_before: u64,
    /// Tests that ran the target, those before a resume included.
    pub executed: u64,
    /// Runs of the target aside from tests.
    pub checks: u64,
    /// Single removals of the best known not to fail, of those that there are.
    pub proved: Proved,
}
