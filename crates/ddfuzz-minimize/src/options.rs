//! Options of a minimization (budgets, callbacks), its errors, and its status.

use ddfuzz_delta::{Outcome, Rule};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::log::{Line, LogError};
use crate::{OracleError, Proved, Rate, Slip, UnknownSearch, UnknownStructure};

/// An error that a callback of the caller returns, for example because it could not store a text;
/// it ends the minimization.
pub type CallbackError = Box<dyn Error + Send + Sync>;

/// Callback that stores the text that became the new best (the smallest failing text so far).
pub type OnReduce<'a> = Box<dyn FnMut(&[u8]) -> Result<(), CallbackError> + 'a>;

/// Callback that stores a slip (a crash of another bug). The number is the index, in the log, of
/// the test that crashed; `None` for a check (a run outside of the search), and for a test that a
/// worker made in advance and the search did not need.
pub type OnSlip<'a> = Box<dyn FnMut(&Slip, Option<u64>) -> Result<(), CallbackError> + 'a>;

/// Callback that shows the status of a running minimization to the user.
pub type OnStatus<'a> = Box<dyn FnMut(&MinimizeStatus) + 'a>;

/// Budgets and callbacks of a minimization. They do not change the order of tests.
pub struct Options<'a> {
    /// Maximum number of tests that run the target. When it is reached, the smallest failing text
    /// so far is the result. `None` means no limit.
    pub budget_tests: Option<u64>,
    /// Longest wall time of the minimization. When it is reached, the present run is ended, and the
    /// smallest failing text so far is the result. Whatever the time, runs of the input go on until
    /// one fails, and a result that is smaller than the input is run again once. Tests and checks
    /// before a resume count, too; time in callbacks does not. `None` means no limit.
    pub budget_time: Option<Duration>,
    /// Wall time of the caller's own runs of the input, just before the minimization, which have
    /// failed. It counts for `budget_time`, which may then end the minimization before any further
    /// run of the input fails. `None` if there were no such runs.
    pub shown_in: Option<Duration>,
    /// Counter, incremented by the caller, of the microseconds that its callbacks took in this
    /// call; they do not count for `budget_time`. `None` counts as 0.
    pub callback_us: Option<&'a AtomicU64>,
    /// Flag that stops the minimization when it becomes true; the state is then in the log.
    pub stop: Option<&'a AtomicBool>,
    /// Whether the log contains the text of each candidate.
    pub log_inputs: bool,
    /// Called with each new best text (the smallest that fails) after its `reduce` line is synced,
    /// and once after a resume; with a text of 1 MiB or more only if it is at most half as large as
    /// that of the last call, or at the end, however the minimization ends. The callback must write
    /// the text atomically.
    pub on_reduce: OnReduce<'a>,
    /// Called with each slip (a crash of another bug), once per pair of crash keys, before the log
    /// line of its test is written; called again after a resume if this line was lost, and when a
    /// slip that had no crash record gets one. A slip from a test that a worker made in advance and
    /// the search did not need comes without an index; if a test in the log has the same slip
    /// later, it comes again.
    pub on_slip: OnSlip<'a>,
    /// Called after each line that is written to the log.
    pub on_line: Box<dyn FnMut(&Line) + 'a>,
    /// Called with the status before the first line, and then after lines, at most ten times per
    /// second.
    pub on_status: Option<OnStatus<'a>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            budget_tests: None,
            budget_time: None,
            shown_in: None,
            callback_us: None,
            stop: None,
            log_inputs: false,
            on_reduce: Box::new(|_| Ok(())),
            on_slip: Box::new(|_, _| Ok(())),
            on_line: Box::new(|_| ()),
            on_status: None,
        }
    }
}

impl Options<'_> {
    /// Checks whether the caller asked to stop, by the flag in `stop`.
    pub(super) fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Returns how many more tests may run the target within the test budget, given that `executed`
    /// tests have run it, including those before a resume (checks do not count); `None` without a
    /// limit.
    pub(super) fn left(&self, executed: u64) -> Option<u64> {
        self.budget_tests
            .map(|budget| budget.saturating_sub(executed))
    }

    /// Returns the time since `begin` without the time spent in callbacks.
    pub(super) fn worked(&self, begin: Instant) -> Duration {
        let still = (self.callback_us).map_or(0, |still| still.load(Ordering::Relaxed));
        begin.elapsed().saturating_sub(Duration::from_micros(still))
    }

    /// Checks whether the budget of tests or that of time is used up: `executed` tests have run the
    /// target so far, and the minimization has taken `time`.
    pub(super) fn spent(&self, executed: u64, time: Duration) -> bool {
        self.budget_tests.is_some_and(|budget| executed >= budget) || self.is_out_of_time(time)
    }

    /// Checks whether the budget of time is used up by a minimization that has taken `time`.
    pub(super) fn is_out_of_time(&self, time: Duration) -> bool {
        let shown = self.shown_in.unwrap_or_default();
        self.budget_time
            .is_some_and(|budget| time.saturating_add(shown) >= budget)
    }
}

