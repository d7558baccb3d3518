//! Storing a crash in the output directory, and updating its entry: reproducer, result of the
//! minimization, `reproduce.sh`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::group::{self, EntryRank, GroupIndex, RejectedResults};
use crate::writer::{create_once, write_group};
use crate::{
    Build, Entry, EntryId, Kind, Minimized, Status, Store, StoreError, json, layout, reproduce,
};
use ddfuzz_exec::{Program, Target};
use ddfuzz_model::files::{FileError, atomic, folder};
use ddfuzz_triage::{Class, Crash, Found, Key};

/// Result of [`Store::file`]: where the crash is stored and whether its keys are new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    /// Id of the entry (stored input with its crash record) in which the crash is stored.
    pub id: EntryId,
    /// Folder of the entry (stored input with its crash record) in which the crash is stored.
    pub path: PathBuf,
    /// Whether the crash is the first of its major key, that is, has founded a new group.
    pub new_major: bool,
    /// Whether the crash is the first of its minor key (call path to the bug) in its group.
    pub new_minor: bool,
    /// Whether the crash was stored before: an entry for the same input with the same keys existed.
    pub already: bool,
}

impl Store {
    /// Stores a crash with its input: first the input, then `reproduce.sh`, then `crash.json`, all
    /// synced, which makes the entry complete, and last the group's record. [`Crash::found`] should
    /// be set.
    ///
    /// If the same input is already stored with the same keys, only `crash.json` may change, and
    /// only if the new origin of the input is better: a run of the campaign is better than a crash
    /// met during a minimization, and a lower run number than a higher one.
    ///
    /// If an earlier check with the last build of the crash's target did not see the group fail as
    /// before, the group's status is corrected: the group is recorded as failing with this build
    /// or, if another build runs ([`Store::set_running_build`]), as one to check again.
    ///
    /// Fails if a file cannot be written. Calling the function again resumes the work and returns
    /// the same result.
    pub fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        let filed = self.file_entry(kind, crash, input)?;
        self.note_return(&filed.id, crash)?;
        Ok(filed)
    }

    /// Corrects the status of the group of a stored crash, if a check with the last build of the
    /// crash's target did not see the group fail as before: the group is recorded as failing with
    /// that build. If another build runs ([`Store::set_running_build`]), the crash says nothing
    /// about the last recorded build, and the group is recorded as one to check again.
    fn note_return(&mut self, id: &EntryId, crash: &Crash) -> Result<(), StoreError> {
        let file = self.campaigns();
        let campaign = file.all().find(|one| Some(&*one.id) == crash.campaign());
        let Some(target) = campaign.and_then(|one| one.target.clone()) else {
            return Ok(());
        };
        let builds = file.builds(&target);
        let Some(mut build) = builds.and_then(|mut all| all.pop()) else {
            return Ok(());
        };
        let kind = id.kind();
        let is_other = |running: &String| *running != build.blake3;
        let groups = build.groups.get_mut(&kind);
        let Some(status) = groups.and_then(|groups| groups.get_mut(id.major())) else {
            return Ok(());
        };
        if status.is_as_before(kind) {
            return Ok(());
        }
        if self.running.as_ref().is_some_and(is_other) {
            build.add_unchecked(kind, id.major());
            return self.record_build(&target, build);
        }
        let before = std::mem::replace(
            status,
            match kind {
                Kind::Flaky => Status::Flaky,
                Kind::Crash | Kind::Hang | Kind::Oom => Status::Same,
            },
        );
        build.add_failing(kind, id.major(), id.minor(), id.hash());
        self.doubt_result(id, &mut build, before)?;
        self.record_build(&target, build)
    }

    /// Decides what becomes of the minimization result of the entry `id`, if the entry's input
    /// fails with `build`, but the result was made with another build. `checked` is the status that
    /// the group got when it was checked with `build`. `Fixed` and `Other` mean that the check ran
    /// the result, which did not fail as before: the entry's minimization is archived. With any
    /// other status, the result stays and the group is recorded in `build` as one to check again.
    /// Does nothing for a flaky crash.
    fn doubt_result(
        &mut self,
        id: &EntryId,
        build: &mut Build,
        checked: Status,
    ) -> Result<(), StoreError> {
        let entry = self.complete_entry(id)?;
        let is_older = entry.minimized.is_some() && entry.build() != Some(&build.blake3);
        if !is_older || id.kind() == Kind::Flaky {
            return Ok(());
        }
        match checked {
            Status::Fixed | Status::Other => self.archive_passing(&entry),
            Status::CannotTell | Status::Flaky | Status::Same | Status::Unchecked => {
                build.add_unchecked(id.kind(), id.major());
                Ok(())
            }
        }
    }

    fn file_entry(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        let crash = writable(crash);
        let id = EntryId::of(kind, &crash.keys, input);
        let path = id.folder(self.reader.root());
        let group = self.groups.get(&(kind, id.major().to_owned()));
        let held = match group {
            // Read again, because the user may have removed files.
            Some(group) if group.has(&id) => self.reader.entry(&id)?,
            _ => None,
        };
        let filed = Filed {
            new_major: group.is_none_or(|group| group.minors.is_empty()),
            new_minor: !group.is_some_and(|group| group.minors.contains_key(id.minor())),
            already: held.is_some(),
            path,
            id,
        };
        if let Some(held) = held {
            if compare_origins(crash.found.as_ref(), held.crash.found.as_ref()).is_lt() {
                json::write(&filed.path.join(layout::CRASH), &*crash)?;
            }
            return Ok(filed);
        }
        folder::create_all(&filed.path)?;
        create_once(&filed.path.join(layout::ORIGINAL), input)?;
        self.write_first_script(&filed.id, &crash)?;
        json::write(&filed.path.join(layout::CRASH), &*crash)?;
        self.update_group(&self.complete_entry(&filed.id)?)?;
        Ok(filed)
    }

    /// Writes the first `reproduce.sh` of a new entry: for the input as found, and for the target
    /// that the crash record or its campaign names. Writes none if no target is named, or if its
    /// bundled program is not installed yet. The script is replaced when a minimization of the
    /// entry ends.
    fn write_first_script(&self, id: &EntryId, crash: &Crash) -> Result<(), StoreError> {
        let of_campaign = || {
            let campaigns = self.campaigns().all();
            let campaign = campaigns
                .into_iter()
                .find(|one| Some(&*one.id) == crash.campaign())?;
            campaign.target.as_ref()
        };
        let own = crash.of.as_ref().map(|subject| &subject.target);
        let Some(target) = own
            .or_else(of_campaign)
            .and_then(|it| it.target(crash.limits))
        else {
            return Ok(());
        };
        match self.write_script(id, &crash.class, &target.with_main_arguments()) {
            Err(StoreError::NotInstalled { .. }) => Ok(()),
            written => written.map(drop),
        }
    }

    /// Reads the entry (stored input with its crash record) that has this id; an error if its input
    /// or its crash record is missing.
    fn complete_entry(&self, id: &EntryId) -> Result<Entry, StoreError> {
        (self.reader.entry(id)?).ok_or_else(|| StoreError::NoSuch(id.folder(self.reader.root())))
    }

    /// Adds a complete entry (an input with its crash record) to its group. If the group has the
    /// entry already, updates the rank by which the group's best entry is chosen, because the
    /// entry's reproducer or minimization result may be new. Writes the group's record if it
    /// changed; if writing fails, the group in memory stays as it was.
    fn update_group(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let place = (entry.id.kind(), entry.id.major().to_owned());
        self.note_change(place.clone());
        let root = self.reader.root();
        let folder = layout::group_folder(root, place.0, &place.1);
        let before = self.groups.get(&place);
        let mut after = match before {
            Some(index) => index.clone(),
            None => GroupIndex::of(entry, SystemTime::now()),
        };
        after.record.severity = after.record.severity.max(entry.crash.severity);
        after.set_rank(&folder, &entry.id, EntryRank::of(entry))?;
        if before.is_none_or(|before| before.record != after.record) {
            write_group(root, place.0, &after)?;
        }
        self.groups.insert(place, after);
        Ok(())
    }

    /// Sets the number of runs of `campaign` that ended in the group with this major key, and
    /// writes the group's record. Errors: [`StoreError::NoSuch`] if the group does not exist; if
    /// the record cannot be written.
    pub fn set_seen(
        &mut self,
        kind: Kind,
        major: Key,
        campaign: &str,
        runs: u64,
    ) -> Result<(), StoreError> {
        let root = self.reader.root();
        let Some(index) = self.groups.get_mut(&(kind, major.short())) else {
            let folder = layout::group_folder(root, kind, &major.short());
            return Err(StoreError::NoSuch(folder));
        };
        let before = index.record.seen.insert(campaign.to_owned(), runs);
        if before == Some(runs) {
            return Ok(());
        }
        let answer = write_group(root, kind, index);
        if answer.is_err() {
            match before {
                Some(before) => index.record.seen.insert(campaign.to_owned(), before),
                None => index.record.seen.remove(campaign),
            };
        }
        answer
    }

    /// Replaces an entry's reproducer (the smallest known failing input, in the file `minimized`)
    /// by `bytes`, and updates the group's record. Errors: [`StoreError::NoSuch`] if the entry does
    /// not exist; if the file cannot be written: the previous reproducer stays.
    pub fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        let entry = self.complete_entry(id)?;
        atomic::write(&entry.folder.join(layout::MINIMIZED), bytes)?;
        self.update_group(&entry)
    }

    /// Archives each minimization that has a log but no result, if `accept` returns true for its
    /// entry: the files are renamed ([`Entry::archive_minimization`]), so that the minimization
    /// starts again. The new names contain `build`, the hash of the program before a rebuild.
    pub fn archive_unfinished(
        &mut self,
        build: &str,
        accept: impl Fn(&Entry) -> bool,
    ) -> Result<(), StoreError> {
        for kind in Kind::ALL {
            for group in self.reader.groups(kind)? {
                for entry in self.reader.entries(kind, &group.record.major.short())? {
                    if entry.minimized.is_some() || !entry.log().exists() || !accept(&entry) {
                        continue;
                    }
                    entry.archive_minimization(build)?;
                    self.update_group(&self.complete_entry(&entry.id)?)?;
                }
            }
        }
        Ok(())
    }

    /// Archives the minimization of an entry because its result no longer fails: renames its files
    /// ([`Entry::archive_minimization`]), so that the entry counts as not minimized. The new names
    /// contain the hash of the build with which the result was made. Also records that the result
    /// passes, so that a merge does not bring the result back from a copy of the directory.
    pub fn archive_passing(&mut self, entry: &Entry) -> Result<(), StoreError> {
        if let Some(hash) = RejectedResults::log_hash(&entry.folder)? {
            let mut rejected = RejectedResults::read(&entry.folder)?;
            rejected.logs.insert(hash);
            json::write(&entry.folder.join(layout::PASSING), &rejected)?;
        }
        entry.archive_minimization(entry.build().map_or("earlier", String::as_str))?;
        self.update_group(&self.complete_entry(&entry.id)?)
    }

    /// Records the result of minimizing an entry's input in `minimized.json`, after writing the
    /// reproducer as parsed by the harness to `debug.txt`. The caller must have completed the
    /// reproducer and the minimization log before. A crash that never failed again is then moved to
    /// `flaky/`. Errors: [`StoreError::NoSuch`] if the entry does not exist; if a file cannot be
    /// written.
    pub fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        let entry = self.complete_entry(id)?;
        let debug = entry.folder.join(layout::DEBUG);
        match &outcome.debug {
            Some(text) => atomic::write(&debug, format!("{text}\n").as_bytes())?,
            // Remove the text of an earlier reproducer.
            None => remove(&debug)?,
        }
        json::write(&entry.folder.join(layout::OUTCOME), outcome)?;
        let minimized = Some(outcome.clone());
        self.update_group(&Entry { minimized, ..entry })?;
        match id.kind() == Kind::Crash && outcome.never_fails() {
            true => self.move_to_flaky(id),
            false => Ok(()),
        }
    }

    /// Moves the entry of a crash that never failed again from `crashes/` to `flaky/`. With the
    /// last entry of a group, the group's record moves, too.
    pub(super) fn move_to_flaky(&mut self, id: &EntryId) -> Result<(), StoreError> {
        let root = self.reader.root().to_owned();
        let (from, to) = (id.folder(&root), id.among(Kind::Flaky).folder(&root));
        let major = id.major().to_owned();
        let group = layout::group_folder(&root, Kind::Crash, &major);
        for kind in [Kind::Crash, Kind::Flaky] {
            self.note_change((kind, major.clone()));
        }
        let is_last = group::entry_ids(&root, Kind::Crash, &major)?.len() == 1;
        let left = self.groups.remove(&(Kind::Crash, major.clone()));
        folder::create_all(folder::parent(&to))?;
        if is_last {
            // Counts and times are in one record or the other whenever this is cut off.
            if let Some(left) = left {
                let mut record = left.record;
                if let Some(there) = GroupIndex::read(&root, Kind::Flaky, &major)? {
                    record.join(there.record);
                }
                let index = GroupIndex::with_record(Some(record), &root, Kind::Flaky, &major)?;
                if let Some(index) = index {
                    write_group(&root, Kind::Flaky, &index)?;
                }
            }
            remove(&group.join(layout::GROUP))?;
        }
        if to.exists() {
            // The same input, with an older record.
            std::fs::remove_dir_all(&to).map_err(FileError::at("remove", &to))?;
        }
        std::fs::rename(&from, &to).map_err(FileError::at("rename", &from))?;
        folder::sync(folder::parent(&to))?;
        // Remove the folders that are empty now.
        let _ =
            std::fs::remove_dir(folder::parent(&from)).and_then(|()| std::fs::remove_dir(&group));
        if let Some(index) = GroupIndex::read(&root, Kind::Crash, &major)? {
            write_group(&root, Kind::Crash, &index)?;
            self.groups.insert((Kind::Crash, major.clone()), index);
        }
        if let Some(index) = GroupIndex::read(&root, Kind::Flaky, &major)? {
            write_group(&root, Kind::Flaky, &index)?;
            self.groups.insert((Kind::Flaky, major), index);
        }
        Ok(())
    }

    /// Writes the entry's `reproduce.sh` ([`super::script`]), which shows the crash without ddfuzz,
    /// and returns its path. Errors: [`StoreError::NotInstalled`] for a bundled target before
    /// [`Store::install_program`]; [`StoreError::NoSuch`] if the entry does not exist; if the file
    /// cannot be written.
    pub fn write_reproduce(&self, id: &EntryId, target: &Target) -> Result<PathBuf, StoreError> {
        let entry = self.complete_entry(id)?;
        self.write_script(id, &entry.crash.class, target)
    }

    /// Writes the `reproduce.sh` of an entry with a crash of the class `class`.
    fn write_script(
        &self,
        id: &EntryId,
        class: &Class,
        target: &Target,
    ) -> Result<PathBuf, StoreError> {
        let program = match &target.program {
            Program::Path(path) => path.clone(),
            Program::Bundled(name) => match self.programs.get(name) {
                Some(relative) => relative.clone(),
                None => {
                    return Err(StoreError::NotInstalled {
                        path: self.reader.root().to_owned(),
                        name: name.clone(),
                    });
                }
            },
        };
        let root = self.reader.root();
        let path = id.folder(root).join(layout::REPRODUCE);
        let text = reproduce::script(id, class, target, &program, root);
        atomic::write_program(&path, &text)?;
        Ok(path)
    }
}

