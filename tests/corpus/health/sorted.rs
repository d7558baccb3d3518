//! What becomes of which input.

use ddfuzz::campaign::When;
use ddfuzz::corpus::Amount;
use ddfuzz::corpus::quarantine::FailingInput;
use ddfuzz::exec::{Ended, Target, Way};
use ddfuzz::store::Kind;

use super::{CRASH, crtplot, filed, ill, quarantined, settings};
use crate::places::{Place, manners, target};

fn amount(files: u64, bytes: u64) -> Amount {
    Amount { files, bytes }
}

#[test]
fn each_input_comes_to_its_kind_of_group_and_what_is_well_stays() {
    let place = Place::new();
    let settings = settings(&target(manners(&[])), Way::Inject);
    let inputs: [&[u8]; 6] = [b"hhh", b"c", b"cc", b"mm", b"b", b"oxy"];
    let ills = inputs.map(|bytes| ill(place.write(&format!("{bytes:?}"), bytes), bytes));
    let found = quarantined(&place, "out", &settings, &ills);
    assert_eq!(found.crashes, amount(2, 3));
    assert_eq!(found.hangs, amount(1, 3));
    assert_eq!(found.ooms, amount(1, 2));
    assert_eq!(found.flaky, amount(0, 0));
    assert_eq!(found.well, [ills[4].content, ills[5].content]);
    assert_eq!(found.gone, []);
    let kinds: Vec<Kind> = found.groups.iter().map(|group| group.kind).collect();
    assert_eq!(kinds, [Kind::Crash, Kind::Hang, Kind::Oom]);
    assert_eq!(found.groups[0].amount, amount(2, 3));
    assert_eq!(found.stored.len(), 4);
    // The input directory is only read.
    for (ill, bytes) in ills.iter().zip(inputs) {
        assert_eq!(std::fs::read(&ill.path).unwrap(), bytes);
    }
}

#[test]
fn the_order_and_the_workers_change_nothing() {
    let place = Place::new();
    let mut settings = settings(&crtplot(), Way::Harness);
    let mut ills: Vec<FailingInput> = (0..12)
        .map(|at| {
            let bytes = [&[b'0' + at % 7; 3], CRASH, &[b'0' + at % 10; 2]].concat();
            ill(place.write(&format!("{at}"), &bytes), &bytes)
        })
        .collect();
    let one = quarantined(&place, "one", &settings, &ills);
    ills.reverse();
    settings.jobs = 1;
    let other = quarantined(&place, "other", &settings, &ills);
    assert_eq!(one, other);
    assert_eq!(one.crashes.files, 12);
    assert_eq!(filed(&place, "one"), filed(&place, "other"));
    assert!(
        filed(&place, "one")
            .iter()
            .any(|(_, _, bytes)| bytes == b"t")
    );
}

#[test]
fn files_that_vanish_or_change_meanwhile_are_told() {
    let place = Place::new();
    let settings = settings(&crtplot(), Way::Harness);
    let there = ill(place.write("there", CRASH), CRASH);
    let gone = ill(place.path("in/gone"), b"gone t");
    let other = ill(place.write("other", b"now x"), b"was t");
    let ills = [there.clone(), gone.clone(), other.clone()];
    let found = quarantined(&place, "out", &settings, &ills);
    assert_eq!(found.crashes.files, 1);
    assert_eq!(found.gone.len(), 2);
    assert!(found.gone.contains(&gone.content));
    assert!(found.gone.contains(&other.content));
}

#[test]
fn names_of_any_bytes_are_read() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let mut settings = settings(&crtplot(), Way::Harness);
    settings.when = When::Off;
    let names: [&[u8]; 3] = [b".hidden", b"line\nfeed", b"\xff\xfe"];
    let ills = names.map(|name| {
        let bytes = [&name.len().to_string().into_bytes(), CRASH].concat();
        let path = place.path("in").join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(&path, &bytes).unwrap();
        ill(path, &bytes)
    });
    let found = quarantined(&place, "out", &settings, &ills);
    assert_eq!((found.crashes.files, found.gone), (3, Vec::new()));
}

#[test]
fn what_ends_badly_again_after_it_was_well_is_flaky() {
    let place = Place::new();
    let settings = settings(&target(manners(&[])), Way::Inject);
    let mut once = ill(place.write("once", b"b"), b"b");
    let first = quarantined(&place, "out", &settings, &[once.clone()]);
    assert_eq!(first.well, [once.content]);
    once.passed_before = true;
    once.ended = Ended::Timeout;
    for _ in 0..2 {
        let found = quarantined(&place, "out", &settings, &[once.clone()]);
        assert_eq!(found.flaky, amount(1, 1));
        assert_eq!(found.well, []);
        let filed = filed(&place, "out");
        assert_eq!(filed.len(), 1, "{filed:?}");
        assert_eq!(filed[0].0, Kind::Flaky);
    }
    let reader = ddfuzz::store::Reader::open(&place.path("out")).unwrap();
    let groups = reader.groups(Kind::Flaky).unwrap();
    assert_eq!(groups[0].record.seen.values().sum::<u64>(), 1);
    // Nobody has counted in how many runs it fails.
    let major = groups[0].record.major.short();
    let entries = reader.entries(Kind::Flaky, &major).unwrap();
    let crash = &entries[0].crash;
    assert_eq!((crash.hits, crash.tries), (1, 1));
}

#[test]
fn muted_groups_are_filed_and_not_minimized() {
    let place = Place::new();
    let mut settings = settings(&crtplot(), Way::Harness);
    let crash = ill(place.write("crash", CRASH), CRASH);
    let found = quarantined(&place, "one", &settings, std::slice::from_ref(&crash));
    let known = found.groups[0].major.short();
    settings.known = ddfuzz::store::KnownGroups::parse(&known).unwrap();
    quarantined(&place, "other", &settings, &[crash]);
    let bytes = |out| {
        filed(&place, out)
            .into_iter()
            .map(|(_, _, bytes)| bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes("one"), [b"t"]);
    assert_eq!(bytes("other"), [CRASH]);
}

#[test]
fn each_further_crash_of_a_known_group_costs_a_single_run() {
    let place = Place::new();
    let mut settings = settings(&crtplot(), Way::Harness);
    (settings.when, settings.jobs) = (When::Off, 1);
    let ills: Vec<FailingInput> = (0..200)
        .map(|at| {
            let bytes = [format!("{at} ").as_bytes(), CRASH].concat();
            ill(place.write(&format!("{at}"), &bytes), &bytes)
        })
        .collect();
    let found = quarantined(&place, "out", &settings, &ills);
    assert_eq!(found.crashes.files, 200);
    let journal = std::fs::read_to_string(place.path("out/triage.jsonl")).unwrap();
    let examined = journal.matches("\"examined\":true").count();
    assert_eq!(examined, filed(&place, "out").len());
    assert!(examined < 5, "{examined}");
}

#[test]
fn a_crash_that_hangs_on_something_else_is_found_out_when_that_is_there() {
    let place = Place::new();
    let flag = place.path("flag");
    let target = Target {
        args: vec![flag.clone().into_os_string()],
        ..target(manners(&[]))
    };
    let settings = settings(&target, Way::Command);
    let one = ill(place.write("one", b"f"), b"f");
    let found = quarantined(&place, "well", &settings, std::slice::from_ref(&one));
    assert_eq!(found.well, [one.content]);
    std::fs::write(flag, b"").unwrap();
    let found = quarantined(&place, "ill", &settings, &[one]);
    assert_eq!(found.crashes, amount(1, 1));
}
