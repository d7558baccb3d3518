//! The desk of who owns an output directory.

use std::collections::BTreeMap;
use std::time::Duration;

use super::counting::Counting;
use super::tally::Tally;
use super::waiting::{GroupName, Turn, Waiting};
use crate::campaign::desk::{Desk, KnownKey, Report};
use crate::campaign::ledger::{MINORS_KEPT, rank};
use crate::campaign::shelf::Shelf;
use crate::exec::Target;
use crate::store::{
    Entry, EntryId, Filed, Kind, KnownGroups, Minimized, Reader, Store, StoreError,
};
use crate::triage::{Crash, Found, Key, Keys};

/// A group as far as handing in asks.
struct Group {
    major: Key,
    /// By minor key (12 hex digits): the key whole, and the size of the smallest input.
    minors: BTreeMap<String, (Key, u64)>,
}

/// A [`Desk`] in the process that owns the output directory.
///
/// The first input of each way into a bug is filed (at most 16 ways a group), and each that is
/// smaller than all that is stored of it. Runs are counted in memory, and written every few
/// seconds, by [`LocalDesk::flush`], and when it is dropped: a process that is killed forgets the
/// counts of some seconds, and nothing else.
pub struct LocalDesk<S: Counting = Store> {
    shelf: S,
    muted: KnownGroups,
    groups: BTreeMap<GroupName, Group>,
    tally: Tally,
    waiting: Waiting,
}

impl<S: Counting> LocalDesk<S> {
    /// The desk of the campaign of this id. What the directory holds is known from the beginning,
    /// and what has no outcome waits to be minimized: what was cut off first, then by the runs
    /// that found it, what was only slipped into behind these, hangs and memory blow-ups last.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn new(shelf: S, campaign: &str) -> Result<LocalDesk<S>, StoreError> {
        let mut desk = LocalDesk {
            shelf,
            muted: KnownGroups::default(),
            groups: BTreeMap::new(),
            tally: Tally::new(campaign),
            waiting: Waiting::default(),
        };
        let reader = desk.shelf.reader().clone();
        for kind in Kind::ALL {
            let mut pending = Vec::new();
            for group in reader.groups(kind)? {
                let major = group.record.major;
                if let Some(runs) = group.record.seen.get(campaign) {
                    desk.tally.set((kind, major), *runs);
                }
                let entries = reader.entries(kind, &major.short())?;
                for entry in &entries {
                    desk.know(kind, &entry.crash.keys, sizes(entry));
                }
                if let Some(founder) = founder(&reader, &entries) {
                    let found = founder.crash.found.as_ref();
                    let begun = founder.log().exists();
                    pending.push((rank(found), (kind, major.short()), is_slip(found), begun));
                }
            }
            pending.sort();
            for (_, group, slipped, begun) in pending {
                if let Some(turn) = Turn::of(kind, slipped) {
                    desk.waiting.enqueue(group, turn, begun);
                }
            }
        }
        Ok(desk)
    }

    /// Never gives these groups to be minimized; they are counted and stored all the same.
    #[must_use]
    pub fn muting(mut self, muted: KnownGroups) -> LocalDesk<S> {
        self.muted = muted;
        self
    }

    /// Writes the counts.
    ///
    /// # Errors
    /// When they cannot be written; they are written next time then.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.tally.write(&mut self.shelf)
    }

    /// How many groups wait to be minimized, those included that somebody has claimed.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The id of the campaign that counts here.
    pub fn campaign(&self) -> &str {
        self.tally.campaign()
    }

    /// What it writes to.
    pub fn shelf(&mut self) -> &mut S {
        &mut self.shelf
    }

    /// Remembers that an input of this size is stored.
    fn know(&mut self, kind: Kind, keys: &Keys, size: u64) {
        let group = self.groups.entry((kind, keys.major.short()));
        let group = group.or_insert_with(|| Group {
            major: keys.major,
            minors: BTreeMap::new(),
        });
        let minor = group.minors.entry(keys.minor.short());
        let (_, least) = minor.or_insert((keys.minor, size));
        *least = size.min(*least);
    }

    /// Whether an input of this size is stored.
    fn keeps(&self, kind: Kind, keys: &Keys, size: u64) -> bool {
        let Some(group) = self.groups.get(&(kind, keys.major.short())) else {
            return true;
        };
        match group.minors.get(&keys.minor.short()) {
            Some((_, least)) => size < *least,
            None => group.minors.len() < MINORS_KEPT,
        }
    }

    fn file_and_know(
        &mut self,
        kind: Kind,
        crash: &Crash,
        input: &[u8],
    ) -> Result<Filed, StoreError> {
        let filed = self.shelf.file(kind, crash, input)?;
        let name = (kind, crash.keys.major.short());
        let slipped = is_slip(crash.found.as_ref());
        // One that a run finds after a slip comes sooner.
        if let Some(turn) = Turn::of(kind, slipped)
            && (filed.new_major || !slipped && !self.is_ended(&name)?)
        {
            self.waiting.enqueue(name, turn, false);
        }
        self.know(kind, &crash.keys, input.len() as u64);
        Ok(filed)
    }

    /// Whether the group has an outcome.
    fn is_ended(&self, group: &GroupName) -> Result<bool, StoreError> {
        let entries = self.shelf.reader().entries(group.0, &group.1)?;
        Ok(entries.iter().any(|entry| entry.minimized.is_some()))
    }

    fn is_muted(&self, (kind, major): &GroupName) -> bool {
        self.shelf.reader().is_muted(*kind, major, &self.muted)
    }

    fn write_if_due(&mut self) {
        if self.tally.is_due() {
            // What cannot be written now is written later, and is no reason to file nothing.
            let _ = self.flush();
        }
    }
}

