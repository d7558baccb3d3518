//! Rebuilt programs: notices that the program of a campaign has changed, while it is fuzzed or
//! between two calls, and checks all groups with the new build.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::{
    CampaignError, Minimizing, Recheck, Screen, StoredGroup,
    failures_of_target::{FailuresOfTarget, gone_with, record_of},
    lock,
    verdict::program_hash,
};
use ddfuzz_exec::{ExecError, Program, Target};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::FileError;
use ddfuzz_store::report::{CheckedGroup, Status, size};
use ddfuzz_store::{Build, Entry, EntryId, Kind, Reader, Store, StoreError, rfc3339};

/// Least time between two checks of the program's file for changes while a campaign fuzzes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time without changes after which a program's file counts as completely written.
const SETTLED: Duration = Duration::from_secs(1);
/// Time for which a program's file may be missing while the program is rebuilt; after this time the
/// campaign fails.
const MISSING_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two checks of a program's file that is being written.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Metadata of a file (device, inode, size, modification time), which shows a change of the file
/// without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    /// Device number and inode number of the file.
    file: (u64, u64),
    size: u64,
    /// Modification time of the file: seconds and nanoseconds.
    changed: (i64, i64),
}

impl FileStamp {
    /// Reads the stamp (device, inode, size and modification time) of the file at `path`; `None` if
    /// there is no such file, or it cannot be accessed.
    pub(crate) fn at(path: &Path) -> Option<FileStamp> {
        let facts = path.metadata().ok()?;
        Some(FileStamp {
            file: (facts.dev(), facts.ino()),
            size: facts.len(),
            changed: (facts.mtime(), facts.mtime_nsec()),
        })
    }
}

/// Detects changes of a target's program: by the metadata of its file, and if these have changed,
/// by its content.
#[derive(Debug)]
pub struct ProgramWatch {
    /// Path of the watched program; `None` for a bundled program, which never changes.
    program: Option<PathBuf>,
    stamp: Option<FileStamp>,
    /// Blake3 hash of the build of the program that is watched, 64 hex digits.
    build: String,
    /// When the program's file was last checked for changes; it is checked every two seconds at
    /// most.
    looked: Instant,
}

impl ProgramWatch {
    /// Starts to watch the program of a target: hashes its present build, to compare with later
    /// ones.
    pub fn of(target: &Target) -> Result<ProgramWatch, CampaignError> {
        // Before the hash: what is written meanwhile is noticed later.
        let (program, stamp) = match &target.program {
            Program::Path(path) => (Some(path.clone()), FileStamp::at(path)),
            Program::Bundled(_) => (None, None),
        };
        Ok(ProgramWatch {
            program,
            stamp,
            build: program_hash(&target.program)?.to_string(),
            looked: Instant::now(),
        })
    }

    /// Returns the blake3 hash of the build of the program that is watched, as 64 hex digits.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Returns a new record of the watched build: first seen at this moment, and without the status
    /// of any group.
    pub(crate) fn new_build_record(&self) -> Build {
        Build {
            blake3: self.build.clone(),
            seen: rfc3339(SystemTime::now()),
            groups: Default::default(),
            failing: Default::default(),
            unchecked: Default::default(),
            failing_results: Default::default(),
            moved: Default::default(),
            places: Default::default(),
        }
    }

    /// Returns true if the program differs from the watched build, is missing or cannot be read.
    /// The file is checked every two seconds at most; calls in between return false.
    pub fn has_changed(&mut self) -> bool {
        self.looked.elapsed() >= LOOK_EVERY && self.is_another()
    }

    /// Returns true if the program differs from the watched build or is missing at this moment;
    /// otherwise false. The file is read only if its metadata has changed.
    pub fn is_another(&mut self) -> bool {
        self.looked = Instant::now();
        let Some(path) = &self.program else {
            return false;
        };
        let stamp = FileStamp::at(path);
        if stamp == self.stamp {
            return false;
        }
        // A file that was only touched, or copied over itself, is the same program.
        let same = build_of(path).is_ok_and(|build| build == self.build);
        if same {
            self.stamp = stamp;
        }
        !same
    }

