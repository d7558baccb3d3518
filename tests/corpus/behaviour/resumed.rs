//! What stands in the journal is not measured again, and nothing else changes what is told.

use std::sync::atomic::AtomicBool;

use ddfuzz::campaign::identity;
use ddfuzz::corpus::behaviour::{
    BehaviourJournal, BehaviourSettings, CorpusInput, Measured, measure,
};
use ddfuzz::exec::Way;
use ddfuzz::minimize::log::ContentHash;

use super::{measured_in, subject};
use crate::places::{Place, manners, target};

fn subjects(place: &Place) -> Vec<CorpusInput> {
    let inputs: [&[u8]; 6] = [b"babc", b"oxy", b"labc", b"rabc", b"x3", b"pq"];
    let numbered = inputs.iter().enumerate();
    numbered
        .map(|(at, bytes)| subject(place, &format!("{at}"), bytes))
        .collect()
}

#[test]
fn the_order_and_the_workers_change_nothing() {
    let place = Place::new();
    let target = target(manners(&[]));
    let mut subjects = subjects(&place);
    let measured = |name: &str, jobs, subjects: &[CorpusInput]| {
        measured_in(&place.path(name), &target, Way::Inject, jobs, subjects)
    };
    let (mut one, first) = measured("one", 1, &subjects);
    subjects.reverse();
    let (mut other, second) = measured("other", 3, &subjects);
    let told: Vec<&CorpusInput> = other.iter().map(|(subject, _)| subject).collect();
    assert_eq!(told, subjects.iter().collect::<Vec<_>>());
    one.sort_by_key(|(subject, _)| subject.path.clone());
    other.sort_by_key(|(subject, _)| subject.path.clone());
    assert_eq!(one, other);
    assert_eq!(first.kept(), second.kept());
}

#[test]
fn the_name_of_a_workers_file_is_no_behaviour() {
    let place = Place::new();
    // The base name is printed as well as the whole path, and what is aligned by its length.
    let text = "cat \"$1\"; echo \"$1\" \"${1##*/}\" \"$TMPDIR\"; printf '%60s|\\n' \"$1\" >&2";
    let args = ["-c", text, "sh", "@@"].map(Into::into).to_vec();
    let target = ddfuzz::exec::Target {
        args,
        ..target("/bin/sh".into())
    };
    let subjects: Vec<CorpusInput> = (0..10)
        .map(|at| subject(&place, &format!("{at}"), format!("input {at}\n").as_bytes()))
        .collect();
    let measured = |name: &str, jobs, subjects: &[CorpusInput]| {
        measured_in(&place.path(name), &target, Way::Command, jobs, subjects)
    };
    let (one, first) = measured("one", 1, &subjects);
    assert!(first.varies().is_empty(), "{:?}", first.varies());
    assert_eq!(first.len(), subjects.len());
    for (jobs, half) in [(3, 4), (1, 6)] {
        let journal = format!("journal-{jobs}");
        measured(&journal, jobs, &subjects[..half]);
        let (other, second) = measured(&journal, jobs, &subjects);
        assert_eq!(one, other);
        assert_eq!(first.kept(), second.kept());
    }
}

#[test]
fn what_is_on_record_is_not_run_again() {
    let place = Place::new();
    let target = target(manners(&[]));
    let subjects = subjects(&place);
    let journal = place.path("journal");
    let (first, _) = measured_in(&journal, &target, Way::Inject, 2, &subjects);
    let text = std::fs::read(&journal).unwrap();
    // What would be another behaviour, or none, were it run.
    for subject in &subjects {
        std::fs::remove_file(&subject.path).unwrap();
    }
    let (second, _) = measured_in(&journal, &target, Way::Inject, 2, &subjects);
    assert_eq!(first, second);
    assert_eq!(std::fs::read(&journal).unwrap(), text);
}

#[test]
fn a_torn_or_damaged_line_is_measured_again() {
    let place = Place::new();
    let target = target(manners(&[]));
    let subjects = subjects(&place);
    let journal = place.path("journal");
    let (first, _) = measured_in(&journal, &target, Way::Inject, 2, &subjects);
    let mut text = std::fs::read(&journal).unwrap();
    text.truncate(text.len() - 20);
    text[10] ^= 1;
    std::fs::write(&journal, text).unwrap();
    let (second, _) = measured_in(&journal, &target, Way::Inject, 2, &subjects);
    assert_eq!(first, second);
}

#[test]
fn lines_of_another_target_do_not_count() {
    let place = Place::new();
    let target = target(manners(&[]));
    let journal = place.path("journal");
    let one = [subject(&place, "one", b"f")];
    measured_in(&journal, &target, Way::Command, 1, &one);
    let other = ddfuzz::exec::Target {
        args: vec![place.path("in").into_os_string()],
        ..target
    };
    let (told, _) = measured_in(&journal, &other, Way::Command, 1, &one);
    let [(_, Measured::Behaves(of))] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(!of.ended.is_exit());
}

#[test]
fn a_file_that_vanishes_or_changes_is_told() {
    let place = Place::new();
    let mut subjects = subjects(&place);
    std::fs::remove_file(&subjects[1].path).unwrap();
    std::fs::write(&subjects[2].path, b"zzzz").unwrap();
    subjects.truncate(4);
    let target = target(manners(&[]));
    let (told, _) = measured_in(&place.path("journal"), &target, Way::Inject, 2, &subjects);
    let gone = |at: usize| told[at].1 == Measured::Gone;
    assert_eq!([0, 1, 2, 3].map(gone), [false, true, true, false]);
}

#[test]
fn a_measurement_that_was_stopped_goes_on() {
    let place = Place::new();
    let target = target(manners(&[]));
    let subjects = subjects(&place);
    let settings = BehaviourSettings {
        target: target.clone(),
        way: Way::Inject,
        jobs: 1,
    };
    let path = place.path("journal");
    let mut journal = BehaviourJournal::open(&path, identity(&target).unwrap()).unwrap();
    let stop = AtomicBool::new(true);
    let told = |_: &CorpusInput, measured| panic!("{measured:?} was told");
    let all = measure(subjects.clone(), &settings, &mut journal, &stop, told);
    assert!(!all.unwrap());
    assert!(!journal.has(ContentHash::of(b"babc")));
    drop(journal);
    let (told, _) = measured_in(&path, &target, Way::Inject, 1, &subjects);
    assert_eq!(told.len(), subjects.len());
}
