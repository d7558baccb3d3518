//! Where a minimization stands, for whoever watches it.

use super::Proved;
use ddfuzz_delta::Rule;

/// What a minimization is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The input is run as it is, and the empty input.
    Baseline,
    /// The search asks; the rule made its candidate.
    Search(Option<Rule>),
    /// What the search left open is proved.
    Proof,
    /// The result is run again.
    Confirm,
}

impl std::fmt::Display for Doing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Doing::Baseline => "baseline",
            Doing::Search(Some(rule)) => rule.name(),
            Doing::Search(None) => "search",
            Doing::Proof => "proof",
            Doing::Confirm => "confirm",
        })
    }
}

/// Where a minimization stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it is about.
    pub doing: Doing,
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
