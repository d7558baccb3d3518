//! What workers report.

use ddfuzz_store::Kind;
use ddfuzz_triage::{Crash, Key};

/// What one run found.
pub(crate) enum What {
    /// A crash, hang or memory blow-up whose minor key this worker reports for the first time, or
    /// a crash by a smaller input than those that it has reported of the group.
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
    pub(crate) fn is_new(&self) -> bool {
        !matches!(self, What::Known { .. })
    }
}

/// A run that did not pass.
pub(crate) struct Finding {
    pub(crate) run: u64,
    /// What rebuilds or names its input.
    pub(crate) name: String,
    /// Empty where the finding is known.
    pub(crate) input: Vec<u8>,
    pub(crate) what: What,
}
