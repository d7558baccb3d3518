//! The axiom of delta debugging: `test(∅) = PASS` and `test(c✗) = FAIL`.

use std::fmt;

use super::Outcome;

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
