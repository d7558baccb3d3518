//! A worker of a gathering: takes files, reads and hashes them.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::MeasureError;
use super::ledger::Ledger;
use super::reading;
use super::settings::Settings;
use crate::ContentId;
use crate::listing::Listing;
use crate::lock::lock;

/// So many files are taken at once.
const MANY: usize = 128;
/// So many bytes of them are in a worker's hands, at most, but for the last of them.
pub(super) const WAITING: usize = 4 << 20;

/// What workers share.
pub(super) struct Shared<'a> {
    pub(super) settings: &'a Settings<'a>,
    pub(super) listing: Mutex<Listing>,
    pub(super) ledger: Mutex<Ledger>,
    /// One of them has failed.
    pub(super) failed: AtomicBool,
}

impl Shared<'_> {
    fn goes_on(&self) -> bool {
        !self.settings.stopped() && !self.failed.load(Ordering::Relaxed)
    }
}

/// One worker.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    /// What was read, and is to be noted.
    read: Vec<(PathBuf, ContentId, Vec<u8>)>,
    /// Memory for what is read next.
    spare: Vec<Vec<u8>>,
}

impl Worker<'_> {
    pub(super) fn new<'a>(shared: &'a Shared<'a>) -> Worker<'a> {
        Worker {
            shared,
            read: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Takes files until there are none left, or it is to end.
    pub(super) fn work(mut self) -> Result<(), MeasureError> {
        while self.shared.goes_on() {
            let found: Vec<_> = lock(&self.shared.listing).by_ref().take(MANY).collect();
            if found.is_empty() {
                break;
            }
            let mut bytes = 0;
            for found in found {
                bytes += self.read(found.path);
                if bytes >= WAITING {
                    self.note()?;
                    bytes = 0;
                }
            }
            self.note()?;
        }
        Ok(())
    }

    /// Reads a file, and gives how many bytes it has.
    fn read(&mut self, path: PathBuf) -> usize {
        let mut bytes = self.spare.pop().unwrap_or_default();
        match reading::read(&path, self.shared.settings.max_len, &mut bytes) {
            Ok(()) => {
                let length = bytes.len();
                self.read.push((path, ContentId::of(&bytes), bytes));
                length
            }
            Err(why) => {
                lock(&self.shared.ledger).lay_aside(&path, &why);
                self.give_back(bytes);
                0
            }
        }
    }

    fn note(&mut self) -> Result<(), MeasureError> {
        let mut read = std::mem::take(&mut self.read);
        let mut ledger = lock(&self.shared.ledger);
        for (path, content, bytes) in &read {
            ledger.meet(content, path, bytes)?;
        }
        drop(ledger);
        for (_, _, bytes) in read.drain(..) {
            self.give_back(bytes);
        }
        self.read = read;
        Ok(())
    }

    /// Keeps memory for what is read next; not that of large inputs, or of many.
    fn give_back(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MANY && bytes.capacity() <= WAITING / MANY {
            self.spare.push(bytes);
        }
    }
}
