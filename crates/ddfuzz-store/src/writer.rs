//! The only writer of an output directory: opening, locking, repairing, and writing campaign data.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::campaign::{self, DirectoryState};
use crate::code::CodeCoverage;
use crate::group::{self, GroupIndex};
use crate::reader::State;
use crate::{
    Build, Campaign, CampaignFile, Kind, Reader, StoreError, VERSION, hash_of, json, layout,
};
use ddfuzz_exec::TargetRecord;
use ddfuzz_model::files::{Appender, FileError, Lock, atomic, folder};

/// An output directory that this process alone may write to, protected by a lock file.
///
/// Data written by a method survives a power failure once the method has returned, except
/// statistics. After an error such as a full disk all earlier data is intact, and the call can be
/// repeated.
#[derive(Debug)]
pub struct Store {
    pub(super) reader: Reader,
    /// Hash of the program that runs now, as 64 hex digits, set by [`Store::set_running_build`];
    /// `None` if the program is the last recorded build.
    pub(super) running: Option<String>,
    pub(super) groups: BTreeMap<(Kind, String), GroupIndex>,
    pub(super) programs: BTreeMap<String, PathBuf>,
    file: CampaignFile,
    resumed: bool,
    stats: Option<Appender>,
    /// Groups with an entry that was stored, changed or moved since the directory was opened, each
    /// with the number of its last change.
    changed: BTreeMap<(Kind, String), u64>,
    /// Number of changes of groups since the directory was opened.
    changes: u64,
    /// Lock file that keeps other processes from writing to the directory.
    _lock: Lock,
}

impl Store {
    /// Opens an output directory for writing. A missing or empty directory is created for
    /// `campaign`; a directory that has a campaign keeps it ([`Store::resumed`] is true then). Work
    /// that a killed writer left unfinished is repaired. Errors: [`StoreError::NotOurs`],
    /// [`StoreError::OtherVersion`], [`StoreError::InUse`], or a damaged campaign file; the
    /// directory is not changed then.
    pub fn create_or_resume(root: &Path, campaign: Campaign) -> Result<Store, StoreError> {
        Store::open(root, Some(campaign))
    }

    /// Opens an output directory for reading only, without a lock. Errors: See [`Reader::open`].
    pub fn open_read(root: &Path) -> Result<Reader, StoreError> {
        Reader::open(root)
    }

    /// Opens an output directory for writing as [`Store::create_or_resume`] does. If `campaign` is
    /// `None`, a directory that has no campaign of its own, such as the result of a merge, stays
    /// without one.
    pub fn open(root: &Path, campaign: Option<Campaign>) -> Result<Store, StoreError> {
        campaign::examine(root)?;
        folder::create_all(root)?;
        let lock = Lock::acquire(&root.join(layout::LOCK))
            .map_err(|error| StoreError::of_lock(root, error))?;
        // Examine again, now that no other process can change the directory.
        let (mut file, mut unwritten) = match campaign::examine(root)? {
            DirectoryState::Ours(file) => (*file, false),
            DirectoryState::Nothing => {
                let file = CampaignFile {
                    version: VERSION,
                    current: None,
                    others: Vec::new(),
                };
                (file, true)
            }
        };
        if unwritten {
            // First, because a directory with a campaign file is not examined for it again.
            let (name, content) = layout::IGNORE;
            create_once(&root.join(name), content)?;
        }
        let resumed = file.current.is_some();
        if !resumed && campaign.is_some() {
            file.current = campaign;
            unwritten = true;
        }
        if unwritten {
            file.write(root)?;
        }
        sweep(root);
        let mut store = Store {
            reader: Reader::unchecked(root),
            running: None,
            groups: BTreeMap::new(),
            programs: BTreeMap::new(),
            file,
            resumed,
            stats: None,
            changed: BTreeMap::new(),
            changes: 0,
            _lock: lock,
        };
        store.repair()?;
        Ok(store)
    }

    /// Repairs the output directory after a killed writer: reads all groups, and rewrites each
    /// group's record (`group.json`) that does not match the group's entries.
    fn repair(&mut self) -> Result<(), StoreError> {
        let root = self.reader.root();
        for (kind, major) in group::all(root)? {
            let Some(index) = GroupIndex::read(root, kind, &major)? else {
                continue;
            };
            let path = layout::group_folder(root, kind, &major).join(layout::GROUP);
            let text = json::text_of(&path, &index.record)?;
            if json::bytes(&path)?.as_ref() != Some(&text) {
                atomic::write(&path, &text)?;
            }
            self.groups.insert((kind, major), index);
        }
        self.move_what_never_fails()
    }

