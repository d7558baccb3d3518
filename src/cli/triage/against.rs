//! Which groups another output directory has, too, and of which of its groups these runs say
//! nothing.

use std::path::Path;

use crate::report::{CannotTell, SameBy, TriageGroup};
use crate::store::{HadGroups, Kind, Reader, StoreError};
use crate::triage::{Conditions, Crash, Unobservable};

/// Another output directory.
pub struct Against {
    had: HadGroups,
    /// A crash of each of its groups, which stands for them.
    crashes: Vec<Crash>,
}

impl Against {
    /// Reads the groups of the directory.
    ///
    /// # Errors
    /// When it is none of ours or cannot be read.
    pub fn read(out: &Path) -> Result<Against, StoreError> {
        let had = HadGroups::read(out)?;
        let reader = Reader::open(out)?;
        let mut crashes = Vec::new();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                for id in group.representatives() {
                    crashes.extend(reader.entry(&id)?.map(|entry| entry.crash));
                }
            }
        }
        Ok(Against { had, crashes })
    }

    /// Says of a group of runs under these conditions whether the directory has it.
    pub fn judge(&self, group: &mut TriageGroup, now: &Conditions) {
        let same = self.same_by(group);
        group.same_by = same;
        group.new = Some(same.is_none());
        if same.is_none() && !self.is_comparable(group, now) {
            group.new = None;
            group.why = Some(
                "the other directory is of builds with other sanitizers, which see the same bug \
                 as something else"
                    .to_owned(),
            );
        }
    }

    /// By what the directory has the group, if it has.
    fn same_by(&self, group: &TriageGroup) -> Option<SameBy> {
        if self.had.has_major(&group.major) {
            return Some(SameBy::Key);
        }
        let stable = group.stable.as_deref()?;
        let has = self.had.has_names(stable, group.build.as_deref());
        has.then_some(SameBy::Names)
    }

    /// Whether the directory would have the group under the same class.
    fn is_comparable(&self, group: &TriageGroup, now: &Conditions) -> bool {
        let everywhere = [
            "rustpanic",
            "gopanic",
            "stackoverflow",
            "hang",
            "oom",
            "sys",
        ];
        let class = group.class.as_str();
        let now = now.instrumentation.as_deref();
        everywhere.contains(&class)
            || class.starts_with("exit:")
            || self.crashes.is_empty()
            || self.crashes.iter().any(|crash| crash.is_comparable(now))
    }

    /// The groups of the directory that runs under these conditions cannot show, each once.
    pub fn cannot_tell(&self, now: &Conditions) -> Vec<CannotTell> {
        let mut all: Vec<CannotTell> = Vec::new();
        for crash in &self.crashes {
            let major = crash.keys.major.short();
            if let Some(Unobservable { why, hint }) = crash.unobservable(now)
                && all.iter().all(|known| known.major != major)
            {
                all.push(CannotTell {
                    major,
                    class: crash.class.to_string(),
                    why,
                    hint,
                });
            }
        }
        all
    }
}
