//! The builds of the programs of two output directories that are merged: with which build a result
//! is known to fail, and which groups have results that were not run with the last build.

use std::collections::BTreeSet;
use std::path::Path;

use crate::merged_minimizations::{CurrentMinimizations, Minimization};
use crate::{Build, CampaignFile, EntryId, Kind, StoreError, group, hash_of, json, layout, merge};
use ddfuzz_exec::TargetRecord;
use ddfuzz_triage::Crash;

/// The builds of one target's program that are recorded in two output directories, while one of
/// them is merged into the other. Each list is sorted from the oldest build to the newest.
pub(super) struct TargetBuilds {
    target: TargetRecord,
    /// The builds that are recorded in the directory that is merged into the destination.
    from: Vec<Build>,
    /// The builds that are recorded in the destination of the merge.
    into: Vec<Build>,
    /// The builds that at least one of the two directories records.
    all: Vec<Build>,
}

impl TargetBuilds {
    /// Returns the index, in the list of all builds, of the newest build with which the result of a
    /// minimization is known to fail: the build with which it was made, or one with which it was
    /// checked later. `None` if the log of the minimization names no build, or no such build is
    /// recorded.
    pub(super) fn newest_failing(&self, minimization: &Minimization) -> Option<usize> {
        let (made, hash) = (minimization.build()?, minimization.log_hash()?);
        let fails = |it: &Build| it.blake3 == made || it.failing_results.contains(&hash);
        self.all.iter().rposition(fails)
    }

    /// Returns true if it is uncertain whether the last build's status of a group still holds: only
    /// one directory has run the last build, and in the same second the other directory ran a
    /// different build, which gives the group a higher status (nearer to failing as before).
    fn is_contested(&self, kind: Kind, major: &str) -> bool {
        let Some(last) = self.last() else {
            return false;
        };
        let has = |all: &[Build], wanted: &Build| all.iter().any(|it| it.blake3 == wanted.blake3);
        let status = last.status(kind, major);
        [(&self.from, &self.into), (&self.into, &self.from)]
            .into_iter()
            .filter(|(one, other)| has(one, last) && !has(other, last))
            .flat_map(|(one, other)| other.iter().filter(|it| !has(one, it)))
            .filter(|it| it.seen == last.seen)
            .any(|it| status.is_some() && it.status(kind, major) > status)
    }

    /// Returns the last build that at least one of the directories records; `None` if there is
    /// none.
    fn last(&self) -> Option<&Build> {
        self.all.last()
    }

    /// Returns true if the result that becomes an entry's current one in a merge still has to be
    /// run with the last build: the newest build with which it is known to fail is an older one,
    /// and neither of the directories that have this result has checked the entry's group with the
    /// last build. False if there is no result, or if no build is known with which it fails.
    fn is_unchecked(&self, id: &EntryId, current: &CurrentMinimizations) -> bool {
        let (Some(last), Some(chosen)) = (self.last(), current.chosen()) else {
            return false;
        };
        let is_older = |age: usize| age + 1 < self.all.len();
        if !chosen.has_result() || !self.newest_failing(chosen).is_some_and(is_older) {
            return false;
        }
        let (kind, major) = (id.kind(), id.major());
        let is_checked = |builds: &[Build]| {
            let build = builds.iter().rfind(|build| build.blake3 == last.blake3);
            build.is_some_and(|build| {
                build.status(kind, major).is_some() && !build.is_unchecked(kind, major)
            })
        };
        let sides = [(&current.theirs, &self.from), (&current.ours, &self.into)];
        let mut with_result = sides.into_iter().filter(|(one, _)| *one == chosen);
        !with_result.any(|(_, builds)| is_checked(builds))
    }
}

/// The builds of all programs that are recorded in two output directories, while one of them is
/// merged into the other.
pub(super) struct MergedBuilds {
    /// The campaigns of both directories; records of one campaign are united.
    all: CampaignFile,
    /// The targets with more than one recorded build of their program.
    rebuilt: Vec<TargetBuilds>,
}

impl MergedBuilds {
    /// Reads the builds in the campaign files of the directory that is merged, `from`, and of the
    /// destination.
    pub(super) fn of(from: &CampaignFile, into: &CampaignFile) -> MergedBuilds {
        let mut all = into.clone();
        from.all().for_each(|one| all.take(one.clone()));
        let mut rebuilt: Vec<TargetBuilds> = Vec::new();
        for target in all.all().filter_map(|one| one.target.as_ref()) {
            let builds = |file: &CampaignFile| file.builds(target).unwrap_or_default();
            let is_rebuilt = |all: &[Build]| all.iter().any(|it| it.blake3 != all[0].blake3);
            let is_known = rebuilt.iter().any(|it| it.target.same_target(target));
            if !is_known && is_rebuilt(&builds(&all)) {
                rebuilt.push(TargetBuilds {
                    target: target.clone(),
                    from: builds(from),
                    into: builds(into),
                    all: builds(&all),
                });
            }
        }
        MergedBuilds { all, rebuilt }
    }

