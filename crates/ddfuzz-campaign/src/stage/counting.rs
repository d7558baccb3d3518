//! Shelves that also count runs, as the owner of an output directory can.

use std::ops::Deref;
use std::sync::Mutex;

use crate::ledger::lock;
use crate::shelf::Shelf;
use ddfuzz_exec::Target;
use ddfuzz_store::{EntryId, Filed, Kind, Minimized, Reader, Store, StoreError};
use ddfuzz_triage::{Crash, Key};

/// A shelf that counts how often groups were seen.
pub trait Counting: Shelf {
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

impl Counting for Store {
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

impl<B: Deref<Target = Mutex<Store>> + Send> Shelf for SharedStore<B> {
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
        Shelf::write_reproduce(&mut *lock(&*self.store), id, target)
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        lock(&*self.store).write_outcome(id, outcome)
    }
}

impl<B: Deref<Target = Mutex<Store>> + Send> Counting for SharedStore<B> {
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
