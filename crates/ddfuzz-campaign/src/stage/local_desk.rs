//! The desk of the process that owns an output directory: groups, their counts, and which of them
//! is minimized next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::campaign_state::MAX_MINORS;
use crate::crash_sink::{CrashSink, KnownKey, Report, RunCounter, StoreWriter};
use crate::error::CampaignError;
use crate::minimizing::Variants;
use crate::schedule::{Bug, Priority, SmallestSizes, is_slip, rank, size};
use ddfuzz_exec::{Limits, Program, Target, TargetRecord, Way, bundled};
use ddfuzz_model::files::OsText;
use ddfuzz_store::{
    Campaign, Entry, EntryId, Filed, Kind, KnownGroups, Minimized, Reader, Store, StoreError,
    hash_of, rfc3339,
};
use ddfuzz_triage::{Crash, Found, Key, Keys};

/// A group as far as handing in asks.
struct Group {
    major: Key,
    /// By minor key (12 hex digits): the key whole, and the size of the smallest input.
    minors: BTreeMap<String, (Key, u64)>,
    /// The sizes that its minimizations have reached.
    reached: SmallestSizes,
    /// Size of the smallest input that waits after them.
    open: Option<u64>,
}

impl Group {
    fn of(major: Key) -> Group {
        Group {
            major,
            minors: BTreeMap::new(),
            reached: SmallestSizes::default(),
            open: None,
        }
    }

    /// Inputs of a minor key whose smallest stored one has `least` bytes are not stored where they
    /// have so many: they are neither smaller, nor worth a minimization of their own.
    fn enough(&self, least: u64) -> u64 {
        let worth = self.reached.most().map_or(0, |most| most + 1);
        least.max(self.open.map_or(worth, |open| open.min(worth)))
    }

    /// An input of this size is stored.
    fn hold(&mut self, minor: &Key, size: u64) {
        let (_, least) = (self.minors.entry(minor.short())).or_insert((*minor, size));
        *least = size.min(*least);
    }
}

/// A [`CrashSink`] in the process that owns the output directory.
///
/// The first input of each way into a bug is filed (at most 16 ways a group), and each that is
/// smaller than all that is stored of it, or than a tenth of the smallest input that was
/// minimized. Runs are counted in memory, and written every few
/// seconds, by [`LocalDesk::flush`], and when it is dropped: a process that is killed forgets the
/// counts of some seconds, and nothing else.
pub struct LocalDesk<S: RunCounter = Store> {
    shelf: S,
    muted: KnownGroups,
    variants: Variants,
    groups: BTreeMap<GroupName, Group>,
    tally: RunCounts,
    waiting: PendingGroups,
}

impl<S: RunCounter> LocalDesk<S> {
    /// The desk of the campaign of this id. What the directory holds is known from the beginning,
    /// and what has no outcome waits to be minimized: what was cut off first, then by the runs
    /// that found it, what was only slipped into after these, then smaller inputs of groups that
    /// have an outcome, hangs and memory blow-ups last.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn new(shelf: S, campaign: &str) -> Result<LocalDesk<S>, StoreError> {
        let mut desk = LocalDesk {
            shelf,
            muted: KnownGroups::default(),
            variants: Variants::None,
            groups: BTreeMap::new(),
            tally: RunCounts::new(campaign),
            waiting: PendingGroups::default(),
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
                let name = (kind, major.short());
                desk.learn_reached(&name, &entries);
                if let Some((priority, entry)) = desk.next_of(&name, &reader, &entries) {
                    let found = entry.crash.found.as_ref();
                    pending.push((priority, rank(found), name, entry.log().exists()));
                }
            }
            pending.sort();
            for (priority, _, group, begun) in pending {
                desk.waiting.enqueue(group, priority, begun);
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

    /// Gives inputs of further minor keys of a group to be minimized, when nothing else waits.
    #[must_use]
    pub fn varying(mut self, variants: Variants) -> LocalDesk<S> {
        self.variants = variants;
        let reader = self.shelf.reader().clone();
        let names: Vec<GroupName> = self.groups.keys().cloned().collect();
        for name in names {
            // What cannot be read now waits for the next one that is filed.
            let _ = self.wait_for_more(&name, &reader);
        }
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
        let group = group.or_insert_with(|| Group::of(keys.major));
        group.hold(&keys.minor, size);
    }

    /// Remembers what the minimizations of a group have reached, and what waits after them.
    fn learn_reached(&mut self, name: &GroupName, entries: &[Entry]) {
        if let Some(group) = self.groups.get_mut(name)
            && name.0 == Kind::Crash
        {
            group.reached = SmallestSizes::of(entries);
            let open = entries.iter().filter(|entry| entry.minimized.is_none());
            group.open = open.map(size).min();
        }
    }

    /// Whether an input of this size is stored.
    fn keeps(&self, kind: Kind, keys: &Keys, size: u64) -> bool {
        let Some(group) = self.groups.get(&(kind, keys.major.short())) else {
            return true;
        };
        match group.minors.get(&keys.minor.short()) {
            Some((_, least)) => size < group.enough(*least),
            None => group.minors.len() < MAX_MINORS || size < group.enough(0),
        }
    }

    /// The entry of a group that is minimized next, and how soon.
    fn next_of<'a>(
        &self,
        (kind, _): &GroupName,
        reader: &'a Reader,
        entries: &'a [Entry],
    ) -> Option<(Priority, &'a Entry)> {
        let bug = Bug::of(reader, entries);
        if let Some(founder) = bug.founder_or_begun() {
            let priority = Priority::of(*kind, is_slip(founder.crash.found.as_ref()))?;
            return Some((priority, founder));
        }
        if *kind != Kind::Crash {
            return None;
        }
        let class = entries.first().map(|entry| &entry.crash.class)?;
        let smaller = bug.smaller().map(|entry| (Priority::Smaller, entry));
        let variant = || bug.variant(self.variants.most(class));
        smaller.or_else(|| variant().map(|entry| (Priority::Variant, entry)))
    }

