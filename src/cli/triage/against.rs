//! Which groups another output directory has, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::report::{SameBy, TriageGroup};
use crate::store::{Kind, Reader, StoreError};

/// The groups to compare with.
pub struct Against {
    majors: BTreeSet<String>,
    /// Of each stable key, the builds that it is known of.
    stables: BTreeMap<String, BTreeSet<Option<String>>>,
}

impl Against {
    /// Reads the groups of an output directory, of all kinds.
    pub fn read(out: &Path) -> Result<Against, StoreError> {
        let reader = Reader::open(out)?;
        let mut against = Against {
            majors: BTreeSet::new(),
            stables: BTreeMap::new(),
        };
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                against.majors.insert(group.record.major.short());
                for id in group.representatives() {
                    let Some(entry) = reader.entry(&id)? else {
                        continue;
                    };
                    let Some(stable) = entry.crash.keys.stable else {
                        continue;
                    };
                    let build = entry.crash.build().map(str::to_owned);
                    let builds = against.stables.entry(stable.to_string()).or_default();
                    builds.insert(build);
                }
            }
        }
        Ok(against)
    }

    /// By what the directory has the group, if it has. Names count only where the program was
    /// built anew: within one build, two places in one function are two bugs.
    pub fn find(&self, group: &TriageGroup) -> Option<SameBy> {
        if self.majors.contains(&group.major) {
            return Some(SameBy::Key);
        }
        let builds = self.stables.get(group.stable.as_ref()?)?;
        let other = |build: &Option<String>| build.is_none() || *build != group.build;
        builds.iter().all(other).then_some(SameBy::Names)
    }
}
