//! What a study of many utilities came to (`studies/CAMPAIGN.json`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{EntryId, Kind, Reader, Store, StoreError, json, layout};
use crate::reader;
use ddfuzz_model::files::{FileError, OsText, folder};
use ddfuzz_triage::Subject;

/// A study: the utilities that were run on a machine, and how their runs ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Version of this record's schema.
    pub v: u32,
    /// The campaign's id.
    pub campaign: String,
    /// The machine.
    pub host: String,
    /// Its system, as it names itself.
    pub system: String,
    /// The version of its kernel.
    pub kernel: String,
    /// When the study began, RFC 3339 in UTC.
    pub started: String,
    /// The seed of all inputs.
    pub seed: u64,
    /// The name of the list of utilities.
    pub list: String,
    /// Which part of how many of the list is run here, from 1; `None` for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<(u32, u32)>,
    /// The parts of the sandbox that the utilities ran in.
    pub sandbox: Vec<String>,
    /// The results of the utilities, in the order of the list.
    pub utilities: Vec<UtilityRecord>,
}

impl StudyRecord {
    /// The version of the record's schema that is written.
    pub const VERSION: u32 = 1;

    /// Joins another record of the same study: of each utility the result with more progress stays,
    /// of other fields the lesser text, so that the order of the records does not matter.
    pub fn join(&mut self, other: &StudyRecord) {
        let head = |study: &StudyRecord| {
            let utilities = Vec::new();
            let head = StudyRecord {
                utilities,
                ..study.clone()
            };
            (serde_json::to_string(&head).unwrap_or_default(), head)
        };
        let (ours, theirs) = (head(self), head(other));
        if theirs.0 < ours.0 {
            let utilities = std::mem::take(&mut self.utilities);
            *self = StudyRecord {
                utilities,
                ..theirs.1
            };
        }
        for theirs in &other.utilities {
            let same = |ours: &&mut UtilityRecord| {
                (ours.place, &ours.utility) == (theirs.place, &theirs.utility)
            };
            match self.utilities.iter_mut().find(same) {
                Some(ours) if ours.rank() < theirs.rank() => *ours = theirs.clone(),
                Some(_) => {}
                None => self.utilities.push(theirs.clone()),
            }
        }
        self.utilities
            .sort_by(|a, b| (a.place, &a.utility).cmp(&(b.place, &b.utility)));
    }
}

/// Labels of utilities that were not run, or not any more. They hold for one call: a program may
/// be installed behind it, or allowed.
pub const REFUSALS: [&str; 5] = [
    "missing",
    "setuid",
    "denied",
    "does-not-start",
    "no-channel",
];

/// Whether a label says why a utility was not run.
pub fn is_refusal(label: &str) -> bool {
    REFUSALS.contains(&label)
}

/// The result of one utility.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtilityRecord {
    /// What the list calls it.
    pub utility: String,
    /// Its place in the whole list, from 0.
    pub place: u64,
    /// The package that it is of; `None` where no package owns it, or it is missing.
    pub package: Option<String>,
    /// The package's version.
    pub version: Option<String>,
    /// The program's path; `None` where it is missing.
    pub path: Option<OsText>,
    /// What is special about it (`missing`, `setuid`, `loops-on-empty-input`, …).
    pub label: Option<String>,
    /// More about that, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Runs by channel and kind of input, in the order of the first of each.
    pub tallies: Vec<Tally>,
    /// Runs that ended in each group.
    pub groups: Vec<GroupTally>,
    /// Whether all runs of the present count are made.
    pub done: bool,
}

impl UtilityRecord {
    /// All runs.
    pub fn total(&self) -> Tally {
        Tally::total(&self.tallies)
    }

    /// Whether there was a run.
    pub fn is_run(&self) -> bool {
        self.tallies.iter().any(|tally| tally.runs > 0)
    }

    /// Of two records of one utility the greater one has more progress. Ties are broken by the
    /// text, so that the order of the records does not matter.
    fn rank(&self) -> (u64, bool, String) {
        let text = serde_json::to_string(self).unwrap_or_default();
        (self.total().runs, self.done, text)
    }
}