    /// Lets a group wait that has an outcome, where there is more of it to minimize.
    fn wait_for_more(&mut self, name: &GroupName, reader: &Reader) -> Result<(), StoreError> {
        let entries = reader.entries(name.0, &name.1)?;
        self.learn_reached(name, &entries);
        if let Some((priority, entry)) = self.next_of(name, reader, &entries) {
            self.waiting
                .enqueue(name.clone(), priority, entry.log().exists());
        }
        Ok(())
    }

    fn file_and_know(
        &mut self,
        kind: Kind,
        crash: &Crash,
        input: &[u8],
    ) -> Result<Filed, StoreError> {
        let filed = self.shelf.file(kind, crash, input)?;
        let name = (kind, crash.keys.major.short());
        self.know(kind, &crash.keys, input.len() as u64);
        let slipped = is_slip(crash.found.as_ref());
        if self.is_ended(&name)? {
            let reader = self.shelf.reader().clone();
            self.wait_for_more(&name, &reader)?;
        } else if let Some(priority) = Priority::of(kind, slipped)
            && (filed.new_major || !slipped)
        {
            // One that a run finds after a slip comes sooner.
            self.waiting.enqueue(name, priority, false);
        }
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

impl<S: RunCounter> StoreWriter for LocalDesk<S> {
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

impl<S: RunCounter> CrashSink for LocalDesk<S> {
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError> {
        let groups = self.groups.iter();
        let keys = groups.flat_map(|((kind, _), group)| {
            group.minors.values().map(|(minor, least)| KnownKey {
                kind: *kind,
                major: group.major,
                minor: *minor,
                least: group.enough(*least),
            })
        });
        Ok(keys.collect())
    }

    fn submit(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError> {
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
            let next = self.next_of(&group, reader, &entries);
            let next = next.map(|(_, entry)| entry.id.clone());
            match next.filter(|_| !self.is_muted(&group)) {
                Some(id) => {
                    self.waiting.claim(&group);
                    return Ok(Some(id));
                }
                None => self.waiting.remove(&group),
            }
        }
        Ok(None)
    }

    fn release(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError> {
        let group = (id.kind(), id.major().to_owned());
        if ended {
            self.waiting.remove(&group);
            let reader = self.shelf.reader().clone();
            self.wait_for_more(&group, &reader)?;
        } else {
            self.waiting.release(&group, spent);
        }
        Ok(())
    }
}

impl<S: RunCounter> Drop for LocalDesk<S> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// The size of an entry's smallest input, in bytes; without one the largest there is, so that any
/// other is smaller.
fn sizes(entry: &Entry) -> u64 {
    let files = [entry.original(), entry.reproducer()];
    let sizes = files.iter().filter_map(|file| file.metadata().ok());
    sizes.map(|facts| facts.len()).min().unwrap_or(u64::MAX)
}

/// A group, by the first 12 hex digits of its major key.
pub(super) type GroupName = (Kind, String);

/// A group's place in the queue; the least is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingGroup {
    priority: Priority,
    /// How long it was minimized before it was given back: the hard ones come last.
    spent: Duration,
    /// It was not begun: what was cut off comes first after a restart.
    untouched: bool,
    number: u64,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct PendingGroups {
    places: BTreeMap<GroupName, PendingGroup>,
    claimed: BTreeMap<GroupName, PendingGroup>,
    numbers: u64,
}

impl PendingGroups {
    /// Lets a group wait after those of its turn; one that waits keeps its place, if it is not in
    /// a later turn. `begun`: its minimization was cut off.
    pub(super) fn enqueue(&mut self, group: GroupName, priority: Priority, begun: bool) {
        if self.claimed.contains_key(&group) {
            return;
        }
        self.numbers += 1;
        let new = PendingGroup {
            priority,
            spent: Duration::ZERO,
            untouched: !begun,
            number: self.numbers,
        };
        let place = self.places.entry(group).or_insert(new);
        place.priority = place.priority.min(priority);
    }

    /// How many wait, or are worked on.
    pub(super) fn len(&self) -> usize {
        self.places.len() + self.claimed.len()
    }

    /// The group that is next.
    pub(super) fn next(&self) -> Option<GroupName> {
        let least = self.places.iter().min_by_key(|(_, place)| **place);
        least.map(|(group, _)| group.clone())
    }

    /// Gives a group to somebody.
    pub(super) fn claim(&mut self, group: &GroupName) {
        if let Some(place) = self.places.remove(group) {
            self.claimed.insert(group.clone(), place);
        }
    }

    /// Takes a group back that was not ended, after so much more work.
    pub(super) fn release(&mut self, group: &GroupName, spent: Duration) {
        if let Some(place) = self.claimed.remove(group) {
            let place = PendingGroup {
                spent: place.spent + spent,
                untouched: place.untouched && spent.is_zero(),
                ..place
            };
            self.places.insert(group.clone(), place);
        }
    }

    /// A group waits no more, until it is let wait again.
    pub(super) fn remove(&mut self, group: &GroupName) {
        self.places.remove(group);
        self.claimed.remove(group);
    }
}

/// Between two writings.
const WRITTEN_EVERY: Duration = Duration::from_secs(2);

/// The counts of one campaign.
pub(super) struct RunCounts {
    campaign: String,
    runs: BTreeMap<(Kind, Key), u64>,
    unwritten: BTreeSet<(Kind, Key)>,
    written: Instant,
}

impl RunCounts {
    /// The counts of the campaign of this id, from none.
    pub(super) fn new(campaign: &str) -> RunCounts {
        RunCounts {
            campaign: campaign.to_owned(),
            runs: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            written: Instant::now(),
        }
    }

    /// The campaign's id.
    pub(super) fn campaign(&self) -> &str {
        &self.campaign
    }

    /// What an earlier process has written of a group.
    pub(super) fn set(&mut self, group: (Kind, Key), runs: u64) {
        self.runs.insert(group, runs);
    }

    /// Counts more runs.
    pub(super) fn add(&mut self, group: (Kind, Key), runs: u64) {
        let counted = self.runs.entry(group).or_default();
        *counted = counted.saturating_add(runs);
        self.unwritten.insert(group);
    }

    /// Whether it is time to write.
    pub(super) fn is_due(&self) -> bool {
        !self.unwritten.is_empty() && self.written.elapsed() >= WRITTEN_EVERY
    }

    /// Writes what was counted since the last time. What cannot be written is written next time.
    pub(super) fn write(&mut self, shelf: &mut impl RunCounter) -> Result<(), StoreError> {
        self.written = Instant::now();
        while let Some(group) = self.unwritten.first().copied() {
            let runs = self.runs.get(&group).copied().unwrap_or_default();
            match shelf.set_seen(group.0, group.1, &self.campaign, runs) {
                // Somebody has tidied up: it is counted when it is filed again.
                Ok(()) | Err(StoreError::NoSuch { .. }) => {}
                Err(error) => return Err(error),
            }
            self.unwritten.remove(&group);
        }
        Ok(())
    }
}

impl LocalDesk<Store> {
    /// The desk of an output directory, which is made where there is none; one of the same target
    /// is continued.
    ///
    /// # Errors
    /// A directory of something else, of another target, or in use by another process; one that
    /// cannot be read or written. Nothing in it is changed then.
    pub fn open(root: &Path, target: &Target, way: Way) -> Result<LocalDesk<Store>, CampaignError> {
        let mut store = Store::create_or_resume(root, new_campaign(target, way))?;
        let campaign = match &store.campaigns().current {
            Some(campaign) => campaign.clone(),
            // Made so just now.
            None => new_campaign(target, way),
        };
        let now = TargetRecord::new(target, way);
        let same = |record: &TargetRecord| now.same_target(record);
        if !campaign.target.as_ref().is_none_or(same) {
            return Err(CampaignError::OtherTarget {
                path: root.to_owned(),
            });
        }
        if let Program::Bundled(name) = &target.program
            && let Some(program) = bundled::program(name)
        {
            store.install_program(name, program)?;
        }
        Ok(LocalDesk::new(store, &campaign.id)?)
    }
}

/// A new campaign of this process on this target, with an id that no other has.
pub fn new_campaign(target: &Target, way: Way) -> Campaign {
    Campaign {
        target: Some(TargetRecord::new(target, way)),
        ways: vec![way],
        ..new_study(target.limits)
    }
}

/// A new campaign of this process on many targets, with an id that no other has.
pub fn new_study(limits: Limits) -> Campaign {
    let now = SystemTime::now();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim().to_owned();
    let moment = now.duration_since(SystemTime::UNIX_EPOCH);
    let moment = moment.unwrap_or_default().as_nanos();
    let unique = format!("{host} {} {moment}", std::process::id());
    Campaign {
        id: hash_of(unique.as_bytes()),
        command_line: std::env::args_os().map(OsText).collect(),
        target: None,
        limits: Some(limits),
        ways: Vec::new(),
        builds: Vec::new(),
        settings: None,
        seed: None,
        started: rfc3339(now),
        host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> GroupName {
        (Kind::Crash, name.to_owned())
    }

    fn claim(waiting: &mut PendingGroups) -> Option<String> {
        let group = waiting.next()?;
        waiting.claim(&group);
        Some(group.1)
    }

    #[test]
    fn what_was_cut_off_comes_first_and_hangs_come_last() {
        let mut waiting = PendingGroups::default();
        waiting.enqueue((Kind::Hang, "hang".to_owned()), Priority::Hang, true);
        waiting.enqueue(group("slip"), Priority::Slipped, true);
        waiting.enqueue(group("first"), Priority::Found, false);
        waiting.enqueue(group("second"), Priority::Found, false);
        waiting.enqueue(group("begun"), Priority::Found, true);
        let order: Vec<String> = std::iter::from_fn(|| claim(&mut waiting)).collect();
        assert_eq!(order, ["begun", "first", "second", "slip", "hang"]);
    }

    #[test]
    fn what_is_given_back_waits_after_what_nobody_has_tried() {
        let mut waiting = PendingGroups::default();
        waiting.enqueue(group("hard"), Priority::Found, false);
        assert_eq!(claim(&mut waiting).as_deref(), Some("hard"));
        // It is found again meanwhile.
        waiting.enqueue(group("hard"), Priority::Found, false);
        assert_eq!(claim(&mut waiting), None);
        waiting.release(&group("hard"), Duration::from_secs(3));
        waiting.enqueue(group("new"), Priority::Found, false);
        assert_eq!(claim(&mut waiting).as_deref(), Some("new"));
        assert_eq!(claim(&mut waiting).as_deref(), Some("hard"));
        waiting.remove(&group("hard"));
        waiting.release(&group("hard"), Duration::ZERO);
        assert_eq!(claim(&mut waiting), None);
    }

    #[test]
    fn a_group_that_was_slipped_into_comes_sooner_when_a_run_finds_it() {
        let mut waiting = PendingGroups::default();
        waiting.enqueue(group("slip"), Priority::Slipped, false);
        waiting.enqueue((Kind::Hang, "hang".to_owned()), Priority::Hang, false);
        waiting.enqueue(group("other"), Priority::Slipped, false);
        waiting.enqueue(group("other"), Priority::Found, false);
        assert_eq!(claim(&mut waiting).as_deref(), Some("other"));
    }
}
