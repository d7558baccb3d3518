//! What workers report.

use super::generator::InputName;
use crate::store::Kind;
use crate::triage::{Crash, Key};

/// What one run found.
pub(super) enum What {
    /// A crash, hang or memory blow-up whose minor key this worker reports for the first time.
    Crash(Box<Crash>),
    /// One of a minor key that this worker has reported before.
    Known {
        /// What it is.
        kind: Kind,
        /// Which bug.
        major: Key,
    },
    /// One that did not happen again.
    Flaky(Box<Crash>),
}

impl What {
    /// Whether the input may have to be stored.
    pub(super) fn is_new(&self) -> bool {
        !matches!(self, What::Known { .. })
    }
}

/// A run that did not pass.
pub(super) struct Finding {
    pub(super) run: u64,
    pub(super) name: InputName,
    /// Empty where the finding is known.
    pub(super) input: Vec<u8>,
    pub(super) what: What,
}

/// Some runs in a row.
pub(super) struct Chunk {
    /// Index of its first run.
    pub(super) first: u64,
    /// Runs that it should have.
    pub(super) planned: u64,
    /// Runs made: fewer only where the campaign was stopped.
    pub(super) runs: u64,
    pub(super) findings: Vec<Finding>,
}
