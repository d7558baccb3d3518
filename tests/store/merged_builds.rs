//! Merging directories in which results of several builds are recorded.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ddfuzz::store::{EntryId, Kind, Status, Store, merge};

use crate::builds::{directory, file_in, hash, last_build, minimize, names, record};
use crate::mounts;
use crate::tree::tree;

const BUILDS: &[(&str, &str)] = &[("x", "1"), ("y", "3")];

/// Records what a check with the last build has found: statuses of groups, and of each group that
/// fails the result that was run.
fn check(store: &mut Store, statuses: &[(&EntryId, Status)]) {
    let mut build = last_build(store.reader().root());
    build.unchecked.clear();
    for (id, status) in statuses {
        let groups = build.groups.entry(Kind::Crash).or_default();
        groups.insert(id.major().to_owned(), *status);
        if *status == Status::Same {
            build.add_failing(Kind::Crash, id.major(), id.minor(), id.hash());
            let entry = store.reader().entry(id).unwrap().unwrap();
            build.failing_results.extend(entry.log_hash().unwrap());
        }
    }
    store.record_build(&record(), build).unwrap();
}

/// The groups that are to be checked with the last build.
fn unchecked(root: &Path) -> BTreeSet<String> {
    last_build(root)
        .unchecked
        .remove(&Kind::Crash)
        .unwrap_or_default()
}

/// Two directories `old` and `new`, the second of which began as a copy of the first and was checked
/// with the build `y`. The groups: `passes` has a small result that passes with `y`, and another one
/// made with `y`; `same` has one result, which fails with both; `fixed` has one that passes;
/// `smaller` is fixed as well, and `old` has found a smaller result of it since.
pub fn copy_that_was_rebuilt(folder: &Path) -> [EntryId; 4] {
    let mut old = directory(folder, "old", &BUILDS[..1]);
    let groups = ["passes", "same", "fixed", "smaller"];
    let ids = groups.map(|major| file_in(&mut old, "old", major));
    for id in &ids {
        minimize(&mut old, id, "x", b"orig");
    }
    drop(directory(folder, "new", BUILDS));
    merge(&[folder.join("old")], &folder.join("new")).unwrap();
    let mut new = Store::open(&folder.join("new"), None).unwrap();
    let [passes, same, fixed, smaller] = &ids;
    let entry = new.reader().entry(passes).unwrap().unwrap();
    new.archive_passing(&entry).unwrap();
    minimize(&mut new, passes, "y", b"origin");
    let failing = [(passes, Status::Same), (same, Status::Same)];
    let gone = [(fixed, Status::Fixed), (smaller, Status::Fixed)];
    check(&mut new, &[failing, gone].concat());
    minimize(&mut old, smaller, "x", b"or");
    ids
}

fn merged(folder: &Path, inputs: &[&str], into: &str) -> PathBuf {
    let inputs: Vec<PathBuf> = inputs.iter().map(|name| folder.join(name)).collect();
    merge(&inputs, &folder.join(into)).unwrap();
    folder.join(into)
}

#[test]
fn results_of_several_builds_merge_in_any_order_and_nothing_smaller_is_lost() {
    let folder = mounts::fast_tempdir();
    let [passes, same, fixed, smaller] = copy_that_was_rebuilt(folder.path());
    let one = merged(folder.path(), &["old", "new"], "one");
    let whole = tree(&one);
    let other = merged(folder.path(), &["new", "old"], "other");
    assert_eq!(tree(&other), whole);
    for repeated in [&["old"][..], &["new"], &["new", "old", "old"], &["other"]] {
        merged(folder.path(), repeated, "one");
        assert_eq!(tree(&one), whole, "{repeated:?}");
    }
    let reader = Store::open_read(&one).unwrap();
    let entry = |id: &EntryId| reader.entry(id).unwrap().unwrap();
    let archived = |id: &EntryId| -> Vec<Vec<u8>> {
        let all = entry(id).archived().unwrap().into_iter();
        all.map(|one| one.reproducer).collect()
    };
    assert_eq!(entry(&passes).reproducer_bytes().unwrap(), b"origin");
    assert_eq!(archived(&passes), [b"orig"]);
    assert_eq!(entry(&smaller).reproducer_bytes().unwrap(), b"or");
    for id in [&same, &fixed] {
        assert_eq!(entry(id).reproducer_bytes().unwrap(), b"orig");
        assert!(archived(id).is_empty(), "{:?}", names(&entry(id).folder));
    }
    // Only what no check with the last build has run is to be checked.
    assert_eq!(last_build(&one).blake3, hash("y"));
    assert_eq!(unchecked(&one), [smaller.major().to_owned()].into());
}