    /// Moves to `flaky/` the crashes whose minimization found that they never fail again, in case
    /// an earlier writer was killed before it moved them.
    fn move_what_never_fails(&mut self) -> Result<(), StoreError> {
        for major in group::majors(self.reader.root(), Kind::Crash)? {
            for entry in self.reader.entries(Kind::Crash, &major)? {
                if entry.minimized.is_some_and(|it| it.never_fails()) {
                    self.move_to_flaky(&entry.id)?;
                }
            }
        }
        Ok(())
    }

    /// Returns a reader of this output directory, which does not need the lock.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the content of the output directory's campaign file (`ddfuzz.json`), as this writer
    /// holds it in memory.
    pub fn campaigns(&self) -> &CampaignFile {
        &self.file
    }

    /// Returns the number of changes of groups since the directory was opened, and the groups that
    /// have changed after the change with the number `since` (a number that an earlier call
    /// returned, or 0), each as kind and major key (12 hex digits). A change is that an entry of a
    /// group was stored, changed or moved.
    pub fn changed_since(&self, since: u64) -> (u64, Vec<(Kind, String)>) {
        let groups = self.changed.iter().filter(|(_, at)| **at > since);
        (
            self.changes,
            groups.map(|(group, _)| group.clone()).collect(),
        )
    }

    /// Counts a change of a group (one of its entries was stored, changed or moved), for
    /// [`Store::changed_since`].
    pub(super) fn note_change(&mut self, group: (Kind, String)) {
        self.changes += 1;
        self.changed.insert(group, self.changes);
    }

    /// Returns whether the output directory already had a campaign when it was opened.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Replaces the output directory's campaign by a new one. The findings of the earlier campaign
    /// stay; the checkpoint of the earlier campaign is ignored from now on. The new campaign takes
    /// over the record of the last build of its target, with which the groups found so far have
    /// crashed or were checked.
    pub fn begin(&mut self, mut campaign: Campaign) -> Result<(), StoreError> {
        let mut file = self.file.clone();
        let builds = (campaign.target.as_ref()).and_then(|now| file.builds(now));
        campaign.builds = builds.and_then(|mut all| all.pop()).into_iter().collect();
        if let Some(earlier) = file.current.replace(campaign) {
            file.take(earlier);
        }
        self.set_campaigns(file)
    }

    /// Adds a campaign without a checkpoint, such as a triage, to the output directory. The
    /// directory's own campaign stays the one that `--resume` continues.
    pub fn add_campaign(&mut self, campaign: Campaign) -> Result<(), StoreError> {
        let mut file = self.file.clone();
        file.take(campaign);
        self.set_campaigns(file)
    }

    /// Returns the id of the campaign under which a command that resumes no campaign stores its
    /// crashes: an existing campaign without a seed on the same target as `fresh`, such as that of
    /// an earlier triage; if there is none, `fresh` itself, which is added to the output directory.
    /// The directory's own campaign stays the one that `--resume` continues.
    pub fn join_campaign(&mut self, fresh: Campaign) -> Result<String, StoreError> {
        let now = fresh.target.as_ref();
        // Only campaigns that are resumed have a seed.
        let joins = |one: &&Campaign| one.seed.is_none() && now.is_some_and(|now| one.is_of(now));
        if let Some(known) = self.file.all().find(joins) {
            return Ok(known.id.clone());
        }
        let id = fresh.id.clone();
        self.add_campaign(fresh)?;
        Ok(id)
    }

    /// Sets the hash of the program's build that runs from now on, for a call of ddfuzz that stores
    /// crashes without checking the groups with this build first. If it is not the last recorded
    /// build, a group whose crash occurs again is recorded as one to check again, not as failing
    /// with the last recorded build.
    pub fn set_running_build(&mut self, blake3: &str) {
        self.running = Some(blake3.to_owned());
    }

    /// Records in `ddfuzz.json` that `build` of the program of the target `of` is run from now on.
    /// It is recorded for the directory's own campaign, if this campaign fuzzes the target; else
    /// for the campaign, among those that fuzz the target, with the latest recorded build. If no
    /// campaign fuzzes the target, nothing is recorded.
    ///
    /// If `build` is the last build that the campaign records, its record is replaced, for example
    /// to add statuses of groups. If it is another one, the time of `build` is set to no earlier
    /// than that of any recorded build, whatever the clock says, so that it comes last. The set of
    /// unchecked groups is replaced in all records of the build.
    pub fn record_build(&mut self, of: &TargetRecord, mut build: Build) -> Result<(), StoreError> {
        let mut file = self.file.clone();
        let all = file.builds(of).unwrap_or_default();
        let is_last = all.last().is_none_or(|last| last.blake3 == build.blake3);
        if let Some(latest) = all.into_iter().map(|one| one.seen).max()
            && !is_last
        {
            build.seen = build.seen.max(latest);
        }
        file.set_unchecked(of, &build);
        if let Some(campaign) = file.recorder_of_builds(of) {
            match campaign.builds.last_mut() {
                Some(last) if last.blake3 == build.blake3 => *last = build,
                _ => campaign.builds.push(build),
            }
        }
        self.set_campaigns(file)
    }

