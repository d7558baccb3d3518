//! How far the solutions of a fuzzer were walked.

use libafl::corpus::{Corpus, CorpusId};
use serde::{Deserialize, Serialize};

/// The last solution that the stage has seen. It is metadata of the fuzzer's state, and so is
/// where the solutions are after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolutionCursor {
    last: Option<CorpusId>,
}

libafl_bolts::impl_serdeany!(SolutionCursor);

impl SolutionCursor {
    /// The solution behind it, be its own still there or not.
    pub fn next<I>(&self, solutions: &impl Corpus<I>) -> Option<CorpusId> {
        match self.last {
            None => solutions.first(),
            Some(last) if solutions.get(last).is_ok() => solutions.next(last),
            Some(last) => solutions.ids().find(|id| id.0 > last.0),
        }
    }

    /// That solution was seen.
    pub fn pass(&mut self, id: CorpusId) {
        self.last = Some(id);
    }
}
