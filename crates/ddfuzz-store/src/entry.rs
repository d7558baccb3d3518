//! One stored input that ended in one way, with all that is known of it.

use std::path::{Path, PathBuf};

use super::{EntryId, Minimized, StoreError, json, layout};
use ddfuzz_triage::Crash;

/// One complete entry: its input and triage's record are there.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which one.
    pub id: EntryId,
    /// Its folder.
    pub folder: PathBuf,
    /// Triage's record.
    pub crash: Crash,
    /// How its minimization ended; `None` where it has not.
    pub minimized: Option<Minimized>,
}

impl Entry {
    /// Reads the entry; `None` where it is not there, or not complete.
    pub(super) fn read(root: &Path, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        let folder = id.folder(root);
        if !folder.join(layout::ORIGINAL).is_file() {
            return Ok(None);
        }
        let Some(crash) = json::read_intact(&folder.join(layout::CRASH))? else {
            return Ok(None);
        };
        let minimized = json::read_intact(&folder.join(layout::OUTCOME))?;
        Ok(Some(Entry {
            id: id.clone(),
            folder,
            crash,
            minimized,
        }))
    }

    /// Whether its minimization has moved to another minor key, which its reproducer shows.
    pub fn shows_another_minor(&self) -> bool {
        let after = self.minimized.as_ref().and_then(|it| it.minor_after);
        after.is_some_and(|after| after.short() != self.id.minor())
    }

    /// The file of the input as found.
    pub fn original(&self) -> PathBuf {
        self.folder.join(layout::ORIGINAL)
    }

    /// The file of the best input known: the reproducer, or the input as found before any
    /// reduction.
    pub fn reproducer(&self) -> PathBuf {
        let minimized = self.folder.join(layout::MINIMIZED);
        if minimized.is_file() {
            minimized
        } else {
            self.original()
        }
    }

    /// The minimization log, which may not be there yet.
    pub fn log(&self) -> PathBuf {
        self.folder.join(layout::LOG)
    }

    /// The script that shows the crash without ddfuzz, which may not be there yet.
    pub fn script(&self) -> PathBuf {
        self.folder.join(layout::REPRODUCE)
    }

    /// Whether that script is there, and shows the crash in gdb, too.
    pub fn script_has_gdb(&self) -> bool {
        let text = std::fs::read(self.script()).unwrap_or_default();
        super::reproduce::has_gdb(&text)
    }

    /// The bytes of the input as found.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn original_bytes(&self) -> Result<Vec<u8>, StoreError> {
        read_whole(&self.original())
    }

    /// The bytes of the best input known ([`Entry::reproducer`]).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn reproducer_bytes(&self) -> Result<Vec<u8>, StoreError> {
        reproducer_bytes(&self.folder)
    }
}

/// The bytes of the best input known in an entry's folder.
pub(super) fn reproducer_bytes(folder: &Path) -> Result<Vec<u8>, StoreError> {
    match json::bytes(&folder.join(layout::MINIMIZED))? {
        Some(bytes) => Ok(bytes),
        None => read_whole(&folder.join(layout::ORIGINAL)),
    }
}

fn read_whole(path: &Path) -> Result<Vec<u8>, StoreError> {
    json::bytes(path)?.ok_or_else(|| StoreError::NoSuch {
        path: path.to_owned(),
    })
}
