//! Groups that reports leave out: those listed in a file (`--known FILE`), and those of another
//! output directory (`--against OUT`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Kind, Reader, StoreError};
use ddfuzz_triage::{Crash, Key};

/// Number of hex digits by which a list of muted groups may identify a key; reports show 12.
const DIGITS: std::ops::RangeInclusive<usize> = 12..=32;

const STABLE: &str = "stable:";

/// Groups of crashes that the user has muted (reports leave them out), identified by prefixes of
/// their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownGroups {
    majors: BTreeSet<String>,
    stables: BTreeSet<String>,
    had: BaselineGroups,
}

/// Error: a line of a list of muted groups contains no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is not a key")]
pub struct InvalidKey {
    /// Number of the invalid line in the list of muted groups, from 1.
    pub line: usize,
    /// Content of the invalid line in the list of muted groups, without its comment.
    pub text: String,
}

impl KnownGroups {
    /// Parses a list of muted groups. A line holds 12 to 32 hex digits of a major key, or `stable:`
    /// and as many digits of a stable key (made of function names); `#` starts a comment. Errors:
    /// [`InvalidKey`] for the first line that is neither empty nor a key.
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

    /// Returns these muted groups and, in addition, all groups of another output directory, whose
    /// keys are `had`, so that reports leave them out, too.
    pub fn with_baseline(self, had: BaselineGroups) -> KnownGroups {
        KnownGroups { had, ..self }
    }

    /// Returns whether the group with the major key `major` (whole, or its first 12 hex digits) is
    /// muted.
    pub fn has_major(&self, major: &str) -> bool {
        // Either text may be the prefix of the other.
        (self.majors.iter()).any(|known| known.starts_with(major) || major.starts_with(known))
            || self.had.has_major(major)
    }

    /// Returns whether the user's list mutes crashes with this stable key (made of function names);
    /// `false` for `None`.
    pub fn has_stable(&self, stable: Option<Key>) -> bool {
        let Some(stable) = stable.filter(|_| self.has_stable_keys()) else {
            return false;
        };
        let stable = stable.to_string();
        self.stables.iter().any(|known| stable.starts_with(known))
    }

    /// Returns true if the crash counts as known by its stable key (made of function names),
    /// whatever its major key is: the user has muted this key, or the output directory that is
    /// compared has such a crash of another build of the program.
    pub fn has_names(&self, crash: &Crash) -> bool {
        let stable = crash.keys.stable;
        let had = |stable: Key| self.had.has_names(&stable.to_string(), crash.build());
        self.has_stable(stable) || stable.is_some_and(had)
    }

    /// Returns whether any group is muted by a stable key (made of function names).
    pub fn has_stable_keys(&self) -> bool {
        !self.stables.is_empty() || !self.had.stables.is_empty()
    }
}

/// Keys of all groups of an output directory, for comparison with new crashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaselineGroups {
    majors: BTreeSet<String>,
    /// For each stable key (made of function names) of the output directory's crashes, the build
    /// ids of the programs that crashed; `None` for a program without one.
    stables: BTreeMap<String, BTreeSet<Option<String>>>,
}

impl BaselineGroups {
    /// Reads the keys of all groups of an output directory. Fails if the path is not an output
    /// directory or cannot be read.
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

    /// Returns whether a group of the compared output directory has the major key `major`, whole or
    /// its first 12 hex digits.
    pub fn has_major(&self, major: &str) -> bool {
        let short = major.get(..12).unwrap_or(major);
        self.majors.contains(short)
    }

    /// Returns true if the compared output directory has crashes with this stable key (made of
    /// function names), unless one of them is of the build with the id `build`: within one build,
    /// two crash sites in one function are two bugs, so this key does not identify a bug.
    pub fn has_names(&self, stable: &str, build: Option<&str>) -> bool {
        let other = |known: &Option<String>| known.is_none() || known.as_deref() != build;
        let builds = self.stables.get(stable);
        builds.is_some_and(|builds| builds.iter().all(other))
    }
}
