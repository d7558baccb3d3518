//! Commits findings in the order of their runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::checkpoint::Checkpoint;
use super::finding::{Finding, What};
use crate::store::{Entry, EntryId, Kind, Store, StoreError};
use crate::triage::{Crash, Found, Key};

/// Ways into one bug of which an input is stored.
pub(in crate::campaign) const MINORS_KEPT: usize = 16;

/// A finding of which the input is stored.
pub(in crate::campaign) struct Stored {
    pub(in crate::campaign) id: EntryId,
    /// Whether it founds a group of crashes.
    pub(in crate::campaign) founds: bool,
}

/// A group, of one program: the kind of finding, the major key, and in a study of many programs
/// the utility.
type Bug = (Kind, String, Option<String>);

/// The utility that a crash is of, in a study of many.
fn utility(crash: &Crash) -> Option<String> {
    crash.of.as_ref().map(|subject| subject.utility.clone())
}

/// What has been committed.
pub(in crate::campaign) struct Ledger<'a> {
    store: &'a Mutex<Store>,
    campaign: String,
    pub(in crate::campaign) checkpoint: Checkpoint,
    /// Groups whose founder is settled, and their minor keys: those founded by runs of this
    /// campaign, or there before it. A group that was only slipped into may still get a run for
    /// its founder.
    settled: HashMap<Bug, HashSet<String>>,
    /// The counts of groups that stand in their records, as far as this process has written them.
    written: BTreeMap<(Kind, String), u64>,
    unsaved: bool,
}

