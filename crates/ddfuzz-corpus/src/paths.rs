//! The files and folders of a cleanup in its output directory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::measure::{JOURNAL, JOURNAL_OF_FRESH};
use ddfuzz_model::files::atomic::{self, TEMPORARY_PREFIX};
use ddfuzz_model::files::{FileError, OsText};

/// The files and folders of a cleanup in an output directory.
#[derive(Clone, Debug)]
pub struct Place {
    root: PathBuf,
}

/// The file names that the folder of kept files may hold: those of the last cleanup, and of the one
/// that was about to replace it when this was written.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    written: Vec<BTreeSet<Name>>,
    /// The folder that is about to replace a corpus.
    #[serde(default)]
    incoming: Option<Identity>,
}

/// The identity of a folder, which stays when the folder is moved.
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "OsText", into = "OsText")]
struct Name(OsString);

impl From<OsText> for Name {
    fn from(text: OsText) -> Name {
        Name(text.0)
    }
}

impl From<Name> for OsText {
    fn from(name: Name) -> OsText {
        OsText(name.0)
    }
}

impl Place {
    /// The files and folders in this output directory.
    pub fn of(root: &Path) -> Place {
        Place {
            root: root.to_owned(),
        }
    }

    /// The output directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the kept files of the last cleanup are moved before they are removed.
    pub fn aside(&self) -> PathBuf {
        self.root.join(format!("{TEMPORARY_PREFIX}old-corpus"))
    }

    /// The journal of what each content reaches.
    pub fn journal(&self) -> PathBuf {
        self.root.join(JOURNAL)
    }

    /// The journal of runs that each have a separate process.
    pub fn fresh_journal(&self) -> PathBuf {
        self.root.join(JOURNAL_OF_FRESH)
    }

    /// The journal of how a target without coverage behaves.
    pub fn classes(&self) -> PathBuf {
        self.root.join("clean.classes")
    }

    /// The result.
    pub fn result(&self) -> PathBuf {
        self.root.join("clean.json")
    }

    /// The result as a page.
    pub fn page(&self) -> PathBuf {
        self.root.join("clean.html")
    }

    /// The folder of trimmed files and their logs.
    pub fn trimmed(&self) -> PathBuf {
        self.root.join("trimmed")
    }

    /// The folder of the kept files.
    pub fn corpus(&self) -> PathBuf {
        self.root.join("corpus")
    }

    fn manifest(&self) -> PathBuf {
        self.root.join("clean.manifest")
    }

    /// Whether `folder` may be replaced: it is not there, is empty, or holds what an earlier
    /// cleanup of this output directory has written, and nothing else.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn may_replace(&self, folder: &Path) -> Result<bool, FileError> {
        let names = names_below(folder)?;
        let known = self.read();
        Ok(names.is_empty() || known.written.contains(&names))
    }

    /// Records that a folder of these files is about to be written, so that a later call knows it.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn announce(&self, names: &[PathBuf]) -> Result<(), FileError> {
        let next: BTreeSet<Name> = (names.iter())
            .map(|name| Name(name.clone().into_os_string()))
            .collect();
        let there = names_below(&self.corpus())?;
        // Others are not there any more.
        let mut manifest = self.read();
        (manifest.written).retain(|names| *names == there && *names != next);
        manifest.written.push(next);
        self.note(&manifest)
    }

    /// Records that `fresh` is about to replace a corpus, so that a later call knows it wherever a
    /// kill leaves it.
    ///
    /// # Errors
    /// When that cannot be written, or the folder is not there.
    pub fn announce_exchange(&self, fresh: &Path) -> Result<(), FileError> {
        let incoming = Identity::of(fresh).map_err(FileError::at("look at", fresh))?;
        self.note(&Manifest {
            incoming: Some(incoming),
            ..self.read()
        })
    }

    /// Whether this is the folder that was announced last, which holds nothing but copies.
    pub fn is_incoming(&self, folder: &Path) -> bool {
        let incoming = self.read().incoming;
        incoming.is_some_and(|incoming| Identity::of(folder).is_ok_and(|it| it == incoming))
    }

    fn note(&self, manifest: &Manifest) -> Result<(), FileError> {
        let text = serde_json::to_vec(manifest).unwrap_or_default();
        atomic::write(&self.manifest(), &text)
    }

    /// Reads the manifest. One that cannot be read is empty, so that nothing is replaced.
    fn read(&self) -> Manifest {
        let bytes = fs::read(self.manifest()).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// The names of all files below a folder, relative to it; none where it is not there. Links count
/// as files.
fn names_below(folder: &Path) -> Result<BTreeSet<Name>, FileError> {
    let mut names = BTreeSet::new();
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
                _ => {
                    names.insert(Name(name.into_os_string()));
                }
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_announced_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path());
        let corpus = place.corpus();
        assert!(place.may_replace(&corpus).unwrap());
        fs::create_dir_all(corpus.join("below")).unwrap();
        assert!(place.may_replace(&corpus).unwrap());
        fs::write(corpus.join("below/one"), b"1").unwrap();
        assert!(!place.may_replace(&corpus).unwrap());
        place.announce(&[PathBuf::from("below/one")]).unwrap();
        assert!(place.may_replace(&corpus).unwrap());
        // The next one is announced, and this one still stands there.
        place.announce(&[PathBuf::from("two")]).unwrap();
        assert!(place.may_replace(&corpus).unwrap());
        fs::write(corpus.join("mine"), b"").unwrap();
        assert!(!place.may_replace(&corpus).unwrap());
    }

    #[test]
    fn an_announced_folder_is_known_where_it_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path());
        let [fresh, other, moved] = ["fresh", "other", "moved"].map(|name| dir.path().join(name));
        fs::create_dir(&fresh).unwrap();
        fs::create_dir(&other).unwrap();
        place.announce_exchange(&fresh).unwrap();
        place.announce(&[PathBuf::from("one")]).unwrap();
        fs::rename(&fresh, &moved).unwrap();
        assert!(place.is_incoming(&moved));
        assert!(!place.is_incoming(&other) && !place.is_incoming(&fresh));
    }
}
