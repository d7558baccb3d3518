//! The groups of a study, one for each utility that is in them.

use std::collections::BTreeMap;

use crate::report::GroupView;
use crate::{Entry, Group, Kind, Reader, StoreError};

/// A group as far as one utility is in it, through that utility's best entry.
///
/// Of two utilities the crashes may have one key: in a library that both use, or where nothing but
/// the class is known. Such a group stands once for each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyGroup {
    /// What the study calls the utility.
    pub utility: String,
    /// What is to be shown.
    pub view: GroupView,
    /// The stable key of the entry, whole; `None` without symbols.
    pub stable: Option<String>,
    /// The build id of the program, by which stable keys are compared or not.
    pub build: Option<String>,
}

/// All groups of a directory that are of utilities, by kind, major key and utility. Entries that do
/// not say what was run are of no study, and left out.
///
/// # Errors
/// When a file cannot be read.
pub fn study_groups(reader: &Reader) -> Result<Vec<StudyGroup>, StoreError> {
    let mut groups = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            for (utility, entry) in best_entries(reader, &group)? {
                groups.push(StudyGroup {
                    utility,
                    view: GroupView::load(&group, &entry)?,
                    stable: entry.crash.keys.stable.map(|key| key.to_string()),
                    build: entry.crash.build().map(str::to_owned),
                });
            }
        }
    }
    Ok(groups)
}

/// The entry of each utility through which a group is shown: a minimized one, else that of the
/// least reproducer.
fn best_entries(reader: &Reader, group: &Group) -> Result<BTreeMap<String, Entry>, StoreError> {
    let mut best = BTreeMap::new();
    for entry in reader.entries(group.kind, &group.record.major.short())? {
        let Some(subject) = &entry.crash.of else {
            continue;
        };
        let utility = subject.utility.clone();
        let size = entry
            .reproducer()
            .metadata()
            .map_or(u64::MAX, |it| it.len());
        let rank = (entry.minimized.is_none(), size, entry.id.clone());
        match best.get(&utility) {
            Some((held, _)) if *held <= rank => {}
            _ => drop(best.insert(utility, (rank, entry))),
        }
    }
    let entries = best.into_iter();
    Ok(entries
        .map(|(utility, (_, entry))| (utility, entry))
        .collect())
}