impl<S: Counting> Shelf for LocalDesk<S> {
    fn reader(&self) -> &Reader {
        self.shelf.reader()
    }

    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        self.file_and_know(kind, crash, input)
    }

    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        self.shelf.write_minimized(id, bytes)?;
        let group = self.groups.get_mut(&(id.kind(), id.major().to_owned()));
        if let Some((_, least)) = group.and_then(|group| group.minors.get_mut(id.minor())) {
            *least = (bytes.len() as u64).min(*least);
        }
        Ok(())
    }

    fn write_reproduce(&mut self, id: &EntryId, target: &Target) -> Result<(), StoreError> {
        self.shelf.write_reproduce(id, target)
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        self.shelf.write_outcome(id, outcome)
    }
}

impl<S: Counting> Desk for LocalDesk<S> {
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError> {
        let groups = self.groups.iter();
        let keys = groups.flat_map(|((kind, _), group)| {
            group.minors.values().map(|(minor, least)| KnownKey {
                kind: *kind,
                major: group.major,
                minor: *minor,
                least: *least,
            })
        });
        Ok(keys.collect())
    }

    fn hand_in(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError> {
        let keys = &report.crash.keys;
        let mut filed = None;
        if self.keeps(report.kind, keys, report.input.len() as u64) {
            let found = Found::Run {
                campaign: self.campaign().to_owned(),
                run: report.run,
                input: report.name.to_owned(),
            };
            let crash = Crash {
                found: Some(found),
                ..report.crash.clone()
            };
            filed = Some(self.file_and_know(report.kind, &crash, report.input)?.id);
        }
        self.tally.add((report.kind, keys.major), 1);
        self.write_if_due();
        Ok(filed)
    }

    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError> {
        self.tally.add((kind, major), runs);
        self.write_if_due();
        Ok(())
    }

    fn claim(&mut self) -> Result<Option<EntryId>, StoreError> {
        self.write_if_due();
        while let Some(group) = self.waiting.next() {
            let reader = self.shelf.reader();
            let entries = reader.entries(group.0, &group.1)?;
            let founder = founder(reader, &entries).map(|entry| entry.id.clone());
            match founder.filter(|_| !self.is_muted(&group)) {
                Some(id) => {
                    self.waiting.claim(&group);
                    return Ok(Some(id));
                }
                None => self.waiting.remove(&group),
            }
        }
        Ok(None)
    }

    fn give_back(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError> {
        let group = (id.kind(), id.major().to_owned());
        if ended {
            self.waiting.remove(&group);
        } else {
            self.waiting.give_back(&group, spent);
        }
        Ok(())
    }
}

impl<S: Counting> Drop for LocalDesk<S> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// The entry to minimize of a group without an outcome: one that was begun, or the one that was
/// found first.
fn founder<'a>(reader: &Reader, entries: &'a [Entry]) -> Option<&'a Entry> {
    if entries.iter().any(|entry| entry.minimized.is_some()) {
        return None;
    }
    let begun = |entry: &Entry| entry.id.log(reader.root()).exists();
    entries
        .iter()
        .min_by_key(|entry| (!begun(entry), rank(entry.crash.found.as_ref())))
}

fn is_slip(found: Option<&Found>) -> bool {
    matches!(found, Some(Found::Slip { .. }))
}

/// The size of an entry's smallest input, in bytes; without one the largest there is, so that any
/// other is smaller.
fn sizes(entry: &Entry) -> u64 {
    let files = [entry.original(), entry.reproducer()];
    let sizes = files.iter().filter_map(|file| file.metadata().ok());
    sizes.map(|facts| facts.len()).min().unwrap_or(u64::MAX)
}