impl<'a> Ledger<'a> {
    /// Reads what was committed before.
    pub(in crate::campaign) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
    ) -> Result<Ledger<'a>, StoreError> {
        let mut settled: HashMap<Bug, HashSet<String>> = HashMap::new();
        let mut crashes = Vec::new();
        let locked = lock(store);
        let checkpoint = locked.reader().load_state::<Checkpoint>()?;
        for kind in Kind::ALL {
            for group in locked.reader().groups(kind)? {
                let major = group.record.major.short();
                for entry in locked.reader().entries(kind, &major)? {
                    if !matches!(entry.crash.found, Some(Found::Slip { .. })) {
                        let bug = (kind, major.clone(), utility(&entry.crash));
                        let minors = settled.entry(bug).or_default();
                        minors.insert(entry.crash.keys.minor.short());
                    }
                }
                if kind == Kind::Crash {
                    crashes.push(major);
                }
            }
        }
        drop(locked);
        let first_call = checkpoint.is_none();
        let mut checkpoint = checkpoint.unwrap_or_default();
        if first_call || checkpoint.told {
            checkpoint.known_before = crashes.into_iter().collect();
        }
        // A group from before that was only slipped into is known all the same.
        for major in &checkpoint.known_before {
            let bug = (Kind::Crash, major.clone(), None);
            settled.entry(bug).or_default();
        }
        let campaign = campaign.to_owned();
        Ok(Ledger {
            store,
            campaign,
            checkpoint,
            settled,
            written: BTreeMap::new(),
            unsaved: false,
        })
    }

    /// Commits one finding; gives the founder of a new group, which is to be minimized.
    pub(in crate::campaign) fn commit(
        &mut self,
        finding: &Finding,
    ) -> Result<Option<EntryId>, StoreError> {
        let found = Found::Run {
            campaign: self.campaign.clone(),
            run: finding.run,
            input: finding.name.clone(),
        };
        let stored = self.take(&finding.what, &finding.input, found)?;
        Ok(stored
            .filter(|stored| stored.founds)
            .map(|stored| stored.id))
    }

    /// Commits what was found so; gives its entry, where it is stored.
    pub(in crate::campaign) fn take(
        &mut self,
        what: &What,
        input: &[u8],
        found: Found,
    ) -> Result<Option<Stored>, StoreError> {
        let (kind, crash) = match what {
            What::Known { kind, major } => {
                self.checkpoint.count(*kind, major.short());
                return Ok(None);
            }
            What::Crash(crash) => (Kind::of_class(&crash.class), crash),
            What::Flaky(crash) => (Kind::Flaky, crash),
        };
        let (major, minor) = (crash.keys.major.short(), crash.keys.minor.short());
        let group = (kind, major.clone(), utility(crash));
        let founds = !self.settled.contains_key(&group);
        let minors = self.settled.get(&group);
        let full = minors.is_some_and(|all| all.contains(&minor) || all.len() >= MINORS_KEPT);
        if full {
            self.checkpoint.count(kind, major);
            return Ok(None);
        }
        let crash = Crash {
            found: Some(found),
            ..(**crash).clone()
        };
        let filed = lock(self.store).file(kind, &crash, input)?;
        // Only now: where there was no room, it is done again.
        self.checkpoint.count(kind, major);
        self.settled.entry(group).or_default().insert(minor);
        self.unsaved = true;
        Ok(Some(Stored {
            id: filed.id,
            founds: founds && kind == Kind::Crash,
        }))
    }

    /// Whether a finding was stored since the last save.
    pub(in crate::campaign) fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// Saves the checkpoint and the groups' counts.
    pub(in crate::campaign) fn save(&mut self) -> Result<(), StoreError> {
        let mut store = lock(self.store);
        for (kind, groups) in &self.checkpoint.seen {
            for (major, runs) in groups {
                let name = (*kind, major.clone());
                if self.written.get(&name) == Some(runs) {
                    continue;
                }
                if let Some(group) = store.reader().group(*kind, major)? {
                    store.set_seen(*kind, group.record.major, &self.campaign, *runs)?;
                    self.written.insert(name, *runs);
                }
            }
        }
        store.save_state(&self.checkpoint)?;
        self.unsaved = false;
        Ok(())
    }

    /// Notes that the call comes to its end, and its count where that is complete.
    pub(in crate::campaign) fn end_call(&mut self) -> Result<(), StoreError> {
        let checkpoint = &mut self.checkpoint;
        checkpoint.told = true;
        if checkpoint.goal == Some(checkpoint.next) {
            checkpoint.goal = None;
        }
        self.save()
    }

    /// Groups of crashes without an ended minimization, as the entry to minimize: the founder,
    /// those first whose minimization was cut off. `last`: what is minimized after all of these
    /// as well, groups that were only slipped into, and behind them hangs and memory blow-ups,
    /// each run of which takes long.
    pub(in crate::campaign) fn pending(&self, last: bool) -> Result<Vec<EntryId>, StoreError> {
        let mut pending = self.pending_of(Kind::Crash, last)?;
        if last {
            pending.extend(self.pending_of(Kind::Hang, last)?);
            pending.extend(self.pending_of(Kind::Oom, last)?);
        }
        Ok(pending)
    }

    fn pending_of(&self, kind: Kind, slipped: bool) -> Result<Vec<EntryId>, StoreError> {
        let store = lock(self.store);
        let mut pending = Vec::new();
        for group in store.reader().groups(kind)? {
            let mut of_utilities: BTreeMap<Option<String>, Vec<Entry>> = BTreeMap::new();
            for entry in store.reader().entries(kind, &group.record.major.short())? {
                let entries = of_utilities.entry(utility(&entry.crash)).or_default();
                entries.push(entry);
            }
            for entries in of_utilities.into_values() {
                pending.extend(self.founder(&entries, slipped, store.reader().root()));
            }
        }
        pending.sort();
        Ok(pending.into_iter().map(|(_, _, id)| id).collect())
    }

    /// The entry to minimize of those of one group, and its place among others; `None` where one
    /// of them is minimized.
    fn founder(
        &self,
        entries: &[Entry],
        slipped: bool,
        root: &Path,
    ) -> Option<(bool, Rank, EntryId)> {
        if entries.iter().any(|entry| entry.minimized.is_some()) {
            return None;
        }
        let begun = |entry: &Entry| entry.id.log(root).exists();
        // Which of several files was first, their names do not say.
        let waits =
            |entry: &Entry| matches!(entry.crash.found, Some(Found::File { .. })) && !begun(entry);
        let founder = entries.iter().min_by_key(|entry| {
            let (place, at, name) = rank(entry.crash.found.as_ref());
            (place, waits(entry), at, name)
        })?;
        let counts = slipped || !matches!(founder.crash.found, Some(Found::Slip { .. }));
        counts.then(|| {
            (
                !begun(founder),
                rank(founder.crash.found.as_ref()),
                founder.id.clone(),
            )
        })
    }

    /// Groups of crashes that were neither there before the campaign nor told by an earlier call.
    pub(in crate::campaign) fn new_groups(
        &self,
        muted: impl Fn(Key) -> bool,
    ) -> Result<u64, StoreError> {
        let groups = lock(self.store).reader().groups(Kind::Crash)?;
        let new = groups
            .iter()
            .map(|group| group.record.major)
            .filter(|major| {
                !self.checkpoint.known_before.contains(&major.short()) && !muted(*major)
            });
        Ok(new.count() as u64)
    }
}

/// The place of a founder among others.
pub(in crate::campaign) type Rank = (u8, u64, String);

/// Orders founders: by run, then files, then slips by what they slipped from and when.
pub(in crate::campaign) fn rank(found: Option<&Found>) -> Rank {
    match found {
        Some(Found::Run { run, .. }) => (0, *run, String::new()),
        Some(Found::Slip { of, test }) => (2, test.unwrap_or(u64::MAX), of.clone()),
        Some(Found::File { path }) => (1, 0, path.to_string_lossy().into_owned()),
        None => (3, 0, String::new()),
    }
}

/// The store, for a moment.
pub(in crate::campaign) fn lock<S>(store: &Mutex<S>) -> MutexGuard<'_, S> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}
