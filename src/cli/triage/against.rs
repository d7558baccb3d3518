//! Which groups another output directory has, too.

use crate::report::{SameBy, TriageGroup};
use crate::store::HadGroups;

/// By what the directory has the group, if it has.
pub fn find(had: &HadGroups, group: &TriageGroup) -> Option<SameBy> {
    if had.has_major(&group.major) {
        return Some(SameBy::Key);
    }
    let stable = group.stable.as_deref()?;
    had.has_names(stable, group.build.as_deref())
        .then_some(SameBy::Names)
}
