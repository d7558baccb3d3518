//! What studies of many utilities came to.

use std::fs;
use std::path::{Path, PathBuf};

use ddfuzz::report::study::{rows, study_groups};
use ddfuzz::store::{EntryId, Kind, Store, StoreError, StudyRecord, merge};

use crate::sample::{by_run, campaign, crash, outcome, study, subject, utility};
use crate::tree::tree;

fn store(folder: &Path, name: &str) -> Store {
    Store::create_or_resume(&folder.join(name), campaign(name)).unwrap()
}

fn file(store: &mut Store, utility: &str, major: &str, input: &[u8]) -> EntryId {
    let mut crash = by_run(crash(major, "minor"), 0);
    crash.of = Some(Box::new(subject(utility, 1)));
    store.file(Kind::Crash, &crash, input).unwrap().id
}

fn merged(folder: &Path, inputs: &[&str], out: &str) -> PathBuf {
    let inputs: Vec<PathBuf> = inputs.iter().map(|name| folder.join(name)).collect();
    merge(&inputs, &folder.join(out)).unwrap();
    folder.join(out)
}

#[test]
fn a_study_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a");
    let record = study("a", vec![utility(0, 7)]);
    store.write_study(&record).unwrap();
    assert_eq!(store.reader().studies().unwrap(), [record]);
}

/// Two hosts have run a part each, and one of them has a copy of an earlier state of the other.
#[test]
fn shards_give_the_whole_in_any_order_and_any_number_of_times() {
    let folder = tempfile::tempdir().unwrap();
    let shard = |name: &str, number, places: &[u64], runs| {
        let utilities = places.iter().map(|place| utility(*place, runs)).collect();
        let record = StudyRecord {
            shard: Some((number, 2)),
            host: name.to_owned(),
            ..study(name, utilities)
        };
        store(folder.path(), name).write_study(&record).unwrap();
    };
    shard("a", 1, &[2, 0], 5);
    shard("b", 2, &[3, 1], 5);
    fs::create_dir(folder.path().join("early")).unwrap();
    let early = store(folder.path(), "early/a");
    early.write_study(&study("a", vec![utility(0, 3)])).unwrap();
    let whole = merged(folder.path(), &["a", "b", "early/a"], "all");
    let again = merged(folder.path(), &["early/a", "b", "a", "b"], "again");
    assert_eq!(tree(&again), tree(&whole));
    let twice = merged(folder.path(), &["all", "b", "early/a"], "twice");
    assert_eq!(tree(&twice), tree(&whole));
    let studies = Store::open_read(&whole).unwrap().studies().unwrap();
    let rows = rows(&studies, &[]);
    let shown: Vec<_> = (rows.iter())
        .map(|row| (row.utility.as_str(), row.total().runs, row.host.as_str()))
        .collect();
    let hosts: Vec<&str> = shown.iter().map(|(_, _, host)| *host).collect();
    assert_eq!(hosts, ["a", "b", "a", "b"]);
    let runs: Vec<_> = shown.iter().map(|(name, runs, _)| (*name, *runs)).collect();
    assert_eq!(runs, [("u0", 5), ("u1", 5), ("u2", 5), ("u3", 5)]);
}

/// A merge names its file by the campaign, which here is the path of a file of somebody else.
#[test]
fn a_study_that_is_not_named_after_its_campaign_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a");
    store.write_study(&study("a", Vec::new())).unwrap();
    let foreign = folder.path().join("foreign");
    let record = study(foreign.to_str().unwrap(), Vec::new());
    let file = folder.path().join("a/studies/a.json");
    fs::write(&file, serde_json::to_vec(&record).unwrap()).unwrap();
    let error = merge(&[folder.path().join("a")], &folder.path().join("out")).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { path, .. } if path == file));
    assert!(!foreign.with_extension("json").exists());
}

#[test]
fn a_group_stands_once_for_each_utility_through_its_minimized_entry() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(folder.path(), "a");
    file(&mut store, "vi", "library", b"1");
    let best = file(&mut store, "vi", "library", b"333");
    file(&mut store, "ex", "library", b"22");
    file(&mut store, "ul", "own", b"4444");
    store.write_minimized(&best, b"33").unwrap();
    store.write_outcome(&best, &outcome(2, true)).unwrap();
    // Found by another campaign, of one program.
    let alone = by_run(crash("library", "minor"), 9);
    store.file(Kind::Crash, &alone, b"").unwrap();
    let groups = study_groups(store.reader()).unwrap();
    let mut shown: Vec<_> = (groups.iter())
        .map(|group| (group.utility.as_str(), group.view.reproducer.as_slice()))
        .collect();
    shown.sort();
    let expected: [(&str, &[u8]); 3] = [("ex", b"22"), ("ul", b"4444"), ("vi", b"33")];
    assert_eq!(shown, expected);
}

#[test]
fn the_options_that_were_minimized_furthest_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments, lines) in [("a", 2, 3), ("b", 0, 9)] {
        let mut store = store(folder.path(), name);
        let id = file(&mut store, "ul", "m", b"1");
        store.set_subject(&id, &subject("ul", arguments)).unwrap();
        let log = store.options_log(&id).unwrap();
        fs::write(log, "{}\n".repeat(lines)).unwrap();
    }
    let whole = merged(folder.path(), &["a", "b"], "all");
    assert_eq!(
        tree(&merged(folder.path(), &["b", "a"], "other")),
        tree(&whole)
    );
    let reader = Store::open_read(&whole).unwrap();
    let group = reader.groups(Kind::Crash).unwrap().remove(0);
    let entry = reader.entry(&group.representatives().next().unwrap());
    let entry = entry.unwrap().unwrap();
    assert_eq!(entry.crash.of.unwrap().target.args, []);
    let log = fs::read_to_string(entry.folder.join("options.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 9);
}