#[test]
fn an_earlier_state_of_a_minimization_is_not_kept_beside_a_later_one() {
    let folder = mounts::fast_tempdir();
    for (name, log, result) in [("a", "{}\n", &b"origi"[..]), ("b", "{}\n{}\n", b"or")] {
        let mut store = directory(folder.path(), name, &[]);
        let id = file_in(&mut store, name, "m");
        fs::write(id.log(store.reader().root()), log).unwrap();
        store.write_minimized(&id, result).unwrap();
    }
    let mut other = directory(folder.path(), "c", &[]);
    let id = file_in(&mut other, "c", "m");
    minimize(&mut other, &id, "x", b"origin");
    let archived = |root: &Path| -> Vec<Vec<u8>> {
        let entry = Store::open_read(root).unwrap().entry(&id).unwrap().unwrap();
        let all = entry.archived().unwrap().into_iter();
        all.map(|one| one.reproducer).collect()
    };
    let two = merged(folder.path(), &["a", "b"], "two");
    assert!(archived(&two).is_empty());
    // The finished minimization is the result; the smaller reproducer stays beside it.
    let orders = [["a", "c", "b"], ["c", "b", "a"], ["b", "a", "c"]];
    let all = orders.map(|order| merged(folder.path(), &order, &order.concat()));
    for root in &all {
        assert_eq!(archived(root), [b"or"]);
        assert_eq!(tree(root), tree(&all[0]));
    }
}

#[test]
fn a_group_that_no_check_has_seen_is_to_be_checked() {
    let folder = mounts::fast_tempdir();
    let mut old = directory(folder.path(), "old", &BUILDS[..1]);
    let id = file_in(&mut old, "old", "m");
    minimize(&mut old, &id, "x", b"or");
    drop(directory(folder.path(), "new", BUILDS));
    for (into, inputs) in [("one", ["old", "new"]), ("other", ["new", "old"])] {
        let into = merged(folder.path(), &inputs, into);
        assert_eq!(unchecked(&into), [id.major().to_owned()].into());
    }
}

#[test]
fn a_result_that_an_earlier_merge_has_archived_comes_back_where_the_better_one_passes() {
    let folder = mounts::fast_tempdir();
    let mut first = directory(folder.path(), "first", &BUILDS[..1]);
    let id = file_in(&mut first, "first", "m");
    merge(&[folder.path().join("first")], &folder.path().join("other")).unwrap();
    minimize(&mut first, &id, "x", b"origin");
    let mut other = Store::open(&folder.path().join("other"), None).unwrap();
    minimize(&mut other, &id, "x", b"or");
    // The result of the first directory fails with `y`, and passes with `z`.
    let copies = [("fails", BUILDS), ("passes", &[("x", "1"), ("z", "4")])];
    for (name, builds) in copies {
        drop(directory(folder.path(), name, builds));
        merged(folder.path(), &["first"], name);
    }
    let mut fails = Store::open(&folder.path().join("fails"), None).unwrap();
    check(&mut fails, &[(&id, Status::Same)]);
    let mut passes = Store::open(&folder.path().join("passes"), None).unwrap();
    let entry = passes.reader().entry(&id).unwrap().unwrap();
    passes.archive_passing(&entry).unwrap();
    let orders = [
        ["other", "fails", "passes"],
        ["fails", "other", "passes"],
        ["passes", "other", "fails"],
    ];
    let all = orders.map(|order| merged(folder.path(), &order, &order.concat()));
    for root in &all {
        let reader = Store::open_read(root).unwrap();
        let entry = reader.entry(&id).unwrap().unwrap();
        assert_eq!(entry.reproducer_bytes().unwrap(), b"or");
        assert!(entry.minimized.is_some());
        assert_eq!(tree(root), tree(&all[0]));
        let again = merged(folder.path(), &orders[0], root.to_str().unwrap());
        assert_eq!(tree(&again), tree(&all[0]));
    }
}

#[test]
fn of_two_builds_of_one_second_it_is_not_known_which_is_the_last() {
    let folder = mounts::fast_tempdir();
    let mut names = ["y", "z"];
    names.sort_by_key(|name| hash(name));
    let mut first = directory(folder.path(), "first", &BUILDS[..1]);
    let id = file_in(&mut first, "first", "m");
    minimize(&mut first, &id, "x", b"or");
    let statuses = [
        ("same", names[0], Status::Same),
        ("fixed", names[1], Status::Fixed),
    ];
    for (name, build, status) in statuses {
        drop(directory(folder.path(), name, &[("x", "1"), (build, "2")]));
        let mut store = Store::open(&merged(folder.path(), &["first"], name), None).unwrap();
        check(&mut store, &[(&id, status)]);
    }
    let one = merged(folder.path(), &["same", "fixed"], "one");
    let other = merged(folder.path(), &["fixed", "same"], "other");
    assert_eq!(tree(&one), tree(&other));
    assert_eq!(last_build(&one).blake3, hash(names[1]));
    assert_eq!(unchecked(&one), [id.major().to_owned()].into());
    // A check decides; what was merged before does not put it in doubt again.
    let mut store = Store::open(&one, None).unwrap();
    check(&mut store, &[(&id, Status::Fixed)]);
    drop(store);
    merged(folder.path(), &["same", "fixed"], "one");
    assert!(unchecked(&one).is_empty());
}
