//! What workers report.

use crate::store::Kind;
use crate::triage::{Crash, Key};

/// What one run found.
pub(in crate::campaign) enum What {
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
    pub(in crate::campaign) fn is_new(&self) -> bool {
        !matches!(self, What::Known { .. })
    }
}

/// A run that did not pass.
pub(in crate::campaign) struct Finding {
    pub(in crate::campaign) run: u64,
    /// What rebuilds or names its input.
    pub(in crate::campaign) name: String,
    /// Empty where the finding is known.
    pub(in crate::campaign) input: Vec<u8>,
    pub(in crate::campaign) what: What,
}
