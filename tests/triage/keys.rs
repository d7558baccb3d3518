//! Keys of made-up snapshots.

use ddfuzz::triage::fault::AddressClass;
use ddfuzz::triage::keys::{frameless_keys, keys};
use ddfuzz::triage::messages::ObjectKind;
use ddfuzz::triage::normalise::normalise;
use ddfuzz::triage::snapshot::{Control, Event, Owner, RawFrame, Snapshot};
use ddfuzz::triage::{Class, Keys, stable_key};

use crate::made_up::{keys_of, own, runtime, snapshot};

fn of(frames: Vec<RawFrame>) -> Keys {
    keys_of(&snapshot(frames)).1
}

#[test]
fn the_major_key_is_of_the_first_own_frame() {
    let keys = of(vec![own(1), own(101)]);
    assert_eq!(of(vec![own(1), own(202)]).major, keys.major);
    assert_eq!(of(vec![runtime("strlen"), own(1)]).major, keys.major);
    assert_ne!(of(vec![own(2), own(101)]).major, keys.major);
}

#[test]
fn the_minor_key_takes_in_the_caller_and_the_way_through_the_runtime() {
    let keys = of(vec![own(1), own(101)]);
    assert_ne!(of(vec![own(1), own(202)]).minor, keys.minor);
    assert_ne!(
        of(vec![runtime("strlen"), own(1), own(101)]).minor,
        keys.minor
    );
    assert_eq!(of(vec![own(1), own(101), own(202)]).minor, keys.minor);
}

#[test]
fn the_minor_key_is_as_deep_as_asked() {
    let (a, b) = (
        vec![own(1), own(101), own(201)],
        vec![own(1), own(101), own(301)],
    );
    let minor = |frames: &[RawFrame], depth| {
        let snapshot = snapshot(frames.to_vec());
        let class = Class("segv".to_owned());
        keys(&class, &snapshot, &normalise(&snapshot), depth, None).minor
    };
    assert_eq!(minor(&a, 2), minor(&b, 2));
    assert_ne!(minor(&a, 3), minor(&b, 3));
    assert_ne!(minor(&a, 1), minor(&a, 2));
}

#[test]
fn the_class_is_part_of_both_keys() {
    let segv = snapshot(vec![own(1)]);
    let fpe = Snapshot {
        event: Event::Signal {
            number: libc::SIGFPE,
            code: 1,
        },
        ..segv.clone()
    };
    let (segv, fpe) = (keys_of(&segv).1, keys_of(&fpe).1);
    assert!(segv.major != fpe.major && segv.minor != fpe.minor);
}

#[test]
fn the_build_does_not_matter() {
    let built = RawFrame {
        build_id: Some("abcd".into()),
        ..own(1)
    };
    assert_eq!(of(vec![built]), of(vec![own(1)]));
}

#[test]
fn wild_calls_are_keyed_by_function() {
    let wild = |offset| Snapshot {
        control: Control::WildCall,
        ..snapshot(vec![own(offset)])
    };
    assert_eq!(keys_of(&wild(1)).1, keys_of(&wild(2)).1);
    assert_ne!(keys_of(&wild(1)).1.major, keys_of(&wild(101)).1.major);
}

#[test]
fn a_stack_overflow_is_keyed_by_the_functions_that_recur() {
    let overflow = |frames: Vec<RawFrame>| {
        let mut made_up = snapshot(frames);
        made_up.fault.class = Some(AddressClass::NearSp);
        keys_of(&made_up).1
    };
    let cycle = |offsets: &[u64]| -> Vec<RawFrame> {
        (0..9)
            .flat_map(|_| offsets.iter().map(|offset| own(*offset)))
            .collect()
    };
    let keys = overflow(cycle(&[1, 101]));
    assert_eq!(
        overflow(cycle(&[101, 1])),
        keys,
        "wherever in the cycle the stack ends"
    );
    assert_eq!(
        overflow([vec![runtime("memset"), own(301)], cycle(&[1, 101])].concat()),
        keys
    );
    assert_ne!(overflow(cycle(&[1, 201])).major, keys.major);
    assert_ne!(overflow(vec![own(1)]).major, overflow(vec![own(101)]).major);
}

