//! Entries and groups of the output directory. An entry is one stored input with its crash record
//! and the result of its minimization; a group is one bug with all its entries (`group.json`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::merge::is_blank;
use crate::{EntryId, Kind, StoreError, json, layout, reader, rfc3339};
use ddfuzz_minimize::{Claim, Rate, log::Log};
use ddfuzz_model::files::{FileError, folder, regular};
use ddfuzz_triage::{Class, Crash, Key, Severity};

/// One complete entry of the output directory: a stored input and its crash record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Id of the entry (stored input with its crash record): kind and keys of the crash, and hash
    /// of the input.
    pub id: EntryId,
    /// Folder of the entry, with the input, the crash record and the files of the minimization.
    pub folder: PathBuf,
    /// The crash record of the entry (`crash.json`), with class, keys, stack and message.
    pub crash: Crash,
    /// Result of the minimization of the entry's input; `None` until the minimization has ended, or
    /// if its reproducer is missing or damaged.
    pub minimized: Option<Minimized>,
    /// The build of the program with which the entry was minimized, read when it is first needed
    /// ([`Entry::build`]).
    pub(super) build: OnceLock<Option<String>>,
}

impl Entry {
    /// Reads the entry (stored input with its crash record) with this id from the output directory
    /// `root`; `None` if its input is missing, or its crash record is missing, damaged or that of
    /// another group.
    pub(super) fn read(root: &Path, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        let folder = id.folder(root);
        if !folder.join(layout::ORIGINAL).is_file() {
            return Ok(None);
        }
        let crash: Option<Crash> = json::read_intact(&folder.join(layout::CRASH))?;
        let Some(crash) = crash.filter(|crash| crash.keys.major.short() == id.major()) else {
            return Ok(None);
        };
        let minimized: Option<Minimized> = json::read_intact(&folder.join(layout::OUTCOME))?;
        let minimized = minimized.filter(|outcome| outcome.fits(&folder));
        Ok(Some(Entry {
            id: id.clone(),
            folder,
            crash,
            minimized,
            build: OnceLock::new(),
        }))
    }

    /// Returns the hash of the program, as 64 hex digits, with which the minimization of the entry
    /// was begun, as its log says; `None` if there is no log, or the log names no program. The log
    /// is read once.
    pub fn build(&self) -> Option<&String> {
        let logged = || Some(Log::read_start(&self.log())?.build?.to_string());
        self.build.get_or_init(logged).as_ref()
    }

    /// Returns the blake3 hash of the log of the entry's minimization; `None` if there is no log. A
    /// build's record names the result of a minimization by this hash.
    pub fn log_hash(&self) -> Result<Option<String>, StoreError> {
        RejectedResults::log_hash(&self.folder)
    }

    /// Returns whether the minimized input has another minor key (call path to the bug) than the
    /// input as found.
    pub fn shows_another_minor(&self) -> bool {
        let after = self.minimized.as_ref().and_then(|it| it.minor_after);
        after.is_some_and(|after| after.short() != self.id.minor())
    }

    /// Returns one or two lines of the entry's explanation of the failure (`explanation.txt`): the
    /// first line and, if there is one, the line that names the statements at which to look first
    /// or the line that says why nothing could be explained. `None` if `ddfuzz explain` has not
    /// written the file.
    pub fn explanation(&self) -> Option<String> {
        let text = regular::read(&self.folder.join(layout::EXPLANATION), MAX_TEXT).ok()?;
        let text = String::from_utf8_lossy(&text);
        let first = squeezed(text.lines().next()?);
        let told = |line: &&str| {
            let begins = [LOOK_FIRST, REFUSED];
            line.contains(MARKED) || begins.iter().any(|it| line.starts_with(it))
        };
        let line = text.lines().find(told).map(|line| {
            let line = line
                .trim_start()
                .trim_start_matches(|it: char| it.is_ascii_digit());
            squeezed(line.split(MARKED).next().unwrap_or(line))
        });
        Some(match line {
            Some(line) => format!("{first}\n{line}"),
            None => first,
        })
    }

