//! Predictors: outcomes that follow without a run.

use crate::{Config, Outcome};

/// Answers tests without running them (ESEC, section 6). A prediction has to hold: a wrong one
/// misleads the search, though never into a result that was not seen to fail.
pub trait Predictor {
    /// The outcome of this configuration, where it can be said.
    fn predict(&self, config: &Config) -> Option<Outcome>;

    /// Takes notice of the outcome of a configuration that was run.
    fn learn(&mut self, config: &Config, outcome: Outcome) {
        let _ = (config, outcome);
    }
}

/// Each change implies all earlier ones, as the changes of a history do: what is not a prefix of
/// them cannot be consistent and is UNRESOLVED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order;

impl Predictor for Order {
    fn predict(&self, config: &Config) -> Option<Outcome> {
        let is_prefix = config.count_below(config.len()) == config.len();
        (!is_prefix).then_some(Outcome::Unresolved)
    }
}

/// Some changes require others: a configuration that keeps a change without what it requires
/// cannot be consistent and is UNRESOLVED.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    pairs: Vec<(usize, usize)>,
}

impl Requires {
    /// The relation of these pairs of units: the first requires the second.
    pub fn new(pairs: impl IntoIterator<Item = (usize, usize)>) -> Requires {
        Requires {
            pairs: pairs.into_iter().collect(),
        }
    }
}

impl Predictor for Requires {
    fn predict(&self, config: &Config) -> Option<Outcome> {
        let lacks = |(unit, required): &(usize, usize)| {
            config.contains(*unit) && !config.contains(*required)
        };
        self.pairs.iter().any(lacks).then_some(Outcome::Unresolved)
    }
}

/// The monotony cache (AADEBUG): after `test(c) = PASS`, every subset of `c` is PASS without a run.
///
/// It may be switched on where the failure is monotone: whatever keeps a failing configuration
/// fails. Elsewhere it hides failures, and a result need not be minimal.
#[derive(Clone, Debug, Default)]
pub struct Monotony {
    /// Configurations that passed, none a subset of another.
    passed: Vec<Config>,
}

impl Predictor for Monotony {
    fn predict(&self, config: &Config) -> Option<Outcome> {
        let within = |passed: &Config| config.is_subset_of(passed);
        self.passed.iter().any(within).then_some(Outcome::Pass)
    }

    fn learn(&mut self, config: &Config, outcome: Outcome) {
        if outcome == Outcome::Pass && self.predict(config).is_none() {
            self.passed.retain(|passed| !passed.is_subset_of(config));
            self.passed.push(config.clone());
        }
    }
}
