//! [`GroupRegistry`]: which inputs of a group are stored, how many runs it has, and which group is
//! minimized next; for the process that owns the output directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant, SystemTime};

use crate::campaign_state::MAX_MINORS;
use crate::crash_sink::RunCounter;
use crate::failures_of_target::FailuresOfTarget;
use crate::minimization_order::{Bug, Priority, SmallestSizes, is_result, is_slip, rank, size};
use crate::{
    BuildCheck, CampaignError, CrashSink, KnownKey, Minimizing, ProgramWatch, Report, Silent,
    StoreWriter, Variants,
};
use ddfuzz_delta::Full;
use ddfuzz_exec::{Limits, Program, Target, TargetRecord, Way, bundled};
use ddfuzz_model::files::OsText;
use ddfuzz_store::{
    Campaign, Entry, EntryId, Filed, Kind, KnownGroups, Minimized, Reader, Store, StoreError,
    hash_of, rfc3339,
};
use ddfuzz_triage::{Crash, Found, Key, Keys};

/// Least time between two writes of the groups' numbers of runs to the output directory.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// What the registry knows of a group to decide whether a further input of it is stored: the minor
/// keys (finer hashes of crashes), and the sizes of stored and minimized inputs.
struct Group {
    major: Key,
    /// The stored minor keys of the group, by their first 12 hex digits: the whole key, and the
    /// size in bytes of the smallest stored input with it.
    minors: BTreeMap<String, (Key, u64)>,
    /// Size of the group's smallest reproducer (minimized input), and size, before its
    /// minimization, of the smallest input that was minimized. The two may come from different
    /// inputs.
    reached: SmallestSizes,
    /// Size in bytes of the smallest stored input of the group that is not minimized; `None` if all
    /// stored inputs are minimized.
    open: Option<u64>,
}

impl Group {
    /// Returns the size in bytes below which a further input with a known minor key (finer hash of
    /// crashes) is stored: the larger of `least` (size of the smallest stored input with this key)
    /// and the size below which an input is to be minimized. An input is to be minimized if it is
    /// smaller than all stored inputs that are not minimized yet, and so small that it may give a
    /// smaller result than the group has.
    fn size_limit(&self, least: u64) -> u64 {
        let worth = self
            .reached
            .largest_promising_size()
            .map_or(0, |largest| largest + 1);
        least.max(self.open.map_or(worth, |open| open.min(worth)))
    }

    /// Records that an input of `size` bytes with the minor key `minor` (finer hash of crashes) is
    /// now stored in the group.
    fn add_input(&mut self, minor: &Key, size: u64) {
        let (_, least) = (self.minors.entry(minor.short())).or_insert((*minor, size));
        *least = size.min(*least);
    }
}

/// A [`CrashSink`] for the process that owns the output directory.
///
/// It stores the first input of each minor key (finer hash of crashes; at most 16 keys of a group),
/// and each input that is smaller than all stored inputs of its key, or so small that minimizing it
/// may give a smaller result than the group has. It counts runs in memory, and writes the counts
/// every 2 seconds, in [`GroupRegistry::flush`] and when it is dropped: a process that is killed
/// loses the counts of some seconds, and nothing else.
pub struct GroupRegistry<S: RunCounter = Store> {
    writer: S,
    muted: KnownGroups,
    variants: Variants,
    groups: BTreeMap<GroupName, Group>,
    /// Id of the campaign whose runs the registry counts.
    campaign: String,
    /// Number of runs of the campaign that ended in each group, by kind and major key (hash that
    /// identifies a bug).
    runs: BTreeMap<(Kind, Key), u64>,
    /// Groups whose numbers of runs have changed since they were last written to the output
    /// directory.
    unwritten: BTreeSet<(Kind, Key)>,
    /// When the groups' numbers of runs were last written to the output directory.
    written: Instant,
    queue: PendingGroups,
    /// Which failures were found on the campaign's target; the registry leaves out all others.
    failures: FailuresOfTarget,
    /// Groups that did not fail any more when they were checked with the present build, but in
    /// which a run has failed since: for each, the first input stored since the check. This input
    /// is minimized even if the group has results.
    returned: BTreeMap<GroupName, EntryId>,
}

