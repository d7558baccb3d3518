//! The journal: nothing but whole records is believed, and nothing whole is lost before damage.

use std::path::Path;
use std::time::Duration;

use ddfuzz::corpus::journal::{
    Journal, JournalIdentity, JournalState, Observation, RecordHead, RecordPosition, encode,
};
use ddfuzz::corpus::{ContentId, Feature, Features};
use ddfuzz::exec::{Ended, Way};
use proptest::prelude::*;

use crate::seats::bundled;

fn identity(places: usize) -> JournalIdentity {
    JournalIdentity::of(&bundled("ul"), Way::Harness, Some(places)).unwrap()
}

fn open(path: &Path) -> (Journal, JournalState, Vec<(RecordPosition, RecordHead)>) {
    let mut found = Vec::new();
    let each = &mut |place, head| found.push((place, head));
    let (journal, opened) = Journal::open(path, &identity(3), each).unwrap();
    (journal, opened, found)
}

/// Runs of all kinds.
fn samples() -> Vec<(ContentId, u32, Observation)> {
    let features = |numbers: &[u32]| {
        let features = numbers.iter().copied().map(Feature).collect();
        Some(Features::from_unsorted(features))
    };
    let seen = |ended, features| Observation {
        ended,
        alone: None,
        suspicious: false,
        time: Duration::from_micros(17),
        work: 300,
        read: None,
        stack_depth: None,
        features,
    };
    let died = Observation {
        suspicious: true,
        alone: Some(Ended::Exit(0)),
        ..seen(Ended::Signal(11), None)
    };
    let read = Observation {
        read: Some(u64::MAX),
        stack_depth: Some(4096),
        time: Duration::from_secs(1 << 30),
        work: u64::MAX,
        ..seen(Ended::Exit(-1), features(&[0, u32::MAX]))
    };
    let content = |n: usize| ContentId::of(&vec![b'a'; n * n]);
    vec![
        (content(0), 0, seen(Ended::Exit(0), features(&[]))),
        (content(1), 0, seen(Ended::Exit(101), features(&[7]))),
        (content(2), 3, died),
        (content(300), u32::MAX, read),
        (content(4), 0, seen(Ended::Timeout, None)),
        (
            content(5),
            0,
            seen(Ended::OutOfMemory, features(&[0, 1, 500])),
        ),
    ]
}

/// A journal of the samples, and where each of its records ends.
fn written(path: &Path) -> (Vec<u8>, Vec<usize>) {
    let (mut journal, ..) = open(path);
    let mut ends = vec![journal.length() as usize];
    for (content, round, seen) in samples() {
        let mut record = Vec::new();
        encode(&mut record, &content, round, &seen);
        journal.append(&record).unwrap();
        ends.push(journal.length() as usize);
    }
    journal.sync().unwrap();
    (std::fs::read(path).unwrap(), ends)
}

#[test]
fn records_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clean.journal");
    written(&path);
    let (journal, opened, found) = open(&path);
    assert_eq!((opened.records, opened.cut), (samples().len() as u64, 0));
    for ((place, head), (content, round, seen)) in found.into_iter().zip(samples()) {
        assert_eq!((head.content, head.round), (content, round));
        assert_eq!(head.suspicious, seen.suspicious);
        assert_eq!(journal.read(place).unwrap(), (head, seen.clone()));
        let mut features = vec![Feature(9)];
        journal.read_into(place, &mut features).unwrap();
        assert_eq!(features, seen.features.unwrap_or_default().as_slice());
    }
}

#[test]
fn a_journal_cut_at_any_byte_keeps_its_whole_records_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clean.journal");
    let (whole, ends) = written(&path);
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut journal, opened, found) = open(&path);
        let kept = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(found.len(), kept.saturating_sub(1), "cut at {cut}");
        let rest = match kept {
            0 => 0,
            kept => cut - ends[kept - 1],
        };
        assert_eq!(opened.cut, rest as u64, "cut at {cut}");
        assert_eq!(opened.replaced, kept == 0 && cut > 0, "cut at {cut}");
        let mut record = Vec::new();
        let (content, _, seen) = &samples()[1];
        encode(&mut record, content, 9, seen);
        journal.append(&record).unwrap();
        let (journal, opened, again) = open(&path);
        assert_eq!((opened.cut, opened.replaced), (0, false));
        assert_eq!(again.len(), found.len() + 1, "cut at {cut}");
        assert_eq!(journal.read(again[found.len()].0).unwrap().1, *seen);
    }
}

#[test]
fn a_flipped_bit_costs_what_stands_behind_it_and_nothing_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clean.journal");
    let (whole, ends) = written(&path);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).unwrap();
        let (journal, _, found) = open(&path);
        let before = ends.iter().filter(|end| **end <= at).count();
        assert_eq!(found.len(), before.saturating_sub(1), "flipped at {at}");
        for ((place, _), (_, _, seen)) in found.into_iter().zip(samples()) {
            assert_eq!(journal.read(place).unwrap().1, seen);
        }
    }
}

#[test]
fn another_build_begins_a_new_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clean.journal");
    written(&path);
    let none = &mut |_, _| panic!("a record of another build");
    let (journal, opened) = Journal::open(&path, &identity(4), none).unwrap();
    assert!(opened.replaced);
    drop(journal);
    let (_, opened) = Journal::open(&path, &identity(4), none).unwrap();
    assert_eq!(opened, JournalState::default());
}

#[test]
fn the_way_and_the_limits_are_part_of_the_target() {
    let target = bundled("ul");
    let mut shorter = target.clone();
    shorter.limits.memory /= 2;
    let of = |target, way| JournalIdentity::of(target, way, Some(3)).unwrap();
    assert_eq!(of(&target, Way::Harness), identity(3));
    assert_ne!(of(&target, Way::Command), identity(3));
    assert_ne!(of(&shorter, Way::Harness), identity(3));
}

#[test]
fn what_stands_elsewhere_is_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clean.journal");
    written(&path);
    let (journal, _, found) = open(&path);
    let (place, _) = found[1];
    for (at, length) in [(place.at + 1, place.length), (place.at, 5), (1 << 40, 20)] {
        let error = journal.read(RecordPosition { at, length }).unwrap_err();
        assert!(error.to_string().contains("clean.journal"), "{error}");
    }
}

proptest! {
    #[test]
    fn any_features_come_back(numbers in proptest::collection::vec(any::<u32>(), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        let features = Features::from_unsorted(numbers.into_iter().map(Feature).collect());
        let (content, _, seen) = samples().swap_remove(0);
        let seen = Observation { features: Some(features), ..seen };
        let (mut journal, ..) = open(&dir.path().join("journal"));
        let mut record = Vec::new();
        encode(&mut record, &content, 0, &seen);
        let at = journal.append(&record).unwrap();
        let place = RecordPosition { at, length: record.len() as u32 };
        prop_assert_eq!(journal.read(place).unwrap().1, seen);
    }
}
