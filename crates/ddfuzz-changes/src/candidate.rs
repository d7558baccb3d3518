//! Versions to test (candidates), and the results of their tests.

use ddfuzz_delta::Config;
use ddfuzz_minimize::ProofRef;

use crate::search::Probed;

/// A version to test: a commit with changes applied to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The id of the commit to which the changes are applied.
    pub on: String,
    /// The changes, in the order in which they are applied: the index of a set in the session, and
    /// the changes of that set.
    pub kept: Vec<(usize, Config)>,
}

/// The result of testing a version.
#[derive(Clone, Debug)]
pub struct Known {
    /// The outcome of its test, and the identifiers that a failed build named. [`Probed::around`]
    /// is empty.
    pub probed: Probed,
    /// The places that a failed build named: files, each with a line counted from 1, or 0 for a
    /// file that is missing.
    pub at: Vec<(Vec<u8>, u64)>,
    /// The line of the log that records the outcome.
    pub proof: ProofRef,
}

/// State of a search, for a progress display.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The step of the search.
    pub rule: String,
    /// Number of versions that were built and tested so far, also those that do not build; without
    /// checks and without the tests that needed no build.
    pub executed: u64,
    /// Number of changes of the smallest set that fails; 0 if none is known.
    pub best: u64,
}
