//! Reading an output directory, also while its writer is at work.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::campaign::{self, DirectoryState};
use crate::group::{self, GroupIndex};
use crate::{
    CampaignFile, Entry, EntryId, Group, Kind, KnownGroups, StoreError, hash_of, json, layout,
};
use ddfuzz_model::files::FileError;

/// The checkpoint with its owner, so that a later campaign never goes on with an earlier one's.
#[derive(Serialize, Deserialize)]
pub(super) struct State<T> {
    pub(super) campaign: String,
    pub(super) state: T,
}

/// An output directory to be read. Nothing is locked or changed; each call reads the files as
/// they stand, temporary and incomplete ones left out.
#[derive(Clone, Debug)]
pub struct Reader {
    root: PathBuf,
}

impl Reader {
    /// Opens the directory.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::NotOurs`], [`StoreError::OtherVersion`], or a
    /// damaged campaign file.
    pub fn open(root: &Path) -> Result<Reader, StoreError> {
        let nothing = || StoreError::NothingToRead {
            path: root.to_owned(),
            near: campaign::near(root),
        };
        let found = campaign::examine(root).map_err(|error| match error {
            StoreError::NotOurs { .. } => nothing(),
            other => other,
        });
        match found? {
            DirectoryState::Ours(_) => Ok(Reader::at(root)),
            DirectoryState::Nothing if root.is_dir() => Err(nothing()),
            DirectoryState::Nothing => Err(StoreError::Missing {
                path: root.to_owned(),
            }),
        }
    }

    /// A reader of a directory that is known to be an output directory.
    pub(super) fn at(root: &Path) -> Reader {
        Reader {
            root: root.to_owned(),
        }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The campaign file of the directory.
    ///
    /// # Errors
    /// When the campaign file is gone or damaged.
    pub fn campaigns(&self) -> Result<CampaignFile, StoreError> {
        CampaignFile::read(&self.root)?.ok_or_else(|| StoreError::NotOurs {
            path: self.root.clone(),
        })
    }

    /// The groups of one kind, by major key.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn groups(&self, kind: Kind) -> Result<Vec<Group>, StoreError> {
        let mut groups = Vec::new();
        for major in group::majors(&self.root, kind)? {
            groups.extend(self.group(kind, &major)?);
        }
        Ok(groups)
    }

    /// The group of this name (12 hex digits); `None` where there is none with a complete entry.
    /// Its record is made from its entries, so it is right also when its writer was killed
    /// between an entry and the record.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn group(&self, kind: Kind, major: &str) -> Result<Option<Group>, StoreError> {
        let index = GroupIndex::read(&self.root, kind, major)?;
        Ok(index.map(|index| Group {
            kind,
            folder: layout::group_folder(&self.root, kind, major),
            record: index.record,
        }))
    }

    /// The groups of all kinds whose major key begins with these hex digits.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn groups_named(&self, beginning: &str) -> Result<Vec<Group>, StoreError> {
        let mut groups = Vec::new();
        for kind in Kind::ALL {
            for major in group::majors(&self.root, kind)? {
                if major.starts_with(beginning) || beginning.starts_with(&major) {
                    groups.extend(self.group(kind, &major)?);
                }
            }
        }
        groups.retain(|group| group.record.major.to_string().starts_with(beginning));
        Ok(groups)
    }

    /// The complete entries of a group, by minor key and HASH.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn entries(&self, kind: Kind, major: &str) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        for id in group::entry_ids(&self.root, kind, major)? {
            entries.extend(Entry::read(&self.root, &id)?);
        }
        Ok(entries)
    }

    /// One entry; `None` where it is not there or not complete.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn entry(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        Entry::read(&self.root, id)
    }

    /// The entries that have an input without triage's record, because their writer was killed
    /// in between. Triaging the file `original` in the entry's [`EntryId::folder`] and filing it
    /// again completes them.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn incomplete(&self) -> Result<Vec<EntryId>, StoreError> {
        let mut ids = Vec::new();
        for kind in Kind::ALL {
            for major in group::majors(&self.root, kind)? {
                for id in group::entry_ids(&self.root, kind, &major)? {
                    let original = id.folder(&self.root).join(layout::ORIGINAL);
                    if original.is_file() && Entry::read(&self.root, &id)?.is_none() {
                        ids.push(id);
                    }
                }
            }
        }
        Ok(ids)
    }

    /// Whether a representative of this group has a stable key that is muted.
    ///
    /// # Errors
    /// When a file cannot be read.
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

    /// All inputs as found, those of incomplete entries included, by kind, major key, minor key
    /// and HASH.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn originals(&self) -> Result<Vec<EntryId>, StoreError> {
        let mut ids = Vec::new();
        for kind in Kind::ALL {
            for major in group::majors(&self.root, kind)? {
                ids.extend(group::entry_ids(&self.root, kind, &major)?);
            }
        }
        ids.retain(|id| id.original(&self.root).is_file());
        Ok(ids)
    }

    /// The files of the corpus, by name.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn corpus(&self) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.root.join(layout::CORPUS);
        let names = sorted_names(&folder, layout::is_hash_name)?;
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    /// Whether these known groups have the group of this name (12 hex digits), by its key or by
    /// names. A group that cannot be read is not muted, and is no error.
    pub fn is_muted(&self, kind: Kind, major: &str, known: &KnownGroups) -> bool {
        known.has_major(major)
            || known.has_stable_keys()
                && self
                    .is_muted_by_stable_key(kind, major, known)
                    .unwrap_or(false)
    }

    /// Whether the corpus holds this input.
    pub fn keeps(&self, input: &[u8]) -> bool {
        let folder = self.root.join(layout::CORPUS);
        folder.join(hash_of(input)).is_file()
    }

    /// The checkpoint of the campaign that the directory belongs to; `None` where it has saved
    /// none.
    ///
    /// # Errors
    /// When the file cannot be read, or holds something else than a `T`.
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

/// The names in `folder` that `fits` accepts, ascending; none where there is no such folder. Names
/// that are not UTF-8 do not belong to the layout and are left out.
pub(super) fn sorted_names(
    folder: &Path,
    fits: impl Fn(&str) -> bool,
) -> Result<Vec<String>, StoreError> {
    let failed = FileError::at("list", folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A file in the folder's place is not of the layout either.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
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
