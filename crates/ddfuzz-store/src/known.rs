//! Groups that the user knows and does not want to hear of (`--known FILE`).

use std::collections::BTreeSet;

use super::HadGroups;
use ddfuzz_triage::{Crash, Key};

/// Fewest hex digits that name a key: as many as are shown.
const DIGITS: std::ops::RangeInclusive<usize> = 12..=32;

/// What a line begins with that names a stable key.
const STABLE: &str = "stable:";

/// Muted groups, by the beginnings of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownGroups {
    majors: BTreeSet<String>,
    stables: BTreeSet<String>,
    had: HadGroups,
}

/// A line that names no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is not a key")]
pub struct NoKey {
    /// Its number, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
}

impl KnownGroups {
    /// Reads a list: a line holds 12 to 32 hex digits of a major key, or `stable:` and as many of
    /// a stable key; what stands behind a `#` is a remark.
    ///
    /// # Errors
    /// [`NoKey`] of the first line that is neither empty nor a key.
    pub fn parse(text: &str) -> Result<KnownGroups, NoKey> {
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
                return Err(NoKey {
                    line: at + 1,
                    text: word.to_owned(),
                });
            }
            into.insert(digits.to_ascii_lowercase());
        }
        Ok(known)
    }

    /// The same list, and with it all groups that another output directory has.
    pub fn and_had(self, had: HadGroups) -> KnownGroups {
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
        let Some(stable) = stable.filter(|_| self.names_stables()) else {
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
    pub fn names_stables(&self) -> bool {
        !self.stables.is_empty() || self.had.has_stables()
    }
}