impl<S: RunCounter> GroupRegistry<S> {
    /// Reads all groups of the output directory, and queues those with an entry to minimize. Groups
    /// without a result come first (those found by runs before those found only by minimizations),
    /// then groups with an input that may give a smaller result, then hangs, and last memory
    /// blow-ups. Among groups of the same rank, interrupted minimizations come first, then the
    /// group found first. `campaign`: the id under which runs are counted.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn new(writer: S, campaign: &str) -> Result<GroupRegistry<S>, StoreError> {
        let reader = writer.reader().clone();
        let failures = FailuresOfTarget::of_campaign(&reader, &reader.campaigns()?, campaign)?;
        let mut registry = GroupRegistry {
            writer,
            muted: KnownGroups::default(),
            variants: Variants::None,
            groups: BTreeMap::new(),
            campaign: campaign.to_owned(),
            runs: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            written: Instant::now(),
            queue: PendingGroups::default(),
            failures,
            returned: BTreeMap::new(),
        };
        for kind in Kind::ALL {
            let mut pending = Vec::new();
            for group in reader.groups(kind)? {
                let major = group.record.major;
                if let Some(runs) = group.record.seen.get(campaign) {
                    registry.runs.insert((kind, major), *runs);
                }
                let name = (kind, major.short());
                if registry.failures.is_gone(kind, &name.1) {
                    continue;
                }
                let entries = registry.entries(&reader, &name)?;
                for entry in &entries {
                    // What may pass keeps no input from being stored.
                    let size = match registry.failures.doubts(entry) {
                        true => u64::MAX,
                        false => smallest_size(entry),
                    };
                    registry.add_input(kind, &entry.crash.keys, size);
                }
                registry.update_reached(&name, &entries);
                if let Some((priority, entry)) = registry.next_of(&name, &reader, &entries) {
                    let found = entry.crash.found.as_ref();
                    pending.push((priority, rank(found), name, entry.log().exists()));
                }
            }
            pending.sort();
            for (priority, _, group, begun) in pending {
                registry.queue.enqueue(group, priority, begun);
            }
        }
        Ok(registry)
    }

    /// Returns this registry with the groups `muted` muted: their runs are still counted and their
    /// inputs stored, but they are not minimized any more.
    #[must_use]
    pub fn with_muted(mut self, muted: KnownGroups) -> GroupRegistry<S> {
        self.muted = muted;
        self
    }

    /// Sets how many further minor keys (finer hashes of crashes) of a group are minimized when no
    /// other group waits, and queues groups that have such inputs.
    #[must_use]
    pub fn with_variants(mut self, variants: Variants) -> GroupRegistry<S> {
        self.variants = variants;
        let reader = self.writer.reader().clone();
        let names: Vec<GroupName> = self.groups.keys().cloned().collect();
        for name in names {
            // A group that cannot be read now is queued with its next stored input.
            let _ = self.enqueue_more(&name, &reader);
        }
        self
    }

    /// Writes to the output directory how many runs ended in each group whose number has changed.
    ///
    /// # Errors
    /// When a count cannot be written; the next call writes it.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.written = Instant::now();
        while let Some((kind, major)) = self.unwritten.first().copied() {
            let runs = self.runs.get(&(kind, major)).copied().unwrap_or_default();
            let written = self.writer.set_seen(kind, major, &self.campaign, runs);
            match written {
                // The group was removed; it is counted when it is stored again.
                Ok(()) | Err(StoreError::NoSuch { .. }) => {}
                Err(error) => return Err(error),
            }
            self.unwritten.remove(&(kind, major));
        }
        Ok(())
    }

    /// Returns the number of groups that wait to be minimized or are being minimized.
    pub fn pending(&self) -> usize {
        self.queue.groups.len()
    }

    /// Returns the id of the campaign whose runs the registry counts.
    pub fn campaign(&self) -> &str {
        &self.campaign
    }

    /// Returns the store that the registry writes to.
    pub fn writer(&mut self) -> &mut S {
        &mut self.writer
    }

    /// Reads the entries of the group `name` that were found on the campaign's target; entries
    /// found on other targets are left out.
    fn entries(&self, reader: &Reader, name: &GroupName) -> Result<Vec<Entry>, StoreError> {
        let mut entries = reader.entries(name.0, &name.1)?;
        entries.retain(|entry| self.failures.include(entry));
        Ok(entries)
    }

    /// Records that an input of `size` bytes with these keys is stored; creates the [`Group`] if it
    /// does not exist.
    fn add_input(&mut self, kind: Kind, keys: &Keys, size: u64) {
        let group = self.groups.entry((kind, keys.major.short()));
        let group = group.or_insert_with(|| Group {
            major: keys.major,
            minors: BTreeMap::new(),
            reached: SmallestSizes::default(),
            open: None,
        });
        group.add_input(&keys.minor, size);
    }

    /// Updates three sizes that the registry knows of the group `name` from all its `entries`: the
    /// size of the smallest result, of the smallest input that was minimized, and of the smallest
    /// input that is not minimized. Does nothing if the group is not a group of crashes.
    fn update_reached(&mut self, name: &GroupName, entries: &[Entry]) {
        if let Some(group) = self.groups.get_mut(name)
            && name.0 == Kind::Crash
        {
            let results = entries.iter();
            let results = results.filter(|entry| is_result(&self.failures, entry));
            group.reached = SmallestSizes::of(results);
            let open = entries.iter().filter(|entry| entry.minimized.is_none());
            group.open = open.map(size).min();
        }
    }

    /// Checks whether an input of `size` bytes with these keys is to be stored. True if its group
    /// is new, if its minor key (finer hash of crashes) is new and one of the first 16 of the
    /// group, or if the input is smaller than [`Group::size_limit`] says; otherwise false.
    fn stores(&self, kind: Kind, keys: &Keys, size: u64) -> bool {
        let Some(group) = self.groups.get(&(kind, keys.major.short())) else {
            return true;
        };
        match group.minors.get(&keys.minor.short()) {
            Some((_, least)) => size < group.size_limit(*least),
            None => group.minors.len() < MAX_MINORS || size < group.size_limit(0),
        }
    }

    /// Returns the entry of the group `name` that is to be minimized next, among its `entries`, and
    /// its priority; `None` if no entry is to be minimized.
    fn next_of<'a>(
        &self,
        name @ (kind, major): &GroupName,
        reader: &'a Reader,
        entries: &'a [Entry],
    ) -> Option<(Priority, &'a Entry)> {
        let returned = self.returned.get(name);
        let is_returned = |entry: &&Entry| Some(&entry.id) == returned && entry.minimized.is_none();
        if let Some(entry) = entries.iter().find(is_returned) {
            return Some((Priority::of(*kind, false)?, entry));
        }
        if self.failures.is_gone(*kind, major) {
            return None;
        }
        let bug = Bug::of(reader, &self.failures, entries);
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

    /// Queues the group `name` again, after one of its entries was minimized, if it has another
    /// entry to minimize.
    fn enqueue_more(&mut self, name: &GroupName, reader: &Reader) -> Result<(), StoreError> {
        let entries = self.entries(reader, name)?;
        self.update_reached(name, &entries);
        if let Some((priority, entry)) = self.next_of(name, reader, &entries) {
            self.queue
                .enqueue(name.clone(), priority, entry.log().exists());
        }
        Ok(())
    }

    fn store_input(
        &mut self,
        kind: Kind,
        crash: &Crash,
        input: &[u8],
    ) -> Result<Filed, StoreError> {
        let filed = self.writer.file(kind, crash, input)?;
        let name = (kind, crash.keys.major.short());
        self.add_input(kind, &crash.keys, input.len() as u64);
        if self.failures.forget_gone(kind, &name.1) {
            self.returned.insert(name.clone(), filed.id.clone());
        }
        let slipped = is_slip(crash.found.as_ref());
        if self.is_ended(&name)? {
            let reader = self.writer.reader().clone();
            self.enqueue_more(&name, &reader)?;
        } else if let Some(priority) = Priority::of(kind, slipped)
            && (filed.new_major || !slipped)
        {
            // A group that only a minimization had found moves up when a run finds it.
            self.queue.enqueue(name, priority, false);
        }
        Ok(filed)
    }

    /// Returns true if the minimization of at least one entry of the group is complete, so that the
    /// group has a result; otherwise false.
    fn is_ended(&self, group: &GroupName) -> Result<bool, StoreError> {
        let entries = self.entries(self.writer.reader(), group)?;
        Ok(entries.iter().any(|entry| entry.minimized.is_some()))
    }

    fn is_muted(&self, (kind, major): &GroupName) -> bool {
        self.writer.reader().is_muted(*kind, major, &self.muted)
    }

    fn write_if_due(&mut self) {
        if !self.unwritten.is_empty() && self.written.elapsed() >= WRITE_EVERY {
            // What cannot be written now is written later, and is no reason to file nothing.
            let _ = self.flush();
        }
    }
}

