//! What passing configurations say of their subsets.

use super::{Config, Outcome, Predictor};

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