    /// Returns the path of the entry's input as it was found, before minimization (`original`).
    pub fn original(&self) -> PathBuf {
        self.folder.join(layout::ORIGINAL)
    }

    /// Returns the path of the smallest known failing input: `minimized` if it exists and has not
    /// lost its content, else `original`.
    pub fn reproducer(&self) -> PathBuf {
        let minimized = self.folder.join(layout::MINIMIZED);
        let is_whole = self.minimized.is_some() || !has_lost_reproducer(&self.folder);
        if minimized.is_file() && is_whole {
            minimized
        } else {
            self.original()
        }
    }

    /// Returns the path of the log of the minimization of the entry's input; the log may not exist
    /// yet.
    pub fn log(&self) -> PathBuf {
        self.folder.join(layout::LOG)
    }

    /// Returns the path of the entry's `reproduce.sh`, which shows the crash without ddfuzz; the
    /// script may not exist yet.
    pub fn script(&self) -> PathBuf {
        self.folder.join(layout::REPRODUCE)
    }

    /// Returns whether the entry's `reproduce.sh` exists and can also show the crash in gdb.
    pub fn script_has_gdb(&self) -> bool {
        let text = regular::read(&self.script(), MAX_TEXT).unwrap_or_default();
        super::reproduce::has_gdb(&text)
    }

    /// Reads the bytes of the entry's input as it was found, before minimization (`original`).
    pub fn original_bytes(&self) -> Result<Vec<u8>, StoreError> {
        read_whole(&self.original())
    }

    /// Renames the files of the entry's minimization (reproducer, log and result), so that the
    /// minimization starts again. Each new name ends with `.` and the first 16 characters of
    /// `build`, the hash of the program with which the minimization was made; if there are files
    /// with these names already, with `-` and a number in addition. Returns the new path of the
    /// log.
    pub fn archive_minimization(&self, build: &str) -> Result<PathBuf, StoreError> {
        archive_minimization(&self.folder, build)
    }

    /// Reads the reproducers of earlier minimizations of the entry, whose files
    /// [`Entry::archive_minimization`] has renamed.
    pub fn archived(&self) -> Result<Vec<Archived>, StoreError> {
        let prefix = format!("{}.", layout::MINIMIZED);
        let is_archive =
            |name: &str| name.starts_with(&prefix) && !name.starts_with(layout::OUTCOME);
        let mut archived = Vec::new();
        for name in reader::sorted_names(&self.folder, is_archive)? {
            let ending = &name[prefix.len()..];
            archived.extend(
                json::bytes(&self.folder.join(&name))?.map(|reproducer| Archived {
                    reproducer,
                    log: self.folder.join(format!("{}.{ending}", layout::LOG)),
                }),
            );
        }
        Ok(archived)
    }

    /// Reads the bytes of the entry's smallest known failing input ([`Entry::reproducer`]).
    pub fn reproducer_bytes(&self) -> Result<Vec<u8>, StoreError> {
        reproducer_bytes(&self.folder)
    }
}

/// Renames the files of the minimization in an entry's folder, and returns the log's new path, as
/// [`Entry::archive_minimization`] does.
pub(super) fn archive_minimization(entry: &Path, build: &str) -> Result<PathBuf, StoreError> {
    let build: String = build.chars().take(16).collect();
    // The result first: it never stands beside files of another minimization.
    let names = [layout::OUTCOME, layout::MINIMIZED, layout::LOG];
    let is_free = |ending: &String| {
        let file = |name| entry.join(format!("{name}.{ending}"));
        names.iter().all(|name| !file(name).exists())
    };
    let numbered = (2..).map(|number: u64| format!("{build}-{number}"));
    let ending = std::iter::once(build.clone()).chain(numbered).find(is_free);
    let ending = ending.unwrap_or(build);
    for name in names {
        let (from, to) = (entry.join(name), format!("{name}.{ending}"));
        if from.exists() {
            std::fs::rename(&from, entry.join(to)).map_err(FileError::at("rename", &from))?;
        }
    }
    folder::sync(entry)?;
    Ok(entry.join(format!("{}.{ending}", layout::LOG)))
}