    /// Returns the path of the watched program if there is no file at that path; `None` if there is
    /// one.
    pub(crate) fn missing(&self) -> Option<&Path> {
        self.program
            .as_deref()
            .filter(|path| FileStamp::at(path).is_none())
    }

    /// Waits until the program's file has not changed for a second, and then watches the build in
    /// this file. Returns true if it differs from the build watched before, and false if it is the
    /// same or if `stop` turns true meanwhile.
    ///
    /// # Errors
    /// When the program is missing for two minutes, or cannot be read.
    pub fn settle(&mut self, stop: &AtomicBool) -> Result<bool, CampaignError> {
        let Some(path) = self.program.clone() else {
            return Ok(false);
        };
        let began = Instant::now();
        let (mut stamp, mut since) = (FileStamp::at(&path), Instant::now());
        while stamp.is_none() || since.elapsed() < SETTLED {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if stamp.is_none() && began.elapsed() > MISSING_TIMEOUT {
                return Err(ExecError::Missing { path }.into());
            }
            std::thread::sleep(POLL_INTERVAL);
            let now = FileStamp::at(&path);
            if now != stamp {
                (stamp, since) = (now, Instant::now());
            }
        }
        let build = build_of(&path)?;
        let other = build != self.build;
        (self.stamp, self.build) = (stamp, build);
        Ok(other)
    }
}

/// Returns the blake3 hash of the file at `path`, as 64 hex digits.
fn build_of(path: &Path) -> Result<String, CampaignError> {
    let hash = ContentHash::of_file(path).map_err(FileError::at("read", path))?;
    Ok(hash.to_string())
}

/// Returns true if runs of the target of `failures` can show whether the crash of an entry (stored
/// finding) still occurs: the entry was found on this target, and not by a study of system
/// utilities, which records the program of each crash. Otherwise false.
pub(crate) fn is_checked(failures: &FailuresOfTarget, entry: &Entry) -> bool {
    entry.crash.of.is_none() && failures.include(entry)
}

/// Reads the groups to check with a new build of the target: those with at least one entry whose
/// crash can be shown by runs of the target ([`is_checked`]). `failures` says which entries were
/// found on this target.
fn groups_of(reader: &Reader, failures: &FailuresOfTarget) -> Result<Vec<StoredGroup>, StoreError> {
    let mut groups = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            let group = StoredGroup::read(reader, group)?;
            if (group.entries.iter()).any(|entry| is_checked(failures, entry)) {
                groups.push(group);
            }
        }
    }
    Ok(groups)
}

/// Records the present build of the program of `target` as its first build, so that a later call
/// notices when the program was rebuilt. Records nothing if no campaign is on the target, if a
/// build of its program is recorded already, or if a group was found on the target, since its
/// crashes may come from another build. In every case tells the store which build runs
/// ([`note_running_build`]).
///
/// # Errors
/// When the program cannot be read, or the record cannot be written.
pub fn record_first_build(store: &mut Store, target: &Target) -> Result<(), CampaignError> {
    let watch = ProgramWatch::of(target)?;
    store.set_running_build(watch.build());
    let record = record_of(target);
    if (store.campaigns().builds(&record)).is_some_and(|all| all.is_empty()) {
        let failures = FailuresOfTarget::of_target(store.reader(), target)?;
        if groups_of(store.reader(), &failures)?.is_empty() {
            store.record_build(&record, watch.new_build_record())?;
        }
    }
    Ok(())
}