    /// Returns the builds of the target on which an entry was found. `from` and `into` are the
    /// entry's folders in the directory that is merged and in the destination; the crash records in
    /// them name the entry's campaign. `None` if they name no campaign, or if only one build of the
    /// target's program is recorded.
    pub(super) fn target_of_entry(
        &self,
        from: &Path,
        into: &Path,
    ) -> Result<Option<&TargetBuilds>, StoreError> {
        if self.rebuilt.is_empty() {
            return Ok(None);
        }
        let record = |folder: &Path| json::bytes(&folder.join(layout::CRASH));
        let records = record(from)?.into_iter().chain(record(into)?);
        let record = records.min_by(|a, b| merge::compare_records(a, b));
        let crash: Option<Crash> = record.and_then(|text| serde_json::from_slice(&text).ok());
        let id = crash.as_ref().and_then(Crash::campaign);
        let campaign = self.all.all().find(|one| Some(&*one.id) == id);
        let target = campaign.and_then(|one| one.target.as_ref());
        Ok(target.and_then(|target| {
            let mut all = self.rebuilt.iter();
            all.find(|it| it.target.same_target(target))
        }))
    }

    /// Returns the campaign file that the destination `into` gets when the directory `from` is
    /// merged into it. It contains the campaigns of both directories. The last build of each target
    /// lists, as unchecked groups, those that must be checked with it after the merge.
    pub(super) fn united(&self, from: &Path, into: &Path) -> Result<CampaignFile, StoreError> {
        let mut file = self.all.clone();
        if self.rebuilt.is_empty() {
            return Ok(file);
        }
        let mut groups: BTreeSet<(Kind, String)> = group::all(into)?.into_iter().collect();
        groups.extend(group::all(from)?);
        for (kind, major) in groups {
            let mut ids: BTreeSet<EntryId> = BTreeSet::new();
            for root in [from, into] {
                ids.extend(group::entry_ids(root, kind, &major)?);
            }
            for id in ids {
                if let Some(target) = self.unchecked_with(&id, from, into)?
                    && let Some(mut last) = file.builds(&target.target).and_then(|mut it| it.pop())
                    && !last.is_unchecked(kind, &major)
                {
                    last.add_unchecked(kind, &major);
                    file.set_unchecked(&target.target, &last);
                }
            }
        }
        Ok(file)
    }

    /// Returns the builds of an entry's target if the entry's group must be checked again after the
    /// merge; else `None`. There are two reasons for a check: the entry gets a result that is still
    /// to be run with the last build, or it is uncertain which build is the last one. For a flaky
    /// crash, the first reason counts only if the destination takes over the other directory's
    /// result, because the group may have moved to `flaky/` after its check.
    fn unchecked_with(
        &self,
        id: &EntryId,
        from: &Path,
        into: &Path,
    ) -> Result<Option<&TargetBuilds>, StoreError> {
        let (from, into) = (&id.folder(from), &id.folder(into));
        let Some(target) = self.target_of_entry(from, into)? else {
            return Ok(None);
        };
        let original = original_size(id, from, into)?;
        let current = CurrentMinimizations::read(from, into, original, Some(target))?;
        let counts = id.kind() != Kind::Flaky || current.is_taken;
        let is_unchecked = counts && target.is_unchecked(id, &current)
            || target.is_contested(id.kind(), id.major());
        Ok(is_unchecked.then_some(target))
    }
}

/// Returns the size, in bytes, of the input of an entry that both directories of a merge may have.
/// If the sizes of the two copies differ, one of them was cut off, and the size of the other is
/// returned.
fn original_size(id: &EntryId, from: &Path, into: &Path) -> Result<u64, StoreError> {
    let path = |folder: &Path| folder.join(layout::ORIGINAL);
    let size = |folder: &Path| path(folder).metadata().ok().map(|facts| facts.len());
    match (size(from), size(into)) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            let bytes = json::bytes(&path(from))?;
            let is_intact = bytes.is_some_and(|bytes| hash_of(&bytes) == id.hash());
            Ok(if is_intact { theirs } else { ours })
        }
        (theirs, ours) => Ok(theirs.or(ours).unwrap_or_default()),
    }
}
