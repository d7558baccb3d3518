//! The state of a campaign: commits findings in the order of their runs ([`CampaignState`]), and remembers
//! from call to call what was committed ([`Checkpoint`], `state.json`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::classifier::{Classified, Finding};
use super::minimizing::Variants;
use super::schedule::{self, is_slip};
use super::screen::Progress;
use super::study::StudyState;
use ddfuzz_model::files::Base64;
use ddfuzz_store::{EntryId, Kind, Store, StoreError};
use ddfuzz_triage::{Crash, Found, Key};

/// Ways into one bug of which an input is stored.
pub(crate) const MAX_MINORS: usize = 16;

/// A finding of which the input is stored.
pub(crate) struct Stored {
    pub(crate) id: EntryId,
    /// Whether it founds a group of crashes.
    pub(crate) founds: bool,
}

/// What is stored of a bug, slips aside.
#[derive(Debug, Default)]
struct SettledGroup {
    minors: HashSet<String>,
    /// Size of the smallest input, in bytes.
    least: Option<u64>,
}

impl SettledGroup {
    fn take(&mut self, minor: String, size: u64) {
        self.minors.insert(minor);
        self.least = Some(self.least.map_or(size, |least| size.min(least)));
    }

    /// Whether an input of this size is stored: the first of a minor key, as long as there are not
    /// many, and of crashes also each that is smaller than all before it.
    fn wants(&self, kind: Kind, minor: &str, size: u64) -> bool {
        let first = !self.minors.contains(minor) && self.minors.len() < MAX_MINORS;
        first || kind == Kind::Crash && self.least.is_none_or(|least| size < least)
    }
}

/// A group, of one program: the kind of finding, the major key, and in a study of many programs
/// the utility.
type Bug = (Kind, String, Option<String>);

/// The utility that a crash is of, in a study of many.
fn utility(crash: &Crash) -> Option<String> {
    crash.of.as_ref().map(|subject| subject.utility.clone())
}

/// What has been committed.
pub(crate) struct CampaignState<'a> {
    store: &'a Mutex<Store>,
    campaign: String,
    pub(crate) checkpoint: Checkpoint,
    /// Groups whose founder is settled: those founded by runs of this campaign, or there before
    /// it. A group that was only slipped into may still get a run for its founder.
    settled: HashMap<Bug, SettledGroup>,
    /// The counts in the records of groups, as far as this process has written them.
    written: BTreeMap<(Kind, String), u64>,
    unsaved: bool,
}

