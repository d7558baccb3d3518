//! One stored input (an entry) with its record and the result of its minimization, and one bug (a
//! group of entries, `group.json`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{EntryId, Kind, StoreError, json, layout, reader, rfc3339};
use ddfuzz_minimize::Rate;
use ddfuzz_triage::{Class, Crash, Key, Severity};

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

/// The record of a group: a function of its entries, but for when and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Version of this record's schema.
    pub v: u32,
    /// What kind of death.
    pub class: Class,
    /// The major key, whole.
    pub major: Key,
    /// The highest estimate of its entries.
    pub severity: Severity,
    /// When its first entry was filed, RFC 3339 in UTC.
    pub first_seen: String,
    /// By minor key (12 hex digits), the HASH of the entry with the least reproducer by
    /// (proved, size, bytes).
    pub representatives: BTreeMap<String, String>,
    /// By campaign id, how many runs ended so.
    pub seen: BTreeMap<String, u64>,
}

impl GroupRecord {
    /// The union of two records of one group: the higher severity, the earlier sight and, per
    /// campaign, the larger count. Representatives are no part of it: they follow from the
    /// entries.
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

/// One group of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The kind of finding.
    pub kind: Kind,
    /// Its folder.
    pub folder: PathBuf,
    /// Its record.
    pub record: GroupRecord,
}

impl Group {
    /// The representative of each minor key, by minor key.
    pub fn representatives(&self) -> impl Iterator<Item = EntryId> {
        let major = self.record.major.short();
        (self.record.representatives.iter())
            .filter_map(move |(minor, hash)| EntryId::from_names(self.kind, &major, minor, hash))
    }

    /// The complete entries, by minor key and HASH.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        let root = self.folder.ancestors().nth(2);
        let root = root.unwrap_or(&self.folder);
        let mut entries = Vec::new();
        for id in entry_ids(root, self.kind, &self.record.major.short())? {
            entries.extend(Entry::read(root, &id)?);
        }
        Ok(entries)
    }

    /// Runs of all campaigns that ended in this group.
    pub fn runs_seen(&self) -> u64 {
        (self.record.seen.values()).fold(0, |sum, runs| sum.saturating_add(*runs))
    }
}

/// How entries of one minor key are compared before their bytes; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryRank {
    /// Proved ones first.
    unproved: bool,
    /// Reproducers that show the minor key first.
    other_minor: bool,
    /// Size of the reproducer, in bytes.
    size: u64,
}

impl EntryRank {
    /// The rank of an entry as its files stand.
    pub(super) fn of(entry: &Entry) -> EntryRank {
        let size = |path: &Path| path.metadata().ok().map(|metadata| metadata.len());
        EntryRank {
            unproved: !entry.minimized.as_ref().is_some_and(|m| m.is_proved()),
            other_minor: entry.shows_another_minor(),
            size: size(&entry.reproducer()).unwrap_or(u64::MAX),
        }
    }
}

/// The ranks of a minor key's entries, by HASH.
pub(super) type EntryRanks = BTreeMap<String, EntryRank>;

/// A group: its record, and all complete entries by minor key.
#[derive(Clone, Debug)]
pub(super) struct GroupIndex {
    /// The record, its representatives recomputed.
    pub(super) record: GroupRecord,
    /// The entries.
    pub(super) minors: BTreeMap<String, EntryRanks>,
}

impl GroupIndex {
    /// Whether it has a complete entry.
    pub(super) fn has_entries(&self) -> bool {
        !self.minors.is_empty()
    }

    /// Whether it has this entry, complete.
    pub(super) fn has(&self, id: &EntryId) -> bool {
        (self.minors.get(id.minor())).is_some_and(|ranks| ranks.contains_key(id.hash()))
    }

    /// An empty index of the group of `entry`; `first_seen` is when it was filed.
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

    /// Reads a group; `None` where it has neither a record nor a complete entry. A missing or
    /// damaged record is made anew from the entries; then the first sight is the least
    /// modification time of their inputs.
    pub(super) fn read(
        root: &Path,
        kind: Kind,
        major: &str,
    ) -> Result<Option<GroupIndex>, StoreError> {
        let path = layout::group_folder(root, kind, major).join(layout::GROUP);
        GroupIndex::with_record(json::read_intact(&path)?, root, kind, major)
    }

    /// Like [`GroupIndex::read`], with this record in the place of the one on disk.
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

    /// Adds an entry, or its new rank after its reproducer or outcome changed, and updates the
    /// representative.
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
        // All others lost against the held one before, so one comparison is enough.
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

    /// Chooses the representative of `minor` again: the least entry by (proved, size, bytes),
    /// and by HASH where two reproducers are the same. Of several that are proved one that shows
    /// another minor key comes last.
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

/// All entries of a group that have a folder, complete or not, in order.
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

/// The major keys (12 hex digits) that have a folder, in order.
pub(super) fn majors(root: &Path, kind: Kind) -> Result<Vec<String>, StoreError> {
    reader::sorted_names(&root.join(kind.folder()), layout::is_key_name)
}

fn modified(path: &Path) -> SystemTime {
    (path.metadata().and_then(|metadata| metadata.modified())).unwrap_or(UNIX_EPOCH)
}
