//! Where fuzzers hand in what they find, and get groups to minimize.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shelf::Shelf;
use ddfuzz_store::{EntryId, Kind, StoreError};
use ddfuzz_triage::{Crash, Key};

/// A way into a bug of which inputs are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownKey {
    /// What kind of group it is in.
    pub kind: Kind,
    /// The group's major key.
    pub major: Key,
    /// Its minor key.
    pub minor: Key,
    /// An input of so many bytes is not stored: it is not smaller than the smallest one stored,
    /// reproducers included, and no smaller result is expected of it.
    pub least: u64,
}

/// A finding whose keys are known: it did not pass, and it can be told in full.
pub struct Report<'a> {
    /// What kind of group it belongs to.
    pub kind: Kind,
    /// Triage's record.
    pub crash: &'a Crash,
    /// The input.
    pub input: &'a [u8],
    /// Which run of the fuzzer, from 0.
    pub run: u64,
    /// What the fuzzer calls the input.
    pub name: &'a str,
}

/// An output directory that knows its groups. Several fuzzers may share it: one desk knows what
/// was handed in at another.
///
/// **No crash is ever lost.** What [`Desk::hand_in`] has filed when it returns is synced.
pub trait Desk: Shelf {
    /// All ways into bugs that inputs are stored of.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError>;

    /// Counts a finding, and files it where it is the first of its minor key, smaller than all that
    /// is stored of it, or so small that it may end smaller; then gives its entry. The founder of a
    /// new group, and a smaller input of one that has an outcome, wait to be [claimed](Desk::claim)
    /// from then on.
    ///
    /// # Errors
    /// When it cannot be written; it is not counted then, and may be handed in again.
    fn hand_in(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError>;

    /// Counts `runs` more runs that ended in a known group.
    ///
    /// # Errors
    /// When that cannot be told.
    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError>;

    /// The next entry to minimize, which nobody else is given until it is given back.
    ///
    /// # Errors
    /// When that cannot be asked.
    fn claim(&mut self) -> Result<Option<EntryId>, StoreError>;

    /// Gives a claimed entry back: minimized to the end, or with its state in its log. `spent`:
    /// how long it was worked on.
    ///
    /// # Errors
    /// When that cannot be told.
    fn give_back(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError>;
}