impl<'a> CampaignState<'a> {
    /// Reads what was committed before.
    pub(crate) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
    ) -> Result<CampaignState<'a>, StoreError> {
        let mut settled: HashMap<Bug, SettledGroup> = HashMap::new();
        let mut crashes = Vec::new();
        let locked = lock(store);
        let checkpoint = locked.reader().load_state::<Checkpoint>()?;
        for kind in Kind::ALL {
            for group in locked.reader().groups(kind)? {
                let major = group.record.major.short();
                for entry in locked.reader().entries(kind, &major)? {
                    if !is_slip(entry.crash.found.as_ref()) {
                        let bug = (kind, major.clone(), utility(&entry.crash));
                        let minor = entry.crash.keys.minor.short();
                        if kind == Kind::Flaky && entry.minimized.is_some() {
                            // It was a crash, until it did not come again.
                            let bug = (Kind::Crash, major.clone(), utility(&entry.crash));
                            let settled = settled.entry(bug).or_default();
                            settled.take(minor.clone(), schedule::size(&entry));
                        }
                        let settled = settled.entry(bug).or_default();
                        settled.take(minor, schedule::size(&entry));
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
        Ok(CampaignState {
            store,
            campaign,
            checkpoint,
            settled,
            written: BTreeMap::new(),
            unsaved: false,
        })
    }

    /// Commits one finding; gives its entry, where it is stored.
    pub(crate) fn commit(&mut self, finding: &Finding) -> Result<Option<Stored>, StoreError> {
        let found = Found::Run {
            campaign: self.campaign.clone(),
            run: finding.run,
            input: finding.name.clone(),
        };
        self.take(&finding.what, &finding.input, found)
    }

    /// Commits what was found so; gives its entry, where it is stored.
    pub(crate) fn take(
        &mut self,
        what: &Classified,
        input: &[u8],
        found: Found,
    ) -> Result<Option<Stored>, StoreError> {
        let (kind, crash) = match what {
            Classified::Known { kind, major } => {
                self.checkpoint.count(*kind, major.short());
                return Ok(None);
            }
            Classified::Crash(crash) => (Kind::of_class(&crash.class), crash),
            Classified::Flaky(crash) => (Kind::Flaky, crash),
        };
        let (major, minor) = (crash.keys.major.short(), crash.keys.minor.short());
        let group = (kind, major.clone(), utility(crash));
        let founds = !self.settled.contains_key(&group);
        let (settled, size) = (self.settled.get(&group), input.len() as u64);
        if settled.is_some_and(|settled| !settled.wants(kind, &minor, size)) {
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
        self.settled.entry(group).or_default().take(minor, size);
        self.unsaved = true;
        Ok(Some(Stored {
            id: filed.id,
            founds: founds && kind == Kind::Crash,
        }))
    }

    /// Whether a finding was stored since the last save.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// Saves the checkpoint and the groups' counts.
    pub(crate) fn save(&mut self) -> Result<(), StoreError> {
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

    /// Notes that the call is complete, and its count where that is complete.
    pub(crate) fn end_call(&mut self) -> Result<(), StoreError> {
        let checkpoint = &mut self.checkpoint;
        checkpoint.told = true;
        if checkpoint.goal == Some(checkpoint.next) {
            checkpoint.goal = None;
        }
        self.save()
    }

    /// The entries to minimize next of all groups ([`schedule::pending`]).
    pub(crate) fn pending(
        &self,
        variants: Variants,
        last: bool,
    ) -> Result<Vec<EntryId>, StoreError> {
        let reader = lock(self.store).reader().clone();
        schedule::pending(&reader, variants, last)
    }

    /// Groups of crashes that were neither there before the campaign nor reported by an earlier
    /// call.
    pub(crate) fn new_groups(&self, muted: impl Fn(Key) -> bool) -> Result<u64, StoreError> {
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

/// Locks a mutex, also a poisoned one.
pub(crate) fn lock<S>(store: &Mutex<S>) -> MutexGuard<'_, S> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The checkpoint of a campaign: everything that is in no other file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The first run that is not committed.
    pub(crate) next: u64,
    /// The first run of this count.
    pub(crate) count_start: u64,
    /// The first run after this count, while it has not been reached.
    pub(crate) goal: Option<u64>,
    /// Runs that ended in each group, by kind and major key (12 hex digits), up to `next`.
    pub(crate) seen: BTreeMap<Kind, BTreeMap<String, u64>>,
    /// The greatest length of the inputs, in bytes: with another one, a run would have another
    /// input than its number says.
    #[serde(default)]
    pub(crate) max_len: Option<u64>,
    /// The name of the set of seeds, where there are any: with others, a run would have another
    /// input, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seeds: Option<String>,
    /// The name of the words of the dictionaries that are written into them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dictionary: Option<String>,
    /// The words of the program that are: they stay when it is rebuilt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<Base64>,
    /// Groups of crashes that were there before the campaign, or were in the result of a call of
    /// it that was completed.
    pub(crate) known_before: BTreeSet<String>,
    /// Runs that crashed in each group before this count, as in `seen`.
    #[serde(default)]
    pub(crate) seen_before: BTreeMap<String, u64>,
    /// Whether the last call was completed, and so reported what is new.
    #[serde(default)]
    pub(crate) told: bool,
    /// How far it is, where it is a study of many utilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) study: Option<StudyState>,
}

impl Checkpoint {
    /// Begins a count of `runs`, or continues one that was cut off with the same goal in sight: a
    /// campaign that was killed and resumed makes just the runs of one that was not, and finds the
    /// same groups new. What a completed call has reported is known to the count after it.
    pub(crate) fn begin_count(&mut self, runs: Option<u64>) {
        let cut_off = self.goal.is_some_and(|goal| {
            runs.is_none_or(|runs| self.count_start.saturating_add(runs) == goal)
        });
        if !cut_off {
            self.count_start = self.next;
            self.goal = runs.map(|runs| self.next.saturating_add(runs));
            self.seen_before = self.seen.get(&Kind::Crash).cloned().unwrap_or_default();
        }
        self.told = false;
    }

    /// Counts a run that ended in this group.
    pub(crate) fn count(&mut self, kind: Kind, major: String) {
        self.count_runs(kind, major, 1);
    }

    /// Counts so many of them.
    pub(crate) fn count_runs(&mut self, kind: Kind, major: String, runs: u64) {
        *self.seen.entry(kind).or_default().entry(major).or_default() += runs;
    }

    /// Raises the count to at least this many.
    pub(crate) fn raise_count(&mut self, kind: Kind, major: String, runs: u64) {
        if runs > 0 {
            let seen = self.seen.entry(kind).or_default().entry(major).or_default();
            *seen = runs.max(*seen);
        }
    }

    /// Runs of this count that crashed in a group that `is_known`.
    pub(crate) fn known_crashes(&self, is_known: impl Fn(&str) -> bool) -> u64 {
        let crashes = self.seen.get(&Kind::Crash).into_iter().flatten();
        crashes
            .filter(|(major, _)| self.known_before.contains(*major) || is_known(major))
            .map(|(major, runs)| runs - self.seen_before.get(major).unwrap_or(&0).min(runs))
            .sum()
    }

    /// The counts that campaigns show.
    pub(crate) fn progress(&self) -> Progress {
        let groups = self.seen.get(&Kind::Crash).map_or(0, BTreeMap::len);
        Progress {
            runs: self.next - self.count_start,
            groups: groups as u64,
            crashes: self.total(Kind::Crash),
            hangs: self.total(Kind::Hang),
            ooms: self.total(Kind::Oom),
            ..Progress::default()
        }
    }

    /// All runs that ended in a group of this kind.
    pub(crate) fn total(&self, kind: Kind) -> u64 {
        self.seen
            .get(&kind)
            .map_or(0, |groups| groups.values().sum())
    }
}
