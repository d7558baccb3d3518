//! Versions to test (candidates), and the results of their tests.

use ddfuzz_delta::Config;
use ddfuzz_minimize::ProofRef;

use crate::search::Probed;

/// A candidate: a version of the program for the search to build and test, made from the files of a
/// commit by applying some of the changes between the old and the new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The id of the git commit to whose files the candidate's changes are applied.
    pub on: String,
    /// The changes that the candidate has on top of its commit, in the order in which they are
    /// applied. Each pair is the index of a set of changes in the [`Session`](crate::Session), and
    /// the indices of the changes of that set.
    pub kept: Vec<(usize, Config)>,
}

/// The known result of building and testing a version, and the line of the log that records it.
#[derive(Clone, Debug)]
pub struct Known {
    /// The outcome of the version's test, and the identifiers that the compiler's messages name if
    /// its build failed. Its field [`Probed::around`] is always empty: the field `at` has the
    /// places.
    pub probed: Probed,
    /// The places in source files that the messages of a failed build name: each is a path with a
    /// line, counted from 1, or 0 for a file that is missing.
    pub at: Vec<(Vec<u8>, u64)>,
    /// Reference to the line of the search's log that records the outcome of the version's test.
    pub proof: ProofRef,
}

/// The state of a search for failure-inducing changes, for a progress display.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The name of the step that the search is in, such as `commit`, `group` or `proof`.
    pub rule: String,
    /// Number of versions that the search has built and tested so far, also those that do not
    /// build; checks and tests that needed no build are not counted.
    pub executed: u64,
    /// Number of changes in the smallest set of changes that has failed so far; 0 if no set has
    /// failed.
    pub best: u64,
}
