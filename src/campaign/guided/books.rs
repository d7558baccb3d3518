//! The desk of the process that writes the output directory: the ledger, and who minimizes what.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use crate::campaign::finding::{Finding, What};
use crate::campaign::ledger::{Ledger, lock};
use crate::campaign::{KnownKey, Report};
use crate::store::{EntryId, Filed, Kind, KnownGroups, Minimized, Store, StoreError};
use crate::triage::{Crash, Key};

/// What the hub writes to, and what it knows.
pub(super) struct Books<'a> {
    store: &'a Mutex<Store>,
    pub(super) ledger: Ledger<'a>,
    known: &'a KnownGroups,
    /// The smallest input of each way into a bug.
    least: BTreeMap<(Kind, Key, Key), u64>,
    /// Founders that wait to be minimized.
    queue: VecDeque<EntryId>,
    /// Those that a worker is minimizing.
    claimed: HashSet<EntryId>,
    /// How long groups were minimized, in all.
    pub(super) minimized: Duration,
}

impl<'a> Books<'a> {
    /// Reads what there is. `minimizing`: whether groups wait to be minimized.
    pub(super) fn open(
        store: &'a Mutex<Store>,
        ledger: Ledger<'a>,
        known: &'a KnownGroups,
        minimizing: bool,
    ) -> Result<Books<'a>, StoreError> {
        let mut books = Books {
            store,
            ledger,
            known,
            least: BTreeMap::new(),
            queue: VecDeque::new(),
            claimed: HashSet::new(),
            minimized: Duration::ZERO,
        };
        let locked = lock(store);
        for kind in Kind::ALL {
            for group in locked.reader().groups(kind)? {
                for entry in locked.reader().entries(kind, &group.record.major.short())? {
                    let size = entry.reproducer_bytes()?.len() as u64;
                    let keys = entry.crash.keys;
                    books.note_size((kind, keys.major, keys.minor), size);
                }
            }
        }
        drop(locked);
        if minimizing {
            let pending = books.ledger.pending(false)?;
            let wanted = pending.into_iter().filter(|id| !books.is_muted(id.major()));
            books.queue = wanted.collect();
        }
        Ok(books)
    }

    fn note_size(&mut self, key: (Kind, Key, Key), size: u64) {
        let least = self.least.entry(key).or_insert(size);
        *least = (*least).min(size);
    }

    /// Whether the user does not want to hear of this group.
    pub(super) fn is_muted(&self, major: &str) -> bool {
        self.known.has_major(major)
            || self.known.names_stables()
                && lock(self.store)
                    .reader()
                    .is_known_by_names(Kind::Crash, major, self.known)
                    .unwrap_or(false)
    }

    /// How many ways into bugs are known.
    pub(super) fn known_count(&self) -> u64 {
        self.least.len() as u64
    }

    /// Founders that wait, and those under way.
    pub(super) fn waiting(&self) -> u64 {
        (self.queue.len() + self.claimed.len()) as u64
    }

    /// All ways into bugs.
    pub(super) fn all_known(&self) -> Vec<KnownKey> {
        let key = |(&(kind, major, minor), &least): (&(Kind, Key, Key), &u64)| KnownKey {
            kind,
            major,
            minor,
            least,
        };
        self.least.iter().map(key).collect()
    }

    /// See [`crate::campaign::Desk::hand_in`].
    pub(super) fn hand_in(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError> {
        let keys = report.crash.keys;
        let key = (report.kind, keys.major, keys.minor);
        let size = report.input.len() as u64;
        let finding = Finding {
            run: report.run,
            name: report.name.to_owned(),
            input: report.input.to_vec(),
            what: match report.kind {
                Kind::Flaky => What::Flaky(Box::new(report.crash.clone())),
                _ => What::Crash(Box::new(report.crash.clone())),
            },
        };
        let smaller = self.least.get(&key).is_some_and(|least| size < *least);
        let founded = self.ledger.commit(&finding)?;
        let filed = match (&founded, smaller) {
            (None, true) => Some(self.ledger.file(report.kind, report.crash, &finding)?),
            _ => founded.clone(),
        };
        let known = self.least.contains_key(&key);
        self.note_size(key, size);
        if let Some(id) = founded
            && !self.is_muted(id.major())
        {
            self.queue.push_back(id);
        }
        // What was the first of its way, but founded no group, is filed as well.
        Ok(filed.or_else(|| (!known).then(|| EntryId::of(report.kind, &keys, report.input))))
    }

    /// See [`crate::campaign::Desk::count`].
    pub(super) fn count(&mut self, kind: Kind, major: Key, runs: u64) {
        self.ledger.checkpoint.count_runs(kind, major.short(), runs);
    }

    /// See [`crate::campaign::Desk::claim`].
    pub(super) fn claim(&mut self) -> Option<EntryId> {
        let id = self.queue.pop_front()?;
        self.claimed.insert(id.clone());
        Some(id)
    }

    /// See [`crate::campaign::Desk::give_back`].
    pub(super) fn give_back(&mut self, id: &EntryId, ended: bool, spent: Duration) {
        self.minimized += spent;
        if self.claimed.remove(id) && !ended {
            self.queue.push_front(id.clone());
        }
    }

    /// Files a slip.
    pub(super) fn file(
        &mut self,
        kind: Kind,
        crash: &Crash,
        input: &[u8],
    ) -> Result<Filed, StoreError> {
        let filed = lock(self.store).file(kind, crash, input)?;
        self.note_size(
            (kind, crash.keys.major, crash.keys.minor),
            input.len() as u64,
        );
        Ok(filed)
    }

    /// Replaces a reproducer.
    pub(super) fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        lock(self.store).write_minimized(id, bytes)?;
        let keys = |key: &&(Kind, Key, Key)| {
            key.0 == id.kind() && key.1.short() == id.major() && key.2.short() == id.minor()
        };
        if let Some(key) = self.least.keys().find(keys).copied() {
            self.note_size(key, bytes.len() as u64);
        }
        Ok(())
    }

    /// Records how a minimization ended.
    pub(super) fn write_outcome(
        &mut self,
        id: &EntryId,
        outcome: &Minimized,
    ) -> Result<(), StoreError> {
        lock(self.store).write_outcome(id, outcome)
    }

    /// Keeps an input in the corpus.
    pub(super) fn keep(&mut self, input: &[u8]) -> Result<(), StoreError> {
        lock(self.store).add_to_corpus(input).map(drop)
    }
}