impl<S: RunCounter> StoreWriter for GroupRegistry<S> {
    fn reader(&self) -> &Reader {
        self.writer.reader()
    }

    fn changed_since(&self, since: u64) -> Option<(u64, Vec<(Kind, String)>)> {
        self.writer.changed_since(since)
    }

    fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        self.store_input(kind, crash, input)
    }

    fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        self.writer.write_minimized(id, bytes)?;
        let group = self.groups.get_mut(&(id.kind(), id.major().to_owned()));
        if let Some((_, least)) = group.and_then(|group| group.minors.get_mut(id.minor())) {
            *least = (bytes.len() as u64).min(*least);
        }
        Ok(())
    }

    fn write_reproduce(&mut self, id: &EntryId, target: &Target) -> Result<(), StoreError> {
        self.writer.write_reproduce(id, target)
    }

    fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        self.writer.write_outcome(id, outcome)
    }
}

impl<S: RunCounter> CrashSink for GroupRegistry<S> {
    fn known(&mut self) -> Result<Vec<KnownKey>, StoreError> {
        let groups = self.groups.iter();
        let keys = groups.flat_map(|((kind, _), group)| {
            group.minors.values().map(|(minor, least)| KnownKey {
                kind: *kind,
                major: group.major,
                minor: *minor,
                least: group.size_limit(*least),
            })
        });
        Ok(keys.collect())
    }

