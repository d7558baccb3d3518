//! Quarantines that go on.

use std::sync::atomic::AtomicBool;

use ddfuzz::campaign::Silent;
use ddfuzz::corpus::quarantine::{FailingInput, quarantine};
use ddfuzz::exec::Way;

use super::{CRASH, crtplot, filed, ill, quarantined, settings, store};
use crate::places::Place;

fn ills(place: &Place) -> Vec<FailingInput> {
    (0..6)
        .map(|at| {
            let bytes = [&[b'0' + at; 4], CRASH].concat();
            ill(place.write(&format!("{at}"), &bytes), &bytes)
        })
        .collect()
}

#[test]
fn what_is_on_record_is_not_run_again_and_the_result_is_the_same() {
    let place = Place::new();
    let settings = settings(&crtplot(), Way::Harness);
    let ills = ills(&place);
    let first = quarantined(&place, "out", &settings, &ills[..3]);
    let whole = quarantined(&place, "out", &settings, &ills);
    let journal = std::fs::read(place.path("out/triage.jsonl")).unwrap();
    let again = quarantined(&place, "out", &settings, &ills);
    assert_eq!(first.crashes.files, 3);
    assert_eq!(whole.crashes.files, 6);
    assert_eq!(whole, again);
    assert_eq!(
        std::fs::read(place.path("out/triage.jsonl")).unwrap(),
        journal
    );
    let undisturbed = quarantined(&place, "undisturbed", &settings, &ills);
    assert_eq!(undisturbed, whole);
}

#[test]
fn one_that_was_stopped_says_so_and_goes_on() {
    let place = Place::new();
    let settings = settings(&crtplot(), Way::Harness);
    let ills = ills(&place);
    {
        let (store, id) = store(&place, "out", &settings);
        let stop = AtomicBool::new(true);
        let found = quarantine(&store, &id, &ills, &settings, &mut Silent, &stop).unwrap();
        assert!(found.interrupted);
        assert!(found.gone.is_empty() && found.well.is_empty(), "{found:?}");
    }
    let found = quarantined(&place, "out", &settings, &ills);
    assert_eq!((found.interrupted, found.crashes.files), (false, 6));
    quarantined(&place, "undisturbed", &settings, &ills);
    assert_eq!(filed(&place, "out"), filed(&place, "undisturbed"));
}
