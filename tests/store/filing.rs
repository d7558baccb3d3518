//! Filing.

use std::fs;
use std::os::unix::ffi::OsStringExt;

use ddfuzz::exec::{Program, Target, TargetRecord, Way};
use ddfuzz::store::{Campaign, Entry, EntryId, Kind, Store, StoreError};
use ddfuzz::triage::{Crash, Found, Severity};
use tempfile::TempDir;

use crate::sample::{by_run, campaign, crash, key};
use crate::tree::{files, tree};

fn fresh() -> (TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    (root, store)
}

fn entry(store: &Store, id: &EntryId) -> Entry {
    store.reader().entry(id).unwrap().unwrap()
}

#[test]
fn a_filed_crash_stands_where_the_contract_says() {
    let (root, mut store) = fresh();
    let crash = by_run(crash("a", "b"), 0);
    let filed = store.file(Kind::Crash, &crash, b"input").unwrap();
    let group = format!("crashes/{}", key("a").short());
    let folder = format!(
        "{group}/{}/{}",
        key("b").short(),
        ddfuzz::store::hash_of(b"input")
    );
    assert_eq!(filed.path, root.path().join(&folder));
    let expected = [
        ".gitignore".to_owned(),
        format!("{folder}/crash.json"),
        format!("{folder}/original"),
        format!("{group}/group.json"),
        "ddfuzz.json".to_owned(),
    ];
    assert_eq!(files(root.path()), expected);
    let entry = entry(&store, &filed.id);
    assert_eq!(entry.crash, crash);
    assert_eq!(entry.original_bytes().unwrap(), b"input");
    assert_eq!(entry.reproducer_bytes().unwrap(), b"input");
    assert_eq!(entry.minimized, None);
}

#[test]
fn first_of_its_keys_and_filed_before_are_told() {
    let (_root, mut store) = fresh();
    let mut told = |kind, major, minor, input: &[u8]| {
        let filed = store
            .file(kind, &by_run(crash(major, minor), 0), input)
            .unwrap();
        (filed.new_major, filed.new_minor, filed.already)
    };
    assert_eq!(told(Kind::Crash, "a", "b", b"1"), (true, true, false));
    assert_eq!(told(Kind::Crash, "a", "b", b"1"), (false, false, true));
    assert_eq!(told(Kind::Crash, "a", "b", b"2"), (false, false, false));
    assert_eq!(told(Kind::Crash, "a", "c", b"1"), (false, true, false));
    assert_eq!(told(Kind::Crash, "d", "b", b"1"), (true, true, false));
    assert_eq!(told(Kind::Flaky, "a", "b", b"1"), (true, true, false));
}

#[test]
fn what_was_filed_is_known_after_opening_again() {
    let (root, mut store) = fresh();
    store
        .file(Kind::Oom, &by_run(crash("a", "b"), 0), b"1")
        .unwrap();
    let before = tree(root.path());
    drop(store);
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    let filed = store
        .file(Kind::Oom, &by_run(crash("a", "b"), 0), b"1")
        .unwrap();
    assert!(filed.already && !filed.new_major && !filed.new_minor);
    assert_eq!(tree(root.path()), before);
}

#[test]
fn the_record_does_not_depend_on_who_files_first() {
    let slip = |test| Crash {
        found: Some(Found::Slip {
            of: "0123456789abcdef".to_owned(),
            test,
            campaign: None,
        }),
        ..crash("a", "b")
    };
    let file = Crash {
        found: Some(Found::File {
            path: "/x".into(),
            campaign: None,
        }),
        ..crash("a", "b")
    };
    let finders = [
        crash("a", "b"),
        by_run(crash("a", "b"), 9),
        slip(Some(1)),
        by_run(crash("a", "b"), 2),
        slip(Some(0)),
        slip(None),
        file,
        by_run(crash("a", "b"), 5),
    ];
    for first in 0..finders.len() {
        let (_root, mut store) = fresh();
        let order = (0..finders.len()).map(|i| &finders[(first + i) % finders.len()]);
        let ids: Vec<_> = order
            .map(|crash| store.file(Kind::Crash, crash, b"x").unwrap().id)
            .collect();
        assert_eq!(entry(&store, &ids[0]).crash, finders[3]);
    }
}

#[test]
fn a_slip_wins_over_a_file_and_the_earlier_one_over_the_later() {
    let (_root, mut store) = fresh();
    for (found, stands) in [
        (
            Found::File {
                path: "/b".into(),
                campaign: None,
            },
            true,
        ),
        (
            Found::File {
                path: "/a".into(),
                campaign: None,
            },
            true,
        ),
        (
            Found::Slip {
                of: "0".repeat(16),
                test: Some(7),
                campaign: None,
            },
            true,
        ),
        (
            Found::Slip {
                of: "0".repeat(16),
                test: Some(9),
                campaign: None,
            },
            false,
        ),
        (
            Found::Slip {
                of: "0".repeat(16),
                test: None,
                campaign: None,
            },
            false,
        ),
        (
            Found::File {
                path: "/a".into(),
                campaign: None,
            },
            false,
        ),
    ] {
        let crash = Crash {
            found: Some(found),
            ..crash("a", "b")
        };
        let filed = store.file(Kind::Crash, &crash, b"x").unwrap();
        assert_eq!(entry(&store, &filed.id).crash == crash, stands);
    }
}

