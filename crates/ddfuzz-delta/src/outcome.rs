//! The outcome of a test, the hints that a run reports with it, and the errors of an input that does not fit.

use std::fmt;

/// The outcome of testing a configuration (POSIX 1003.3; *Why Programs Fail* A.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "UPPERCASE"))]
pub enum Outcome {
    /// ✓ The failure does not occur.
    Pass,
    /// ✗ *The* failure occurs.
    Fail,
    /// ? Neither can be said: another failure, a time-out, a target that could not be started.
    Unresolved,
}

impl Outcome {
    /// The name used in logs: `PASS`, `FAIL` or `UNRESOLVED`.
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

/// The whole input does not fail: half of the axiom does not hold, and there is nothing to
/// minimize. UNRESOLVED counts as not failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFailing {
    /// What the test of the whole input said.
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

/// The empty input fails: there is no passing side that could grow. Only maximizing and isolating
/// need one; minimizing ends with the empty input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPassing;

impl fmt::Display for NotPassing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the empty input fails, but a passing input is needed to start with")
    }
}

impl std::error::Error for NotPassing {}

/// One half of the axiom does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxiomError {
    /// The whole input does not fail.
    NotFailing(NotFailing),
    /// The empty input fails.
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

/// What a run told besides its outcome. Searches may use it, none needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How far the input was read, in bytes; `None` where nobody knows.
    pub read: Option<usize>,
    /// The last comparisons whose operands differed, oldest first.
    pub comparisons: Vec<Comparison>,
}

/// Two operands that a run compared, and that differed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// One operand: of an integer of 1, 2, 4 or 8 bytes, its bytes in little-endian order; of a
    /// comparison of memory or strings, the bytes compared.
    pub left: Vec<u8>,
    /// The other operand.
    pub right: Vec<u8>,
}
