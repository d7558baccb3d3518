//! Options of campaigns about the minimization of their groups.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Failure, amounts};
use crate::campaign::{Minimizing, When};
use crate::exec::{Target, Way};

/// The longest time for one minimization where nobody says.
const BUDGET: Duration = Duration::from_secs(60);

/// When and how new groups are minimized.
#[derive(Args, Clone, Debug)]
pub struct ShrinkArgs {
    /// When new groups are minimized
    #[arg(long, value_enum, default_value_t = WhenArg::Inline)]
    minimize: WhenArg,
    /// How they are minimized
    #[arg(long, value_name = "NAME", default_value = "full")]
    search: String,
    /// Longest time for one minimization [default: 60s; hangs together a fifth of the fuzzing]
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    budget_time: Option<Duration>,
    /// Most tests for one minimization
    #[arg(long, value_name = "N")]
    budget_tests: Option<u64>,
    /// Write the candidates into the logs
    #[arg(long)]
    log_inputs: bool,
}

/// When new groups are minimized, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhenArg {
    /// As soon as they are found
    Inline,
    /// When the fuzzing has ended
    After,
    /// By a worker of its own
    Worker,
    /// Not at all
    Off,
}

impl ShrinkArgs {
    /// Makes sure that there is a search of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn check(&self) -> Result<(), Failure> {
        let search = crate::minimize::search_by_name(&self.search, b"x");
        search.map(drop).map_err(Failure::usage)
    }

    /// When new groups are minimized.
    pub fn when(&self) -> When {
        match self.minimize {
            WhenArg::Inline => When::Inline,
            WhenArg::After => When::After,
            WhenArg::Worker => When::Worker,
            WhenArg::Off => When::Off,
        }
    }

    /// What is minimized, and how; `learn_limit` unless the user has set the limit on a run.
    pub fn minimizing(&self, target: Target, way: Way, learn_limit: bool) -> Minimizing {
        Minimizing {
            budget_time: Some(self.budget_time.unwrap_or(BUDGET)),
            hurried: self.budget_time.is_none(),
            budget_tests: self.budget_tests,
            log_inputs: self.log_inputs,
            learn_limit,
            ..Minimizing::of_target(target, way, &self.search)
        }
    }
}