/// Tells the store which build of the program of `target` runs from now on, for a call that stores
/// crashes without checking the groups with this build. If it differs from the last recorded build,
/// the crashes of the call say nothing about the recorded build.
///
/// # Errors
/// When the program cannot be read.
pub fn note_running_build(store: &mut Store, target: &Target) -> Result<(), CampaignError> {
    store.set_running_build(ProgramWatch::of(target)?.build());
    Ok(())
}

/// Checks, after the program was rebuilt, whether the crashes of all groups still occur: runs their
/// inputs again with the new build, and records the status of each group.
pub struct BuildCheck<'a> {
    /// Store of the output directory that has the groups to check, and the builds of the program
    /// recorded so far.
    pub store: &'a Mutex<Store>,
    /// Settings of minimization, which name the target to run and the way to execute it.
    pub minimizing: &'a Minimizing,
    /// Number of worker threads that run inputs in parallel.
    pub jobs: usize,
    /// Turns true when the user stops the call of ddfuzz; the check of the groups then ends early.
    pub stop: &'a AtomicBool,
}

/// Records in `build`, the record of a build of the program, the status that the check of `group`
/// has found. If the group still fails as before, also records the entry whose input has failed
/// and, where they differ from those of the group, the major key and the location of the crash that
/// this input causes now.
fn add_checked(build: &mut Build, group: CheckedGroup) {
    if let Some(of_kind) = build.failing.get_mut(&group.kind) {
        of_kind.remove(&group.major);
    }
    if group.status.is_as_before(group.kind)
        && let Some((minor, hash)) = entry_of_file(&group.file)
    {
        build.add_failing(group.kind, &group.major, &minor, &hash);
        if let Some(now) = &group.now {
            if now.major != group.major {
                build.add_moved(group.kind, &group.major, &now.major);
            }
            let place = now.frame.as_ref().filter(|_| now.frame != group.frame);
            if let Some(place) = place {
                build.add_place(group.kind, &group.major, place);
            }
        }
    }
    let of_kind = build.groups.entry(group.kind).or_default();
    of_kind.insert(group.major, group.status);
}

/// Returns a text for the user, such as `3 fixed, 1 undecided`: how many of the `checked` groups
/// are fixed, how many are undecided, and how many minimized inputs (`passing`) were archived
/// because they pass although their group still fails.
fn counts(checked: &[CheckedGroup], passing: u64) -> String {
    let number = |status| checked.iter().filter(|one| one.status == status).count() as u64;
    let mut text = format!("{} fixed", size::grouped(number(Status::Fixed)));
    let doubtful = number(Status::CannotTell);
    if doubtful > 0 {
        let doubtful = size::grouped(doubtful);
        text += &format!(", {doubtful} undecided (`ddfuzz check` shows why)");
    }
    if passing > 0 {
        let passing = size::counted(passing, "passing result");
        text += &format!("; {passing} of groups that still fail set aside");
    }
    text
}

/// Returns the minor key and the hash of the entry to which `file` belongs: the names of the two
/// innermost folders in its path. `None` if the path has no such folders.
fn entry_of_file(file: &Path) -> Option<(String, String)> {
    let mut folders = file.ancestors().skip(1);
    let mut name = || Some(folders.next()?.file_name()?.to_str()?.to_owned());
    let hash = name()?;
    Some((name()?, hash))
}

