//! The trait that all searches share.

use super::{Candidate, Config, Hints, Outcome};

/// A search as a step machine: [`next`](Search::next) says what to test, [`tell`](Search::tell)
/// takes the answer. The same outcomes give the same candidates in the same order, whoever runs
/// them: serial, parallel, resumed and replayed runs feed the same machine.
///
/// The axiom (`test(c✗) = FAIL`, `test(∅)` known) is tested by the caller before the first step.
///
/// A machine is cheap to clone. A scheduler that wants to test ahead clones it, tells the clone
/// the likely outcome, and asks it what comes next.
pub trait Search: Send {
    /// What to test now; `None` when the search has ended. Asking again before `tell` gives the
    /// same candidate.
    fn next(&mut self) -> Option<Candidate>;

    /// The outcome of the candidate that `next` gave. After the end it changes nothing.
    fn tell(&mut self, outcome: Outcome);

    /// What a run told besides its outcome: called before the first step with what the run of the
    /// input told, and before [`tell`](Search::tell) where the candidate asked to be
    /// [observed](Candidate::observed). The same hints belong to the same outcomes: they are part
    /// of what a search is a function of. Most searches need none.
    fn hint(&mut self, _: &Hints) {}

    /// The failing configuration that the search has come to, the smallest so far. Invariant: its
    /// test was FAIL.
    ///
    /// A search that also replaces bytes keeps the positions of the original that its best has
    /// descended from, whatever stands there now.
    ///
    /// Searches that only [cut](super::Edit::Cut) the best take each FAIL as the new best. Others
    /// also see larger configurations fail: the best is the first of the smallest.
    fn best(&self) -> &Config;

    /// A machine in the same state.
    fn boxed(&self) -> Box<dyn Search>;
}

impl Clone for Box<dyn Search> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}
