//! `full`: all passes.

use std::sync::Arc;

use super::dialogue::Dialogue;
use super::list::List;
use super::singles::singles;
use super::units::Bytes;
use super::workpiece::Workpiece;
use crate::delta::{Candidate, Config, Hints, Outcome, Search};

/// What a script may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Delete bytes.
    Delete,
    /// Replace bytes, too.
    Rewrite,
}

/// Minimizes.
#[derive(Clone)]
pub struct Full(Dialogue);

impl Full {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "full";

    /// Begins with a text whose test must have been FAIL.
    pub fn new(text: &[u8]) -> Full {
        let text: Arc<[u8]> = text.into();
        Full(Dialogue::new(text.len(), move |asker| {
            let work = Workpiece::new(asker, text.clone());
            Box::pin(script(work, Plan::Rewrite))
        }))
    }
}

impl Search for Full {
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

/// All passes in their order.
pub(super) async fn script(mut work: Workpiece, plan: Plan) {
    let mut bytes = Bytes::all(&work, "bytes", 1, 0);
    let mut list = List::new(&mut work, &mut bytes);
    list.reduce().await;
    singles(&mut work).await;
}
