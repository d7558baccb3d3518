//! What minimizations and findings write into an output directory, whoever owns it.

use ddfuzz_exec::Target;
use ddfuzz_store::{EntryId, Filed, Kind, Minimized, Reader, Store, StoreError};
use ddfuzz_triage::Crash;

/// An output directory that findings and reproducers go to: the [`Store`] itself, or one that
/// another process writes.
pub trait Shelf: Send {
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

impl Shelf for Store {
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
