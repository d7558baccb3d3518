//! Crashes that are met while files are trimmed.

use std::sync::atomic::AtomicBool;

use ddfuzz::campaign::Silent;
use ddfuzz::corpus::quarantine::{file_slip, quarantine};
use ddfuzz::exec::Way;
use ddfuzz::minimize::log::ContentHash;
use ddfuzz::minimize::{Slip, SlipKeys};
use ddfuzz::triage::{Found, Triager, Verdict};

use super::{CRASH, crtplot, filed, settings, store};
use crate::places::Place;

#[test]
fn a_slip_is_filed_with_where_it_came_from_and_minimized_later() {
    let place = Place::new();
    let settings = settings(&crtplot(), Way::Harness);
    let (store, id) = store(&place, "out", &settings);
    let mut triager = Triager::of_target(&crtplot(), Way::Harness).unwrap();
    let Verdict::Crash(crash) = triager.examine(CRASH).unwrap() else {
        panic!("it crashes");
    };
    let mut slip = Slip {
        class: crash.class.clone(),
        keys: SlipKeys {
            major: crash.keys.major,
            minor: crash.keys.minor,
        },
        crash: Some(crash),
        input: CRASH.to_owned(),
    };
    let of = ContentHash::of(b"the trimmed file");
    let entry = file_slip(&store, &crtplot(), "c1", of, &slip, Some(7)).unwrap();
    let entry = entry.expect("it has a record");
    slip.crash = None;
    assert_eq!(
        file_slip(&store, &crtplot(), "c1", of, &slip, None).unwrap(),
        None
    );
    let held = store.lock().unwrap().reader().entry(&entry).unwrap();
    let held = held.expect("it is filed");
    let found = Found::Slip {
        of: of.short().to_string(),
        test: Some(7),
        campaign: Some("c1".to_owned()),
    };
    assert_eq!(held.crash.found, Some(found));
    assert!(held.script().exists());
    let stop = AtomicBool::new(false);
    let none = quarantine(&store, &id, &[], &settings, &mut Silent, &stop).unwrap();
    assert_eq!(none, Default::default());
    let filed = filed(&place, "out");
    assert_eq!(filed.len(), 1);
    assert_eq!(filed[0].2, b"t");
}