#[test]
fn the_group_counts_runs_by_campaign_and_keeps_the_highest_severity() {
    let (root, mut store) = fresh();
    store
        .file(Kind::Crash, &by_run(crash("a", "b"), 0), b"1")
        .unwrap();
    let high = Crash {
        severity: Severity::High,
        ..by_run(crash("a", "c"), 1)
    };
    store.file(Kind::Crash, &high, b"2").unwrap();
    store.set_seen(Kind::Crash, key("a"), "c1", 3).unwrap();
    store.set_seen(Kind::Crash, key("a"), "c2", 4).unwrap();
    store.set_seen(Kind::Crash, key("a"), "c1", 5).unwrap();
    let group = &store.reader().groups(Kind::Crash).unwrap()[0];
    assert_eq!(group.runs_seen(), 9);
    assert_eq!(group.record.severity, Severity::High);
    assert_eq!(group.record.major, key("a"));
    assert_eq!(group.record.representatives.len(), 2);
    assert_eq!(group.representatives().count(), 2);
    let text = fs::read_to_string(group.folder.join("group.json")).unwrap();
    assert_eq!(
        serde_json::to_string_pretty(&group.record).unwrap() + "\n",
        text
    );
    drop(store);
    let store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(&store.reader().groups(Kind::Crash).unwrap()[0], group);
}

#[test]
fn counting_an_unknown_group_is_an_error() {
    let (_root, mut store) = fresh();
    let error = store.set_seen(Kind::Crash, key("a"), "c1", 1).unwrap_err();
    assert!(matches!(error, StoreError::NoSuch { .. }));
}

#[test]
fn a_crash_is_filed_even_if_its_file_has_no_name_in_json() {
    let (_root, mut store) = fresh();
    let path = std::ffi::OsString::from_vec(b"a\xff".to_vec()).into();
    let crash = Crash {
        found: Some(Found::File {
            path,
            campaign: None,
        }),
        ..crash("a", "b")
    };
    let filed = store.file(Kind::Crash, &crash, b"x").unwrap();
    let Some(Found::File { path, .. }) = entry(&store, &filed.id).crash.found else {
        panic!()
    };
    assert_eq!(path.to_str(), Some("a\u{fffd}"));
}

#[test]
fn groups_are_found_by_the_beginning_of_their_key() {
    let (_root, mut store) = fresh();
    store.file(Kind::Crash, &crash("a", "b"), b"1").unwrap();
    store.file(Kind::Hang, &crash("c", "d"), b"2").unwrap();
    let reader = store.reader();
    let whole = key("a").to_string();
    for beginning in [&whole[..4], &whole[..12], &whole[..]] {
        assert_eq!(
            reader.groups_named(beginning).unwrap().len(),
            1,
            "{beginning}"
        );
    }
    assert_eq!(reader.groups_named("").unwrap().len(), 2);
    assert_eq!(reader.groups_named("../x").unwrap().len(), 0);
    assert_eq!(
        reader
            .groups_named(&format!("{}0", &whole[..31]))
            .unwrap()
            .len(),
        usize::from(whole.ends_with('0'))
    );
}

#[test]
fn a_store_tells_which_groups_have_changed_since_a_call() {
    let (_root, mut store) = fresh();
    let a = by_run(crash("a", "b"), 0);
    let filed = store.file(Kind::Crash, &a, b"input").unwrap();
    let (first, groups) = store.changed_since(0);
    assert_eq!(groups, [(Kind::Crash, key("a").short())]);
    assert_eq!(store.changed_since(first), (first, Vec::new()));
    let c = by_run(crash("c", "d"), 1);
    store.file(Kind::Crash, &c, b"other").unwrap();
    let (second, groups) = store.changed_since(first);
    assert_eq!(groups, [(Kind::Crash, key("c").short())]);
    store.write_minimized(&filed.id, b"i").unwrap();
    let (_, groups) = store.changed_since(second);
    assert_eq!(groups, [(Kind::Crash, key("a").short())]);
    assert_eq!(store.changed_since(0).1.len(), 2);
}

#[test]
fn the_script_stands_beside_the_input_as_soon_as_it_is_stored() {
    let root = tempfile::tempdir().unwrap();
    let target = Target::new(Program::Path("/bin/false".into()));
    let of_target = Campaign {
        target: Some(TargetRecord::new(&target, Way::Command)),
        ..campaign("c1")
    };
    let mut store = Store::create_or_resume(root.path(), of_target).unwrap();
    let crash = by_run(crash("a", "b"), 0);
    let filed = store.file(Kind::Crash, &crash, b"input").unwrap();
    let script = fs::read_to_string(filed.path.join("reproduce.sh")).unwrap();
    assert!(script.contains("/bin/false"), "{script}");
    // What another call has made of it stays.
    fs::write(filed.path.join("reproduce.sh"), "#!/bin/sh\n").unwrap();
    store.file(Kind::Crash, &crash, b"input").unwrap();
    let script = fs::read_to_string(filed.path.join("reproduce.sh")).unwrap();
    assert_eq!(script, "#!/bin/sh\n");
}
