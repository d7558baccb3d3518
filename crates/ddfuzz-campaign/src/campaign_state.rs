//! The state of a campaign: which groups are known and how many runs ended in each.
//! [`CampaignState`] commits findings in the order of their runs and stores the inputs that their
//! groups need; [`Checkpoint`] (`state.json`) carries the counts from one call to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::minimization_order::{self, is_slip};
use crate::{
    Classified, Finding, Progress, RecordedSettings, Variants,
    failures_of_target::FailuresOfTarget, lock, study::StudyState,
};
use ddfuzz_model::files::Base64;
use ddfuzz_store::{Entry, EntryId, Kind, Reader, Store, StoreError};
use ddfuzz_triage::{Crash, Found, Key};

/// Maximum number of minor keys (finer hashes of crashes) of one group for which an input is stored
/// because the minor key is new. When a group has reached this number, a crash is only stored if it
/// is smaller than all stored inputs of the group.
pub(crate) const MAX_MINORS: usize = 16;

/// The result of committing a finding (a run that did not pass) whose input was stored: the id of
/// the new entry, and whether it is the first of its group.
pub(crate) struct Stored {
    pub(crate) id: EntryId,
    /// Whether the finding that was stored is the first of a new group of crashes.
    pub(crate) founds: bool,
}

/// The minor keys (finer hashes of crashes) of the stored inputs of one group, and the size of the
/// smallest of these inputs. Inputs that were found only during a minimization are not included.
#[derive(Debug, Default)]
struct StoredInputs {
    minors: HashSet<String>,
    /// Size in bytes of the smallest stored input of a group; `None` if no input is stored.
    least: Option<u64>,
}

impl StoredInputs {
    fn add(&mut self, minor: String, size: u64) {
        self.minors.insert(minor);
        self.least = Some(self.least.map_or(size, |least| size.min(least)));
    }

    /// Checks whether an input of `size` bytes is to be stored: true if its minor key `minor`
    /// (finer hash of crashes) is new and the group has fewer than [`MAX_MINORS`] stored ones, and
    /// true for a crash smaller than all stored inputs of its group.
    fn needs(&self, kind: Kind, minor: &str, size: u64) -> bool {
        let first = !self.minors.contains(minor) && self.minors.len() < MAX_MINORS;
        first || kind == Kind::Crash && self.least.is_none_or(|least| size < least)
    }
}

/// Name of a group: kind, major key (12 hex digits), and in a study of many utilities the utility
/// (`None` in other campaigns).
type GroupName = (Kind, String, Option<String>);

fn utility(crash: &Crash) -> Option<String> {
    crash.of.as_ref().map(|subject| subject.utility.clone())
}

/// Returns the group to which the classified run `what` belongs: its kind, and its major key (12
/// hex digits).
pub(crate) fn group_of(what: &Classified) -> (Kind, String) {
    match what {
        Classified::Known { kind, major } => (*kind, major.short()),
        Classified::Crash(crash) => (Kind::of_class(&crash.class), crash.keys.major.short()),
        Classified::Flaky(crash) => (Kind::Flaky, crash.keys.major.short()),
    }
}

/// The groups in a campaign's output directory, as read when the directory is opened: the stored
/// inputs that were found on the campaign's target, the major keys (hashes that identify bugs) of
/// all groups of crashes, and the major keys of the groups of crashes that were found only on other
/// targets.
#[derive(Default)]
struct StoredGroups {
    /// For each group, the stored inputs that were found on the campaign's target.
    founded: HashMap<GroupName, StoredInputs>,
    /// Major keys (12 hex digits) of all groups of crashes.
    crashes: BTreeSet<String>,
    /// Major keys (12 hex digits) of the groups of crashes that were found only on other targets.
    foreign: HashSet<String>,
}

