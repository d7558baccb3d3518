//! What a minimization came to.

use super::steadiness::odds;
use super::{Claim, Counts, Proved, Rate, SlipKeys};
use ddfuzz_triage::Key;

/// Something about a result that its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The empty input fails.
    EmptyInputFails,
    /// Not only the empty input fails, but whatever was tried: the target fails before it reads, or
    /// reads nothing.
    AnyInputFails,
    /// The input did not fail in every one of its first runs; no claim is made.
    FlakyInput {
        /// How often it did.
        rate: Rate,
        /// Runs of each candidate that did not fail.
        votes: u64,
    },
    /// The result did not fail in every one of its confirmations; no claim is made.
    FlakyResult {
        /// How often it did.
        rate: Rate,
    },
    /// What the search came to failed in none of its confirmations, so that the input as given is
    /// the result.
    Restored {
        /// Size of what it came to, in bytes.
        size: u64,
    },
    /// A text failed in one run, and did not in another; no claim is made.
    Contradicted,
    /// A budget ended before all values were tried; the claim stands.
    Values {
        /// Bytes of the result that may do as `0` as well.
        untried: u64,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::EmptyInputFails => f.write_str("the empty input fails, too, so it is the result"),
            Warning::AnyInputFails => f.write_str(
                "crashes on any input: the target crashes before it reads its input, or never reads \
                 it (if it reads a file, write @@ for the path of that file in its arguments)",
            ),
            Warning::Values { untried } => write!(
                f,
                "the budget ended before each byte was replaced by `0`: {untried} of the remaining \
                 bytes may be irrelevant"
            ),
            Warning::FlakyInput { rate, votes } => write!(
                f,
                "the failure is flaky: the input failed in {rate}. Each candidate was run up to {votes} \
                 times; a candidate that fails as often as the input is missed with a probability \
                 of 1 in {:.0}. The result is not claimed to be minimal",
                odds(*rate, *votes)
            ),
            Warning::FlakyResult { rate } => write!(
                f,
                "the result is flaky: it failed in {rate}, so it is not claimed to be minimal"
            ),
            Warning::Restored { size } => write!(
                f,
                "the smallest input that failed ({size} bytes) did not fail again, so the result is \
                 the input as it was given"
            ),
            Warning::Contradicted => f.write_str(
                "the same bytes failed in one run and not in another, so the result is not claimed to \
                 be minimal",
            ),
        }
    }
}

/// The result of a minimization that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimized {
    /// The smallest failing input found.
    pub text: Vec<u8>,
    /// What is proven of it.
    pub claim: Claim,
    /// How much is proven.
    pub proved: Proved,
    /// Size of the original input, in bytes.
    pub size_before: u64,
    /// Tests by kind.
    pub counts: Counts,
    /// Runs of the original input at the start.
    pub baseline: Rate,
    /// Runs of the result in fresh processes at the end.
    pub confirmed: Rate,
    /// The minor key of the result, where one was taken.
    pub minor_after: Option<Key>,
    /// The other bugs that candidates ran into, in the order of the first.
    pub slips: Vec<SlipKeys>,
    /// What the user must know.
    pub warnings: Vec<Warning>,
}

impl Minimized {
    /// How often the result failed, or else the input, where it did not each time; all of all where
    /// one text failed once and not again. `None` where all failed each time.
    pub fn flaky(&self) -> Option<Rate> {
        let of_result = self.warnings.iter().find_map(|warning| match warning {
            Warning::FlakyResult { rate } => Some(*rate),
            _ => None,
        });
        let of_others = || {
            self.warnings.iter().find_map(|warning| match warning {
                Warning::FlakyInput { rate, .. } => Some(*rate),
                Warning::Contradicted | Warning::Restored { .. } => Some(self.confirmed),
                _ => None,
            })
        };
        of_result.or_else(of_others)
    }
}
