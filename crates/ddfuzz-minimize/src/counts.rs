//! Tests, counted the same way in every report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tests of one minimization, each kind counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Tests that ran the target: `test` lines with source `run`.
    pub executed: u64,
    /// Answered because another configuration had the same text.
    pub cached: u64,
    /// Answered because the same configuration was tested before.
    pub repeated: u64,
    /// Answered by a predictor, without a run.
    pub predicted: u64,
    /// Run ahead in vain.
    pub speculative: u64,
    /// Runs aside from the search: axiom, baseline, confirmations, votes.
    pub checks: u64,
}

/// How often a failure was seen again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Tries that failed so.
    pub hits: u64,
    /// Tries made.
    pub tries: u64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} runs", self.hits, self.tries)
    }
}