/// How runs by one channel, on one kind of input, ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// `stdin`, `file`, `cp NAME`, `two_files` or `pty`.
    pub channel: String,
    /// The kind of input: as the classic generator names it, `keys`, or `empty`.
    pub kind: String,
    /// Runs.
    pub runs: u64,
    /// Of them, those that crashed.
    pub crashes: u64,
    /// Of them, those over their time limit.
    pub hangs: u64,
    /// Of them, those over their memory limit.
    pub ooms: u64,
    /// Of them, those that ended with an exit status of 126 or more, and no crash.
    pub high_exits: u64,
    /// Of them, those over their time limit that do end, given some times as long.
    #[serde(default)]
    pub slow: u64,
}

impl Tally {
    /// The sum of some, of no channel and kind.
    pub fn total(tallies: &[Tally]) -> Tally {
        let mut total = Tally::default();
        tallies.iter().for_each(|tally| total.add(tally));
        total
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.crashes += other.crashes;
        self.hangs += other.hangs;
        self.ooms += other.ooms;
        self.high_exits += other.high_exits;
        self.slow += other.slow;
    }
}

/// Runs of a utility that ended in one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTally {
    /// The kind of finding.
    pub kind: Kind,
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// Runs.
    pub runs: u64,
    /// How often the reproducer fails when it is run again; `None` while it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

/// How often a reproducer fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Runs by plain `execve` with random addresses that ended in the group.
    pub hits: u32,
    /// Runs made.
    pub tries: u32,
    /// Where some of them did not: runs without random addresses that did, of as many.
    pub fixed_hits: Option<u32>,
}

impl Reader {
    /// The studies whose results the directory holds, by their campaigns' ids.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn studies(&self) -> Result<Vec<StudyRecord>, StoreError> {
        let folder = self.root().join(layout::STUDIES);
        let mut studies = BTreeMap::new();
        for name in reader::sorted_names(&folder, layout::is_study_name)? {
            if let Some(study) = json::read::<StudyRecord>(&folder.join(&name))? {
                studies.insert(name, study);
            }
        }
        Ok(studies.into_values().collect())
    }
}

impl Store {
    /// Writes the result of a study.
    ///
    /// # Errors
    /// When the file cannot be written; the one before then stands.
    pub fn write_study(&self, study: &StudyRecord) -> Result<(), StoreError> {
        let path = self.study_file(&study.campaign)?;
        json::write(&path, study)
    }

    /// Takes a study of another directory; one that is there already is joined with it.
    pub(super) fn take_study(&self, theirs: StudyRecord) -> Result<(), StoreError> {
        let path = self.study_file(&theirs.campaign)?;
        // A new one joins itself, and stands in order like all that are joined.
        let mut joined = json::read::<StudyRecord>(&path)?.unwrap_or_else(|| theirs.clone());
        joined.join(&theirs);
        json::write(&path, &joined)
    }

    fn study_file(&self, campaign: &str) -> Result<PathBuf, StoreError> {
        let folder = self.reader().root().join(layout::STUDIES);
        folder::create_all(&folder)?;
        Ok(folder.join(format!("{campaign}.json")))
    }

    /// Sets what an entry is of: with fewer arguments than it was found with, say.
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] where the entry was not filed; when the file cannot be written.
    pub fn set_subject(&mut self, id: &EntryId, subject: &Subject) -> Result<(), StoreError> {
        let folder = id.folder(self.reader().root());
        let Some(entry) = self.reader().entry(id)? else {
            return Err(StoreError::NoSuch { path: folder });
        };
        let mut crash = entry.crash;
        crash.of = Some(Box::new(subject.clone()));
        json::write(&folder.join(layout::CRASH), &crash)
    }

    /// Where the log of the minimization of an entry's options stands; the folder is there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn options_log(&self, id: &EntryId) -> Result<PathBuf, StoreError> {
        let folder = id.folder(self.reader().root());
        std::fs::create_dir_all(&folder).map_err(FileError::at("make", &folder))?;
        Ok(folder.join(layout::OPTIONS_LOG))
    }
}
