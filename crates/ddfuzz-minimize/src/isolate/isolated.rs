//! What isolating or maximizing came to.

pub use super::subject::Differing;
use crate::{Claim, Counts, Proved, Rate, SlipKeys};

/// Something about a result that its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationWarning {
    /// The failing input did not fail in every one of its first runs; no claim is made.
    FlakyInput,
    /// The failing end did not fail in every one of its confirmations; no claim is made.
    FlakyFailing,
    /// The passing end did not pass in every one of its confirmations; no claim is made.
    NotPassing,
    /// A text failed in one run, and did not in another; no claim is made.
    Contradicted,
    /// Outcomes between the two ends are UNRESOLVED, so that several deltas are left: this many.
    Unresolved(u64),
    /// Single deltas whose test proves nothing, so that no claim is made: this many.
    Unproved(u64),
}

impl std::fmt::Display for IsolationWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IsolationWarning::FlakyInput => f.write_str("the input does not fail every time"),
            IsolationWarning::FlakyFailing => {
                f.write_str("the failing result does not fail every time")
            }
            IsolationWarning::NotPassing => f.write_str(
                "the passing result does not pass every time; perhaps its outcome was unresolved from the start",
            ),
            IsolationWarning::Contradicted => {
                f.write_str("the same bytes failed in one run and not in another")
            }
            IsolationWarning::Unresolved(deltas) => write!(
                f,
                "the difference is not a single delta but {deltas}: the outcomes of what lies between are unresolved"
            ),
            IsolationWarning::Unproved(tests) => {
                write!(f, "{tests} of the tests that the claim needs have no usable outcome")
            }
        }
    }
}

/// The result of a search that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// The passing end: maximizing, the largest part found that passes.
    pub passing: Vec<u8>,
    /// The failing end: maximizing, the whole failing input.
    pub failing: Vec<u8>,
    /// Where they differ, ascending.
    pub difference: Vec<Differing>,
    /// Deltas in the difference.
    pub deltas_left: u64,
    /// What is proven.
    pub claim: Claim,
    /// Tests that the claim needs, and how many of them prove it.
    pub proved: Proved,
    /// Tests by kind.
    pub counts: Counts,
    /// Runs of the failing input at the start.
    pub baseline: Rate,
    /// Runs of the passing end in fresh processes at the end, and how many passed.
    pub confirmed_passing: Rate,
    /// Runs of the failing end in fresh processes at the end, and how many failed; none where it
    /// is the failing input.
    pub confirmed_failing: Rate,
    /// The other bugs that candidates ran into, in the order of the first.
    pub slips: Vec<SlipKeys>,
    /// What the user must know.
    pub warnings: Vec<IsolationWarning>,
}
