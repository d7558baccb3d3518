//! Trims kept files: minimizes each by delta debugging, with its coverage as the oracle.
//!
//! Uses the same searches, log and guarantees as the minimization of a crash; FAIL means that a run
//! ends like that of the original and reaches the [`RequiredFeatures`]. A [`Trimmer`] trims one
//! file after the other, [`trim_all`] many by workers.
//!
//! Invariants: each reduction and the result are verified in a fresh process; if the result does
//! not reach all required features in every run, the file stays as it is; a crash of a candidate is
//! reported before its test is logged.

mod known_runs;
mod oracle;
mod trimmer;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Features;
use ddfuzz_exec::{ExecError, Target, Way};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_minimize::{CallbackError, Claim, Counts, MinimizeError, Proved};
use ddfuzz_model::files::FileError;

pub use known_runs::KnownRuns;
pub use oracle::{CoverageOracle, RequiredFeatures, TrimCondition};
pub use trimmer::{OnSlip, OnSlipOf, OnTrimmed, ToTrim, TrimWatch, Trimmer, trim_all};

/// Default limit on the tests (runs of candidates) for trimming one file.
const TESTS: u64 = 1000;

/// Settings for trimming files: the target, the search algorithm and the budget.
#[derive(Clone, Debug)]
pub struct TrimSettings {
    /// The target whose features a trimmed file must still reach. Its time limits are fixed, so
    /// that no result depends on the load of the machine.
    pub target: Target,
    /// Way in which the target is executed for trimming: a new process per run, a fork server, or
    /// calls of the target's entry function.
    pub way: Way,
    /// Name of the search algorithm of delta debugging; `None` chooses one for each file by its
    /// content ([`trim_search`](ddfuzz_minimize::trim_search)).
    pub search: Option<String>,
    /// Maximum number of tests (runs of candidates) for one file; `None` is no limit. Results are
    /// reproducible if there is no limit on time.
    pub budget_tests: Option<u64>,
    /// Longest time for trimming one file; `None` is no limit. With a limit, results may vary from
    /// call to call.
    pub budget_time: Option<Duration>,
    /// Whether the bytes of all candidates are written into the log.
    pub log_inputs: bool,
    /// Id of the target's build; stored results of another build are not used again. `None` if
    /// unknown.
    pub build: Option<String>,
}

impl TrimSettings {
    /// Returns the default settings for trimming with a target.
    pub fn of_target(target: Target, way: Way) -> TrimSettings {
        TrimSettings {
            target,
            way,
            search: None,
            budget_tests: Some(TESTS),
            budget_time: None,
            log_inputs: false,
            build: None,
        }
    }

    /// Starts the target, and returns a trimmer for it.
    ///
    /// # Errors
    /// As [`CoverageOracle::start`].
    pub fn start(&self) -> Result<Trimmer, TrimError> {
        let oracle = CoverageOracle::start(&self.target, self.way)?;
        Ok(Trimmer::new(self.clone(), oracle))
    }
}

/// The result of trimming one file, as stored in `trimmed.json`; the file `minimized` beside it
/// holds the trimmed content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trimmed {
    /// Size of the file before trimming, in bytes.
    pub size_before: u64,
    /// Size of the file after trimming, in bytes; at most the size before.
    pub size_after: u64,
    /// blake3 hash of the file's content after trimming.
    pub blake3: ContentHash,
    /// Numbers of tests (of candidates) that trimming the file took, by how each was answered, such
    /// as by a run or from the cache; all 0 if the file was skipped before the first test.
    pub tests: Counts,
    /// Guarantee for the file's content after trimming, such as 1-minimal; [`Claim::BestSoFar`] if
    /// the file was skipped.
    pub claim: Claim,
    /// How much of the guarantee (such as 1-minimal) is tested: number of removals of parts of the
    /// file that were tested, and number of removals that a complete proof has to test.
    pub proved: Proved,
    /// Features that the file after trimming reached in each of several runs in fresh processes.
    pub features: Features,
    /// Why the file was skipped; `None` if it was trimmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<SkipReason>,
    /// Whether the result was taken from an earlier call, which stored it, so that the target was
    /// not run.
    #[serde(skip)]
    pub reused: bool,
    /// Number of tests that were answered by known runs of earlier rounds, so that the target was
    /// not run.
    #[serde(skip)]
    pub spared: u64,
}

/// Why a file was not trimmed and stays as it is: its run may be a failure, or its runs differ
/// before or after trimming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The run of the original file fails, or its ending may be a failure.
    EndsBadly,
    /// The file's runs in fresh processes differ in their ending, or do not all reach the required
    /// features.
    Unsteady,
    /// Not all runs of the file after trimming reach the required features.
    ResultUnsteady,
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SkipReason::EndsBadly => "it does not end normally",
            SkipReason::Unsteady => "it does not reach the features that it is kept for each time",
            SkipReason::ResultUnsteady => "after trimming it does not reach them each time",
        })
    }
}

/// Why trimming one or more files failed.
#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The target reports no coverage.
    #[error(
        "run by {way} the target reports no coverage: trimming needs a libFuzzer harness, a \
         program compiled by AFL++ or a bundled target"
    )]
    NoCoverage {
        /// Way in which the target was executed when it reported no coverage, such as a fork
        /// server.
        way: Way,
    },
    /// Trimming a file by delta debugging failed or was stopped; see [`TrimError::is_interrupted`].
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The caller asked to stop while no file was being trimmed, between two files.
    #[error("interrupted; files that are trimmed already are not trimmed again")]
    Interrupted,
    /// A callback of the caller, which takes a trimmed file or a crash, failed.
    #[error("a trimmed file could not be stored: {0}")]
    Callback(CallbackError),
}

impl TrimError {
    /// Returns true if trimming ended because the caller asked to stop; another call continues it.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            TrimError::Interrupted | TrimError::Minimize(MinimizeError::Interrupted { .. })
        )
    }
}
