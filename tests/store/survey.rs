//! What interruption at any point leaves, and how it is repaired.

use std::fs;
use std::path::Path;

use ddfuzz::store::{EntryId, Kind, Store};

use crate::sample::{by_run, campaign, crash, key};
use crate::tree::tree;

fn with_two_entries(root: &Path) -> [EntryId; 2] {
    let mut store = Store::create_or_resume(root, campaign("c1")).unwrap();
    let ids = [(0, b"first!"), (1, b"second")].map(|(run, input)| {
        store
            .file(Kind::Crash, &by_run(crash("a", "b"), run), input)
            .unwrap()
            .id
    });
    store.set_seen(Kind::Crash, key("a"), "c1", 2).unwrap();
    ids
}

#[test]
fn an_input_without_its_record_is_listed_and_completed_by_filing_it_again() {
    let root = tempfile::tempdir().unwrap();
    let [_, id] = with_two_entries(root.path());
    let whole = tree(root.path());
    for damage in [None, Some(&b"{\"v\": 1, \"ke"[..]), Some(b"")] {
        let record = id.folder(root.path()).join("crash.json");
        fs::remove_file(&record).unwrap();
        if let Some(damage) = damage {
            fs::write(&record, damage).unwrap();
        }
        let reader = Store::open_read(root.path()).unwrap();
        assert_eq!(reader.incomplete().unwrap(), std::slice::from_ref(&id));
        assert_eq!(reader.entries(Kind::Crash, id.major()).unwrap().len(), 1);
        let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
        let filed = store
            .file(Kind::Crash, &by_run(crash("a", "b"), 1), b"second")
            .unwrap();
        assert!(!filed.already);
        assert_eq!(filed.id, id);
        drop(store);
        assert_eq!(tree(root.path()), whole);
    }
}

#[test]
fn an_input_alone_in_its_group_is_no_group_and_no_error() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = with_two_entries(root.path());
    for id in [&first, &second] {
        fs::remove_file(id.folder(root.path()).join("crash.json")).unwrap();
    }
    fs::remove_file(
        root.path()
            .join("crashes")
            .join(first.major())
            .join("group.json"),
    )
    .unwrap();
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(store.reader().groups(Kind::Crash).unwrap(), []);
    assert_eq!(store.reader().incomplete().unwrap().len(), 2);
    assert!(
        store
            .file(Kind::Crash, &by_run(crash("a", "b"), 1), b"second")
            .unwrap()
            .new_major
    );
}

#[test]
fn an_empty_entry_folder_is_nothing() {
    let root = tempfile::tempdir().unwrap();
    let [id, _] = with_two_entries(root.path());
    let empty = id.folder(root.path()).with_file_name("0000000000000000");
    fs::create_dir(empty).unwrap();
    let store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(store.reader().incomplete().unwrap(), []);
    assert_eq!(
        store
            .reader()
            .entries(Kind::Crash, id.major())
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_missing_or_damaged_group_record_is_made_again_from_the_entries() {
    let root = tempfile::tempdir().unwrap();
    let [id, _] = with_two_entries(root.path());
    let path = root
        .path()
        .join("crashes")
        .join(id.major())
        .join("group.json");
    let group = || {
        Store::open_read(root.path())
            .unwrap()
            .groups(Kind::Crash)
            .unwrap()
            .remove(0)
    };
    let before = group().record;
    for damage in ["", "{", "[]"] {
        fs::write(&path, damage).unwrap();
        let read = group().record;
        assert_eq!(read.representatives, before.representatives);
        drop(Store::create_or_resume(root.path(), campaign("c1")).unwrap());
        let text = serde_json::to_string_pretty(&read).unwrap() + "\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_group_record_behind_its_entries_is_brought_up_to_date_with_its_counts_kept() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = with_two_entries(root.path());
    let folder = root.path().join("crashes").join(first.major());
    let whole = fs::read(folder.join("group.json")).unwrap();
    let mut behind: serde_json::Value = serde_json::from_slice(&whole).unwrap();
    behind["representatives"] = serde_json::json!({"000000000000": second.hash()});
    behind["severity"] = "low".into();
    fs::write(folder.join("group.json"), behind.to_string()).unwrap();
    drop(Store::create_or_resume(root.path(), campaign("c1")).unwrap());
    assert_eq!(fs::read(folder.join("group.json")).unwrap(), whole);
}

#[test]
fn foreign_files_in_the_layout_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    let [id, _] = with_two_entries(root.path());
    for folder in ["crashes", "flaky"] {
        fs::create_dir_all(root.path().join(folder).join("notes")).unwrap();
        fs::write(root.path().join(folder).join("README"), "x").unwrap();
        fs::write(root.path().join(folder).join("0123456789ab"), "a file").unwrap();
    }
    fs::write(root.path().join("hangs"), "a file").unwrap();
    let store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(store.reader().groups(Kind::Crash).unwrap().len(), 1);
    assert_eq!(store.reader().groups(Kind::Hang).unwrap().len(), 0);
    assert_eq!(
        store
            .reader()
            .entries(Kind::Crash, id.major())
            .unwrap()
            .len(),
        2
    );
    assert!(root.path().join("crashes/notes").is_dir());
}
