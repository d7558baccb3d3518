//! The builds of the programs of two output directories that are merged: which of two results of one
//! input is known to fail with the newer build, and which groups have results that were not run with
//! the last one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Build, CampaignFile, Entry, EntryId, Kind, Store, StoreError, json, layout};
use ddfuzz_exec::TargetRecord;
use ddfuzz_minimize::log::Log;
use ddfuzz_triage::Crash;

/// The builds that two output directories record, of which one takes over entries of the other.
pub(super) struct MergedBuilds {
    from: CampaignFile,
    into: CampaignFile,
    /// The campaigns of both.
    all: CampaignFile,
    /// The targets of the campaigns of both, each with its builds, the oldest first.
    targets: Vec<(TargetRecord, Vec<Build>)>,
    /// Groups that took over a result which was not run with the last build of a target, by number
    /// of the target.
    taken: RefCell<BTreeSet<(usize, Kind, String)>>,
}

/// Returns the hash of the program with which the minimization in an entry's folder was begun, as its
/// log says; `None` if there is no log, or it names none.
pub(super) fn build_of(folder: &Path) -> Option<String> {
    Some(
        Log::read_start(&folder.join(layout::LOG))?
            .build?
            .to_string(),
    )
}

/// Whether a program has several builds.
fn is_rebuilt(builds: &[Build]) -> bool {
    builds.iter().any(|it| it.blake3 != builds[0].blake3)
}

impl MergedBuilds {
    /// Reads the builds in the campaign files of the directory that is merged, `from`, and of the
    /// destination.
    pub(super) fn of(from: CampaignFile, into: CampaignFile) -> MergedBuilds {
        let mut all = into.clone();
        from.all().for_each(|one| all.take(one.clone()));
        let mut targets: Vec<(TargetRecord, Vec<Build>)> = Vec::new();
        for target in all.all().filter_map(|one| one.target.as_ref()) {
            if !targets.iter().any(|(known, _)| known.same_target(target)) {
                let builds = all.builds(target).unwrap_or_default();
                targets.push((target.clone(), builds));
            }
        }
        MergedBuilds {
            from,
            into,
            all,
            targets,
            taken: RefCell::default(),
        }
    }

    /// Returns the number of the target of the campaign with this id, if several builds of its
    /// program are recorded.
    fn target_of(&self, campaign: Option<&str>) -> Option<usize> {
        let campaign = self.all.all().find(|one| Some(&*one.id) == campaign)?;
        let target = campaign.target.as_ref()?;
        let mut all = self.targets.iter();
        all.position(|(known, builds)| known.same_target(target) && is_rebuilt(builds))
    }

    /// Returns the id of the campaign that has found the entry in `folder`; `None` if its record
    /// names none, or if only one build of each program is recorded, which makes the campaign
    /// needless.
    pub(super) fn campaign_of(&self, folder: &Path) -> Result<Option<String>, StoreError> {
        if !self.targets.iter().any(|(_, builds)| is_rebuilt(builds)) {
            return Ok(None);
        }
        let crash = json::read_intact::<Crash>(&folder.join(layout::CRASH))?;
        Ok(crash.and_then(|crash| crash.campaign().map(str::to_owned)))
    }

    /// Returns the numbers of the newest builds with which the results of an entry in the folders
    /// `from` and `into` are known to fail: those with which they were made, or whose check has
    /// shown it. `None` if there is none, or there is only one build of the program.
    pub(super) fn ages(
        &self,
        id: &EntryId,
        campaign: Option<&str>,
        from: &Path,
        into: &Path,
    ) -> (Option<usize>, Option<usize>) {
        let Some(at) = self.target_of(campaign) else {
            return (None, None);
        };
        let (target, builds) = &self.targets[at];
        let age = |hash: &str| builds.iter().rposition(|build| build.blake3 == hash);
        let of = |file: &CampaignFile, folder: &Path| {
            let made = build_of(folder)?;
            let own = file.builds(target).unwrap_or_default();
            let shown = own.iter().filter(|build| build.has_shown(id));
            let shown = shown.filter_map(|build| age(&build.blake3)).max();
            age(&made).max(shown)
        };
        (of(&self.from, from), of(&self.into, into))
    }

    /// Notes that a result was taken over, which is known to fail with the build of the number
    /// `age`: unless that is the last one, its group is to be checked.
    pub(super) fn note_taken(&self, id: &EntryId, campaign: Option<&str>, age: Option<usize>) {
        let Some(at) = self.target_of(campaign) else {
            return;
        };
        if age.is_some_and(|age| age + 1 < self.targets[at].1.len()) {
            let group = (at, id.kind(), id.major().to_owned());
            self.taken.borrow_mut().insert(group);
        }
    }

    /// Records, with the last build of each target, the groups to check with it: those that took
    /// over a result which was not run with it, and those that were not checked with it, but have a
    /// result of another build.
    pub(super) fn record_unchecked(&self, store: &mut Store) -> Result<(), StoreError> {
        for (at, (target, _)) in self.targets.iter().enumerate() {
            let Some(mut last) = store
                .campaigns()
                .builds(target)
                .and_then(|mut all| all.pop())
            else {
                continue;
            };
            let before = last.clone();
            for (_, kind, major) in self.taken.borrow().iter().filter(|(of, ..)| *of == at) {
                last.add_unchecked(*kind, major);
            }
            for (kind, major) in self.never_checked(store, at, &last)? {
                last.add_unchecked(kind, &major);
            }
            if last != before {
                store.record_build(target, last)?;
            }
        }
        Ok(())
    }

    /// Returns the groups without a status with the last build of a target, in which an entry that
    /// was found on the target has a result of another build. None if all builds are one.
    fn never_checked(
        &self,
        store: &Store,
        at: usize,
        last: &Build,
    ) -> Result<Vec<(Kind, String)>, StoreError> {
        let mut found = Vec::new();
        let mut targets: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for one in self.all.all() {
            targets.insert(one.id.clone(), self.target_of(Some(&one.id)));
        }
        if !targets.values().any(|target| *target == Some(at)) {
            return Ok(found);
        }
        let is_older = |entry: &Entry| {
            let target = entry.crash.campaign().and_then(|id| *targets.get(id)?);
            let is_other = |build: &String| *build != last.blake3;
            target == Some(at) && entry.minimized.is_some() && entry.build().is_some_and(is_other)
        };
        for kind in [Kind::Crash, Kind::Hang, Kind::Oom] {
            for group in store.reader().groups(kind)? {
                let major = group.record.major.short();
                if last.status(kind, &major).is_none() && group.entries()?.iter().any(is_older) {
                    found.push((kind, major));
                }
            }
        }
        Ok(found)
    }
}
