//! `subset`: deletes only, in the order that takes the fewest tests.

use std::sync::Arc;

use super::dialogue::Dialogue;
use super::full::{Plan, script};
use super::workpiece::Workpiece;
use crate::delta::{Candidate, Config, Hints, Outcome, Search};

/// Minimizes bytes by deleting them, in any order. The result is 1-minimal and a subsequence of
/// the input.
#[derive(Clone)]
pub struct Subset(Dialogue);

impl Subset {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "subset";

    /// Begins with a text whose test must have been FAIL.
    pub fn new(text: &[u8]) -> Subset {
        let text: Arc<[u8]> = text.into();
        Subset(Dialogue::new(text.len(), move |asker| {
            let work = Workpiece::new(asker, text.clone());
            Box::pin(script(work, Plan::Delete))
        }))
    }
}

impl Search for Subset {
    fn next(&mut self) -> Option<Candidate> {
        self.0.next()
    }

    fn tell(&mut self, outcome: Outcome) {
        self.0.tell(outcome);
    }

    fn hint(&mut self, hints: &Hints) {
        self.0.hint(hints);
    }

    fn best(&self) -> &Config {
        self.0.best()
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}
