//! One stored input that ended in one way, with its record and how its minimization ended.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{EntryId, StoreError, json, layout};
use ddfuzz_minimize::Rate;
use ddfuzz_triage::{Crash, Key};

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

/// How many single-unit removals are proved not to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proved {
    /// Removals proved.
    pub done: u64,
    /// Removals there are.
    pub of: u64,
}

/// How a minimization ended. Written last, so that where it stands the reproducer and the log
/// beside it are final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Minimized {
    /// `1-minimal`, `2-minimal` or `best-so-far`.
    pub claim: String,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the reproducer, in bytes.
    pub size_after: u64,
    /// Tests by how they were answered, as in the JSON result of `min`.
    pub tests: serde_json::Value,
    /// What the claim rests on.
    pub proved: Proved,
    /// The minor key of the reproducer, which may differ from the input's.
    pub minor_after: Option<Key>,
    /// The reproducer as the harness parses it, written by `Debug`; `None` where the harness does
    /// not tell it. `debug.txt` holds the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<String>,
    /// Whether the target crashes whatever the input is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// Bytes of the reproducer that were not tried as `0`, where a budget ended before.
    #[serde(default, skip_serializing_if = "crate::json::is_zero")]
    pub untried: u64,
    /// How often the reproducer failed, or else the input, where it did not fail each time; all of
    /// all where one text failed once and not again. `None` where all failed each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Rate>,
    /// Why it was given up; `None` where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

impl Minimized {
    /// Whether the claim is more than the best so far, and every part of it is proved.
    pub fn is_proved(&self) -> bool {
        self.claim != "best-so-far" && self.proved.done >= self.proved.of
    }

    /// Whether the failure was seen in none of many runs, neither of the reproducer nor of the
    /// input.
    pub fn never_fails(&self) -> bool {
        self.flaky.is_some_and(|rate| rate.hits == 0)
    }

    /// Whether a budget has ended it, so that more time could reduce more.
    pub fn is_unfinished(&self) -> bool {
        let is_settled = self.given_up.is_some() || self.flaky.is_some();
        self.claim == "best-so-far" && !is_settled
    }
}