    fn submit(&mut self, report: &Report<'_>) -> Result<Option<EntryId>, StoreError> {
        let keys = &report.crash.keys;
        let mut filed = None;
        if self.stores(report.kind, keys, report.input.len() as u64) {
            let found = Found::Run {
                campaign: self.campaign().to_owned(),
                run: report.run,
                input: report.name.to_owned(),
            };
            let crash = Crash {
                found: Some(found),
                ..report.crash.clone()
            };
            filed = Some(self.store_input(report.kind, &crash, report.input)?.id);
        }
        self.count(report.kind, keys.major, 1)?;
        Ok(filed)
    }

    fn count(&mut self, kind: Kind, major: Key, runs: u64) -> Result<(), StoreError> {
        let counted = self.runs.entry((kind, major)).or_default();
        *counted = counted.saturating_add(runs);
        self.unwritten.insert((kind, major));
        self.write_if_due();
        Ok(())
    }

    fn claim(&mut self) -> Result<Option<EntryId>, StoreError> {
        self.write_if_due();
        while let Some(group) = self.queue.next() {
            let reader = self.writer.reader();
            let entries = self.entries(reader, &group)?;
            let next = self.next_of(&group, reader, &entries);
            let next = next.map(|(_, entry)| entry.id.clone());
            match next.filter(|_| !self.is_muted(&group)) {
                Some(id) => {
                    self.queue.claim(&group);
                    return Ok(Some(id));
                }
                None => drop(self.queue.groups.remove(&group)),
            }
        }
        Ok(None)
    }