    pub(super) fn set_campaigns(&mut self, file: CampaignFile) -> Result<(), StoreError> {
        if file != self.file {
            file.write(self.reader.root())?;
            self.file = file;
        }
        Ok(())
    }

    /// Saves the campaign's checkpoint (`state.json`), which [`Reader::load_state`] reads. Fails if
    /// the file cannot be written; the previous checkpoint stays.
    pub fn save_state<T: Serialize>(&self, state: &T) -> Result<(), StoreError> {
        let campaign = self.file.current.as_ref();
        let saved = State {
            campaign: campaign
                .map(|current| current.id.clone())
                .unwrap_or_default(),
            state,
        };
        json::write(&self.reader.root().join(layout::STATE), &saved)
    }

    /// Appends a line to the campaign's statistics (`stats.jsonl`).
    pub fn append_stats<T: Serialize>(&mut self, line: &T) -> Result<(), StoreError> {
        let path = self.reader.root().join(layout::STATS);
        let text = json::line_of(&path, line)?;
        let mut stats = match self.stats.take() {
            Some(stats) => stats,
            None => Appender::open(&path)?,
        };
        let answer = stats.append(&text);
        self.stats = Some(stats);
        Ok(answer.map(drop)?)
    }

    /// Writes which code of an unmodified program the campaign has reached (`code.json`).
    pub fn write_code(&mut self, code: &CodeCoverage) -> Result<(), StoreError> {
        json::write(&self.reader.root().join(layout::REACHED_CODE), code)
    }

    /// Adds an input to the campaign's corpus and returns the path of its file.
    pub fn add_to_corpus(&mut self, input: &[u8]) -> Result<PathBuf, StoreError> {
        let folder = self.reader.root().join(layout::CORPUS);
        let path = folder.join(hash_of(input));
        if !path.is_file() {
            folder::create_all(&folder)?;
            atomic::write(&path, input)?;
        }
        Ok(path)
    }

    /// Adds an input to the campaign's corpus like [`Store::add_to_corpus`], but does not wait
    /// until it is on the storage device; returns true if the input is new in the corpus. A power
    /// cut may leave a damaged file, which is replaced if its length is wrong.
    pub fn add_to_corpus_unsynced(&mut self, input: &[u8]) -> Result<bool, StoreError> {
        let folder = self.reader.root().join(layout::CORPUS);
        let path = folder.join(hash_of(input));
        let known = path
            .metadata()
            .is_ok_and(|known| known.len() == input.len() as u64);
        if !known {
            folder::create_all(&folder)?;
            atomic::write_unsynced(&path, input)?;
        }
        Ok(!known)
    }

    /// Installs a bundled program as `bin/HASH/NAME` for the `reproduce.sh` scripts, and returns
    /// its path. `HASH` is the hash of the program, so that a later version does not change what
    /// older scripts run. Fails if `name` is not a plain file name, or the file cannot be written.
    pub fn install_program(&mut self, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let root = self.reader.root();
        let mut parts = Path::new(name).components();
        if !matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(part)), None) if part == OsStr::new(name)
        ) {
            return Err(StoreError::Unwritable {
                path: root.join(layout::PROGRAMS),
                why: format!("{name:?} is not the name of a file"),
            });
        }
        let relative = Path::new(layout::PROGRAMS).join(hash_of(bytes)).join(name);
        let path = root.join(&relative);
        if !path.is_file() {
            folder::create_all(folder::parent(&path))?;
            atomic::write_program(&path, bytes)?;
        }
        self.programs.insert(name.to_owned(), relative);
        Ok(path)
    }
}

pub(super) fn write_group(root: &Path, kind: Kind, index: &GroupIndex) -> Result<(), StoreError> {
    let folder = layout::group_folder(root, kind, &index.record.major.short());
    json::write(&folder.join(layout::GROUP), &index.record)
}

/// Creates a file with this content, unless it exists; an existing file must have the same content.
pub(super) fn create_once(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    match atomic::create_new(path, bytes) {
        Err(error) if error.is_existing() => Ok(()),
        answer => answer,
    }
}

/// Removes all temporary files below `root`, whose lock the caller holds. Symbolic links are not
/// followed; errors are ignored, because leftovers do no harm.
pub(super) fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sweep(&entry.path()),
            Ok(kind) if kind.is_file() && atomic::is_temporary(&entry.file_name()) => {
                let _ = fs::remove_file(entry.path());
            }
            _ => {}
        }
    }
}
