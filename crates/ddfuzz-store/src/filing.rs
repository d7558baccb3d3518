//! Files a crash, and updates what its minimization and later findings change.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::group::{self, EntryRank, GroupIndex};
use crate::writer::{create_once, write_group};
use crate::{Entry, EntryId, Kind, Minimized, Store, StoreError, json, layout, reproduce};
use ddfuzz_exec::{Program, Target};
use ddfuzz_model::files::{FileError, atomic, folder};
use ddfuzz_triage::{Crash, Found, Key};

/// Where a crash was filed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    /// The entry.
    pub id: EntryId,
    /// Its folder.
    pub path: PathBuf,
    /// Whether it is the first of its major key.
    pub new_major: bool,
    /// Whether it is the first of its minor key.
    pub new_minor: bool,
    /// Whether this very input was filed with these keys before.
    pub already: bool,
}

impl Store {
    /// Files a crash: the input first, then the record, both synced, then the group's record.
    /// [`Crash::found`] should be set. Filing the same input with the same keys again changes
    /// nothing but the record, and that only where this finding names the input better: a run
    /// before a slip, a lower run before a higher one.
    ///
    /// # Errors
    /// When something cannot be written. Filing again then goes on where this call stopped, and
    /// answers as this call would have.
    pub fn file(&mut self, kind: Kind, crash: &Crash, input: &[u8]) -> Result<Filed, StoreError> {
        let crash = writable(crash);
        let id = EntryId::of(kind, &crash.keys, input);
        let path = id.folder(self.reader.root());
        let group = self.groups.get(&(kind, id.major().to_owned()));
        let held = match group {
            // Also where it was known: someone may have tidied up meanwhile.
            Some(group) if group.has(&id) => self.reader.entry(&id)?,
            _ => None,
        };
        let filed = Filed {
            new_major: !group.is_some_and(GroupIndex::has_entries),
            new_minor: !group.is_some_and(|group| group.minors.contains_key(id.minor())),
            already: held.is_some(),
            path,
            id,
        };
        if let Some(held) = held {
            if order(crash.found.as_ref(), held.crash.found.as_ref()).is_lt() {
                json::write(&filed.path.join(layout::CRASH), &*crash)?;
            }
            return Ok(filed);
        }
        folder::create_all(&filed.path)?;
        create_once(&filed.path.join(layout::ORIGINAL), input)?;
        json::write(&filed.path.join(layout::CRASH), &*crash)?;
        let entry = self.known(&filed.id)?;
        self.enter(&entry)?;
        Ok(filed)
    }

    /// The entry, which must be complete on disk.
    fn known(&self, id: &EntryId) -> Result<Entry, StoreError> {
        (self.reader.entry(id)?).ok_or_else(|| StoreError::NoSuch {
            path: id.folder(self.reader.root()),
        })
    }

    /// Takes a complete entry, or its new reproducer or outcome, into its group, and writes the
    /// group's record where that changes it. Without the record written nothing is taken in.
    fn enter(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let root = self.reader.root();
        let place = (entry.id.kind(), entry.id.major().to_owned());
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

    /// Sets how many runs of `campaign` ended in the group of this major key.
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] where there is no such group; when the record cannot be written.
    pub fn set_seen(
        &mut self,
        kind: Kind,
        major: Key,
        campaign: &str,
        runs: u64,
    ) -> Result<(), StoreError> {
        let root = self.reader.root();
        let Some(index) = self.groups.get_mut(&(kind, major.short())) else {
            return Err(StoreError::NoSuch {
                path: layout::group_folder(root, kind, &major.short()),
            });
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

    /// Replaces an entry's reproducer.
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] where the entry was not filed; when the file cannot be written, and
    /// then the reproducer before stands.
    pub fn write_minimized(&mut self, id: &EntryId, bytes: &[u8]) -> Result<(), StoreError> {
        let entry = self.known(id)?;
        atomic::write(&entry.folder.join(layout::MINIMIZED), bytes)?;
        self.enter(&entry)
    }

    /// Renames the logs and reproducers of all unfinished minimizations to names with the first 16
    /// characters of `build`, so that the minimizations start again.
    ///
    /// # Errors
    /// When something cannot be read or renamed.
    pub fn set_unfinished_aside(&mut self, build: &str) -> Result<(), StoreError> {
        let ending: String = build.chars().take(16).collect();
        for kind in Kind::ALL {
            for group in self.reader.groups(kind)? {
                for entry in self.reader.entries(kind, &group.record.major.short())? {
                    if entry.minimized.is_some() || !entry.log().exists() {
                        continue;
                    }
                    for name in [layout::MINIMIZED, layout::LOG] {
                        let (from, to) = (entry.folder.join(name), format!("{name}.{ending}"));
                        if from.exists() {
                            std::fs::rename(&from, entry.folder.join(to))
                                .map_err(FileError::at("rename", &from))?;
                        }
                    }
                    folder::sync(&entry.folder)?;
                    self.enter(&self.known(&entry.id)?)?;
                }
            }
        }
        Ok(())
    }

    /// Records how an entry's minimization ended; the reproducer and the log must stand by then.
    /// What a harness makes of the reproducer is written beside it first.
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] where the entry was not filed; when the file cannot be written.
    pub fn write_outcome(&mut self, id: &EntryId, outcome: &Minimized) -> Result<(), StoreError> {
        let entry = self.known(id)?;
        let debug = entry.folder.join(layout::DEBUG);
        match &outcome.debug {
            Some(text) => atomic::write(&debug, format!("{text}\n").as_bytes())?,
            // Of an earlier reproducer.
            None => remove(&debug)?,
        }
        json::write(&entry.folder.join(layout::OUTCOME), outcome)?;
        let minimized = Some(outcome.clone());
        self.enter(&Entry { minimized, ..entry })?;
        match id.kind() == Kind::Crash && outcome.never_fails() {
            true => self.move_to_flaky(id),
            false => Ok(()),
        }
    }