/// Why a minimization, an isolation (`diff`, `max`) or the replay of a log has no result. After
/// [`Interrupted`](MinimizeError::Interrupted), the minimization or isolation can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum MinimizeError {
    /// The input does not fail, so there is nothing to minimize.
    #[error("the input does not fail: of {tries} runs the last gave {last}")]
    NotFailing {
        /// Outcome of the last run of the input: PASS or UNRESOLVED.
        last: Outcome,
        /// Number of runs of the input, none of which failed.
        tries: u64,
    },
    /// The input and the empty input both fail in some runs, so the outcome does not depend on the
    /// input.
    #[error(
        "not reproducible: the outcome does not depend on the input: the input failed in {rate}, \
         the empty input in {empty}"
    )]
    Alternating {
        /// Failure rate of the input: how many of its runs failed.
        rate: Rate,
        /// Failure rate of the empty input: how many of its runs failed.
        empty: Rate,
    },
    /// An input that must pass fails: maximizing and isolating need a passing input to start with.
    #[error("{what} fails, but a passing input is needed to start with")]
    NotPassing {
        /// The input that must pass: "the empty input" or "the passing input".
        what: &'static str,
    },
    /// The caller asked to stop. The state is in the log and can be resumed.
    #[error(
        "interrupted at {size} bytes after {executed} tests{}; the state is in the log",
        unconfirmed(*.confirming)
    )]
    Interrupted {
        /// Size of the smallest failing text so far, in bytes.
        size: u64,
        /// Number of tests that have run the target so far.
        executed: u64,
        /// Number of runs that have confirmed the result, and of all that it needs; `None` before
        /// the search has ended.
        confirming: Option<Runs>,
    },
    /// There is no search of the requested name.
    #[error(transparent)]
    UnknownSearch(#[from] UnknownSearch),
    /// There is no structure of the requested name.
    #[error(transparent)]
    UnknownStructure(#[from] UnknownStructure),
    /// The log cannot be written, or does not belong to this minimization.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The oracle could not run a test, for example because the target can no longer be run.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A callback could not store a result or a crash.
    #[error("{what} could not be stored: {source}")]
    Callback {
        /// Name of what could not be stored, such as "the reproducer".
        what: &'static str,
        /// The error that the callback returned.
        source: CallbackError,
    },
}

/// The phase of a minimization, for a progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinimizePhase {
    /// The input and the empty input are run, before the search.
    Baseline,
    /// The search runs; the rule is that of its last candidate, `None` before the first.
    Search(Option<Rule>),
    /// Removals of single bytes that the search has not tested are tested, to prove the result
    /// minimal.
    Proof,
    /// The smallest text found is run again in fresh processes, to confirm that it fails, and so
    /// are texts without one of its bytes, to confirm that they do not fail.
    Confirm,
}

impl MinimizePhase {
    /// Returns the name of the phase to display. During the search, this is the name of the rule
    /// that made the last candidate.
    pub fn name(self) -> &'static str {
        match self {
            MinimizePhase::Baseline => "baseline",
            MinimizePhase::Search(Some(rule)) => rule.name(),
            MinimizePhase::Search(None) => "search",
            MinimizePhase::Proof => "proof",
            MinimizePhase::Confirm => "confirm",
        }
    }
}

impl std::fmt::Display for MinimizePhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl MinimizeError {
    /// Returns the error of a search that is interrupted before its end, so that no result can be
    /// confirmed. `size`: size of the best so far in bytes; `executed`: number of executed tests.
    pub fn interrupted(size: u64, executed: u64) -> MinimizeError {
        MinimizeError::Interrupted {
            size,
            executed,
            confirming: None,
        }
    }
}

/// Returns the part of the message on an interrupted minimization that says how many runs have
/// confirmed the result, and how many it needs; empty if all of them are made, or if the search had
/// not ended.
fn unconfirmed(confirming: Option<Runs>) -> String {
    let open = confirming.filter(|runs| runs.done < runs.of);
    open.map_or_else(String::new, |Runs { done, of }| {
        format!(", with {done} of {of} runs that confirm the result, which is not confirmed yet")
    })
}

/// How many runs a phase of a minimization has made, and how many it needs in all, for phases that
/// know their number beforehand, such as a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Number of runs that were made.
    pub done: u64,
    /// Number of runs that the phase needs in all, if those still to be made end like those that
    /// were made.
    pub of: u64,
}

/// The status of a running minimization, for a progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimizeStatus {
    /// The present phase: runs of the input (baseline), search, proof, or confirmation.
    pub phase: MinimizePhase,
    /// Size of the best (the smallest failing text so far), in bytes.
    pub size: u64,
    /// Size of the input, in bytes.
    pub size_before: u64,
    /// Number of tests that ran the target, including those before a resume.
    pub executed: u64,
    /// Number of runs outside of the search: of the input (baseline), of the empty input, repeated
    /// runs of candidates of a flaky input (votes), and confirmations of the result.
    pub checks: u64,
    /// Number of removals of single bytes of the best text (the smallest failing so far) that are
    /// known to make the failure go away, and number of all removals of single bytes.
    pub proved: Proved,
    /// The runs of the present phase; `None` in a search and a proof, whose number of runs depends
    /// on the outcomes.
    pub runs: Option<Runs>,
}
