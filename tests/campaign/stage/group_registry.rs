//! The desk of an owner: what it files, counts, and gives to be minimized.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ddfuzz::campaign::{CrashSink, GroupRegistry, Report, SharedStore, StoreWriter, Variants};
use ddfuzz::store::{EntryId, Kind, KnownGroups, Minimized, Reader, Store};
use ddfuzz::triage::{Crash, Found};

use super::sample::{campaign, crash, key, outcome};

fn open(root: &Path) -> GroupRegistry {
    let store = Store::create_or_resume(root, campaign("c1")).unwrap();
    GroupRegistry::new(store, "c1").unwrap()
}

fn hand_in(
    desk: &mut impl CrashSink,
    kind: Kind,
    (major, minor): (&str, &str),
    input: &[u8],
) -> Option<EntryId> {
    let report = Report {
        kind,
        crash: &crash(major, minor),
        input,
        run: 7,
        name: "7",
    };
    desk.submit(&report).unwrap()
}

fn majors(claimed: &[EntryId]) -> Vec<&str> {
    claimed.iter().map(EntryId::major).collect()
}

fn claims(desk: &mut impl CrashSink) -> Vec<EntryId> {
    std::iter::from_fn(|| desk.claim().unwrap()).collect()
}

#[test]
fn the_first_of_each_way_and_what_is_smaller_is_filed() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = open(folder.path());
    let id = hand_in(&mut desk, Kind::Crash, ("a", "one"), &[1; 30]).expect("it is new");
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "one"), &[2; 30]).is_none());
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "two"), &[3; 90]).is_some());
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "one"), &[4; 29]).is_some());
    // Its reproducer is smaller than whatever was handed in.
    desk.write_minimized(&id, &[1; 10]).unwrap();
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "one"), &[5; 10]).is_none());
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "one"), &[5; 9]).is_some());
    let known = desk.known().unwrap();
    let mut sizes: Vec<u64> = known.iter().map(|key| key.least).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [9, 90]);
    drop(desk);

    let mut desk = open(folder.path());
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "one"), &[6; 9]).is_none());
    let reader = Reader::open(folder.path()).unwrap();
    let group = &reader.groups(Kind::Crash).unwrap()[0];
    // Written when the first desk was dropped.
    assert_eq!(group.record.seen["c1"], 6);
    desk.count(Kind::Crash, key("a"), 10).unwrap();
    desk.flush().unwrap();
    let group = &reader.groups(Kind::Crash).unwrap()[0];
    assert_eq!(group.record.seen["c1"], 17);
    let entry = reader.entry(&id).unwrap().unwrap();
    let found = entry.crash.found.unwrap();
    assert!(matches!(found, Found::Run { run: 7, campaign, .. } if campaign == "c1"));
}

/// Writes what a minimization ends with: a reproducer, and the result.
fn write_result<W: StoreWriter>(root: &Path, desk: &mut W, id: &EntryId, result: &Minimized) {
    let size = usize::try_from(result.size_after).unwrap();
    std::fs::write(id.log(root).with_file_name("minimized"), vec![b'm'; size]).unwrap();
    desk.write_outcome(id, result).unwrap();
}

#[test]
fn sixteen_ways_into_a_group_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = open(folder.path());
    let filed = (0..40u8).filter(|way| {
        hand_in(
            &mut desk,
            Kind::Crash,
            ("a", &format!("way {way}")),
            &[*way; 5],
        )
        .is_some()
    });
    assert_eq!(filed.count(), 16);
}

#[test]
fn each_group_is_claimed_once_and_what_has_an_outcome_never() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = open(folder.path());
    for name in ["a", "b", "c"] {
        hand_in(&mut desk, Kind::Crash, (name, "m"), name.as_bytes());
    }
    hand_in(&mut desk, Kind::Flaky, ("f", "m"), b"flaky");
    hand_in(&mut desk, Kind::Hang, ("h", "m"), b"hang");
    let claimed = claims(&mut desk);
    let expected: Vec<String> = ["a", "b", "c", "h"].map(|name| key(name).short()).into();
    assert_eq!(majors(&claimed), expected);
    // One ends, one is given back, and two are cut off with the process.
    write_result(folder.path(), &mut desk, &claimed[0], &outcome(1, true));
    desk.release(&claimed[0], true, Duration::from_secs(1))
        .unwrap();
    desk.release(&claimed[1], false, Duration::from_secs(1))
        .unwrap();
    hand_in(&mut desk, Kind::Crash, ("a", "other"), b"another way");
    hand_in(&mut desk, Kind::Crash, ("d", "m"), b"d");
    assert_eq!(
        majors(&claims(&mut desk)),
        [key("d").short(), key("b").short()]
    );
    std::fs::write(claimed[2].log(folder.path()), b"").unwrap();
    drop(desk);

    let mut desk = open(folder.path());
    let again = claims(&mut desk);
    let mut rest: Vec<String> = ["b", "d"].map(|name| key(name).short()).into();
    assert_eq!(again[0], claimed[2], "what was cut off comes first");
    let mut middle: Vec<String> = again[1..3].iter().map(|id| id.major().to_owned()).collect();
    middle.sort();
    rest.sort();
    assert_eq!(middle, rest);
    assert_eq!(again[3].kind(), Kind::Hang);
    assert_eq!(again.len(), 4);
}