    /// Moves the entry of a crash that did not come again to `flaky/`; its group moves with its
    /// last entry.
    pub(super) fn move_to_flaky(&mut self, id: &EntryId) -> Result<(), StoreError> {
        let root = self.reader.root().to_owned();
        let (from, to) = (id.folder(&root), id.among(Kind::Flaky).folder(&root));
        let major = id.major().to_owned();
        let group = layout::group_folder(&root, Kind::Crash, &major);
        let is_last = group::entry_ids(&root, Kind::Crash, &major)?.len() == 1;
        let left = self.groups.remove(&(Kind::Crash, major.clone()));
        if is_last {
            remove(&group.join(layout::GROUP))?;
        }
        folder::create_all(folder::parent(&to))?;
        if to.exists() {
            // The same input, with less known of it.
            std::fs::remove_dir_all(&to).map_err(FileError::at("remove", &to))?;
        }
        std::fs::rename(&from, &to).map_err(FileError::at("rename", &from))?;
        folder::sync(folder::parent(&to))?;
        // Folders that hold nothing more.
        let _ =
            std::fs::remove_dir(folder::parent(&from)).and_then(|()| std::fs::remove_dir(&group));
        if let Some(index) = GroupIndex::read(&root, Kind::Crash, &major)? {
            write_group(&root, Kind::Crash, &index)?;
            self.groups.insert((Kind::Crash, major.clone()), index);
        }
        if let Some(mut index) = GroupIndex::read(&root, Kind::Flaky, &major)? {
            if let Some(left) = left.filter(|_| is_last) {
                index.record.join(left.record);
            }
            write_group(&root, Kind::Flaky, &index)?;
            self.groups.insert((Kind::Flaky, major), index);
        }
        Ok(())
    }

    /// Writes the script that shows an entry's crash without ddfuzz ([`super::script`]), and
    /// gives its file.
    ///
    /// # Errors
    /// [`StoreError::NotInstalled`] for a bundled target before [`Store::install_program`];
    /// [`StoreError::NoSuch`] where the entry was not filed; when the file cannot be written.
    pub fn write_reproduce(&self, id: &EntryId, target: &Target) -> Result<PathBuf, StoreError> {
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
        let entry = self.known(id)?;
        let path = entry.script();
        let root = self.reader.root();
        let text = reproduce::script(id, &entry.crash.class, target, &program, root);
        atomic::write_program(&path, &text)?;
        Ok(path)
    }
}

/// Removes a file, where it is there.
fn remove(path: &Path) -> Result<(), FileError> {
    match path.exists() {
        true => std::fs::remove_file(path).map_err(FileError::at("remove", path)),
        false => Ok(()),
    }
}

/// Orders origins by how well they name the input: a run of a campaign, by its number, before a
/// slip (one with a line in the log before one without), before a file, before nothing. The record
/// of the least one stays, so that the record does not depend on the order in which workers file
/// the same input.
pub(super) fn order(a: Option<&Found>, b: Option<&Found>) -> Ordering {
    let rank = |found: Option<&Found>| match found {
        Some(Found::Run { .. }) => 0,
        Some(Found::Slip { .. }) => 1,
        Some(Found::File { .. }) => 2,
        None => 3,
    };
    match (a, b) {
        (
            Some(Found::Run {
                campaign: ca,
                run: a,
                input: ia,
            }),
            Some(Found::Run {
                campaign: cb,
                run: b,
                input: ib,
            }),
        ) => (a, ca, ia).cmp(&(b, cb, ib)),
        (Some(Found::Slip { of: oa, test: a }), Some(Found::Slip { of: ob, test: b })) => {
            (oa, a.is_none(), a).cmp(&(ob, b.is_none(), b))
        }
        (Some(Found::File { path: a }), Some(Found::File { path: b })) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The crash as it can be written: a path that is not UTF-8 has no form in JSON, and losing the
/// crash over the name of its file would be worse than a name with a replacement character.
pub(super) fn writable(crash: &Crash) -> Cow<'_, Crash> {
    match &crash.found {
        Some(Found::File { path }) if path.to_str().is_none() => {
            let path = path.to_string_lossy().into_owned().into();
            Cow::Owned(Crash {
                found: Some(Found::File { path }),
                ..crash.clone()
            })
        }
        _ => Cow::Borrowed(crash),
    }
}