impl StoredGroups {
    fn read(reader: &Reader, failures: &FailuresOfTarget) -> Result<StoredGroups, StoreError> {
        let mut groups = StoredGroups::default();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                let major = group.record.major.short();
                let mut entries = reader.entries(kind, &major)?;
                let exist = !entries.is_empty();
                entries.retain(|entry| failures.include(entry));
                if kind == Kind::Crash && exist && entries.is_empty() {
                    groups.foreign.insert(major.clone());
                }
                let of_runs = |entry: &&Entry| !is_slip(entry.crash.found.as_ref());
                for entry in entries.iter().filter(of_runs) {
                    if failures.doubts(entry) {
                        // What may pass keeps no input from being stored.
                        groups.inputs(kind, &major, entry);
                        continue;
                    }
                    groups.add(kind, &major, entry);
                    let was_crash = entry.minimized.as_ref().is_some_and(|it| it.never_fails());
                    if kind == Kind::Flaky && was_crash {
                        // It was a crash until it did not reproduce.
                        groups.add(Kind::Crash, &major, entry);
                    }
                }
                if kind == Kind::Crash {
                    groups.crashes.insert(major);
                }
            }
        }
        Ok(groups)
    }

    fn add(&mut self, kind: Kind, major: &str, entry: &Entry) {
        let minor = entry.crash.keys.minor.short();
        let inputs = self.inputs(kind, major, entry);
        inputs.add(minor, minimization_order::size(entry));
    }

    fn inputs(&mut self, kind: Kind, major: &str, entry: &Entry) -> &mut StoredInputs {
        let name = (kind, major.to_owned(), utility(&entry.crash));
        self.founded.entry(name).or_default()
    }
}

/// The state of a campaign in memory: its checkpoint, and which groups already have a founder
/// (first finding).
pub(crate) struct CampaignState<'a> {
    store: &'a Mutex<Store>,
    name: String,
    /// Whether this is the current campaign of the output directory, the only one whose checkpoint
    /// (`state.json`) the directory has.
    is_current: bool,
    pub(crate) checkpoint: Checkpoint,
    /// The stored inputs of each group that has a founder (first finding), from a run of this
    /// campaign or from an earlier one. A group that was found only during the minimization of
    /// another group is missing, since a run may still find its founder.
    founded: HashMap<GroupName, StoredInputs>,
    /// For each group, by kind and major key (12 hex digits): the number of runs that this process
    /// has last written to the group's record, so that an unchanged number is not written again.
    written: BTreeMap<(Kind, String), u64>,
    unsaved: bool,
}

