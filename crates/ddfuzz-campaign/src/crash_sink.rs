//! The traits through which fuzzers store crashes and get groups to minimize: [`StoreWriter`]
//! writes into an output directory, [`RunCounter`] also records numbers of runs there,
//! [`CrashSink`] also decides which inputs are stored and which group is minimized next.

use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lock;
use ddfuzz_exec::Target;
use ddfuzz_store::{EntryId, Filed, Kind, Minimized, Reader, Store, StoreError};
use ddfuzz_triage::{Crash, Key};

/// The keys (group and minor key) of stored inputs, and the size limit below which further inputs
/// with these keys are still stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownKey {
    /// Kind of the group to which the stored inputs belong: crashes, hangs, memory blow-ups or
    /// flaky crashes.
    pub kind: Kind,
    /// Major key (hash that identifies the group) of the stored inputs.
    pub major: Key,
    /// Minor key of the stored inputs, which tells similar crashes of one group apart.
    pub minor: Key,
    /// Size limit in bytes for further inputs with these keys: only smaller ones are stored. An
    /// input of this size or more is not smaller than the smallest stored input or reproducer, and
    /// minimizing it is not expected to give a smaller result.
    pub least: u64,
}

/// A finding (an input whose run did not pass) with its complete crash record, as it is submitted
/// to a [`CrashSink`].
pub struct Report<'a> {
    /// Kind of the group that the reported finding belongs to: crashes, hangs, memory blow-ups or
    /// flaky crashes.
    pub kind: Kind,
    /// Crash record that triage has made of the reported finding.
    pub crash: &'a Crash,
    /// Bytes of the input whose run did not pass.
    pub input: &'a [u8],
    /// Number of the fuzzer's run that did not pass, from 0.
    pub run: u64,
    /// Name that the fuzzer has given the input whose run did not pass.
    pub name: &'a str,
}

/// Stores findings in an output directory and hands out entries to minimize. Several fuzzers may
/// share one directory: each sink knows what was submitted to the others.
///
/// **No crash is ever lost.** Everything that [`CrashSink::submit`] has stored is synced to disk
/// before it returns.
pub trait CrashSink: StoreWriter {
    /// Returns the keys of all stored inputs with their size limits: one [`KnownKey`] for each
    /// minor key (finer hash of crashes) of each group.
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError>;

    /// Counts a finding, and stores its input in three cases: it is the first of its minor key
    /// (hash that tells similar crashes of one group apart), it is smaller than all stored inputs
    /// of the key, or it is so small that minimizing it may give a smaller result than the group
    /// has. Returns the new entry; `None` if the input is not stored. The founder (first finding)
    /// of a new group, and a smaller input of a minimized group, can then be
    /// [claimed](CrashSink::claim).
    ///
    /// # Errors
    /// When the finding cannot be written; then it is not counted and may be submitted again.
    fn submit(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError>;

    /// Adds `runs` to the counted runs of a known group, which is given by its kind and major key
    /// (hash that identifies a bug); stores no input.
    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError>;

    /// Returns the next entry (stored crash) to minimize, and reserves it for the caller until it
    /// is [released](CrashSink::release). At most one entry of a group is reserved at a time.
    /// `None` if every group without a reserved entry has nothing to minimize.
    fn claim(&mut self) -> Result<Option<EntryId>, StoreError>;

    /// Releases a claimed entry. `ended`: whether its minimization is complete, so that another
    /// input of its group may be claimed next; if false, the entry can be claimed again, and its
    /// minimization continues from its log. `spent`: how long the caller has worked on the entry;
    /// among groups of the same priority, those that have taken the least time are claimed first.
    fn release(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError>;
}

/// Writes findings and reproducers into an output directory: through a [`Store`], or through
/// another process that owns the directory.
pub trait StoreWriter: Send {
    /// Returns a reader of the output directory.
    fn reader(&self) -> &Reader;

    /// Returns the number of changes of groups made so far, and the groups (kind and major key)
    /// that have changed since the change with the number `since`: 0 in the first call, later the
    /// number that the last call returned. `None` if changes are not counted, as in a process that
    /// does not own the directory ([`Store::changed_since`]).
    fn changed_since(&self, _since: u64) -> Option<(u64, Vec<(Kind, String)>)> {
        None
    }

    /// Stores a crash, its record and its input in its group ([`Store::file`]). Returns the place
    /// where they are stored, and whether the keys of the crash are new.
    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError>;

    /// Writes or replaces the reproducer (minimized input) of an entry
    /// ([`Store::write_minimized`]).
    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError>;

    /// Writes the script that reproduces an entry's crash on `target` ([`Store::write_reproduce`]).
    fn write_reproduce(&mut self, id: &EntryId, target: &Target) -> Result<(), StoreError>;

    /// Records how an entry's minimization ended ([`Store::write_outcome`]).
    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError>;
}

impl StoreWriter for Store {
    fn reader(&self) -> &Reader {
        Store::reader(self)
    }

    fn changed_since(&self, since: u64) -> Option<(u64, Vec<(Kind, String)>)> {
        Some(Store::changed_since(self, since))
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

/// A [`StoreWriter`] that can also record how many runs ended in each group.
pub trait RunCounter: StoreWriter {
    /// Sets the number of runs of a campaign that ended in a group ([`Store::set_seen`]).
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

/// A [`StoreWriter`] that writes through a store shared with other threads (`&Mutex<Store>`,
/// `Arc<Mutex<Store>>`). The mutex is locked only for the time of each call.
pub struct SharedStore<B> {
    store: B,
    reader: Reader,
}

impl<B: Deref<Target = Mutex<Store>> + Send> SharedStore<B> {
    /// Creates a writer for `store`, which other threads may write to as well.
    pub fn new(store: B) -> SharedStore<B> {
        let reader = lock(&*store).reader().clone();
        SharedStore { store, reader }
    }
}

impl<B: Deref<Target = Mutex<Store>> + Send> StoreWriter for SharedStore<B> {
    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn changed_since(&self, since: u64) -> Option<(u64, Vec<(Kind, String)>)> {
        Some(lock(&*self.store).changed_since(since))
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
