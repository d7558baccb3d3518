//! Options of campaigns about the minimization of their groups.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use super::amounts;
use crate::campaign::{Minimizing, Variants, When};
use crate::exec::{Target, Way};
use crate::minimize::{SEARCHES, search_summary};

/// The heading of these options in the help.
pub const HEADING: &str = "Minimization of new groups";

/// The longest time for one minimization where nobody says.
const BUDGET: Duration = Duration::from_secs(60);

/// When and how new groups are minimized.
#[derive(Args, Clone, Debug)]
pub struct ShrinkArgs {
    /// When new groups are minimized
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_enum, default_value_t = WhenArg::Inline)]
    minimize: WhenArg,
    /// Search algorithm of minimizations
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "NAME", default_value = "full", value_parser = searches())]
    search: String,
    /// Maximum time for one minimization [default: 60s; all hangs together a fifth of the fuzzing
    /// time]
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "TIME", value_parser = amounts::time)]
    budget_time: Option<Duration>,
    /// Maximum number of tests for one minimization
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "N")]
    budget_tests: Option<u64>,
    /// Also minimize up to N further minor keys of each group of crashes after all groups are done:
    /// bugs in several callers of one function may share a group [default: 3, but none where a
    /// sanitizer reports the crash]
    #[arg(help_heading = HEADING, hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16))]
    variants: Option<u16>,
    /// Write the bytes of each tested candidate into the logs
    #[arg(help_heading = HEADING, hide_short_help = true, long)]
    log_inputs: bool,
}

/// When new groups are minimized, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhenArg {
    /// As soon as they are found, in between fuzzing
    Inline,
    /// After fuzzing has ended
    After,
    /// By one worker that does nothing else
    Worker,
    /// Not at all
    Off,
}

/// The names of searches, each with what it does, for `--search`.
pub fn searches() -> PossibleValuesParser {
    let value = |name: &&'static str| PossibleValue::new(*name).help(search_summary(name));
    PossibleValuesParser::new(SEARCHES.iter().map(value))
}

impl ShrinkArgs {
    /// When new groups are minimized.
    pub fn when(&self) -> When {
        match self.minimize {
            WhenArg::Inline => When::Inline,
            WhenArg::After => When::After,
            WhenArg::Worker => When::Worker,
            WhenArg::Off => When::Off,
        }
    }

    /// How many further minor keys of a group are minimized; `otherwise` where nobody says.
    pub fn variants(&self, otherwise: Variants) -> Variants {
        let asked = self.variants.map(usize::from);
        asked.map_or(otherwise, Variants::Most)
    }

    /// What is minimized, and how; `learn_limit` unless the user has set the limit on a run.
    pub fn minimizing(&self, target: Target, way: Way, learn_limit: bool) -> Minimizing {
        Minimizing {
            budget_time: Some(self.budget_time.unwrap_or(BUDGET)),
            hurried: self.budget_time.is_none(),
            budget_tests: self.budget_tests,
            log_inputs: self.log_inputs,
            variants: self.variants(Variants::Plain),
            learn_limit,
            ..Minimizing::of_target(target, way, &self.search)
        }
    }
}