impl<'a> CampaignState<'a> {
    /// Creates the state of a campaign from the checkpoint and the stored groups of the output
    /// directory. Only inputs that were found on the campaign's target count as stored. In the
    /// first call of ddfuzz on this campaign, and after a completed one, all existing groups of
    /// crashes count as known. The checkpoint is read only if `campaign` is the directory's current
    /// campaign; another one, such as a corpus cleanup, has none.
    pub(crate) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
    ) -> Result<CampaignState<'a>, StoreError> {
        let reader = lock(store).reader().clone();
        let campaigns = reader.campaigns()?;
        let current = campaigns.current.as_ref();
        let is_current = current.is_none_or(|current| current.id == campaign);
        let failures = FailuresOfTarget::of_campaign(&reader, &campaigns, campaign)?;
        let checkpoint = match is_current {
            true => reader.load_state::<Checkpoint>()?,
            false => None,
        };
        let StoredGroups {
            mut founded,
            crashes,
            foreign,
        } = StoredGroups::read(&reader, &failures)?;
        let first_call = checkpoint.is_none();
        let mut checkpoint = checkpoint.unwrap_or_default();
        if first_call || checkpoint.reported {
            checkpoint.known_before = crashes;
        }
        // A known group may hold nothing but slips; it has its founder all the same.
        let known = checkpoint.known_before.iter();
        for major in known.filter(|major| !foreign.contains(*major)) {
            let name = (Kind::Crash, major.clone(), None);
            founded.entry(name).or_default();
        }
        Ok(CampaignState {
            store,
            name: campaign.to_owned(),
            is_current,
            checkpoint,
            founded,
            written: BTreeMap::new(),
            unsaved: false,
        })
    }

    /// Forgets the stored inputs of the groups `gone` (kind and major key, 12 hex digits), which no
    /// longer fail with the new build of the program. The next input that fails in one of these
    /// groups is then stored.
    pub(crate) fn forget(&mut self, gone: &HashSet<(Kind, String)>) {
        let is_gone = |kind, major: &String| gone.contains(&(kind, major.clone()));
        self.founded.retain(|(kind, major, _), _| {
            // A crash may be known only by one that did not reproduce.
            let was_flaky = *kind == Kind::Crash && is_gone(Kind::Flaky, major);
            !is_gone(*kind, major) && !was_flaky
        });
    }

    /// Commits a finding (a run that did not pass): counts it in its group, and stores its input if
    /// its minor key (finer hash of crashes) is new and one of the first 16 of the group, or if it
    /// is a crash smaller than all stored inputs of the group. Returns the new entry; `None` if the
    /// input is not stored.
    pub(crate) fn commit(&mut self, finding: &Finding) -> Result<Option<Stored>, StoreError> {
        let found = Found::Run {
            campaign: self.name.clone(),
            run: finding.run,
            input: finding.name.clone(),
        };
        self.commit_found(&finding.what, &finding.input, found)
    }

    /// Commits the finding `what`, which `input` has shown; `found` says how (by a run, a file or a
    /// minimization). Counts it in its group. Stores the input if its minor key (finer hash of
    /// crashes) is new and one of the first 16 of the group, or if it is a crash smaller than all
    /// stored inputs of the group. Returns the new entry; `None` if the input is not stored.
    pub(crate) fn commit_found(
        &mut self,
        what: &Classified,
        input: &[u8],
        found: Found,
    ) -> Result<Option<Stored>, StoreError> {
        let (kind, major) = group_of(what);
        let (Classified::Crash(crash) | Classified::Flaky(crash)) = what else {
            self.checkpoint.count(kind, major);
            return Ok(None);
        };
        let (minor, size) = (crash.keys.minor.short(), input.len() as u64);
        let group = (kind, major.clone(), utility(crash));
        let stored = self.founded.get(&group);
        let founds = stored.is_none() && kind == Kind::Crash;
        if stored.is_some_and(|stored| !stored.needs(kind, &minor, size)) {
            self.checkpoint.count(kind, major);
            return Ok(None);
        }
        let crash = Crash {
            found: Some(found),
            ..(**crash).clone()
        };
        let id = lock(self.store).file(kind, &crash, input)?.id;
        // Counted only now: after the error of a full disk, the whole commit is repeated.
        self.checkpoint.count(kind, major);
        self.founded.entry(group).or_default().add(minor, size);
        self.unsaved = true;
        Ok(Some(Stored { id, founds }))
    }

    pub(crate) fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// Saves the checkpoint (`state.json`). For each group whose number of runs has changed since
    /// it was last written, also writes that number to the group's record.
    pub(crate) fn save(&mut self) -> Result<(), StoreError> {
        let mut store = lock(self.store);
        for (kind, groups) in &self.checkpoint.seen {
            for (major, runs) in groups {
                let name = (*kind, major.clone());
                if self.written.get(&name) == Some(runs) {
                    continue;
                }
                if let Some(group) = store.reader().group(*kind, major)? {
                    store.set_seen(*kind, group.record.major, &self.name, *runs)?;
                    self.written.insert(name, *runs);
                }
            }
        }
        if self.is_current {
            store.save_state(&self.checkpoint)?;
        }
        self.unsaved = false;
        Ok(())
    }

    /// Records in the checkpoint that the call of ddfuzz is complete and has reported its new
    /// groups, and saves it. If all runs of `--runs` are committed, the next call counts its runs
    /// from 0 again.
    pub(crate) fn end_call(&mut self) -> Result<(), StoreError> {
        let checkpoint = &mut self.checkpoint;
        checkpoint.reported = true;
        checkpoint.goal.take_if(|goal| *goal == checkpoint.next);
        self.save()
    }

    /// Returns the entries to minimize next, the most urgent first, at most one of each group.
    /// `variants`: how many further minor keys (finer hashes of crashes) of a group are minimized.
    /// `last`: whether to include entries that are minimized after all others, such as hangs
    /// ([`minimization_order::pending`]).
    pub(crate) fn pending(
        &self,
        variants: Variants,
        last: bool,
    ) -> Result<Vec<EntryId>, StoreError> {
        let reader = lock(self.store).reader().clone();
        minimization_order::pending(&reader, &self.failures()?, variants, last)
    }

    /// Returns which failures in the output directory were found on the campaign's target, and
    /// which of their groups no longer fail with the last build of the program.
    pub(crate) fn failures(&self) -> Result<FailuresOfTarget, StoreError> {
        let store = lock(self.store);
        FailuresOfTarget::of_campaign(store.reader(), store.campaigns(), &self.name)
    }

    /// Returns the number of new groups of crashes: those that did not exist before the campaign,
    /// that no earlier call of ddfuzz has reported, and for whose major key (hash that identifies a
    /// bug) `muted` returns false.
    pub(crate) fn new_groups(&self, muted: impl Fn(Key) -> bool) -> Result<u64, StoreError> {
        let groups = lock(self.store).reader().groups(Kind::Crash)?;
        let majors = groups.iter().map(|group| group.record.major);
        let known = &self.checkpoint.known_before;
        let new = majors.filter(|major| !known.contains(&major.short()) && !muted(*major));
        Ok(new.count() as u64)
    }
}

