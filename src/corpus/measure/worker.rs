//! A worker: takes files, reads and hashes them, and runs what is new.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::MeasureError;
use super::ledger::{Ledger, Part, lock};
use super::reading;
use super::runner::{MANY, Runner};
use super::settings::Settings;
use crate::corpus::ContentId;
use crate::corpus::journal;
use crate::corpus::listing::Listing;

/// So many bytes of inputs wait in a worker, at most, but for the last of them.
const WAITING: usize = 4 << 20;

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

/// One worker with its own target.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    runner: Runner,
    /// What was read, and is to be looked up.
    read: Vec<(PathBuf, ContentId, Vec<u8>)>,
    /// What is to be run.
    waiting: Vec<(ContentId, Vec<u8>)>,
    /// Memory for what is read next.
    spare: Vec<Vec<u8>>,
}

impl Worker<'_> {
    pub(super) fn new<'a>(shared: &'a Shared<'a>, runner: Runner) -> Worker<'a> {
        Worker {
            shared,
            runner,
            read: Vec::new(),
            waiting: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Takes files until there are none left, or it is to end.
    pub(super) fn work(mut self) -> Result<(), MeasureError> {
        while self.shared.goes_on() {
            let many = self.runner.many();
            let found: Vec<_> = lock(&self.shared.listing).by_ref().take(many).collect();
            if found.is_empty() {
                return self.run_waiting();
            }
            let mut bytes = 0;
            for found in found {
                bytes += self.read(found.path);
                if bytes >= WAITING {
                    self.look_up()?;
                    bytes = 0;
                }
            }
            self.look_up()?;
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
                give_back(&mut self.spare, bytes);
                0
            }
        }
    }

    /// Has what was read run as far as it is new, when there is enough of it.
    fn look_up(&mut self) -> Result<(), MeasureError> {
        let mut ledger = lock(&self.shared.ledger);
        for (path, content, bytes) in self.read.drain(..) {
            match ledger.meet(&content, &path)? {
                true => self.waiting.push((content, bytes)),
                false => give_back(&mut self.spare, bytes),
            }
        }
        drop(ledger);
        let bytes: usize = self.waiting.iter().map(|(_, bytes)| bytes.len()).sum();
        if self.waiting.len() >= self.runner.many() || bytes >= WAITING {
            self.run_waiting()?;
        }
        Ok(())
    }

    fn run_waiting(&mut self) -> Result<(), MeasureError> {
        let waiting = std::mem::take(&mut self.waiting);
        let inputs: Vec<&[u8]> = waiting.iter().map(|(_, bytes)| &bytes[..]).collect();
        let (mut done, mut records, mut parts) = (0, Vec::new(), Vec::new());
        while done < inputs.len() && self.shared.goes_on() {
            let ran = self.runner.run_some(&inputs[done..], &mut |number, seen| {
                let (content, _) = waiting[done + number];
                let from = records.len();
                journal::encode(&mut records, &content, 0, &seen);
                parts.push(Part {
                    content,
                    from,
                    length: records.len() - from,
                    suspicious: seen.suspicious,
                });
            })?;
            done += ran;
            lock(&self.shared.ledger).record(&records, &parts)?;
            records.clear();
            parts.clear();
        }
        for (_, bytes) in waiting {
            give_back(&mut self.spare, bytes);
        }
        Ok(())
    }
}

/// Keeps memory for what is read next; not that of large inputs, or of many.
fn give_back(spare: &mut Vec<Vec<u8>>, bytes: Vec<u8>) {
    if spare.len() < 2 * MANY && bytes.capacity() <= WAITING / MANY {
        spare.push(bytes);
    }
}
