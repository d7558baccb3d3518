//! Reproducers and their outcome.

use std::fs;

use ddfuzz::minimize::Rate;
use ddfuzz::store::{EntryId, Kind, Minimized, Store, StoreError};
use tempfile::TempDir;

use crate::sample::{by_run, campaign, crash, key, outcome};

fn with_inputs(inputs: &[&[u8]]) -> (TempDir, Store, Vec<EntryId>) {
    let root = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    let file = |(run, input): (usize, &&[u8])| {
        let crash = by_run(crash("a", "b"), run as u64);
        store.file(Kind::Crash, &crash, input).unwrap().id
    };
    let ids = inputs.iter().enumerate().map(file).collect();
    (root, store, ids)
}

fn representative(store: &Store) -> String {
    let groups = store.reader().groups(Kind::Crash).unwrap();
    let text = fs::read(groups[0].folder.join("group.json")).unwrap();
    let written: ddfuzz::store::GroupRecord = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        written, groups[0].record,
        "the record says what the entries say"
    );
    written.representatives[&key("b").short()].clone()
}

#[test]
fn the_reproducer_is_replaced_and_the_input_never_changed() {
    let (_root, mut store, ids) = with_inputs(&[b"original"]);
    store.write_minimized(&ids[0], b"orig").unwrap();
    store.write_minimized(&ids[0], b"").unwrap();
    let entry = store.reader().entry(&ids[0]).unwrap().unwrap();
    assert_eq!(entry.reproducer_bytes().unwrap(), b"");
    assert_eq!(entry.original_bytes().unwrap(), b"original");
    assert_eq!(entry.minimized, None);
    store.write_outcome(&ids[0], &outcome(0, true)).unwrap();
    let entry = store.reader().entry(&ids[0]).unwrap().unwrap();
    assert_eq!(entry.minimized, Some(outcome(0, true)));
    assert!(entry.log().ends_with("log.jsonl") && entry.script().ends_with("reproduce.sh"));
}

#[test]
fn the_representative_is_the_least_by_proof_then_size_then_bytes() {
    let (_root, mut store, ids) = with_inputs(&[b"33333", b"4444", b"1111", b"22222"]);
    let chosen = |store: &Store| {
        let hash = representative(store);
        ids.iter().position(|id| id.hash() == hash).unwrap()
    };
    assert_eq!(chosen(&store), 2, "of two shortest the bytewise least");
    store.write_minimized(&ids[0], b"9").unwrap();
    assert_eq!(chosen(&store), 0, "the shortest");
    store.write_minimized(&ids[3], b"8").unwrap();
    assert_eq!(chosen(&store), 3, "of two shortest the bytewise least");
    store.write_outcome(&ids[1], &outcome(4, false)).unwrap();
    assert_eq!(chosen(&store), 3, "an unproved outcome changes nothing");
    store.write_outcome(&ids[2], &outcome(4, true)).unwrap();
    assert_eq!(chosen(&store), 2, "a proved one before all others");
    store.write_outcome(&ids[0], &outcome(1, true)).unwrap();
    assert_eq!(chosen(&store), 0, "the shortest of the proved");
    store
        .write_minimized(&ids[0], b"longer than all others")
        .unwrap();
    assert_eq!(chosen(&store), 2, "a representative can lose its place");
}

#[test]
fn a_proved_reproducer_of_another_minor_key_comes_behind_one_of_the_own() {
    let (_root, mut store, ids) = with_inputs(&[b"333", b"55555", b"4444"]);
    let of_its_own = Minimized {
        minor_after: Some(key("b")),
        ..outcome(5, true)
    };
    // It moved to the minor key `after`.
    store.write_outcome(&ids[0], &outcome(3, true)).unwrap();
    assert_eq!(
        representative(&store),
        ids[0].hash(),
        "before what is not proved"
    );
    store.write_outcome(&ids[1], &of_its_own).unwrap();
    assert_eq!(representative(&store), ids[1].hash());
}

#[test]
fn equal_reproducers_are_told_apart_by_name() {
    let (_root, mut store, ids) = with_inputs(&[b"1", b"2", b"3"]);
    for id in ids.iter().rev() {
        store.write_minimized(id, b"").unwrap();
    }
    assert_eq!(
        representative(&store),
        ids.iter().map(EntryId::hash).min().unwrap()
    );
}

#[test]
fn a_claim_is_proved_only_whole_and_never_as_best_so_far() {
    let mut claim = outcome(4, true);
    assert!(claim.is_proved());
    claim.proved.done = 3;
    assert!(!claim.is_proved());
    claim.proved.done = 4;
    claim.claim = "best-so-far".to_owned();
    assert!(!claim.is_proved());
}

#[test]
fn an_entry_that_was_not_filed_cannot_be_minimized() {
    let (root, mut store, ids) = with_inputs(&[]);
    assert!(ids.is_empty());
    let id = EntryId::of(Kind::Crash, &crash("a", "b").keys, b"x");
    let error = store.write_minimized(&id, b"").unwrap_err();
    assert!(matches!(error, StoreError::NoSuch { .. }));
    assert!(store.write_outcome(&id, &outcome(1, true)).is_err());
    assert!(!root.path().join("crashes").exists());
}

#[test]
fn a_crash_that_was_never_seen_again_moves_to_the_flaky_ones_with_all_that_is_known_of_it() {
    let (root, mut store, ids) = with_inputs(&[b"steady", b"once"]);
    store.set_seen(Kind::Crash, key("a"), "c1", 7).unwrap();
    let never = Minimized {
        flaky: Some(Rate { hits: 0, tries: 20 }),
        ..outcome(4, false)
    };
    store.write_outcome(&ids[1], &never).unwrap();
    let flaky = ids[1].among(Kind::Flaky);
    let moved = store.reader().entry(&flaky).unwrap().expect("it is there");
    assert_eq!(moved.original_bytes().unwrap(), b"once");
    assert_eq!(moved.minimized.as_ref(), Some(&never));
    assert!(store.reader().entry(&ids[1]).unwrap().is_none());
    // The group stays with the other input.
    assert_eq!(representative(&store), ids[0].hash());
    store.write_outcome(&ids[0], &never).unwrap();
    assert!(store.reader().groups(Kind::Crash).unwrap().is_empty());
    let groups = store.reader().groups(Kind::Flaky).unwrap();
    assert_eq!((groups.len(), groups[0].runs_seen()), (1, 7));
    assert_eq!(groups[0].entries().unwrap().len(), 2);
    assert!(!root.path().join("crashes").join(key("a").short()).exists());
    // What is found again, and does not come again, does not stand in the way.
    let again = store
        .file(Kind::Crash, &by_run(crash("a", "b"), 9), b"once")
        .unwrap();
    store.write_outcome(&again.id, &never).unwrap();
    assert!(store.reader().groups(Kind::Crash).unwrap().is_empty());
}

#[test]
fn what_a_killed_writer_has_not_moved_is_moved_when_the_directory_is_opened() {
    let (root, mut store, ids) = with_inputs(&[b"once"]);
    let never = Minimized {
        flaky: Some(Rate { hits: 0, tries: 12 }),
        ..outcome(4, false)
    };
    let text = serde_json::to_vec(&never).unwrap();
    fs::write(ids[0].folder(root.path()).join("minimized.json"), text).unwrap();
    drop(store);
    store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert!(store.reader().groups(Kind::Crash).unwrap().is_empty());
    assert!(
        store
            .reader()
            .entry(&ids[0].among(Kind::Flaky))
            .unwrap()
            .is_some()
    );
}