/// The checkpoint of a campaign (`state.json`), from which the next call of ddfuzz continues it:
/// counts of runs, and hashes of the seeds and words that the inputs are made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Number of the first run of the campaign that is not committed (counted, and its finding
    /// stored) yet.
    pub(crate) next: u64,
    /// Number of the first run of the campaign that counts for the present `--runs`; several calls
    /// of ddfuzz may continue one count.
    pub(crate) count_start: u64,
    /// Number of the first run that `--runs` no longer includes, counted from the start of the
    /// campaign. `None` if all runs that `--runs` asks for are complete, or their number is not
    /// limited.
    pub(crate) goal: Option<u64>,
    /// For each group, by kind and major key (12 hex digits): the number of runs that ended in it.
    /// Only committed runs count: those that are counted and whose findings are stored.
    pub(crate) seen: BTreeMap<Kind, BTreeMap<String, u64>>,
    /// Greatest length of the inputs, in bytes. The generated inputs depend on it, so it must not
    /// change. `None` in campaigns that make no inputs.
    #[serde(default)]
    pub(crate) max_len: Option<u64>,
    /// Hash of the contents of the seeds from which the inputs of runs are made; `None` without
    /// seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seeds: Option<String>,
    /// Hash of the words of the user's dictionaries; `None` without a dictionary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dictionary: Option<String>,
    /// Words taken from the program (its strings and compared constants) when the campaign began,
    /// which mutations write into inputs. They stay the same when the program is rebuilt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<Base64>,
    /// Settings that a resumed call takes where the user does not give them again; `None` in
    /// campaigns that make no inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settings: Option<RecordedSettings>,
    /// Major keys (12 hex digits) of groups of crashes that existed before the campaign or that a
    /// completed call of ddfuzz has reported.
    pub(crate) known_before: BTreeSet<String>,
    /// For each group, by major key (12 hex digits): the number of runs that had crashed in it when
    /// the present count of runs for `--runs` began.
    #[serde(default)]
    pub(crate) seen_before: BTreeMap<String, u64>,
    /// Whether the last call of ddfuzz was complete; it has then told the user of its new groups.
    #[serde(default, rename = "told")]
    pub(crate) reported: bool,
    /// Progress of a study, that is of a campaign on many utilities; `None` in other campaigns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) study: Option<StudyState>,
}