#[test]
fn smaller_inputs_of_a_group_with_an_outcome_are_stored_and_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = open(folder.path());
    let hand = |desk: &mut GroupRegistry, minor: &str, size: usize| {
        hand_in(desk, Kind::Crash, ("a", minor), &vec![7; size])
    };
    let founder = hand(&mut desk, "one", 5000).unwrap();
    assert_eq!(claims(&mut desk), std::slice::from_ref(&founder));
    // While it is minimized, what is smaller than all before is stored.
    let waiting = hand(&mut desk, "one", 600).unwrap();
    desk.write_minimized(&founder, &[7; 90]).unwrap();
    assert!(hand(&mut desk, "one", 550).is_none());
    let ended = Minimized {
        size_before: 5000,
        ..outcome(90, true)
    };
    desk.write_outcome(&founder, &ended).unwrap();
    desk.release(&founder, true, Duration::from_secs(1))
        .unwrap();
    // Neither smaller than the result nor a tenth of its input.
    assert!(claims(&mut desk).is_empty());
    assert!(hand(&mut desk, "one", 501).is_none());
    let tenth = hand(&mut desk, "one", 500).unwrap();
    assert!(
        hand(&mut desk, "one", 500).is_none(),
        "one of this size waits"
    );
    let least = hand(&mut desk, "one", 80).unwrap();
    assert_eq!(
        claims(&mut desk),
        std::slice::from_ref(&least),
        "the smallest, and once"
    );
    desk.write_minimized(&least, &[7; 40]).unwrap();
    let ended = Minimized {
        size_before: 80,
        ..outcome(40, true)
    };
    desk.write_outcome(&least, &ended).unwrap();
    desk.release(&least, true, Duration::from_secs(1)).unwrap();
    assert!(
        claims(&mut desk).is_empty(),
        "{tenth:?} and {waiting:?} stay"
    );
    // Sixteen minor keys are kept, and behind them what is smaller than all.
    for minor in 2..17u8 {
        assert!(hand(&mut desk, &minor.to_string(), 300).is_some());
    }
    assert!(hand(&mut desk, "another", 300).is_none());
    let last = hand(&mut desk, "another", 39).unwrap();
    drop(desk);
    // It is known by the next process, too.
    assert_eq!(claims(&mut open(folder.path())), [last]);
}

#[test]
fn variants_are_claimed_when_nothing_else_waits() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = open(folder.path()).with_variants(Variants::Most(1));
    let ids = ["one", "two", "three"].map(|minor| {
        let input = minor.repeat(10);
        hand_in(&mut desk, Kind::Crash, ("a", minor), input.as_bytes()).unwrap()
    });
    hand_in(&mut desk, Kind::Hang, ("h", "m"), b"hang");
    let mut claimed = claims(&mut desk);
    let end = |desk: &mut GroupRegistry, id: &EntryId| {
        let ended = Minimized {
            minor_after: None,
            ..outcome(10, true)
        };
        write_result(folder.path(), desk, id, &ended);
        desk.release(id, true, Duration::from_secs(1)).unwrap();
        claims(desk)
    };
    assert_eq!(claimed.len(), 2, "the hang waits for no variant");
    let founder = claimed.remove(0);
    let mut next = end(&mut desk, &founder);
    assert_eq!(next.len(), 1);
    let variant = next.remove(0);
    assert!(ids.contains(&variant) && variant != founder);
    assert_eq!(end(&mut desk, &variant), [], "one variant was asked for");
}

#[test]
fn muted_groups_are_stored_and_not_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let muted = KnownGroups::parse(&key("a").to_string()).unwrap();
    let mut desk = open(folder.path()).with_muted(muted);
    assert!(hand_in(&mut desk, Kind::Crash, ("a", "m"), b"a").is_some());
    assert!(hand_in(&mut desk, Kind::Crash, ("b", "m"), b"b").is_some());
    assert_eq!(majors(&claims(&mut desk)), [key("b").short()]);
}

#[test]
fn what_is_slipped_into_waits_behind_what_runs_find() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = open(folder.path());
    let slip = Crash {
        found: Some(Found::Slip {
            of: "0123456789abcdef".to_owned(),
            test: Some(3),
            campaign: None,
        }),
        ..crash("slip", "m")
    };
    desk.file(Kind::Crash, &slip, b"slip").unwrap();
    hand_in(&mut desk, Kind::Crash, ("found", "m"), b"found");
    let expected = [key("found").short(), key("slip").short()];
    assert_eq!(majors(&claims(&mut desk)), expected);
    // It is known all the same.
    assert!(hand_in(&mut desk, Kind::Crash, ("slip", "m"), b"other").is_none());
}

#[test]
fn a_store_that_others_write_to_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_or_resume(folder.path(), campaign("c1")).unwrap();
    let store = Arc::new(Mutex::new(store));
    let writer = SharedStore::new(Arc::clone(&store));
    let mut desk = GroupRegistry::new(writer, "c1").unwrap();
    hand_in(&mut desk, Kind::Crash, ("a", "m"), b"a");
    store.lock().unwrap().add_to_corpus(b"kept").unwrap();
    drop(desk);
    let borrowed = GroupRegistry::new(SharedStore::new(&*store), "c1");
    assert_eq!(borrowed.unwrap().known().unwrap().len(), 1);
    let groups = store.lock().unwrap().reader().groups(Kind::Crash).unwrap();
    assert_eq!(groups[0].record.seen["c1"], 1);
}