/// Record (`passing.json`) of those minimizations of an entry whose results no longer fail, so that
/// a merge does not bring such a result back from a copy of the entry. A merge also records each
/// minimization that one of the two directories has archived, unless an earlier merge archived it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RejectedResults {
    /// The blake3 hashes of the logs of the minimizations whose results no longer fail.
    pub(super) logs: BTreeSet<String>,
}

impl RejectedResults {
    /// Reads the record of an entry's results that no longer fail (`passing.json`) from the entry's
    /// folder; an empty record if the file is missing or damaged.
    pub(super) fn read(entry: &Path) -> Result<RejectedResults, StoreError> {
        Ok(json::read_intact(&entry.join(layout::PASSING))?.unwrap_or_default())
    }

    /// Returns the hash of the log in an entry's folder, which identifies the minimization in the
    /// record; `None` if there is no log.
    pub(super) fn log_hash(entry: &Path) -> Result<Option<String>, StoreError> {
        let log = json::bytes(&entry.join(layout::LOG))?;
        Ok(log.map(|log| blake3::hash(&log).to_hex().to_string()))
    }

    /// Returns a record that names the minimizations of both records, `self` and `other`.
    pub(super) fn united(mut self, other: RejectedResults) -> RejectedResults {
        self.logs.extend(other.logs);
        self
    }
}

/// The reproducer of an earlier minimization of an entry.
#[derive(Clone, Debug)]
pub struct Archived {
    /// Bytes of the reproducer that the earlier minimization has found.
    pub reproducer: Vec<u8>,
    /// Path of the log of the earlier minimization.
    pub log: PathBuf,
}

/// Maximum size, in bytes, of an explanation or a script that is read; a larger one is treated as
/// missing.
const MAX_TEXT: u64 = 16 << 20;

/// Beginning of the line of `explanation.txt` that names the statements at which to look first.
const LOOK_FIRST: &str = "Look here first: ";
/// Text in `explanation.txt` that marks, in the chain from cause to effect, the link to look at
/// first.
const MARKED: &str = "<- look here first";
/// Beginning of the line of `explanation.txt` that says why the failure could not be explained.
const REFUSED: &str = "Not explained";

/// Returns the text of a line with a single blank in place of each sequence of blanks, and without
/// blanks at its ends.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if the file `minimized` in an entry's folder has lost its content, for example by a
/// power cut or a failed copy: it is empty or all zeros, although the entry's result states another
/// size.
pub(super) fn has_lost_reproducer(folder: &Path) -> bool {
    let reproducer = json::bytes(&folder.join(layout::MINIMIZED)).ok().flatten();
    if !reproducer.is_some_and(|bytes| is_blank(&bytes)) {
        return false;
    }
    let outcome: Option<Minimized> = json::read_intact(&folder.join(layout::OUTCOME))
        .ok()
        .flatten();
    outcome.is_some_and(|outcome| !outcome.fits(folder))
}

/// Reads the smallest known failing input in an entry's folder: `minimized` if it exists and has
/// not lost its content, else `original`.
pub(super) fn reproducer_bytes(folder: &Path) -> Result<Vec<u8>, StoreError> {
    match json::bytes(&folder.join(layout::MINIMIZED))? {
        Some(bytes) if !is_blank(&bytes) || !has_lost_reproducer(folder) => Ok(bytes),
        _ => read_whole(&folder.join(layout::ORIGINAL)),
    }
}

fn read_whole(path: &Path) -> Result<Vec<u8>, StoreError> {
    json::bytes(path)?.ok_or_else(|| StoreError::NoSuch(path.to_owned()))
}

/// Progress of a proof of minimality: how many removals of parts of the input must be shown not to
/// fail, and how many have been shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proved {
    /// Number of removals of parts of the input that were tested and do not fail.
    pub done: u64,
    /// Number of removals of parts of the input that the proof has to test.
    pub of: u64,
}

