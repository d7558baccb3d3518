//! Which workers there are: each is a process that another one starts, again where it has died.

use std::collections::BTreeSet;

/// The workers of a launch, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// Those whose process above has called.
    begun: BTreeSet<usize>,
    /// Of these, those whose process above has not ended.
    kept: BTreeSet<usize>,
    /// Those that have called themselves.
    met: BTreeSet<usize>,
}

impl Workers {
    /// The process above a worker has called.
    pub(super) fn begin(&mut self, worker: usize) {
        self.begun.insert(worker);
        self.kept.insert(worker);
    }

    /// A worker has called. Whether that number has done so before.
    pub(super) fn is_another(&mut self, worker: usize) -> bool {
        !self.met.insert(worker)
    }

    /// The process above a worker has ended: it is not started any more.
    pub(super) fn end(&mut self, worker: usize) {
        self.kept.remove(&worker);
    }

    /// How many have begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.len()
    }

    /// How many live, or are started again.
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }
}