    fn release(&mut self, id: &EntryId, ended: bool, spent: Duration) -> Result<(), StoreError> {
        let group = (id.kind(), id.major().to_owned());
        if ended {
            self.queue.groups.remove(&group);
            let reader = self.writer.reader().clone();
            self.enqueue_more(&group, &reader)?;
        } else {
            self.queue.release(&group, spent);
        }
        Ok(())
    }
}

impl<S: RunCounter> Drop for GroupRegistry<S> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Returns the size in bytes of the smaller of an entry's input and its reproducer; `u64::MAX` if
/// both are missing.
fn smallest_size(entry: &Entry) -> u64 {
    let files = [entry.original(), entry.reproducer()];
    let sizes = files.iter().filter_map(|file| file.metadata().ok());
    sizes.map(|facts| facts.len()).min().unwrap_or(u64::MAX)
}

/// Name of a group: its kind, and the first 12 hex digits of its major key.
type GroupName = (Kind, String);

/// The rank of a group in the queue of groups to minimize; the group with the least rank is
/// minimized next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingGroup {
    /// Whether the group is being minimized at present; such a group is ranked behind all others.
    claimed: bool,
    priority: Priority,
    /// Time for which the group was minimized so far without a result. Of groups with the same
    /// priority, the one with the least time is minimized first.
    spent: Duration,
    /// Whether no minimization of the group was ever begun. Of groups with the same priority and
    /// time spent, those with a begun minimization come first.
    not_begun: bool,
    /// Number of the group in the order in which groups were queued, from 1; if two groups are
    /// equal otherwise, the one with the lower number comes first.
    number: u64,
}

/// The queue of the groups to minimize. A group that is being minimized (claimed) stays in it.
#[derive(Debug, Default)]
struct PendingGroups {
    groups: BTreeMap<GroupName, PendingGroup>,
    /// Number of groups that were queued so far, from which each group gets its number.
    numbers: u64,
}

impl PendingGroups {
    /// Adds a group to the queue of groups to minimize. `begun`: whether a minimization of the
    /// group was begun and interrupted; a group with `begun` comes before the others of its
    /// priority, and any other new group comes after them. A group that is in the queue already
    /// keeps its place; unless it is being minimized, it gets `priority` if this is more urgent.
    fn enqueue(&mut self, group: GroupName, priority: Priority, begun: bool) {
        self.numbers += 1;
        let pending = self.groups.entry(group).or_insert(PendingGroup {
            claimed: false,
            priority,
            spent: Duration::ZERO,
            not_begun: !begun,
            number: self.numbers,
        });
        if !pending.claimed {
            pending.priority = pending.priority.min(priority);
        }
    }

    /// Returns the group to minimize next; `None` if the queue is empty or all its groups are being
    /// minimized.
    fn next(&self) -> Option<GroupName> {
        let least = self.groups.iter().min_by_key(|(_, pending)| **pending);
        let unclaimed = least.filter(|(_, pending)| !pending.claimed);
        unclaimed.map(|(group, _)| group.clone())
    }

    /// Marks a group as being minimized; it stays in the queue of groups to minimize.
    fn claim(&mut self, group: &GroupName) {
        if let Some(pending) = self.groups.get_mut(group) {
            pending.claimed = true;
        }
    }