/// Result of a minimization (`minimized.json`). The file is written last: if it exists, the
/// reproducer and the log beside it are final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Minimized {
    /// Minimality of the reproducer: `1-minimal` (without any single part, it no longer fails),
    /// `2-minimal` (nor without any two parts) or `best-so-far` (nothing is claimed). The field
    /// `proved` says how much of the claim is proved.
    pub claim: String,
    /// Size of the input before the minimization, in bytes.
    pub size_before: u64,
    /// Size of the reproducer (the smallest failing input found by the minimization), in bytes.
    pub size_after: u64,
    /// Numbers of the minimization's tests by how they were answered (by a run, a cache, …), as in
    /// the JSON result of `min`.
    pub tests: serde_json::Value,
    /// Progress of the proof of the reproducer's minimality (`claim`): the number of removals of
    /// parts of the reproducer that were tested, and the number that the proof needs.
    pub proved: Proved,
    /// Minor key of the reproducer, which may differ from the key of the input as found; `None` if
    /// unknown.
    pub minor_after: Option<Key>,
    /// The reproducer as parsed by the harness, in Rust's `Debug` format; also in `debug.txt`.
    /// `None` if the harness does not print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<String>,
    /// Whether the target crashes on every input, so that the input does not matter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// Number of bytes of the reproducer for which the minimization did not yet test whether the
    /// character `0` can replace them, because the budget ended.
    #[serde(default, skip_serializing_if = "crate::json::is_zero")]
    pub untried: u64,
    /// Failure rate of the reproducer when it was run repeatedly or, if it always failed, failure
    /// rate of the input as found; `None` if both always failed. A rate of 100 % means that a
    /// candidate failed in one run and not in another, although all repeated runs failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Rate>,
    /// Reason why the minimization of the input was abandoned; `None` if it was not abandoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

impl Minimized {
    /// Returns true if the reproducer in the entry's folder `folder` has the size that this result
    /// states. If there is no file with a reproducer, the size of the whole input is compared.
    pub(super) fn fits(&self, folder: &Path) -> bool {
        let size = |name| Some(std::fs::metadata(folder.join(name)).ok()?.len());
        let reproducer = size(layout::MINIMIZED).or_else(|| size(layout::ORIGINAL));
        reproducer == Some(self.size_after)
    }

    /// Returns whether the minimality of the reproducer is completely proved and stronger than
    /// `best-so-far`.
    pub fn is_proved(&self) -> bool {
        self.claim != "best-so-far" && self.proved.done >= self.proved.of
    }

    /// Returns whether the crash never occurred again: neither the input as found nor the
    /// reproducer failed in any of many repeated runs.
    pub fn never_fails(&self) -> bool {
        self.flaky.is_some_and(|rate| rate.hits == 0)
    }

    /// Returns this result without its claim, because its crash was found to be flaky, with the
    /// failure rate `rate`: the tests on which the claim rests then prove nothing.
    pub(super) fn without_claim(self, rate: Rate) -> Minimized {
        Minimized {
            claim: Claim::BestSoFar.to_string(),
            proved: Proved {
                done: 0,
                ..self.proved
            },
            flaky: Some(rate),
            ..self
        }
    }

    /// Returns whether a budget ended the minimization early, so that more time could reduce the
    /// input further.
    pub fn is_unfinished(&self) -> bool {
        let is_settled = self.given_up.is_some() || self.flaky.is_some();
        self.claim == "best-so-far" && !is_settled
    }
}

/// Record of a group, that is, of all crashes with one major key (`group.json`). It is computed
/// from the group's entries (stored inputs with crash records), except `first_seen` and `seen`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Version of the JSON schema of `group.json`.
    pub v: u32,
    /// Class of the group's crashes, such as `segv` or `asan:heap-buffer-overflow`.
    pub class: Class,
    /// Major key of the group (the hash that identifies the bug), all 32 hex digits.
    pub major: Key,
    /// Highest estimated severity of the crashes in the group.
    pub severity: Severity,
    /// Time when the first crash of the group was stored, as RFC 3339 in UTC.
    pub first_seen: String,
    /// For each minor key (12 hex digits; a call path to the bug), the hash of the stored input
    /// that represents it: preferably one whose reproducer is proved minimal, and among these the
    /// one with the smallest reproducer.
    pub representatives: BTreeMap<String, String>,
    /// Number of runs that ended in the group, by id of the campaign that made them.
    pub seen: BTreeMap<String, u64>,
}

