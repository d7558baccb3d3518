//! The one writer of an output directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::campaign::{self, DirectoryState};
use crate::group::{self, GroupIndex};
use crate::reader::State;
use crate::{Build, Campaign, CampaignFile, Kind, Reader, StoreError, hash_of, json, layout};
use ddfuzz_model::files::{Appender, FileError, Lock, atomic, folder};

/// An output directory that this process alone writes to.
///
/// Whatever a method has written when it returns survives a power cut, statistics aside. After
/// an error (a full disk, say) everything stored before stands, and the call may be made again.
#[derive(Debug)]
pub struct Store {
    pub(super) reader: Reader,
    pub(super) groups: BTreeMap<(Kind, String), GroupIndex>,
    pub(super) programs: BTreeMap<String, PathBuf>,
    file: CampaignFile,
    resumed: bool,
    stats: Option<Appender>,
    /// Held until the store is dropped.
    _lock: Lock,
}

impl Store {
    /// Opens the directory for writing. A missing or empty one is made to belong to `campaign`;
    /// one that belongs to a campaign already keeps it ([`Store::resumed`] tells). What a killed
    /// writer left unfinished is repaired.
    ///
    /// # Errors
    /// [`StoreError::NotOurs`], [`StoreError::OtherVersion`], [`StoreError::InUse`], a damaged
    /// campaign file; nothing in the directory is changed then.
    pub fn create_or_resume(root: &Path, campaign: Campaign) -> Result<Store, StoreError> {
        Store::open(root, Some(campaign))
    }

    /// Opens the directory for reading ([`Reader::open`]).
    ///
    /// # Errors
    /// Those of [`Reader::open`].
    pub fn open_read(root: &Path) -> Result<Reader, StoreError> {
        Reader::open(root)
    }

    pub(super) fn open(root: &Path, campaign: Option<Campaign>) -> Result<Store, StoreError> {
        campaign::examine(root)?;
        folder::create_all(root)?;
        let lock = Lock::acquire(&root.join(layout::LOCK))
            .map_err(|error| StoreError::of_lock(root, error))?;
        // Again, now that nobody else can change it.
        let (mut file, mut unwritten) = match campaign::examine(root)? {
            DirectoryState::Ours(file) => (*file, false),
            DirectoryState::Nothing => (CampaignFile::of(None), true),
        };
        let is_new = unwritten;
        let resumed = file.current.is_some();
        if !resumed && campaign.is_some() {
            file.current = campaign;
            unwritten = true;
        }
        if unwritten {
            file.write(root)?;
        }
        if is_new {
            let (name, content) = layout::IGNORE;
            create_once(&root.join(name), content)?;
        }
        sweep(root);
        let mut store = Store {
            reader: Reader::at(root),
            groups: BTreeMap::new(),
            programs: BTreeMap::new(),
            file,
            resumed,
            stats: None,
            _lock: lock,
        };
        store.repair()?;
        Ok(store)
    }

    /// Reads all groups and writes the records that do not say what their entries say.
    fn repair(&mut self) -> Result<(), StoreError> {
        let root = self.reader.root();
        for kind in Kind::ALL {
            for major in group::majors(root, kind)? {
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
        }
        self.move_what_never_fails()
    }

    /// Moves the crashes that do not come again where a killed writer has not.
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

    /// The same directory for reading.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The campaign file of the directory.
    pub fn campaigns(&self) -> &CampaignFile {
        &self.file
    }

    /// Whether the directory belonged to a campaign when it was opened.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Makes the directory belong to a new campaign; the findings of the earlier one stay, its
    /// checkpoint counts no more.
    ///
    /// # Errors
    /// When the campaign file cannot be written.
    pub fn begin(&mut self, campaign: Campaign) -> Result<(), StoreError> {
        let mut file = self.file.clone();
        if let Some(earlier) = file.current.replace(campaign) {
            file.take(earlier);
        }
        self.set_campaigns(file)
    }

    /// Records the build of the program that the directory's campaign runs from here on, or what
    /// has become of groups with the one it runs.
    ///
    /// # Errors
    /// When the campaign file cannot be written.
    pub fn record_build(&mut self, build: Build) -> Result<(), StoreError> {
        let mut file = self.file.clone();
        if let Some(campaign) = &mut file.current {
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

    /// Saves the campaign's checkpoint, which [`Reader::load_state`] reads.
    ///
    /// # Errors
    /// When it cannot be written; the earlier checkpoint then stands.
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

    /// Appends a line to the campaign's statistics.
    ///
    /// # Errors
    /// When it cannot be written whole.
    pub fn append_stats<T: Serialize>(&mut self, line: &T) -> Result<(), StoreError> {
        let path = self.reader.root().join(layout::STATS);
        let text = serde_json::to_vec(line).map_err(|error| StoreError::Unwritable {
            path: path.clone(),
            why: error.to_string(),
        })?;
        let mut stats = match self.stats.take() {
            Some(stats) => stats,
            None => Appender::open(&path)?,
        };
        let answer = stats.append(&text);
        self.stats = Some(stats);
        Ok(answer?)
    }

    /// Adds an input to the corpus, and returns its file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_to_corpus(&mut self, input: &[u8]) -> Result<PathBuf, StoreError> {
        let folder = self.reader.root().join(layout::CORPUS);
        let path = folder.join(hash_of(input));
        if !path.is_file() {
            folder::create_all(&folder)?;
            atomic::write(&path, input)?;
        }
        Ok(path)
    }

    /// Installs a bundled program for the reproducer scripts, as `bin/HASH/NAME`, and returns its
    /// file. The hash of its content is in the path so that another version of it, installed or
    /// merged later, never changes what an older script runs.
    ///
    /// # Errors
    /// When `name` is not a plain file name, or the file cannot be written.
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

/// Writes the record of a group.
pub(super) fn write_group(root: &Path, kind: Kind, index: &GroupIndex) -> Result<(), StoreError> {
    let folder = layout::group_folder(root, kind, &index.record.major.short());
    json::write(&folder.join(layout::GROUP), &index.record)
}

/// Creates a file that may be there already with the same content.
pub(super) fn create_once(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    match atomic::create_new(path, bytes) {
        Err(error) if error.is_existing() => Ok(()),
        answer => answer,
    }
}

/// Removes all temporary files below `root`, which the caller has locked. Links are not followed.
/// What cannot be listed or removed stays, which does no harm.
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
