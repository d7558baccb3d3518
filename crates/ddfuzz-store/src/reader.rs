//! Reading an output directory, also while another process writes to it.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::campaign::{self, DirectoryState};
use crate::code::CodeCoverage;
use crate::group::{self, GroupIndex};
use crate::{
    CampaignFile, Entry, EntryId, Group, Kind, KnownGroups, LastBuilds, Minimized, StoreError,
    json, layout,
};
use ddfuzz_model::files::FileError;

/// A campaign's checkpoint as stored in `state.json`, with the id of the campaign; a new campaign
/// ignores a checkpoint with another id.
#[derive(Serialize, Deserialize)]
pub(super) struct State<T> {
    pub(super) campaign: String,
    pub(super) state: T,
}

/// A reader of an output directory. It locks and changes nothing. Each call reads the files anew
/// and skips temporary files and incomplete entries (inputs without a crash record).
#[derive(Clone, Debug)]
pub struct Reader {
    root: PathBuf,
}

impl Reader {
    /// Opens an output directory for reading. Errors: [`StoreError::Missing`],
    /// [`StoreError::NothingToRead`], [`StoreError::OtherVersion`], or a damaged campaign file.
    pub fn open(root: &Path) -> Result<Reader, StoreError> {
        let nothing = || StoreError::NothingToRead {
            path: root.to_owned(),
            near: campaign::near(root),
        };
        let found = campaign::examine(root).map_err(|error| match error {
            StoreError::NotOurs(_) => nothing(),
            other => other,
        });
        match found? {
            DirectoryState::Ours(_) => Ok(Reader::unchecked(root)),
            DirectoryState::Nothing if root.is_dir() => Err(nothing()),
            DirectoryState::Nothing => Err(StoreError::Missing(root.to_owned())),
        }
    }

    /// Makes a reader of the output directory `root` without checking that it is one.
    pub(super) fn unchecked(root: &Path) -> Reader {
        Reader {
            root: root.to_owned(),
        }
    }

    /// Returns the path of the output directory that this reader reads.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the campaign file (`ddfuzz.json`). Fails if the file is missing or damaged.
    pub fn campaigns(&self) -> Result<CampaignFile, StoreError> {
        CampaignFile::read(&self.root)?.ok_or_else(|| StoreError::NotOurs(self.root.clone()))
    }

    /// Reads all groups (bugs) of one kind (crash, flaky crash, hang or out of memory), sorted by
    /// major key.
    pub fn groups(&self, kind: Kind) -> Result<Vec<Group>, StoreError> {
        let mut groups = Vec::new();
        for major in group::majors(&self.root, kind)? {
            groups.extend(self.group(kind, &major)?);
        }
        Ok(groups)
    }

    /// Reads the group (bug) with this major key (12 hex digits); `None` if it has neither a record
    /// nor a complete entry (input with crash record). The record is recomputed from the entries,
    /// so it is right even if a writer was killed before it updated `group.json`.
    pub fn group(&self, kind: Kind, major: &str) -> Result<Option<Group>, StoreError> {
        let index = GroupIndex::read(&self.root, kind, major)?;
        Ok(index.map(|index| Group {
            kind,
            folder: layout::group_folder(&self.root, kind, major),
            record: index.record,
        }))
    }

    /// Reads the groups of all kinds (crash, hang, …) whose major key starts with the given hex
    /// digits.
    pub fn groups_named(&self, beginning: &str) -> Result<Vec<Group>, StoreError> {
        let mut groups = Vec::new();
        for (kind, major) in group::all(&self.root)? {
            if major.starts_with(beginning) || beginning.starts_with(&major) {
                groups.extend(self.group(kind, &major)?);
            }
        }
        groups.retain(|group| group.record.major.to_string().starts_with(beginning));
        Ok(groups)
    }

    /// Reads the complete entries (inputs with their crash records) of a group, sorted by minor key
    /// and hash.
    pub fn entries(&self, kind: Kind, major: &str) -> Result<Vec<Entry>, StoreError> {
        group::read_entries(&self.root, kind, major)
    }

