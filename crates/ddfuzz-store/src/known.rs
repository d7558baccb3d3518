//! Groups that are left out of reports: those of a list (`--known FILE`) and those that another
//! output directory has, too (`--against OUT`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Kind, Reader, StoreError};
use ddfuzz_triage::{Crash, Key};

/// Fewest hex digits that name a key: as many as are shown.
const DIGITS: std::ops::RangeInclusive<usize> = 12..=32;

/// The prefix of a line with a stable key.
const STABLE: &str = "stable:";

/// Muted groups, by the beginnings of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownGroups {
    majors: BTreeSet<String>,
    stables: BTreeSet<String>,
    had: BaselineGroups,
}

/// A line that names no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is not a key")]
pub struct InvalidKey {
    /// Its number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

impl KnownGroups {
    /// Reads a list: a line holds 12 to 32 hex digits of a major key, or `stable:` and as many of
    /// a stable key; what stands behind a `#` is a remark.
    ///
    /// # Errors
    /// [`InvalidKey`] of the first line that is neither empty nor a key.
    pub fn parse(text: &str) -> Result<KnownGroups, InvalidKey> {
        let mut known = KnownGroups::default();
        for (at, line) in text.lines().enumerate() {
            let word = line.split('#').next().unwrap_or_default().trim();
            if word.is_empty() {
                continue;
            }
            let (into, digits) = match word.strip_prefix(STABLE) {
                Some(digits) => (&mut known.stables, digits.trim()),
                None => (&mut known.majors, word),
            };
            let is_key = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_key || !DIGITS.contains(&digits.len()) {
                return Err(InvalidKey {
                    line: at + 1,
                    text: word.to_owned(),
                });
            }
            into.insert(digits.to_ascii_lowercase());
        }
        Ok(known)
    }

    /// Adds all groups that another output directory has.
    pub fn with_baseline(self, had: BaselineGroups) -> KnownGroups {
        KnownGroups { had, ..self }
    }

    /// Whether the group of this major key, whole or its first 12 hex digits, is muted by it.
    pub fn has_major(&self, major: &str) -> bool {
        // Each may be the longer one.
        (self.majors.iter()).any(|known| known.starts_with(major) || major.starts_with(known))
            || self.had.has_major(major)
    }

    /// Whether a crash of this stable key is muted by it.
    pub fn has_stable(&self, stable: Option<Key>) -> bool {
        let Some(stable) = stable.filter(|_| self.has_stable_keys()) else {
            return false;
        };
        let stable = stable.to_string();
        self.stables.iter().any(|known| stable.starts_with(known))
    }

    /// Whether the names in a crash's stack mute it, whatever its major key.
    pub fn has_names(&self, crash: &Crash) -> bool {
        let stable = crash.keys.stable;
        let had = |stable: Key| self.had.has_names(&stable.to_string(), crash.build());
        self.has_stable(stable) || stable.is_some_and(had)
    }

    /// Whether there is a stable key among them.
    pub fn has_stable_keys(&self) -> bool {
        !self.stables.is_empty() || self.had.has_stables()
    }
}

/// The groups of an output directory, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaselineGroups {
    majors: BTreeSet<String>,
    /// Of each stable key, the builds that it is known of.
    stables: BTreeMap<String, BTreeSet<Option<String>>>,
}

impl BaselineGroups {
    /// Reads the groups of an output directory, of all kinds.
    ///
    /// # Errors
    /// When the directory is none of ours or cannot be read.
    pub fn read(out: &Path) -> Result<BaselineGroups, StoreError> {
        let reader = Reader::open(out)?;
        let mut had = BaselineGroups::default();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                had.majors.insert(group.record.major.short());
                for id in group.representatives() {
                    let Some(entry) = reader.entry(&id)? else {
                        continue;
                    };
                    let Some(stable) = entry.crash.keys.stable else {
                        continue;
                    };
                    let build = entry.crash.build().map(str::to_owned);
                    let builds = had.stables.entry(stable.to_string()).or_default();
                    builds.insert(build);
                }
            }
        }
        Ok(had)
    }

    /// Whether there is a group of this major key, whole or its first 12 hex digits.
    pub fn has_major(&self, major: &str) -> bool {
        let short = major.get(..12).unwrap_or(major);
        self.majors.contains(short)
    }

    /// Whether there is a group of this stable key, of other builds of the program alone: within
    /// one build, two places in one function are two bugs.
    pub fn has_names(&self, stable: &str, build: Option<&str>) -> bool {
        let other = |known: &Option<String>| known.is_none() || known.as_deref() != build;
        let builds = self.stables.get(stable);
        builds.is_some_and(|builds| builds.iter().all(other))
    }

    /// Whether any group of it has a stable key.
    pub(super) fn has_stables(&self) -> bool {
        !self.stables.is_empty()
    }
}
