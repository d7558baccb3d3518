//! What a minimization came to.

use super::{Claim, Counts, Proved, Rate, SlipKeys};
use crate::triage::Key;

/// Something about a result that its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The empty input fails: the target fails whatever it is given.
    EmptyInputFails,
    /// The input did not fail in every one of its first runs.
    FlakyInput,
    /// The result did not fail in every one of its confirmations; no claim is made.
    FlakyResult,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Warning::EmptyInputFails => "empty input fails",
            Warning::FlakyInput => "the input does not fail every time",
            Warning::FlakyResult => "the result does not fail every time",
        })
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