    /// Reads one entry (a stored input with its crash record); `None` if the input is missing, or
    /// the record is missing or damaged.
    pub fn entry(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        Entry::read(&self.root, id)
    }

    /// Lists the entries that have an input but no crash record, because the writer was killed
    /// after it had written the input. Triaging the input again and storing it completes such an
    /// entry.
    pub fn incomplete(&self) -> Result<Vec<EntryId>, StoreError> {
        let mut incomplete = Vec::new();
        for id in self.originals()? {
            if Entry::read(&self.root, &id)?.is_none() {
                incomplete.push(id);
            }
        }
        Ok(incomplete)
    }

    /// Lists the stored inputs whose reproducer (the file `minimized`) has lost its content, so
    /// that the input as it was found is used instead.
    pub fn lost_reproducers(&self) -> Result<Vec<EntryId>, StoreError> {
        let mut ids = self.originals()?;
        ids.retain(|id| group::has_lost_reproducer(&id.folder(&self.root)));
        Ok(ids)
    }

    /// Lists the groups that have a record or an input, as found or minimized, but no complete
    /// entry: in each of their entries the input as found is missing, or the crash record is
    /// missing or damaged. Such groups cannot be shown, minimized or checked.
    pub fn incomplete_groups(&self) -> Result<Vec<IncompleteGroup>, StoreError> {
        let mut incomplete = Vec::new();
        for (kind, major) in group::all(&self.root)? {
            let group = self.incomplete_group(kind, &major)?;
            let record = layout::group_folder(&self.root, kind, &major).join(layout::GROUP);
            let is_used = group.has_originals || group.has_reproducers || record.is_file();
            let mut ids = group::entry_ids(&self.root, kind, &major)?.into_iter();
            let is_complete = ids.try_fold(false, |is_complete, id| {
                Ok::<_, StoreError>(is_complete || Entry::read(&self.root, &id)?.is_some())
            })?;
            if is_used && !is_complete {
                incomplete.push(group);
            }
        }
        Ok(incomplete)
    }

    /// Returns which files still exist in a group that has no complete entry: inputs as they were
    /// found, or only reproducers.
    pub fn incomplete_group(&self, kind: Kind, major: &str) -> Result<IncompleteGroup, StoreError> {
        let mut group = IncompleteGroup {
            kind,
            major: major.to_owned(),
            has_originals: false,
            has_reproducers: false,
        };
        for id in group::entry_ids(&self.root, kind, major)? {
            match id.original(&self.root).is_file() {
                true => group.has_originals = true,
                false => {
                    let reproducer = id.folder(&self.root).join(layout::MINIMIZED);
                    group.has_reproducers |= reproducer.is_file();
                }
            }
        }
        Ok(group)
    }