impl GroupRecord {
    /// Merges another record of the same group into this one: the higher severity, the earlier time
    /// and, for each campaign, the larger number of runs are kept. The best entries of minor keys
    /// are not merged; [`GroupIndex::with_record`] chooses them again.
    pub(super) fn join(&mut self, other: GroupRecord) {
        self.class = self.class.clone().min(other.class);
        self.major = self.major.min(other.major);
        self.severity = self.severity.max(other.severity);
        self.first_seen = std::mem::take(&mut self.first_seen).min(other.first_seen);
        for (campaign, runs) in other.seen {
            let seen = self.seen.entry(campaign).or_default();
            *seen = runs.max(*seen);
        }
    }
}

/// One group of an output directory (all crashes with one major key), as read from disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Folder of the group in the output directory, such as `crashes/MAJOR`.
    pub folder: PathBuf,
    /// The record of the group (`group.json`): class, severity, best entries (stored inputs) and
    /// counts of runs.
    pub record: GroupRecord,
}

impl Group {
    /// Iterates over the ids of the group's best entries (stored inputs), one for each minor key
    /// (call path to the bug), sorted by minor key.
    pub fn representatives(&self) -> impl Iterator<Item = EntryId> {
        let major = self.record.major.short();
        (self.record.representatives.iter())
            .filter_map(move |(minor, hash)| EntryId::from_names(self.kind, &major, minor, hash))
    }

    /// Reads all complete entries (inputs with their crash records) of the group, sorted by minor
    /// key and hash.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        read_entries(self.root(), self.kind, &self.record.major.short())
    }

    /// Returns true if the crash of the group is flaky: the group is in `flaky/`, or `flaky/` has a
    /// crash with the same major key. In a study of many utilities (system programs), the crash in
    /// `flaky/` must also be of the same utility as `entry`, which is one of this group's inputs.
    pub fn is_flaky(&self, entry: &Entry) -> Result<bool, StoreError> {
        if self.kind == Kind::Flaky {
            return Ok(true);
        }
        let utility = |entry: &Entry| entry.crash.of.as_ref().map(|of| of.utility.clone());
        let flaky = read_entries(self.root(), Kind::Flaky, &self.record.major.short())?;
        Ok(flaky.iter().any(|one| utility(one) == utility(entry)))
    }

    /// Returns the output directory of the group.
    pub(super) fn root(&self) -> &Path {
        self.folder.ancestors().nth(2).unwrap_or(&self.folder)
    }

    /// Returns the number of runs, over all campaigns, that ended in the group.
    pub fn runs_seen(&self) -> u64 {
        (self.record.seen.values()).fold(0, |sum, runs| sum.saturating_add(*runs))
    }
}

/// Rank by which the best entry (stored input) of a minor key is chosen; the least rank is the
/// best. Entries of equal rank are compared by the bytes of their reproducers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryRank {
    /// Whether the minimality of the entry's reproducer (smallest known failing input) is not
    /// proved.
    unproved: bool,
    /// Whether the entry's reproducer has another minor key than the input as found.
    other_minor: bool,
    /// Size of the entry's reproducer (smallest known failing input), in bytes.
    size: u64,
}

impl EntryRank {
    /// Computes the rank of an entry (stored input) from its files: whether its minimality is
    /// proved, whether its reproducer has another minor key than the input as found, and the
    /// reproducer's size.
    pub(super) fn of(entry: &Entry) -> EntryRank {
        let size = |path: &Path| path.metadata().ok().map(|metadata| metadata.len());
        EntryRank {
            unproved: !entry.minimized.as_ref().is_some_and(|m| m.is_proved()),
            other_minor: entry.shows_another_minor(),
            size: size(&entry.reproducer()).unwrap_or(u64::MAX),
        }
    }
}

