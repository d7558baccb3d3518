//! Results of a study (`studies/CAMPAIGN.json`), which fuzzes many system utilities: types, reading
//! and writing.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{EntryId, Kind, Reader, Store, StoreError, json, layout};
use crate::reader;
use ddfuzz_model::files::{FileError, OsText, folder};
use ddfuzz_triage::Subject;

/// Result of a study, which fuzzes many system utilities on one machine: the utilities, and how
/// their runs ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Version of the record's JSON schema ([`StudyRecord::VERSION`]).
    pub v: u32,
    /// Id of the campaign that made the study.
    pub campaign: String,
    /// Host name of the machine on which the study ran.
    pub host: String,
    /// Name of the operating system on which the study ran, from `/etc/os-release`.
    pub system: String,
    /// Version of the kernel on which the study ran.
    pub kernel: String,
    /// Start of the study, as RFC 3339 in UTC.
    pub started: String,
    /// Seed of the random generator from which all inputs of the study come.
    pub seed: u64,
    /// Name of the list of utilities that the study fuzzes.
    pub list: String,
    /// Which part of the list of utilities this study runs, as (number of the part, number of
    /// parts), counted from 1; `None` for the whole list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<(u32, u32)>,
    /// Names of the sandbox features (such as Landlock) with which the utilities were run.
    pub sandbox: Vec<String>,
    /// Results of the fuzzed utilities, in the order of the list of utilities.
    pub utilities: Vec<UtilityRecord>,
}

impl StudyRecord {
    /// Current version of the JSON schema of a study's record.
    pub const VERSION: u32 = 1;

    /// Merges another record of the same study into this one. For each utility the result with more
    /// runs stays; the other fields come from the record whose JSON text sorts first, so that the
    /// order of merging does not matter.
    pub fn join(&mut self, other: &StudyRecord) {
        let head = |study: &StudyRecord| {
            let utilities = Vec::new();
            let head = StudyRecord {
                utilities,
                ..study.clone()
            };
            serde_json::to_string(&head).unwrap_or_default()
        };
        if head(other) < head(self) {
            let utilities = std::mem::take(&mut self.utilities);
            *self = StudyRecord {
                utilities,
                ..other.clone()
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

/// Labels of the utilities that a call of `ddfuzz revisit` (a study of many utilities) could not
/// run; each label names the reason. A later call tries these utilities again.
pub const REFUSALS: [&str; 5] = [
    "missing",
    "setuid",
    "denied",
    "does-not-start",
    "no-channel",
];

/// Returns whether a utility's label says why the utility was not run (is one of [`REFUSALS`]).
pub fn is_refusal(label: &str) -> bool {
    REFUSALS.contains(&label)
}

/// Result of fuzzing one system utility in a study: program, numbers of runs, and groups of
/// failures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtilityRecord {
    /// Name by which the list of utilities identifies the utility.
    pub utility: String,
    /// Index of the utility in the whole list of utilities, from 0.
    pub place: u64,
    /// Package that contains the utility's program; `None` if no package owns the program or it is
    /// missing.
    pub package: Option<String>,
    /// Version of the package that contains the utility's program; `None` if unknown.
    pub version: Option<String>,
    /// Path of the utility's program; `None` if the program is missing.
    pub path: Option<OsText>,
    /// Label that says what is special about the utility, such as `missing` or `setuid`; `None` for
    /// a normal one.
    pub label: Option<String>,
    /// Explanation, for people, of the label that says what is special about the utility; `None` if
    /// the label needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Numbers of runs of the utility, one tally for each channel (how inputs reached the program)
    /// and kind of input.
    pub tallies: Vec<Tally>,
    /// The groups of failures (bugs) in which runs of the utility ended, each with the number of
    /// these runs.
    pub groups: Vec<GroupTally>,
    /// Whether all runs of the utility that the study asks for are done.
    pub done: bool,
}

impl UtilityRecord {
    /// Returns the utility's numbers of runs, summed over all channels and kinds of input.
    pub fn total(&self) -> Tally {
        Tally::total(&self.tallies)
    }

    /// Returns whether the utility was run at least once.
    pub fn is_run(&self) -> bool {
        self.tallies.iter().any(|tally| tally.runs > 0)
    }

    /// Returns the rank by which the better of two records of the same utility is chosen: the
    /// greater one is better. More runs are greater; the JSON text breaks ties, so that the order
    /// of merging does not matter.
    fn rank(&self) -> (u64, bool, String) {
        let text = serde_json::to_string(self).unwrap_or_default();
        (self.total().runs, self.done, text)
    }
}

/// Numbers of runs over one channel (how inputs reached the program) with one kind of input, by how
/// the runs ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How the inputs of the counted runs reached the program: `stdin`, `file`, `cp NAME` (a copy
    /// in the file NAME), `two_files` or `pty`.
    pub channel: String,
    /// Kind of the inputs of the counted runs: a kind of the classic generator of random inputs,
    /// `keys` (typed at a terminal), or `empty`.
    pub kind: String,
    /// Number of runs of the utility with inputs of this kind over this channel (`stdin`, `file`,
    /// …).
    pub runs: u64,
    /// Number of runs of the utility, with inputs of this kind over this channel (`stdin`, `file`,
    /// …), that crashed.
    pub crashes: u64,
    /// Number of runs of the utility, with inputs of this kind over this channel (`stdin`, `file`,
    /// …), that exceeded the time limit.
    pub hangs: u64,
    /// Number of runs of the utility, with inputs of this kind over this channel (`stdin`, `file`,
    /// …), that exceeded the memory limit.
    pub ooms: u64,
    /// Number of runs of the utility, with inputs of this kind over this channel (`stdin`, `file`,
    /// …), that did not crash, but exited with a status of 126 or more.
    pub high_exits: u64,
    /// Number of runs of the utility, with inputs of this kind over this channel (`stdin`, `file`,
    /// …), that exceeded the time limit, but count as slow, not as hangs: with several times the
    /// limit they ended, or were not repeated because enough other runs had been.
    #[serde(default)]
    pub slow: u64,
}

impl Tally {
    /// Returns the sums of the numbers of runs in `tallies`, as a tally whose channel and kind of
    /// input are empty.
    pub fn total(tallies: &[Tally]) -> Tally {
        let mut total = Tally::default();
        tallies.iter().for_each(|tally| total.add(tally));
        total
    }

    /// Adds the numbers of runs in the tally `other` to those in this tally.
    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.crashes += other.crashes;
        self.hangs += other.hangs;
        self.ooms += other.ooms;
        self.high_exits += other.high_exits;
        self.slow += other.slow;
    }
}

/// A group of failures (one bug) in which runs of a utility ended, with the number of these runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTally {
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Major key of the group, its first 12 hex digits.
    pub major: String,
    /// Number of runs of the utility that ended in the group.
    pub runs: u64,
    /// How often the group's reproducer fails when it is run again; `None` if it was not run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

/// How often a group's reproducer (smallest known failing input) failed when it was run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Number of re-runs of the reproducer (by plain `execve`, with address randomization) that
    /// ended in its group.
    pub hits: u32,
    /// Number of times that the reproducer was run again (by plain `execve`, with address
    /// randomization).
    pub tries: u32,
    /// Number of re-runs of the reproducer without address randomization, as many as `tries`, that
    /// ended in its group; `None` if there were no such re-runs, because all re-runs with
    /// randomization ended in the group.
    pub fixed_hits: Option<u32>,
}

