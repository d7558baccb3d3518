//! Trims kept files: makes each smaller by delta debugging, with its coverage as the oracle.
//!
//! It is a minimization as that of a crash is, through the same searches, log and claim; FAIL means
//! that a run ends as that of the original and reaches what is [`RequiredFeatures`]. One
//! [`Trimmer`] trims one file after the other, [`trim_all`] many by workers.
//!
//! Invariants: what a claim, a reduction and the result rest on was seen in a fresh process; a
//! result that does not reach all that is wanted each time is not taken, the file then stays as it
//! is; a crash that a candidate runs into is handed over before its test is logged.

mod oracle;
mod required;
mod trimmer;
mod workers;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Features;
use ddfuzz_delta::Subset;
use ddfuzz_exec::{ExecError, Target, Way};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_minimize::{CallbackError, Claim, Counts, MinimizeError, Proved};
use ddfuzz_model::files::FileError;

pub use oracle::CoverageOracle;
pub use required::{RequiredFeatures, TrimCondition};
pub use trimmer::{OnSlip, ToTrim, Trimmer};
pub use workers::{OnSlipOf, OnTrimmed, TrimWatch, trim_all};

/// Most executed tests for one file, unless another number is asked for.
const TESTS: u64 = 1000;

/// The target, the search and the bounds of trimming.
#[derive(Clone, Debug)]
pub struct TrimSettings {
    /// The target. Its limits hold for each run; none is learned, so that no result depends on how
    /// busy the machine is.
    pub target: Target,
    /// The way of execution.
    pub way: Way,
    /// Name of the search.
    pub search: String,
    /// Most executed tests for one file. By it alone results are a function of the file.
    pub budget_tests: Option<u64>,
    /// Longest time for one file; what it cuts off may differ from call to call.
    pub budget_time: Option<Duration>,
    /// Whether candidates are written into the log.
    pub log_inputs: bool,
    /// Which build of the target it is: results of another are not used again.
    pub build: Option<String>,
}

impl TrimSettings {
    /// Trimming with the default search and budget.
    pub fn of_target(target: Target, way: Way) -> TrimSettings {
        TrimSettings {
            target,
            way,
            search: Subset::NAME.to_owned(),
            budget_tests: Some(TESTS),
            budget_time: None,
            log_inputs: false,
            build: None,
        }
    }

    /// Starts the target.
    ///
    /// # Errors
    /// As [`CoverageOracle::start`].
    pub fn start(&self) -> Result<Trimmer, TrimError> {
        let oracle = CoverageOracle::start(&self.target, self.way)?;
        Ok(Trimmer::new(self.clone(), oracle))
    }
}

/// The result of trimming one file. Its content is in `minimized` of its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Size of the file, in bytes.
    pub size_before: u64,
    /// Size of the result, in bytes: never more.
    pub size_after: u64,
    /// Hash of the result.
    pub blake3: ContentHash,
    /// Tests by kind; all 0 where the file was skipped before the first.
    pub tests: Counts,
    /// What is proven of the result; [`Claim::BestSoFar`] where the file was skipped.
    pub claim: Claim,
    /// How much is proven.
    pub proved: Proved,
    /// The features of the result in each of several runs in fresh processes.
    pub features: Features,
    /// Why it was skipped, if it was.
    pub left: Option<SkipReason>,
    /// Whether all this was known from an earlier call, and nothing was run.
    pub reused: bool,
}

/// Why a file was not trimmed and stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Its run fails or may be a failure.
    EndsBadly,
    /// It does not end in the same way, or does not reach the required features, in each run in a
    /// fresh process.
    Unsteady,
    /// The result does not reach the required features each time.
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

/// Why files could not be trimmed.
#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Runs report no coverage.
    #[error(
        "run by {way} the target reports no coverage: trimming needs a libFuzzer harness, a \
         program compiled by AFL++ or a bundled target"
    )]
    NoCoverage {
        /// The way of execution.
        way: Way,
    },
    /// A minimization failed; also where the caller asked to stop, which
    /// [`TrimError::is_interrupted`] tells.
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
    /// Something could not be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The caller asked to stop between two files.
    #[error("interrupted; files that are trimmed already are not trimmed again")]
    Interrupted,
    /// The caller could not take a result.
    #[error("a trimmed file could not be stored: {0}")]
    Callback(CallbackError),
}

impl TrimError {
    /// Whether the caller asked to stop: calling again goes on.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            TrimError::Interrupted | TrimError::Minimize(MinimizeError::Interrupted { .. })
        )
    }
}
