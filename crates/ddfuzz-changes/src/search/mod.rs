//! The searches for failure-inducing changes, pure: they choose sets of changes to test, and a
//! [`Prober`] builds and tests them.

mod bisect;
mod facts;
mod isolation;
mod nested;
mod repair;

pub use bisect::{Bisected, bisect};
pub use facts::{Facts, UnitFacts, config};
pub use isolation::{Isolation, isolate};
pub use nested::{Minimal, minimize};

use ddfuzz_delta::{Config, Outcome};

pub use crate::places::Around;

/// Result of building and testing a set of changes: the outcome; if the build failed, also the
/// identifiers and the changes that its messages point to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Outcome of the test; `None` if the changes could not be merged or built, which counts as
    /// UNRESOLVED.
    pub outcome: Option<Outcome>,
    /// Identifiers that the messages of a failed build name.
    pub named: Vec<String>,
    /// Changes at the places that the messages of a failed build name.
    pub around: Around,
}

impl Probed {
    /// Makes the result of changes that could be built, and whose test had this outcome.
    pub fn of(outcome: Outcome) -> Probed {
        Probed {
            outcome: Some(outcome),
            ..Probed::default()
        }
    }

    /// Makes the result of changes that could not be built, with the identifiers that the messages
    /// name.
    pub fn unbuildable(named: Vec<String>) -> Probed {
        Probed {
            named,
            ..Probed::default()
        }
    }

    /// Checks whether the changes failed with the failure that is searched for.
    pub fn fails(&self) -> bool {
        self.outcome == Some(Outcome::Fail)
    }
}

/// Builds and tests sets of changes for a search.
pub trait Prober {
    /// Why the search ends without a result: nothing can be tested any more, or the user stops it.
    /// A set that does not build is no error.
    type Error;

    /// Builds and tests the changes `kept`. `rule` names the step of the search, for the log.
    /// `ahead` has the sets that the search probably tests next; they may be tested at the same
    /// time.
    ///
    /// # Errors
    /// If nothing can be tested any more, or the user stops.
    fn probe(
        &mut self,
        kept: &Config,
        rule: &'static str,
        ahead: &[Config],
    ) -> Result<Probed, Self::Error>;

    /// Records that `kept` is UNRESOLVED without a test, because a learned relation predicts it.
    ///
    /// # Errors
    /// As [`probe`](Prober::probe).
    fn predict(&mut self, kept: &Config) -> Result<(), Self::Error>;

    /// Records that a build has shown that the change `user` requires the change `needed`.
    fn learn(&mut self, user: usize, needed: usize) {
        let _ = (user, needed);
    }

    /// Checks whether a test was refused because the budget is used up. All later tests are
    /// refused, too, so that the search ends with what it has.
    fn is_spent(&self) -> bool {
        false
    }

    /// Returns how many sets `ahead` should have: as many as can be tested at the same time as the
    /// next one; 0 if tests are run one after another.
    fn look_ahead(&self) -> usize {
        0
    }
}