/// Ranks of the entries (inputs with crash records) of one minor key, by the hash of the input. The
/// entry with the least rank represents the minor key.
pub(super) type EntryRanks = BTreeMap<String, EntryRank>;

/// A group of crashes in the memory of the directory's writer: its record, and the ranks by which
/// the best entry (stored input) of each minor key is chosen.
#[derive(Clone, Debug)]
pub(super) struct GroupIndex {
    /// The group's record (`group.json`), with the best entry (stored input) of each minor key up
    /// to date.
    pub(super) record: GroupRecord,
    /// Ranks of the group's complete entries (inputs with crash records), by minor key and hash of
    /// the input.
    pub(super) minors: BTreeMap<String, EntryRanks>,
}

impl GroupIndex {
    /// Returns whether the group has a complete entry (an input with its crash record) with this
    /// id.
    pub(super) fn has(&self, id: &EntryId) -> bool {
        (self.minors.get(id.minor())).is_some_and(|ranks| ranks.contains_key(id.hash()))
    }

    /// Makes an index, still without entries (stored inputs), for the group to which the crash of
    /// `entry` belongs; `first_seen` is the time when the group was first seen.
    pub(super) fn of(entry: &Entry, first_seen: SystemTime) -> GroupIndex {
        GroupIndex {
            record: GroupRecord {
                v: 1,
                class: entry.crash.class.clone(),
                major: entry.crash.keys.major,
                severity: entry.crash.severity,
                first_seen: rfc3339(first_seen),
                representatives: BTreeMap::new(),
                seen: BTreeMap::new(),
            },
            minors: BTreeMap::new(),
        }
    }

    /// Reads the group with the major key `major` from the output directory `root`; `None` if it
    /// has neither a record nor a complete entry (an input with its crash record). If the record is
    /// missing, damaged or that of another group, it is rebuilt from the entries; `first_seen` is
    /// then the oldest modification time of their inputs.
    pub(super) fn read(
        root: &Path,
        kind: Kind,
        major: &str,
    ) -> Result<Option<GroupIndex>, StoreError> {
        let path = layout::group_folder(root, kind, major).join(layout::GROUP);
        let record: Option<GroupRecord> = json::read_intact(&path)?;
        let own = record.filter(|record| record.major.short() == major);
        GroupIndex::with_record(own, root, kind, major)
    }

    /// Reads a group like [`GroupIndex::read`], but with `record` in place of the content of
    /// `group.json`. If `record` is `None`, a record is made from the group's entries.
    pub(super) fn with_record(
        mut record: Option<GroupRecord>,
        root: &Path,
        kind: Kind,
        major: &str,
    ) -> Result<Option<GroupIndex>, StoreError> {
        let folder = layout::group_folder(root, kind, major);
        let recorded = record.is_some();
        let mut minors: BTreeMap<String, EntryRanks> = BTreeMap::new();
        for id in entry_ids(root, kind, major)? {
            let Some(entry) = Entry::read(root, &id)? else {
                continue;
            };
            let ranks = minors.entry(id.minor().to_owned()).or_default();
            ranks.insert(id.hash().to_owned(), EntryRank::of(&entry));
            let found = GroupIndex::of(&entry, modified(&entry.original())).record;
            match &mut record {
                None => record = Some(found),
                Some(record) if recorded => record.severity = record.severity.max(found.severity),
                Some(record) => record.join(found),
            }
        }
        let Some(mut record) = record else {
            return Ok(None);
        };
        record.representatives.clear();
        let mut index = GroupIndex { record, minors };
        for minor in index.minors.keys().cloned().collect::<Vec<_>>() {
            index.choose(&folder, &minor)?;
        }
        Ok(Some(index))
    }

