//! What an executor has seen of its last run, beyond LibAFL's exit kind.

use std::sync::{Arc, Mutex};

use crate::ledger::lock;
use ddfuzz_exec::{Copies, Ended};
use ddfuzz_model::files::Base64;

/// What was seen of one run.
#[derive(Clone, Default)]
pub struct Seen {
    /// How it ended.
    pub ended: Option<Ended>,
    /// The copies of itself that the dying process has left.
    pub copies: Option<Arc<Copies>>,
    /// The inputs that its process had run before, oldest first.
    pub preceding: Vec<Base64>,
}

/// Where an executor leaves what it has seen of each run that did not pass, for the records of
/// crashes that do not come again: those are seen only once. Clones are the same place.
#[derive(Clone, Default)]
pub struct Sight(Arc<Mutex<Seen>>);

impl Sight {
    /// Leaves what was seen of a run, in place of the one before.
    pub fn leave(&self, seen: Seen) {
        *lock(&self.0) = seen;
    }

    /// How the run ended of which something was left that nobody has taken yet.
    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.0).ended
    }

    /// Takes it away.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *lock(&self.0))
    }
}
