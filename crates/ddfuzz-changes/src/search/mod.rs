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

/// The result of building and testing a version with a set of changes: the outcome; and if the
/// build failed, the identifiers and the changes to which the compiler's messages point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Outcome of the test; `None` if the changes could not be merged, or the version does not
    /// build, which counts as UNRESOLVED.
    pub outcome: Option<Outcome>,
    /// Identifiers that the compiler's messages name if the build failed, such as an undefined
    /// function.
    pub named: Vec<String>,
    /// Changes at the places in source files that the compiler's messages name if the build failed.
    pub around: Around,
    /// Whether the time limit ended the build or the test, which then proves nothing.
    pub cut_off: bool,
}

impl Probed {
    /// Makes the result of testing a version that builds, from the test's `outcome`; nothing else
    /// is known of it.
    pub fn of(outcome: Outcome) -> Probed {
        Probed {
            outcome: Some(outcome),
            ..Probed::default()
        }
    }

    /// Creates the result of a set of changes that does not build; `named` are the identifiers that
    /// the compiler's messages name.
    pub fn unbuildable(named: Vec<String>) -> Probed {
        Probed {
            named,
            ..Probed::default()
        }
    }

    /// Checks whether the test failed with the failure that the search looks for.
    pub fn fails(&self) -> bool {
        self.outcome == Some(Outcome::Fail)
    }
}

/// Builds and tests versions with sets of changes on behalf of a search for failure-inducing
/// changes.
pub trait Prober {
    /// The error that ends the search without a result: nothing can be tested any more, or the user
    /// stops it. A version that does not build is no error.
    type Error;

    /// Builds and tests the version with the changes `kept`, and returns the result. `rule` names
    /// the step of the search, for the log. `ahead` has the sets of changes that the search
    /// probably tests next; they may be tested at the same time.
    ///
    /// # Errors
    /// If nothing can be tested any more, or the user stops the search.
    fn probe(
        &mut self,
        kept: &Config,
        rule: &'static str,
        ahead: &[Config],
    ) -> Result<Probed, Self::Error>;

    /// Records in the log, without a test, that the version with the changes `kept` is UNRESOLVED,
    /// because one of them requires a change that the version lacks, as an earlier build has shown.
    ///
    /// # Errors
    /// As [`probe`](Prober::probe).
    fn predict(&mut self, kept: &Config) -> Result<(), Self::Error>;

    /// Records in the log that the change `user` requires the change `needed`, as a failed build
    /// has shown.
    fn learn(&mut self, user: usize, needed: usize) {
        let _ = (user, needed);
    }

    /// Returns true if a test was refused because the budget of the search is used up. All later
    /// tests are then refused, too, so that the search ends with its best result so far. False by
    /// default.
    fn is_spent(&self) -> bool {
        false
    }

    /// Returns how many sets of changes can be tested at the same time as the next one, in case the
    /// search will ask for them: the useful length of `ahead` in [`probe`](Prober::probe). 0 if
    /// tests are run one after another.
    fn look_ahead(&self) -> usize {
        0
    }
}
