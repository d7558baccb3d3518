//! Paths of a cleanup's files and folders in the output directory, and the manifest that protects
//! the user's files from being replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::measure::{JOURNAL, JOURNAL_OF_FRESH};
use ddfuzz_model::files::atomic::{self, TEMPORARY_PREFIX};
use ddfuzz_model::files::{FileError, OsText};

/// Builds the paths of all files and folders that a corpus cleanup writes into an output directory.
#[derive(Clone, Debug)]
pub struct CleanPaths {
    root: PathBuf,
}

/// Record on disk of the names of the files that the last cleanup has written to the folder of kept
/// files, and of those that a killed cleanup was about to write there. The folder is replaced only
/// if the names of its files are exactly the names of one of these two cleanups.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    written: Vec<Vec<OsText>>,
    /// Device and inode of a folder that is about to replace a corpus (`--in-place`). `None` if no
    /// folder is announced, or the last announced one has replaced its corpus.
    #[serde(default)]
    incoming: Option<Identity>,
    /// The corpora that cleanups have moved to `CORPUS.old` to replace them by kept files, or were
    /// about to move there when they were killed.
    #[serde(default)]
    aside: Vec<ReplacedFolder>,
}

/// A folder that a cleanup has moved aside. It is recognized by its device and inode, and by the
/// time (seconds and nanoseconds) when an entry was last added to it or removed from it; moving the
/// folder changes none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReplacedFolder {
    identity: Identity,
    changed: (i64, i64),
}

impl ReplacedFolder {
    fn of(folder: &Path) -> std::io::Result<ReplacedFolder> {
        let facts = fs::symlink_metadata(folder)?;
        Ok(ReplacedFolder {
            identity: Identity::of(folder)?,
            changed: (facts.mtime(), facts.mtime_nsec()),
        })
    }
}

/// Device and inode of a folder, which do not change when it is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(folder: &Path) -> std::io::Result<Identity> {
        let facts = fs::symlink_metadata(folder)?;
        Ok(Identity {
            device: facts.dev(),
            inode: facts.ino(),
        })
    }
}

impl CleanPaths {
    /// Makes the paths of a cleanup's files in the output directory `root`.
    pub fn of(root: &Path) -> CleanPaths {
        CleanPaths {
            root: root.to_owned(),
        }
    }

    /// Returns the path of the output directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the folder to which a cleanup moves the kept files of the last cleanup,
    /// before it removes them.
    pub fn replaced_corpus(&self) -> PathBuf {
        self.root.join(format!("{TEMPORARY_PREFIX}old-corpus"))
    }

    /// Returns the path of the journal of runs, with the features that each content reaches.
    pub fn journal(&self) -> PathBuf {
        self.root.join(JOURNAL)
    }

    /// Returns the path of the journal of runs in separate processes.
    pub fn fresh_journal(&self) -> PathBuf {
        self.root.join(JOURNAL_OF_FRESH)
    }

    /// Returns the path of the journal that records how a target without coverage behaves on each
    /// input.
    pub fn classes(&self) -> PathBuf {
        self.root.join("clean.classes")
    }

    /// Returns the path of the JSON file with the result of the cleanup.
    pub fn result(&self) -> PathBuf {
        self.root.join("clean.json")
    }

    /// Returns the path of the HTML page that shows the result of the cleanup.
    pub fn page(&self) -> PathBuf {
        self.root.join("clean.html")
    }

    /// Returns the path of the folder that holds the trimmed files of a cleanup and their logs.
    pub fn trimmed(&self) -> PathBuf {
        self.root.join("trimmed")
    }

    /// Returns the path of the folder into which a cleanup writes the kept files.
    pub fn corpus(&self) -> PathBuf {
        self.root.join("corpus")
    }

    fn manifest(&self) -> PathBuf {
        self.root.join("clean.manifest")
    }

    /// Returns true if `folder` may be replaced: it does not exist, is empty, or contains exactly
    /// the files (by name) that an earlier cleanup of this output directory has written.
    pub fn may_replace(&self, folder: &Path) -> Result<bool, FileError> {
        let names = names_below(folder)?;
        let known = self.read();
        Ok(names.is_empty() || known.written.contains(&names))
    }

    /// Records in the output directory the names of the kept files that are about to be written, so
    /// that a later cleanup may replace them.
    pub fn announce(&self, names: &[PathBuf]) -> Result<(), FileError> {
        let next = sorted(names.iter().map(OsText::from).collect());
        let there = names_below(&self.corpus())?;
        // Older cleanups have been replaced.
        let mut manifest = self.read();
        (manifest.written).retain(|names| *names == there && *names != next);
        manifest.written.push(next);
        self.note(&manifest)
    }