/// Removes a file, if it exists, and waits until the removal is on the storage device.
pub(super) fn remove(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FileError::at("remove", path)(error))
        }
        Err(_) => Ok(()),
        Ok(()) => folder::sync(folder::parent(path)),
    }
}

/// Compares two origins of a crash; the better one is less. From best to worst: a run of a campaign
/// (by run number), a crash met while another input was minimized (first those with a line in the
/// minimization log), a file that the user passed, no origin. `crash.json` keeps the best origin,
/// so that it does not depend on the order in which workers store the same input.
pub(super) fn compare_origins(a: Option<&Found>, b: Option<&Found>) -> Ordering {
    fn key(found: Option<&Found>) -> impl Ord {
        match found {
            Some(Found::Run {
                campaign,
                run,
                input,
            }) => (0, Some((run, campaign, input)), None, None),
            Some(Found::Slip { of, test, .. }) => (1, None, Some((of, test.is_none(), test)), None),
            Some(Found::File { path, .. }) => (2, None, None, Some(path)),
            None => (3, None, None, None),
        }
    }
    key(a).cmp(&key(b))
}

/// Returns the crash record with valid UTF-8 in the path of its origin (invalid bytes are
/// replaced), because JSON cannot hold other text.
pub(super) fn writable(crash: &Crash) -> Cow<'_, Crash> {
    match &crash.found {
        Some(Found::File { path, campaign }) if path.to_str().is_none() => {
            let path = path.to_string_lossy().into_owned().into();
            let campaign = campaign.clone();
            Cow::Owned(Crash {
                found: Some(Found::File { path, campaign }),
                ..crash.clone()
            })
        }
        _ => Cow::Borrowed(crash),
    }
}
