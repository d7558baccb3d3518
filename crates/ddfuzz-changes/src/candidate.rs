//! Versions to test, and what is known of them.

use ddfuzz_delta::Config;
use ddfuzz_minimize::ProofRef;

use crate::search::Probed;

/// A version to test: a commit with changes applied to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The commit.
    pub on: String,
    /// The changes, by the index of their set in the session, in the order in which they are applied.
    pub kept: Vec<(usize, Config)>,
}

/// What is known of a version.
#[derive(Clone, Debug)]
pub struct Known {
    /// The outcome of its test, and the identifiers that a failed build named.
    pub probed: Probed,
    /// The places that a failed build named: files, and lines counted from 1.
    pub at: Vec<(Vec<u8>, u64)>,
    /// The line of the log that says so.
    pub proof: ProofRef,
}

/// What a progress display shows.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The step of the search.
    pub rule: String,
    /// Number of tests so far.
    pub executed: u64,
    /// Number of changes of the smallest set that fails; 0 if none is known.
    pub best: u64,
}