    /// Returns true if the group is muted (left out of reports) by a stable key (a hash of function
    /// names): by that of the input that represents one of its minor keys. False if no such key is
    /// muted, or if the group does not exist.
    pub fn is_muted_by_stable_key(
        &self,
        kind: Kind,
        major: &str,
        known: &KnownGroups,
    ) -> Result<bool, StoreError> {
        let Some(group) = self.group(kind, major)? else {
            return Ok(false);
        };
        for id in group.representatives() {
            let entry = self.entry(&id)?;
            if entry.is_some_and(|entry| known.has_names(&entry.crash)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists the ids of all stored inputs, also of those without a crash record, sorted by kind,
    /// keys and hash.
    pub fn originals(&self) -> Result<Vec<EntryId>, StoreError> {
        let mut ids = Vec::new();
        for (kind, major) in group::all(&self.root)? {
            ids.extend(group::entry_ids(&self.root, kind, &major)?);
        }
        ids.retain(|id| id.original(&self.root).is_file());
        Ok(ids)
    }

    /// Lists the paths of the inputs in the campaign's corpus, sorted by name.
    pub fn corpus(&self) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.root.join(layout::CORPUS);
        let names = sorted_names(&folder, layout::is_hash_name)?;
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    /// Returns whether the group with this major key (12 hex digits) is muted (left out of
    /// reports), by its major key or by a stable key (made of function names). If the group cannot
    /// be read, only the major key counts.
    pub fn is_muted(&self, kind: Kind, major: &str, known: &KnownGroups) -> bool {
        known.has_major(major)
            || known.has_stable_keys()
                && matches!(self.is_muted_by_stable_key(kind, major, known), Ok(true))
    }

    /// Returns the entry that represents a group, chosen among its complete entries (inputs with
    /// their crash records). Entries that failed with the last of `builds` are preferred; then
    /// minimized ones; then those with proved minimality; then the smallest reproducer; then the
    /// largest input as found. `None` if no entry is complete.
    pub fn best_entry(
        &self,
        group: &Group,
        builds: &LastBuilds,
    ) -> Result<Option<Entry>, StoreError> {
        let size = |path: PathBuf| path.metadata().map_or(u64::MAX, |facts| facts.len());
        let rank = |entry: &Entry| {
            let (before, after) = (size(entry.original()), size(entry.reproducer()));
            let unproved = !(entry.minimized.as_ref()).is_some_and(Minimized::is_proved);
            let open = entry.minimized.is_none();
            let id = entry.id.clone();
            (
                builds.doubts(entry),
                open,
                unproved,
                after,
                Reverse(before),
                id,
            )
        };
        let entries = self.entries(group.kind, &group.record.major.short())?;
        Ok(entries.into_iter().min_by_key(rank))
    }

    /// Reads the campaign's statistics (`stats.jsonl`), one JSON object in each line; empty if
    /// there are none.
    pub fn stats(&self) -> Result<Vec<u8>, StoreError> {
        Ok(json::bytes(&self.root.join(layout::STATS))?.unwrap_or_default())
    }

    /// Reads which code of an unmodified program the directory's campaign has reached
    /// (`code.json`); `None` if nothing is recorded. Fails if the file cannot be read or is
    /// damaged.
    pub fn code(&self) -> Result<Option<CodeCoverage>, StoreError> {
        let current = self.campaigns()?.current.map(|campaign| campaign.id);
        let code = json::read::<CodeCoverage>(&self.root.join(layout::REACHED_CODE))?;
        Ok(code.filter(|code| Some(&code.campaign) == current.as_ref()))
    }

    /// Reads the checkpoint (`state.json`) of the directory's campaign; `None` if the campaign has
    /// saved none. Fails if the file cannot be read or is not a `T`.
    pub fn load_state<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let current = self.campaigns()?.current.map(|campaign| campaign.id);
        let path = self.root.join(layout::STATE);
        let Some(saved) = json::read::<State<Value>>(&path)? else {
            return Ok(None);
        };
        if Some(&saved.campaign) != current.as_ref() {
            return Ok(None);
        }
        match serde_json::from_value(saved.state) {
            Ok(state) => Ok(Some(state)),
            Err(error) => Err(StoreError::Damaged {
                path,
                why: error.to_string(),
            }),
        }
    }
}

/// A group without a complete entry (an input with its crash record), and which files of its
/// entries still exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompleteGroup {
    /// Kind of failure that the group's inputs show.
    pub kind: Kind,
    /// Major key of the group, its first 12 hex digits.
    pub major: String,
    /// Whether there are inputs as found (files `original`); their crash records are missing or
    /// damaged.
    pub has_originals: bool,
    /// Whether there are reproducers (files `minimized`) whose inputs as found are missing.
    pub has_reproducers: bool,
}

/// Lists the names of the files and folders in `folder` that `fits` accepts, sorted; an empty list
/// if the folder does not exist. Names that are not UTF-8 are skipped.
pub(super) fn sorted_names(
    folder: &Path,
    fits: impl Fn(&str) -> bool,
) -> Result<Vec<String>, StoreError> {
    let failed = FileError::at("list", folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A file in place of the folder does not belong to the layout.
        Err(error) if json::is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.extend(entry.file_name().into_string().ok().filter(|n| fits(n))),
            Err(error) => return Err(failed(error).into()),
        }
    }
    names.sort();
    Ok(names)
}