    /// Records that the folder `fresh` is about to replace the folder `corpus`, so that a later
    /// cleanup recognizes both folders even if this process is killed before the replacement is
    /// complete.
    pub fn announce_exchange(&self, fresh: &Path, corpus: &Path) -> Result<(), FileError> {
        let incoming = Identity::of(fresh).map_err(FileError::at("look at", fresh))?;
        let replaced = ReplacedFolder::of(corpus).map_err(FileError::at("look at", corpus))?;
        let mut manifest = self.read();
        manifest.aside.retain(|earlier| *earlier != replaced);
        manifest.aside.push(replaced);
        self.note(&Manifest {
            incoming: Some(incoming),
            ..manifest
        })
    }

    /// Returns true if `folder` is a corpus that a cleanup in this output directory has replaced
    /// and moved aside, and if no entry was directly added to it or removed from it since; else
    /// false.
    pub fn has_replaced(&self, folder: &Path) -> bool {
        let known = self.read().aside;
        ReplacedFolder::of(folder).is_ok_and(|folder| known.contains(&folder))
    }

    /// Records that the folder announced by [`CleanPaths::announce_exchange`] has replaced the
    /// corpus: the folder is the user's from now on, and no later cleanup takes it for its own.
    pub fn end_exchange(&self) -> Result<(), FileError> {
        self.note(&Manifest {
            incoming: None,
            ..self.read()
        })
    }

    /// Returns true if `folder` was left by a cleanup that was killed while it replaced a corpus;
    /// the folder may then be removed, since all its files are copies of kept files. It is the
    /// folder that [`CleanPaths::announce_exchange`] has recorded last, even if it was moved since,
    /// and its files have the names of kept files.
    pub fn is_incoming(&self, folder: &Path) -> bool {
        let known = self.read();
        let same = known
            .incoming
            .is_some_and(|incoming| Identity::of(folder).is_ok_and(|it| it == incoming));
        same && names_below(folder).is_ok_and(|names| known.written.contains(&names))
    }

    fn note(&self, manifest: &Manifest) -> Result<(), FileError> {
        let text = serde_json::to_vec(manifest).unwrap_or_default();
        atomic::write(&self.manifest(), &text)
    }

    /// Reads the record of the files that earlier cleanups have written. If it is missing or
    /// damaged, returns an empty one, so that no file is replaced.
    fn read(&self) -> Manifest {
        let bytes = fs::read(self.manifest()).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// Returns the names of all files and links below a folder, relative to it; empty if the folder
/// does not exist.
fn names_below(folder: &Path) -> Result<Vec<OsText>, FileError> {
    let mut names = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(FileError::at("list", &path))?,
        };
        for entry in entries {
            let entry = entry.map_err(FileError::at("list", &path))?;
            let name = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(name),
                _ => names.push(OsText::from(&name)),
            }
        }
    }
    Ok(sorted(names))
}

fn sorted(mut names: Vec<OsText>) -> Vec<OsText> {
    names.sort_by(|one, other| one.0.cmp(&other.0));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_announced_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let place = CleanPaths::of(dir.path());
        let corpus = place.corpus();
        assert!(place.may_replace(&corpus).unwrap());
        fs::create_dir_all(corpus.join("below")).unwrap();
        assert!(place.may_replace(&corpus).unwrap());
        fs::write(corpus.join("below/one"), b"1").unwrap();
        assert!(!place.may_replace(&corpus).unwrap());
        place.announce(&[PathBuf::from("below/one")]).unwrap();
        assert!(place.may_replace(&corpus).unwrap());
        // The next cleanup is announced, and the files of this one are still there.
        place.announce(&[PathBuf::from("two")]).unwrap();
        assert!(place.may_replace(&corpus).unwrap());
        fs::write(corpus.join("mine"), b"").unwrap();
        assert!(!place.may_replace(&corpus).unwrap());
    }

    #[test]
    fn an_announced_folder_is_known_where_it_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let place = CleanPaths::of(dir.path());
        let [fresh, other, moved] = ["fresh", "other", "moved"].map(|name| dir.path().join(name));
        for folder in [&fresh, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("one"), "").unwrap();
        }
        place.announce(&[PathBuf::from("one")]).unwrap();
        place.announce_exchange(&fresh, &other).unwrap();
        fs::rename(&fresh, &moved).unwrap();
        assert!(place.is_incoming(&moved));
        assert!(!place.is_incoming(&other) && !place.is_incoming(&fresh));
        // A file of the user, and then the end of the exchange.
        fs::write(moved.join("two"), "").unwrap();
        assert!(!place.is_incoming(&moved));
        fs::remove_file(moved.join("two")).unwrap();
        assert!(place.is_incoming(&moved));
        place.end_exchange().unwrap();
        assert!(!place.is_incoming(&moved));
        assert!(place.may_replace(&moved).unwrap());
    }
}
