//! Who says which candidates fail: the crash that is held, or an interestingness test.

use crate::campaign::Minimizing;
use crate::cli::Failure;
use crate::cli::results::ResultArgs;
use crate::cli::script::Interestingness;
use crate::delta::Dd;
use crate::minimize::Oracle;
use crate::minimize::log::StartLine;
use crate::triage::Crash;

/// What decides about candidates.
pub(super) enum Judge {
    /// The crash of a program.
    Crash {
        /// How the program is run.
        minimizing: Box<Minimizing>,
        /// What it is held to.
        crash: Box<Crash>,
    },
    /// A test.
    Test(Interestingness),
}

impl Judge {
    /// An oracle before the test is inverted.
    pub(super) fn oracle(&self) -> Result<Box<dyn Oracle>, Failure> {
        Ok(match self {
            Judge::Crash { minimizing, crash } => Box::new(minimizing.oracle(crash.as_ref())?),
            Judge::Test(test) => Box::new(test.oracle()?),
        })
    }

    /// The first line of a log. The limit on time is not learned: a run that crashes says little of
    /// how long one takes that passes, and what is cut off does not pass.
    pub(super) fn start_line(&self, failing: &[u8], results: &ResultArgs) -> StartLine {
        let start = match self {
            Judge::Crash { minimizing, crash } => minimizing.start_line(failing, crash),
            Judge::Test(test) => test.start_line(failing, Dd::NAME, results.no_cache),
        };
        StartLine {
            learn_limit: false,
            ..start
        }
    }
}