impl Checkpoint {
    /// Begins a count of runs for `--runs`, which asks for `runs` runs (`None`: no limit). If an
    /// earlier count with the same limit is unfinished, continues the earlier count. So a campaign
    /// that was killed and resumed makes the same runs as an uninterrupted one, and reports the
    /// same groups as new.
    pub(crate) fn begin_count(&mut self, runs: Option<u64>) {
        let unfinished = self.goal.is_some_and(|goal| {
            runs.is_none_or(|runs| self.count_start.saturating_add(runs) == goal)
        });
        if !unfinished {
            self.count_start = self.next;
            self.goal = runs.map(|runs| self.next.saturating_add(runs));
            self.seen_before = self.seen.get(&Kind::Crash).cloned().unwrap_or_default();
        }
        self.reported = false;
    }

    pub(crate) fn count(&mut self, kind: Kind, major: String) {
        self.count_runs(kind, major, 1);
    }

    /// Adds `runs` to the number of runs that ended in a group, given by its kind and its major key
    /// (12 hex digits).
    pub(crate) fn count_runs(&mut self, kind: Kind, major: String, runs: u64) {
        *self.seen.entry(kind).or_default().entry(major).or_default() += runs;
    }

    /// Raises the number of runs that ended in a group, given by kind and major key (12 hex
    /// digits), to `runs`, if it is lower.
    pub(crate) fn raise_count(&mut self, kind: Kind, major: String, runs: u64) {
        if runs > 0 {
            let seen = self.seen.entry(kind).or_default().entry(major).or_default();
            *seen = runs.max(*seen);
        }
    }

    /// Returns the number of runs that crashed in a known group: one in `known_before`, or one for
    /// whose major key (hash that identifies a bug) `is_known` returns true. Counts only the runs
    /// from number `count_start` on, where the present count of runs for `--runs` began.
    pub(crate) fn known_crashes(&self, is_known: impl Fn(&str) -> bool) -> u64 {
        let crashes = self.seen.get(&Kind::Crash).into_iter().flatten();
        crashes
            .filter(|(major, _)| self.known_before.contains(*major) || is_known(major))
            .map(|(major, runs)| runs - self.seen_before.get(major).unwrap_or(&0).min(runs))
            .sum()
    }

    /// Returns a [`Progress`] with the numbers of runs, groups, crashes, hangs and runs over the
    /// memory limit that this checkpoint has counted in the whole campaign; all other fields have
    /// their default values.
    pub(crate) fn progress(&self) -> Progress {
        let groups = self.seen.get(&Kind::Crash).map_or(0, BTreeMap::len);
        Progress {
            runs: self.next,
            groups: groups as u64,
            crashes: self.total(Kind::Crash),
            hangs: self.total(Kind::Hang),
            ooms: self.total(Kind::Oom),
            ..Progress::default()
        }
    }

    /// Returns the number of runs of the whole campaign that ended in groups of the kind `kind`,
    /// such as crashes or hangs.
    pub(crate) fn total(&self, kind: Kind) -> u64 {
        self.seen
            .get(&kind)
            .map_or(0, |groups| groups.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_crashes_are_counted_over_all_calls() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.begin_count(None);
        checkpoint.next = 100;
        checkpoint.count_runs(Kind::Crash, "a".to_owned(), 60);
        // A resumed call counts for `--runs` anew.
        checkpoint.begin_count(Some(10));
        assert_eq!(checkpoint.count_start, 100);
        checkpoint.next = 105;
        checkpoint.count_runs(Kind::Crash, "a".to_owned(), 5);
        let progress = checkpoint.progress();
        assert_eq!((progress.runs, progress.crashes), (105, 65));
    }
}
