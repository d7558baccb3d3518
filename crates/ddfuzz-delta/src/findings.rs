//! What a search that divides and unites has found.

use super::{Candidate, Config, Outcome, Rule};

/// The units found in each branch of an interference, the smallest failing configuration seen, and
/// the result, which is the union of what was found.
///
/// The union need not fail where changes are ambiguous or unsafe, and is tested last.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    best: Config,
    found: Vec<Config>,
    result: Option<Config>,
    in_doubt: bool,
}

impl Findings {
    /// Nothing found yet; `c✗` of this many units fails.
    pub fn new(units: usize) -> Findings {
        Findings {
            best: Config::all(units),
            found: Vec::new(),
            result: None,
            in_doubt: false,
        }
    }

    /// A test of the search failed.
    pub fn failed(&mut self, config: Config) {
        if config.len() < self.best.len() {
            self.best = config;
        }
    }

    /// One branch found these units.
    pub fn add(&mut self, units: Config) {
        self.found.push(units);
    }

    /// No branch is left.
    pub fn conclude(&mut self) {
        let result = Config::union_of(&self.found);
        // The axiom and the search have tested these two.
        self.in_doubt = !result.is_empty() && result != self.best;
        self.result = Some(result);
    }

    /// The smallest failing configuration seen.
    pub fn best(&self) -> &Config {
        &self.best
    }

    /// The union of what was found; `None` before the search has ended.
    pub fn result(&self) -> Option<&Config> {
        self.result.as_ref()
    }

    /// The test of the result, unless its outcome is known.
    pub fn last_test(&self) -> Option<Candidate> {
        let result = self.result.as_ref().filter(|_| self.in_doubt)?;
        Some(Candidate::keep(Rule::Result, result.clone()))
    }

    /// The outcome of the last test.
    pub fn tell_last(&mut self, outcome: Outcome) {
        if let Some(result) = self.result.clone().filter(|_| self.in_doubt) {
            self.in_doubt = false;
            if outcome == Outcome::Fail {
                self.failed(result);
            }
        }
    }
}
