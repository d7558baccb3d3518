//! What is trimmed, and how.

use std::time::Duration;

use super::{CoverageOracle, TrimError, Trimmer};
use ddfuzz_delta::Subset;
use ddfuzz_exec::{Target, Way};

/// Most executed tests for one file, unless another number is asked for.
const TESTS: u64 = 1000;

/// What is trimmed, and how.
#[derive(Clone, Debug)]
pub struct Trimming {
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

impl Trimming {
    /// Trimming with the default search and budget.
    pub fn of_target(target: Target, way: Way) -> Trimming {
        Trimming {
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