    /// Makes a group that was being minimized available again in the queue, and adds `spent`, the
    /// time of a minimization without a result, to its time. Does nothing if the group is not being
    /// minimized.
    fn release(&mut self, group: &GroupName, spent: Duration) {
        let pending = self.groups.get_mut(group);
        if let Some(pending) = pending.filter(|pending| pending.claimed) {
            pending.claimed = false;
            pending.spent += spent;
            pending.not_begun &= spent.is_zero();
        }
    }
}

impl GroupRegistry<Store> {
    /// Opens or creates the output directory `root`; a directory of the same target is continued.
    /// If the program is another build than the last one recorded in the directory, first checks
    /// all groups with the present build, as `ddfuzz run` does.
    ///
    /// # Errors
    /// When `root` is no output directory, belongs to another target, is in use by another process,
    /// or cannot be read or written (it is not changed then); when the target cannot be run to
    /// check the groups.
    pub fn open(
        root: &Path,
        target: &Target,
        way: Way,
    ) -> Result<GroupRegistry<Store>, CampaignError> {
        let mut store = Store::create_or_resume(root, new_campaign(target, way))?;
        let campaign = match &store.campaigns().current {
            Some(campaign) => campaign.clone(),
            // The directory is new.
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
        let store = check_build(store, target, way)?;
        Ok(GroupRegistry::new(store, &campaign.id)?)
    }
}

/// Records the present build of the program in the store. If it differs from the build recorded
/// last, runs the inputs of all groups of the target again, and records which groups still fail
/// with the present build. Returns the store.
fn check_build(store: Store, target: &Target, way: Way) -> Result<Store, CampaignError> {
    let store = Mutex::new(store);
    let check = BuildCheck {
        store: &store,
        minimizing: &Minimizing::of_target(target.clone(), way, Full::NAME),
        jobs: available_parallelism().map_or(1, usize::from),
        stop: &AtomicBool::new(false),
    };
    check.begin(&ProgramWatch::of(target)?, &mut Silent)?;
    Ok(store.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the record of a new campaign on one target, with a unique id, and with the command line
/// of this process, its host and the time as its origin.
pub fn new_campaign(target: &Target, way: Way) -> Campaign {
    Campaign {
        target: Some(TargetRecord::new(target, way)),
        ways: vec![way],
        ..new_study(target.limits)
    }
}

/// Returns the record of a new campaign on many targets, with a unique id, and with the command
/// line of this process, its host and the time as its origin.
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

    fn claim(queue: &mut PendingGroups) -> Option<String> {
        let group = queue.next()?;
        queue.claim(&group);
        Some(group.1)
    }

    #[test]
    fn what_was_cut_off_comes_first_and_hangs_come_last() {
        let mut queue = PendingGroups::default();
        queue.enqueue((Kind::Hang, "hang".to_owned()), Priority::Hang, true);
        queue.enqueue(group("slip"), Priority::Slipped, true);
        queue.enqueue(group("first"), Priority::Found, false);
        queue.enqueue(group("second"), Priority::Found, false);
        queue.enqueue(group("begun"), Priority::Found, true);
        let order: Vec<String> = std::iter::from_fn(|| claim(&mut queue)).collect();
        assert_eq!(order, ["begun", "first", "second", "slip", "hang"]);
    }

    #[test]
    fn what_is_given_back_waits_after_what_nobody_has_tried() {
        let mut queue = PendingGroups::default();
        queue.enqueue(group("hard"), Priority::Found, false);
        assert_eq!(claim(&mut queue).as_deref(), Some("hard"));
        // It is found again meanwhile.
        queue.enqueue(group("hard"), Priority::Found, false);
        assert_eq!(claim(&mut queue), None);
        queue.release(&group("hard"), Duration::from_secs(3));
        queue.enqueue(group("new"), Priority::Found, false);
        assert_eq!(claim(&mut queue).as_deref(), Some("new"));
        assert_eq!(claim(&mut queue).as_deref(), Some("hard"));
        queue.groups.remove(&group("hard"));
        queue.release(&group("hard"), Duration::ZERO);
        assert_eq!(claim(&mut queue), None);
    }
}
