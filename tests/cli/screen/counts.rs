//! The numbers of runs of groups keep up with the number of crashes above them.

use std::collections::BTreeMap;

use ddfuzz::store::Kind;

use super::sample;

#[test]
fn groups_have_the_counts_of_the_campaign_and_older_files_do_not_lower_them() {
    let mut course = sample::busy(false);
    let group = course.groups().first().expect("a group").clone();
    let counted = BTreeMap::from([(group.key.clone(), group.seen + 1000)]);
    course.seen(&BTreeMap::from([(group.kind, counted)]));
    assert_eq!(course.groups()[0].seen, group.seen + 1000);
    // Runs of earlier campaigns are in the file only.
    course.seen(&BTreeMap::from([(
        Kind::Crash,
        BTreeMap::from([(group.key.clone(), 1)]),
    )]));
    assert_eq!(course.groups()[0].seen, group.seen + 1000);
    let mut older = group.clone();
    older.seen = 3;
    let mut shown = course.groups()[0].clone();
    shown.update(older);
    assert_eq!(shown.seen, group.seen + 1000);
}
