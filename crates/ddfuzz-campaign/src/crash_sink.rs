//! Where fuzzers store what they find and get groups to minimize: [`StoreWriter`] writes into an output
//! directory, [`CrashSink`] also knows its groups, [`RunCounter`] also counts runs.

use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::campaign_state::lock;
use ddfuzz_exec::Target;
use ddfuzz_store::{EntryId, Filed, Kind, Minimized, Reader, Store, StoreError};
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

/// A finding whose keys are known: it did not pass, and its record is complete.
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
/// **No crash is ever lost.** What [`CrashSink::submit`] has filed when it returns is synced.
pub trait CrashSink: StoreWriter {
    /// All ways into bugs that inputs are stored of.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError>;

    /// Counts a finding, and files it where it is the first of its minor key, smaller than all that
    /// is stored of it, or so small that it may end smaller; then gives its entry. The founder of a
    /// new group, and a smaller input of one that has an outcome, wait to be [claimed](CrashSink::claim)
    /// from then on.
    ///
    /// # Errors
    /// When it cannot be written; it is not counted then, and may be handed in again.
    fn submit(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError>;

    /// Counts `runs` more runs that ended in a known group.
    ///
    /// # Errors
    /// When the owner of the directory cannot be reached.
    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError>;

    /// The next entry to minimize; no other worker gets it until it is given back.
    ///
    /// # Errors
    /// When that cannot be asked.
    fn claim(&mut self) -> Result<Option<EntryId>, StoreError>;

    /// Gives a claimed entry back: minimized to the end, or with its state in its log. `spent`:
    /// how long it was worked on.
    ///
    /// # Errors
    /// When the owner of the directory cannot be reached.
    fn release(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError>;
}

/// An output directory that findings and reproducers go to: the [`Store`] itself, or one that
/// another process writes.
pub trait StoreWriter: Send {
    /// The directory for reading.
    fn reader(&self) -> &Reader;

    /// Files a crash ([`Store::file`]).
    ///
    /// # Errors
    /// As [`Store::file`].
    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError>;

    /// Replaces an entry's reproducer ([`Store::write_minimized`]).
    ///
    /// # Errors
    /// As [`Store::write_minimized`].
    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError>;

    /// Writes the script that shows an entry's crash ([`Store::write_reproduce`]).
    ///
    /// # Errors
    /// As [`Store::write_reproduce`].
    fn write_reproduce(&mut self, id: &EntryId, target: &Target) -> Result<(), StoreError>;

    /// Records how an entry's minimization ended ([`Store::write_outcome`]).
    ///
    /// # Errors
    /// As [`Store::write_outcome`].
    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError>;
}

impl StoreWriter for Store {
    fn reader(&self) -> &Reader {
        Store::reader(self)
    }

    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        Store::file(self, kind, crash, input)
    }

    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        Store::write_minimized(self, id, bytes)
    }

    fn write_reproduce(&mut self, id: &EntryId, target: &Target) -> Result<(), StoreError> {
        Store::write_reproduce(self, id, target).map(drop)
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        Store::write_outcome(self, id, outcome)
    }
}

/// A shelf that counts how often groups were seen.
pub trait RunCounter: StoreWriter {
    /// Sets how many runs of a campaign ended in a group ([`Store::set_seen`]).
    ///
    /// # Errors
    /// As [`Store::set_seen`].
    fn set_seen(
        &mut self,
        kind: Kind,
        major: Key,
        campaign: &str,
        runs: u64,
    ) -> Result<(), StoreError>;
}

impl RunCounter for Store {
    fn set_seen(
        &mut self,
        kind: Kind,
        major: Key,
        campaign: &str,
        runs: u64,
    ) -> Result<(), StoreError> {
        Store::set_seen(self, kind, major, campaign, runs)
    }
}

/// A store that others in this process write to as well (`&Mutex<Store>`, `Arc<Mutex<Store>>`).
/// It is locked only for moments.
pub struct SharedStore<B> {
    store: B,
    reader: Reader,
}

impl<B: Deref<Target = Mutex<Store>> + Send> SharedStore<B> {
    /// The shelf of that store.
    pub fn new(store: B) -> SharedStore<B> {
        let reader = lock(&*store).reader().clone();
        SharedStore { store, reader }
    }
}

impl<B: Deref<Target = Mutex<Store>> + Send> StoreWriter for SharedStore<B> {
    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        lock(&*self.store).file(kind, crash, input)
    }

    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        lock(&*self.store).write_minimized(id, bytes)
    }

    fn write_reproduce(&mut self, id: &EntryId, target: &Target) -> Result<(), StoreError> {
        StoreWriter::write_reproduce(&mut *lock(&*self.store), id, target)
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        lock(&*self.store).write_outcome(id, outcome)
    }
}

impl<B: Deref<Target = Mutex<Store>> + Send> RunCounter for SharedStore<B> {
    fn set_seen(
        &mut self,
        kind: Kind,
        major: Key,
        campaign: &str,
        runs: u64,
    ) -> Result<(), StoreError> {
        lock(&*self.store).set_seen(kind, major, campaign, runs)
    }
}