    /// Records `rank`, the rank of a new or changed entry (stored input), in the group, and updates
    /// which entry is the best one of its minor key. `group` is the folder of the group.
    pub(super) fn set_rank(
        &mut self,
        group: &Path,
        id: &EntryId,
        rank: EntryRank,
    ) -> Result<(), StoreError> {
        let ranks = self.minors.entry(id.minor().to_owned()).or_default();
        ranks.insert(id.hash().to_owned(), rank);
        let held = self.record.representatives.get(id.minor()).cloned();
        let Some(held) = held.filter(|held| held != id.hash()) else {
            return self.choose(group, id.minor());
        };
        // The held entry is better than all others, so one comparison is enough.
        let bytes = |hash: &str| reproducer_bytes(&group.join(id.minor()).join(hash));
        let order = match ranks.get(&held) {
            Some(held_rank) if *held_rank == rank => {
                (bytes(id.hash())?, id.hash()).cmp(&(bytes(&held)?, &held))
            }
            held_rank => Some(&rank).cmp(&held_rank),
        };
        if order.is_lt() {
            let minor = id.minor().to_owned();
            (self.record.representatives).insert(minor, id.hash().to_owned());
        }
        Ok(())
    }

    /// Chooses again the best entry (stored input) of the minor key `minor`: the one with the least
    /// [`EntryRank`] (proved minimal, with the minor key of the input as found, small). Among equal
    /// ranks, the reproducer that comes first in the order of bytes decides, then the hash that
    /// comes first. `group` is the folder of the group.
    pub(super) fn choose(&mut self, group: &Path, minor: &str) -> Result<(), StoreError> {
        let Some(ranks) = self.minors.get(minor) else {
            return Ok(());
        };
        let best = ranks.values().min();
        let mut tied = (ranks.iter()).filter(|&(_, rank)| Some(rank) == best);
        let Some((mut chosen, _)) = tied.next() else {
            return Ok(());
        };
        let mut least: Option<Vec<u8>> = None;
        for (hash, _) in tied {
            let bytes = |hash| reproducer_bytes(&group.join(minor).join(hash));
            let found = bytes(hash)?;
            let held = match least.take() {
                Some(held) => held,
                None => bytes(chosen)?,
            };
            least = Some(if found < held {
                chosen = hash;
                found
            } else {
                held
            });
        }
        (self.record.representatives).insert(minor.to_owned(), chosen.clone());
        Ok(())
    }
}

/// Reads the complete entries (inputs with their crash records) of a group, sorted by minor key and
/// hash.
pub(super) fn read_entries(root: &Path, kind: Kind, major: &str) -> Result<Vec<Entry>, StoreError> {
    let ids = entry_ids(root, kind, major)?;
    let entries = ids.iter().map(|id| Entry::read(root, id));
    entries.filter_map(Result::transpose).collect()
}

/// Lists the ids of all entries (stored inputs) of a group, with or without a crash record, sorted
/// by minor key and hash.
pub(super) fn entry_ids(root: &Path, kind: Kind, major: &str) -> Result<Vec<EntryId>, StoreError> {
    let folder = layout::group_folder(root, kind, major);
    let mut ids = Vec::new();
    for minor in reader::sorted_names(&folder, layout::is_key_name)? {
        for hash in reader::sorted_names(&folder.join(&minor), layout::is_hash_name)? {
            ids.extend(EntryId::from_names(kind, major, &minor, &hash));
        }
    }
    Ok(ids)
}

/// Lists kind and major key (12 hex digits) of all groups that have a folder in the output
/// directory, sorted. A kind without a folder has no groups.
pub(super) fn all(root: &Path) -> Result<Vec<(Kind, String)>, StoreError> {
    let mut groups = Vec::new();
    for kind in Kind::ALL {
        groups.extend(majors(root, kind)?.into_iter().map(|major| (kind, major)));
    }
    Ok(groups)
}

/// Lists the major keys (12 hex digits) of the groups of one kind (crash, hang, …) that have a
/// folder in the output directory `root`, sorted; empty if there are none.
pub(super) fn majors(root: &Path, kind: Kind) -> Result<Vec<String>, StoreError> {
    reader::sorted_names(&root.join(kind.folder()), layout::is_key_name)
}

fn modified(path: &Path) -> SystemTime {
    (path.metadata().and_then(|metadata| metadata.modified())).unwrap_or(UNIX_EPOCH)
}
