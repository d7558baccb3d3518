//! The corpus that libFuzzer gets: the user's, or a copy without what crashes the harness.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::artifacts::name_of;

/// The corpus of a campaign by libFuzzer.
///
/// libFuzzer runs its whole corpus first, and would die of the same input of it again and again.
/// From the first such death on it gets a copy that lacks the inputs it died of; what is new in
/// the copy goes to the user's corpus.
pub struct Corpus {
    own: PathBuf,
    copy: Option<TempDir>,
    /// libFuzzer's names of the inputs that it died of.
    deadly: BTreeSet<String>,
}

impl Corpus {
    /// The corpus in this directory, which is made where it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(own: PathBuf) -> io::Result<Corpus> {
        std::fs::create_dir_all(&own)?;
        Ok(Corpus {
            own,
            copy: None,
            deadly: BTreeSet::new(),
        })
    }

    /// The directory for libFuzzer.
    pub fn dir(&self) -> &Path {
        self.copy.as_ref().map_or(&self.own, TempDir::path)
    }

    /// Leaves an input away from here on; whether the corpus had it.
    ///
    /// # Errors
    /// When the copy cannot be made.
    pub fn leave_out(&mut self, input: &[u8]) -> io::Result<bool> {
        if !self.deadly.insert(name_of(input)) {
            return Ok(false);
        }
        self.hand_back()?;
        let copy = tempfile::Builder::new()
            .prefix("ddfuzz-corpus-")
            .tempdir()?;
        let mut found = false;
        self.each(&self.own, |path, bytes| {
            if self.deadly.contains(&name_of(bytes)) {
                found = true;
                return Ok(());
            }
            let name = path.file_name().unwrap_or_default();
            std::fs::write(copy.path().join(name), bytes)
        })?;
        self.copy = Some(copy);
        Ok(found)
    }

    /// Writes what is new in the copy to the user's corpus.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn hand_back(&self) -> io::Result<()> {
        let Some(copy) = &self.copy else {
            return Ok(());
        };
        self.each(copy.path(), |path, bytes| {
            let own = self.own.join(path.file_name().unwrap_or_default());
            match crate::files::atomic::create_new(&own, bytes) {
                Err(error) if !error.is_existing() => Err(io::Error::other(error.to_string())),
                _ => Ok(()),
            }
        })
    }

    fn each(
        &self,
        dir: &Path,
        mut what: impl FnMut(&Path, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            // What goes while it is looked at is no part of the corpus any more.
            if path.is_file()
                && let Ok(bytes) = std::fs::read(&path)
            {
                what(&path, &bytes)?;
            }
        }
        Ok(())
    }
}

impl Drop for Corpus {
    fn drop(&mut self) {
        // What cannot be written is still in the output directory where it crashed, or is found
        // again.
        let _ = self.hand_back();
    }
}