impl BuildCheck<'_> {
    /// Returns true if the program was rebuilt: the campaign that `--resume` continues in the
    /// output directory fuzzes this target and records more than one build of its program.
    /// Otherwise false.
    pub fn is_rebuilt(&self) -> bool {
        let store = lock(self.store);
        let own = store.campaigns().current.as_ref();
        let record = record_of(&self.minimizing.target);
        own.is_some_and(|own| own.is_of(&record) && own.builds.len() > 1)
    }

    /// Returns all builds of the program that the output directory records, oldest first; `None` if
    /// no campaign in the output directory is on the target.
    fn builds(&self) -> Option<Vec<Build>> {
        let record = record_of(&self.minimizing.target);
        lock(self.store).campaigns().builds(&record)
    }

    /// Returns the last build of the program that the output directory records; `None` if it
    /// records no build.
    pub(crate) fn recorded(&self) -> Option<Build> {
        self.builds()?.pop()
    }

    fn record(&self, build: Build) -> Result<(), StoreError> {
        let record = record_of(&self.minimizing.target);
        lock(self.store).record_build(&record, build)
    }

    /// Returns the groups whose crash did not occur any more when they were checked with the last
    /// recorded build ([`gone_with`]), by kind and major key (12 hex digits); empty if no build is
    /// recorded.
    pub(crate) fn gone(&self) -> HashSet<(Kind, String)> {
        self.recorded().as_ref().map(gone_with).unwrap_or_default()
    }

    /// Compares the program with the last recorded build, at the start of a call of ddfuzz. If the
    /// program is another build, checks all groups with it; if it is the same, checks only the
    /// groups recorded as unchecked. If no build is recorded, records the present one, and checks
    /// all groups. Does nothing if no campaign of the output directory is on the target.
    pub fn begin(
        &self,
        watch: &ProgramWatch,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        let target = &self.minimizing.target;
        let Some(mut builds) = self.builds() else {
            return Ok(());
        };
        match builds.pop() {
            Some(build) if build.blake3 == watch.build() => self.check_again(build, screen),
            Some(_) => self.recheck(watch, screen),
            None => {
                let reader = lock(self.store).reader().clone();
                let failures = FailuresOfTarget::of_target(&reader, target)?;
                match groups_of(&reader, &failures)?.is_empty() {
                    true => Ok(self.record(watch.new_build_record())?),
                    // By an older ddfuzz: the program may be another build than that which crashed.
                    false => self.check_all("no build of the program is recorded", watch, screen),
                }
            }
        }
    }

    /// Checks every group that was found on the target with the present build, by running the
    /// reproducer and the original of its entries until one crashes as before. Records the status
    /// of each group: fixed, cannot tell, flaky, another crash or the same crash. Unfinished
    /// minimizations start again, since their logs hold results of the earlier build; finished ones
    /// start again if their result passes although the original input still fails. If the user
    /// stops meanwhile, nothing is recorded, and the next call of ddfuzz repeats the check. Does
    /// nothing if no campaign of the output directory is on the target.
    pub fn recheck(
        &self,
        watch: &ProgramWatch,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        match self.builds() {
            Some(_) => self.check_all("the program was rebuilt", watch, screen),
            None => Ok(()),
        }
    }

    /// Runs the stored inputs of all groups again with the present build, to see which bugs still
    /// occur, and records the results and the build. First shows the user `why` the groups are
    /// checked.
    fn check_all(
        &self,
        why: &str,
        watch: &ProgramWatch,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        let reader = lock(self.store).reader().clone();
        let failures = FailuresOfTarget::of_target(&reader, &self.minimizing.target)?;
        let groups = groups_of(&reader, &failures)?;
        let count = size::counted(groups.len() as u64, "group");
        screen.note(&format!("{why}; checking {count}"));
        let mut build = watch.new_build_record();
        let Some(counts) = self.check(&failures, &groups, &mut build)? else {
            return Ok(());
        };
        let earlier = self.recorded().map(|build| build.blake3);
        let earlier = earlier.unwrap_or("unknown".to_owned());
        lock(self.store).archive_unfinished(&earlier, |entry| is_checked(&failures, entry))?;
        self.record(build)?;
        screen.note(&format!("{count} checked with the new build: {counts}"));
        Ok(())
    }

    /// Checks once more the groups that `build` (the present build, as recorded last) lists as
    /// unchecked: runs their inputs and records whether they still fail. Unfinished minimizations
    /// are continued, not started again.
    fn check_again(&self, mut build: Build, screen: &mut dyn Screen) -> Result<(), CampaignError> {
        let unchecked = std::mem::take(&mut build.unchecked);
        if unchecked.is_empty() {
            return Ok(());
        }
        let reader = lock(self.store).reader().clone();
        let failures = FailuresOfTarget::of_target(&reader, &self.minimizing.target)?;
        let mut groups = groups_of(&reader, &failures)?;
        groups.retain(|group| {
            let of_kind = unchecked.get(&group.group.kind);
            of_kind.is_some_and(|all| all.contains(&group.group.record.major.short()))
        });
        let count = size::counted(groups.len() as u64, "group");
        screen.note(&format!(
            "{count} unchecked with this build of the program; checking"
        ));
        if let Some(counts) = self.check(&failures, &groups, &mut build)? {
            self.record(build)?;
            screen.note(&format!("{count} checked with this build: {counts}"));
        }
        Ok(())
    }

    /// Checks `groups` by runs of the target, updates the minimized results of groups that still
    /// fail, and records the statuses of all of them in `build`. Returns a text for the user with
    /// the number of groups of each status; `None` if the user has stopped the check.
    fn check(
        &self,
        failures: &FailuresOfTarget,
        groups: &[StoredGroup],
        build: &mut Build,
    ) -> Result<Option<String>, CampaignError> {
        let subject = |entry: &Entry| {
            if !is_checked(failures, entry) {
                return None;
            }
            let mut target = self.minimizing.target.clone();
            if matches!(entry.id.kind(), Kind::Hang | Kind::Oom) {
                // A hang or a blow-up is fixed only if it stays within the limits that it exceeded.
                target.limits = entry.crash.limits;
            }
            Some((target, self.minimizing.way))
        };
        let recheck = Recheck {
            doubt: &|_| None,
            subject: &subject,
            groups,
            stop: self.stop,
        };
        let checked = recheck.run(self.jobs, &|_| ())?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let checked: Vec<CheckedGroup> = checked.into_iter().flatten().collect();
        let mut passing = 0;
        for group in &checked {
            passing += u64::from(self.settle_result(group, build)?);
        }
        let counts = counts(&checked, passing);
        for group in checked {
            add_checked(build, group);
        }
        Ok(Some(counts))
    }

    /// Updates the minimized result of one entry after `group` was checked with a new build: the
    /// entry whose input failed in the check. If its result passes, archives its minimization, so
    /// that it is minimized again, and returns true; otherwise returns false. If its result was the
    /// input that failed, records it in `build`. The smallest archived result that is smaller and
    /// still fails becomes a further entry of the group. Does nothing if no input of the group
    /// failed.
    fn settle_result(
        &self,
        group: &CheckedGroup,
        build: &mut Build,
    ) -> Result<bool, CampaignError> {
        let Some(entry) = self.failing_entry(group)? else {
            return Ok(false);
        };
        if group.has_passing_result {
            lock(self.store).archive_passing(&entry)?;
        } else if let Some(minimized) = &entry.minimized {
            let reproducer = entry.reproducer();
            if group.file == std::path::absolute(&reproducer).unwrap_or(reproducer) {
                build.failing_results.extend(entry.log_hash()?);
            }
            let (minimizing, size) = (self.minimizing.of(&entry.crash), minimized.size_after);
            minimizing.file_smaller_archived(self.store, &entry, size as usize)?;
        }
        Ok(group.has_passing_result)
    }

    /// Reads the entry whose input failed in the check of `group`. `None` if the group did not fail
    /// as before in the check, or if the entry is no longer stored.
    fn failing_entry(&self, group: &CheckedGroup) -> Result<Option<Entry>, StoreError> {
        if !group.status.is_as_before(group.kind) {
            return Ok(None);
        }
        let id = entry_of_file(&group.file)
            .and_then(|(minor, hash)| EntryId::from_names(group.kind, &group.major, &minor, &hash));
        let reader = lock(self.store).reader().clone();
        Ok(id.map(|id| reader.entry(&id)).transpose()?.flatten())
    }
}
