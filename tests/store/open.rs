//! Opening.

use std::fs;
use std::path::Path;

use ddfuzz::store::{Kind, Store, StoreError};

use crate::sample::{by_run, campaign, crash};
use crate::tree::{files, tree};

fn refused(root: &Path) -> StoreError {
    let before = root.is_dir().then(|| tree(root));
    let error = Store::create_or_resume(root, campaign("c1")).unwrap_err();
    assert_eq!(
        root.is_dir().then(|| tree(root)),
        before,
        "nothing was changed"
    );
    let reading = Store::open_read(root).unwrap_err();
    assert_eq!(reading.kind(), error.kind());
    error
}

#[test]
fn a_missing_directory_is_made_and_belongs_to_the_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a/out");
    let store = Store::create_or_resume(&root, campaign("c1")).unwrap();
    assert!(!store.resumed());
    assert_eq!(files(&root), [".gitignore", "ddfuzz.json"]);
    drop(store);
    let store = Store::create_or_resume(&root, campaign("c2")).unwrap();
    assert!(store.resumed());
    assert_eq!(store.campaigns().current.as_ref().unwrap().id, "c1");
}

#[test]
fn a_directory_that_was_cut_off_while_it_was_made_is_ignored_by_git() {
    let root = tempfile::tempdir().unwrap();
    let written = |name: &str| {
        fs::metadata(root.path().join(name))
            .unwrap()
            .modified()
            .unwrap()
    };
    fs::write(root.path().join(".lock"), "").unwrap();
    Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    // Whoever finds the second has found the first.
    assert!(written(".gitignore") <= written("ddfuzz.json"));
    fs::remove_file(root.path().join("ddfuzz.json")).unwrap();
    let store = Store::create_or_resume(root.path(), campaign("c2")).unwrap();
    assert!(!store.resumed());
}

#[test]
fn an_empty_directory_is_taken() {
    let root = tempfile::tempdir().unwrap();
    Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(files(root.path()), [".gitignore", "ddfuzz.json"]);
}

#[test]
fn a_directory_of_something_else_is_refused_and_left_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("thesis.tex"), "x").unwrap();
    let error = refused(root.path());
    assert!(matches!(error, StoreError::NotOurs { .. }));
    assert!(error.hint().unwrap().contains("-o DIR"));
    assert_eq!(error.path(), root.path());
}

#[test]
fn a_directory_with_nothing_but_an_undecodable_name_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    assert!(matches!(refused(root.path()), StoreError::NotOurs { .. }));
}

#[test]
fn a_file_in_the_directorys_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("file");
    fs::write(&root, "x").unwrap();
    assert!(matches!(refused(&root), StoreError::NotOurs { .. }));
    assert_eq!(fs::read(&root).unwrap(), b"x");
}

#[test]
fn a_directory_of_another_version_is_refused_with_both_versions() {
    let root = tempfile::tempdir().unwrap();
    fs::write(
        root.path().join("ddfuzz.json"),
        "{\"version\": 2, \"new\": []}",
    )
    .unwrap();
    let error = refused(root.path());
    assert!(matches!(
        error,
        StoreError::OtherVersion {
            found: 2,
            known: 1,
            ..
        }
    ));
    assert!(error.hint().is_some());
}

#[test]
fn a_damaged_campaign_file_is_named() {
    let root = tempfile::tempdir().unwrap();
    for damaged in ["", "{", "[]", "{\"version\": 1, \"campaign\": \"c1\"}"] {
        fs::write(root.path().join("ddfuzz.json"), damaged).unwrap();
        let error = refused(root.path());
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert_eq!(error.path(), root.path().join("ddfuzz.json"));
    }
}

#[test]
fn a_second_writer_is_refused_while_readers_are_not() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    let error = Store::create_or_resume(root.path(), campaign("c2")).unwrap_err();
    let StoreError::InUse { holder, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(holder, Some(std::process::id()));
    Store::open_read(root.path()).unwrap();
    drop(store);
    Store::create_or_resume(root.path(), campaign("c2")).unwrap();
}

#[test]
fn a_missing_directory_to_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Store::open_read(&folder.path().join("out")).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }));
}

#[test]
fn a_directory_whose_maker_was_killed_before_its_first_file_is_taken() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(".lock"), "12345").unwrap();
    fs::write(root.path().join(".ddfuzz-tmp-x"), "{").unwrap();
    Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(files(root.path()), [".gitignore", "ddfuzz.json"]);
}

#[test]
fn the_writer_sweeps_stale_temporary_files_and_a_reader_does_not() {
    let root = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    let filed = store
        .file(Kind::Crash, &by_run(crash("a", "b"), 0), b"input")
        .unwrap();
    drop(store);
    let stale = [
        root.path().join(".ddfuzz-tmp-1"),
        filed.path.join(".ddfuzz-tmp-2"),
    ];
    stale
        .iter()
        .for_each(|path| fs::write(path, "half").unwrap());
    let before = tree(root.path());
    let reader = Store::open_read(root.path()).unwrap();
    assert_eq!(reader.groups(Kind::Crash).unwrap().len(), 1);
    assert_eq!(
        reader.entries(Kind::Crash, filed.id.major()).unwrap().len(),
        1
    );
    assert_eq!(tree(root.path()), before);
    Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert!(stale.iter().all(|path| !path.exists()));
}
