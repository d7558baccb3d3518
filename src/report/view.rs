//! What reports show of one group.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::store::{Entry, EntryId, Group, Kind, Minimized, Reader, Status, StoreError};
use crate::triage::{Class, Crash, Key, Severity};

/// What reports show of one group, through one of its entries (its representative).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupView {
    /// The kind of finding.
    pub kind: Kind,
    /// The major key.
    pub major: Key,
    /// The minor key of the entry.
    pub minor: Key,
    /// What kind of death.
    pub class: Class,
    /// The group's estimate.
    pub severity: Severity,
    /// Why the entry has its estimate.
    pub severity_reason: String,
    /// Where in the user's code ([`place`]).
    pub place: Option<String>,
    /// The same as `file:line` or `file:line:column`, where that is known, the path as the program
    /// has it.
    pub source: Option<String>,
    /// Runs of all campaigns that ended so.
    pub runs_seen: u64,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// The best input known.
    pub reproducer: Vec<u8>,
    /// How the minimization ended; `None` where it has not.
    pub minimized: Option<Minimized>,
    /// The file of the best input known, absolute.
    pub file: PathBuf,
    /// The minimization log, absolute; `None` where there is none.
    pub log: Option<PathBuf>,
    /// The script that shows the crash, absolute; `None` where there is none.
    pub script: Option<PathBuf>,
    /// What became of the group when the program was last built anew, where that is on record.
    pub status: Option<Status>,
    /// Which utility crashed, in a study of many.
    pub utility: Option<String>,
}

impl GroupView {
    /// What there is to show of an entry that stands in a directory; `None` where it is gone.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(reader: &Reader, id: &EntryId) -> Result<Option<GroupView>, StoreError> {
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(id)?);
        let both = group.zip(entry);
        both.map(|(group, entry)| GroupView::load(&group, &entry))
            .transpose()
    }

    /// Reads what there is to show of `group` through `entry`.
    ///
    /// # Errors
    /// When the entry's input cannot be read.
    pub fn load(group: &Group, entry: &Entry) -> Result<GroupView, StoreError> {
        let size_before = match &entry.minimized {
            Some(minimized) => minimized.size_before,
            None => entry.original_bytes()?.len() as u64,
        };
        let existing = |path: PathBuf| path.is_file().then(|| absolute(&path));
        Ok(GroupView {
            kind: group.kind,
            major: group.record.major,
            minor: entry.crash.keys.minor,
            class: group.record.class.clone(),
            severity: group.record.severity,
            severity_reason: entry.crash.severity_reason.clone(),
            place: place(&entry.crash),
            source: entry.crash.site().and_then(|site| site.source),
            runs_seen: group.runs_seen(),
            size_before,
            reproducer: entry.reproducer_bytes()?,
            minimized: entry.minimized.clone(),
            file: absolute(&entry.reproducer()),
            log: existing(entry.log()),
            script: existing(entry.script()),
            status: None,
            utility: entry.crash.of.as_ref().map(|of| of.utility.clone()),
        })
    }

    /// Size of the best input known, in bytes.
    pub fn size_after(&self) -> u64 {
        self.reproducer.len() as u64
    }

    /// Tests that the minimization executed, where it has ended and says so.
    pub fn tests_executed(&self) -> Option<u64> {
        let tests = &self.minimized.as_ref()?.tests;
        tests.get("executed").and_then(Value::as_u64)
    }

    /// The claim as a sentence with what it rests on.
    pub fn claim(&self) -> String {
        match &self.minimized {
            None => "not minimized yet".to_owned(),
            Some(minimized) if minimized.is_proved() => {
                let tests = super::size::counted(minimized.proved.of, "test");
                format!("{}, proved by {tests}", minimized.claim)
            }
            Some(minimized) => {
                let claim = minimized.claim.replace('-', " ");
                let proved = minimized.proved;
                format!("{claim}, {} of {} proved", proved.done, proved.of)
            }
        }
    }
}

/// Where in the user's code a crash happened, by function and line where they are known, else by
/// module and offset.
pub fn place(crash: &Crash) -> Option<String> {
    crash.site().map(|site| site.to_string())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
