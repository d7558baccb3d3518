//! The outcome of a test, the hints that a run may report with it, and the errors if the whole or
//! the empty input has the wrong outcome.

use std::fmt;

/// The outcome of testing a configuration, a set of kept units (POSIX 1003.3; *Why Programs Fail*,
/// A.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "UPPERCASE"))]
pub enum Outcome {
    /// ✓ PASS: the test shows that the failure that is searched for does not occur.
    Pass,
    /// ✗ FAIL: the test shows that the failure that is searched for occurs.
    Fail,
    /// ? UNRESOLVED, neither PASS nor FAIL: the run shows another failure than the one that is
    /// searched for, or exceeds its time limit, or the target could not be started.
    Unresolved,
}

impl Outcome {
    /// Returns the name of the outcome in logs: `PASS`, `FAIL` or `UNRESOLVED`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "PASS",
            Outcome::Fail => "FAIL",
            Outcome::Unresolved => "UNRESOLVED",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Error: the test of the whole input did not give FAIL, so there is nothing to minimize.
/// UNRESOLVED counts as not failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFailing {
    /// Outcome of testing the whole input: PASS or UNRESOLVED.
    pub outcome: Outcome,
}

impl fmt::Display for NotFailing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the whole input does not fail: its outcome is {}",
            self.outcome
        )
    }
}

impl std::error::Error for NotFailing {}

/// Error: the test of the empty input gave FAIL, so there is no passing configuration (set of kept
/// units) to start with. This stops maximizing and isolating only: minimizing returns the empty
/// input as its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPassing;

impl fmt::Display for NotPassing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the empty input fails, but a passing input is needed to start with")
    }
}

impl std::error::Error for NotPassing {}

/// Error: one of the two requirements of delta debugging is not met: the test of the whole input
/// must give FAIL, and the test of the empty input must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxiomError {
    /// Error: the test of the whole input does not give FAIL.
    NotFailing(NotFailing),
    /// Error: the test of the empty input gives FAIL.
    NotPassing(NotPassing),
}

impl fmt::Display for AxiomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxiomError::NotFailing(error) => error.fmt(f),
            AxiomError::NotPassing(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AxiomError {}

impl From<NotFailing> for AxiomError {
    fn from(error: NotFailing) -> AxiomError {
        AxiomError::NotFailing(error)
    }
}

impl From<NotPassing> for AxiomError {
    fn from(error: NotPassing) -> AxiomError {
        AxiomError::NotPassing(error)
    }
}

/// Facts that a test run may report besides its outcome. All of them are optional: they make some
/// searches faster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Number of bytes of the input that the program read; `None` if unknown.
    pub read: Option<usize>,
    /// The last comparisons that the program made in the run, oldest first, without those whose
    /// operands were equal.
    pub comparisons: Vec<Comparison>,
}

/// A comparison that the program made, in which the two operands differed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// The first operand of the comparison. An integer of 1, 2, 4 or 8 bytes is in little-endian
    /// order; a comparison of memory or strings has the compared bytes.
    pub left: Vec<u8>,
    /// The second operand of the comparison, in the same form as `left`: an integer in
    /// little-endian order, or the compared bytes.
    pub right: Vec<u8>,
}
