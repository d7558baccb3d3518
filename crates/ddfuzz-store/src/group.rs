//! One bug (`group.json`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Entry, EntryId, Kind, StoreError, survey};
use ddfuzz_triage::{Class, Key, Severity};

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
        for id in survey::entry_ids(root, self.kind, &self.record.major.short())? {
            entries.extend(Entry::read(root, &id)?);
        }
        Ok(entries)
    }

    /// Runs of all campaigns that ended so.
    pub fn runs_seen(&self) -> u64 {
        (self.record.seen.values()).fold(0, |sum, runs| sum.saturating_add(*runs))
    }
}