#[test]
fn the_text_of_a_failed_assertion_is_part_of_both_keys() {
    let failed = |text: &str| {
        let mut made_up = snapshot(vec![runtime("abort"), runtime("__assert_fail"), own(1)]);
        made_up.event = Event::Signal {
            number: libc::SIGABRT,
            code: -6,
        };
        made_up.abort_message = Some(format!("prog: a.c:7: f: Assertion `{text}' failed."));
        keys_of(&made_up).1
    };
    assert_eq!(failed("n < 3"), failed("n < 4"));
    assert_ne!(failed("n < 3").major, failed("m < 3").major);
    assert_ne!(failed("n < 3").minor, failed("m < 3").minor);
}

#[test]
fn keys_without_frames_depend_on_the_class_only() {
    let keys = |class: &str| frameless_keys(&Class(class.to_owned()));
    assert_eq!(keys("segv"), keys("segv"));
    assert_ne!(keys("segv").major, keys("abrt").major);
}

#[test]
fn the_stable_key_is_of_three_names() {
    let class = Class("segv".to_owned());
    assert_eq!(stable_key(&class, &[], None), None);
    assert_eq!(
        stable_key(&class, &["a", "b", "c"], None),
        stable_key(&class, &["a", "b", "c", "d"], None)
    );
    assert_ne!(
        stable_key(&class, &["a", "b"], None),
        stable_key(&class, &["b", "a"], None)
    );
}

/// The keys of a heap overflow, in the same place, of an object of this owner.
fn of_object(owner: Option<Owner>) -> Keys {
    let snapshot = Snapshot {
        owner,
        ..snapshot(vec![own(1), own(101)])
    };
    let class = Class("asan:heap-buffer-overflow".to_owned());
    keys(&class, &snapshot, &normalise(&snapshot), 2, None)
}

fn owner(kind: ObjectKind, frames: Vec<RawFrame>, variable: &str) -> Owner {
    Owner {
        kind,
        frames,
        variable: variable.to_owned(),
        near: true,
    }
}

#[test]
fn the_object_of_a_report_tells_bugs_of_one_place_apart() {
    let none = of_object(None);
    let allocated = |by| {
        of_object(Some(owner(
            ObjectKind::Heap,
            vec![runtime("malloc"), by],
            "",
        )))
    };
    let local = |of, variable| of_object(Some(owner(ObjectKind::Stack, vec![of], variable)));
    let global = |name| of_object(Some(owner(ObjectKind::Global, Vec::new(), name)));
    let all = [
        none,
        allocated(own(201)),
        allocated(own(202)),
        local(own(201), "32"),
        local(own(201), "96"),
        local(own(301), "32"),
        global("a"),
        global("b"),
    ];
    for (at, keys) in all.iter().enumerate() {
        for other in &all[..at] {
            assert!(keys.major != other.major && keys.minor != other.minor);
        }
    }
    // A frame of the function is told by where that starts.
    assert_eq!(local(own(202), "32"), local(own(201), "32"));
}

#[test]
fn an_object_that_is_far_or_of_no_known_owner_is_no_part_of_a_key() {
    let far = Owner {
        near: false,
        ..owner(ObjectKind::Heap, vec![own(201)], "")
    };
    assert_eq!(of_object(Some(far)), of_object(None));
    let of_the_runtime = owner(ObjectKind::Heap, vec![runtime("malloc")], "");
    assert_eq!(of_object(Some(of_the_runtime)), of_object(None));
    let segv = snapshot(vec![own(1)]);
    let with = Snapshot {
        owner: Some(owner(ObjectKind::Heap, vec![own(201)], "")),
        ..segv.clone()
    };
    assert_eq!(keys_of(&with).1, keys_of(&segv).1);
}

#[test]
fn keys_without_an_object_are_those_of_version_1() {
    let keys = of(vec![own(1), own(101)]);
    assert_eq!(
        (
            keys.major.to_string().as_str(),
            keys.minor.to_string().as_str()
        ),
        (
            "184e3b4af396c852389887fb435c6f49",
            "5522bbe9e8a73b1dfca322dd14c53e89"
        )
    );
}
