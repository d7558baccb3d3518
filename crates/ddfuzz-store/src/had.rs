//! Groups that another output directory has, too (`--against OUT`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Kind, Reader, StoreError};

/// The groups of an output directory, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HadGroups {
    majors: BTreeSet<String>,
    /// Of each stable key, the builds that it is known of.
    stables: BTreeMap<String, BTreeSet<Option<String>>>,
}

impl HadGroups {
    /// Reads the groups of an output directory, of all kinds.
    ///
    /// # Errors
    /// When the directory is none of ours or cannot be read.
    pub fn read(out: &Path) -> Result<HadGroups, StoreError> {
        let reader = Reader::open(out)?;
        let mut had = HadGroups::default();
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