impl Reader {
    /// Reads the results of all studies in the output directory, sorted by campaign id. Fails if
    /// a file cannot be read, is damaged, or is not named after its campaign.
    pub fn studies(&self) -> Result<Vec<StudyRecord>, StoreError> {
        let folder = self.root().join(layout::STUDIES);
        let mut studies = BTreeMap::new();
        for name in reader::sorted_names(&folder, layout::is_study_name)? {
            let path = folder.join(&name);
            let Some(study) = json::read::<StudyRecord>(&path)? else {
                continue;
            };
            // A merge names its file by the campaign, which could be the path of any other file.
            if name.strip_suffix(".json") != Some(&study.campaign) {
                let why = format!("it is of the campaign {:?}", study.campaign);
                return Err(StoreError::Damaged { path, why });
            }
            studies.insert(name, study);
        }
        Ok(studies.into_values().collect())
    }
}

impl Store {
    /// Writes the result of a study to `studies/CAMPAIGN.json`. If that fails, the earlier file
    /// stays.
    pub fn write_study(&self, study: &StudyRecord) -> Result<(), StoreError> {
        let path = self.study_file(&study.campaign)?;
        json::write(&path, study)
    }

    /// Merges the result of a study from another output directory into this directory's record of
    /// the same study; without such a record, stores it.
    pub(super) fn take_study(&self, theirs: StudyRecord) -> Result<(), StoreError> {
        let path = self.study_file(&theirs.campaign)?;
        // Joining a new study with itself sorts it.
        let mut joined = json::read::<StudyRecord>(&path)?.unwrap_or_else(|| theirs.clone());
        joined.join(&theirs);
        json::write(&path, &joined)
    }

    fn study_file(&self, campaign: &str) -> Result<PathBuf, StoreError> {
        let folder = self.reader().root().join(layout::STUDIES);
        folder::create_all(&folder)?;
        Ok(folder.join(format!("{campaign}.json")))
    }

    /// Replaces the command (program, arguments, environment) recorded in the entry's `crash.json`,
    /// for example after its arguments were minimized. Errors: [`StoreError::NoSuch`] if the entry
    /// does not exist; if the file cannot be written.
    pub fn set_subject(&mut self, id: &EntryId, subject: &Subject) -> Result<(), StoreError> {
        let folder = id.folder(self.reader().root());
        let Some(entry) = self.reader().entry(id)? else {
            return Err(StoreError::NoSuch(folder));
        };
        let mut crash = entry.crash;
        crash.of = Some(Box::new(subject.clone()));
        json::write(&folder.join(layout::CRASH), &crash)
    }

    /// Returns the path of the log of minimizing the command-line options with which an entry's
    /// utility was run; creates the log's folder if it is missing.
    pub fn options_log(&self, id: &EntryId) -> Result<PathBuf, StoreError> {
        let folder = id.folder(self.reader().root());
        std::fs::create_dir_all(&folder).map_err(FileError::at("make", &folder))?;
        Ok(folder.join(layout::OPTIONS_LOG))
    }
}
