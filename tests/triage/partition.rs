//! Which crashes share keys: the same partition, however the program is built and run.

use std::collections::BTreeMap;

use ddfuzz::triage::{Key, Triager};

use crate::programs::{FIXED, PLAIN, STATIC, STATIC_STRIPPED, STRIPPED, Variant};
use crate::start::Starter;
use crate::{keys, triager};

/// Inputs by bug; the inputs of one line are different ways into the same bug.
const BUGS: &[&[&str]] = &[
    &[
        "deep",
        "helper-a",
        "helper-b",
        "wild-write",
        "sort",
        "thread",
        "bounded",
    ],
    &["other", "wild-read"],
    &["assert"],
    &["abort"],
    &["twice"],
    &["fpe"],
    &["ill"],
    &["trap"],
    &["call-null", "call-wild", "call-none", "call-data"],
    &["strlen"],
    &["descend-1", "descend-2", "burst"],
    &["mutual"],
];

/// The keys of every input.
fn all_keys(triager: &mut Triager) -> BTreeMap<&'static str, (String, Key, Key)> {
    let inputs = BUGS.iter().flat_map(|bug| bug.iter());
    inputs
        .map(|input| (*input, keys(triager, input.as_bytes())))
        .collect()
}

fn assert_majors_are_bugs(variant: &Variant) {
    let keys = all_keys(&mut triager(variant));
    let mut majors: BTreeMap<Key, usize> = BTreeMap::new();
    for (bug, inputs) in BUGS.iter().enumerate() {
        for input in *inputs {
            let of = *majors.entry(keys[input].1).or_insert(bug);
            assert_eq!(of, bug, "{input} shares the key of {:?}", BUGS[of]);
            assert_eq!(
                keys[input].1,
                keys[inputs[0]].1,
                "{input} of {}",
                variant.path().display()
            );
        }
    }
}

#[test]
fn each_planted_bug_has_one_major_key() {
    assert_majors_are_bugs(&PLAIN);
    assert_majors_are_bugs(&FIXED);
    assert_majors_are_bugs(&STATIC);
}

#[test]
fn two_callers_of_one_faulty_helper_differ_in_the_minor_key() {
    let keys = all_keys(&mut triager(&PLAIN));
    assert_eq!(keys["helper-a"].1, keys["helper-b"].1);
    assert_ne!(keys["helper-a"].2, keys["helper-b"].2);
    assert_ne!(keys["helper-a"].2, keys["deep"].2);
}

#[test]
fn keys_are_equal_with_and_without_symbols() {
    assert_eq!(
        all_keys(&mut triager(&PLAIN)),
        all_keys(&mut triager(&STRIPPED))
    );
}

#[test]
fn keys_are_equal_with_and_without_randomized_addresses() {
    let mut random = Starter::new(STRIPPED.path());
    random.always_random = true;
    let mut random = Triager::new(Box::new(random));
    assert_eq!(all_keys(&mut triager(&STRIPPED)), all_keys(&mut random));
}

#[test]
fn keys_are_equal_on_every_repeat() {
    let mut triager = triager(&PLAIN);
    let first = all_keys(&mut triager);
    for _ in 0..9 {
        assert_eq!(all_keys(&mut triager), first);
    }
}

#[test]
fn where_the_entry_calls_from_does_not_matter_with_or_without_symbols() {
    for variant in [&PLAIN, &STRIPPED, &FIXED, &STATIC, &STATIC_STRIPPED] {
        let mut triager = triager(variant);
        let [here, there] = ["direct", "wild-write"].map(|it| keys(&mut triager, it.as_bytes()));
        assert_eq!(here, there, "{}", variant.path().display());
    }
}

#[test]
fn aborts_of_a_static_program_without_symbols_are_told_apart_by_what_they_say() {
    let mut triager = triager(&STATIC_STRIPPED);
    let [assert, twice, abort] =
        ["assert", "twice", "abort"].map(|input| keys(&mut triager, input.as_bytes()).1);
    assert!(assert != twice && twice != abort && assert != abort);
}

#[test]
fn examining_and_keying_agree() {
    let mut triager = triager(&PLAIN);
    for input in ["deep", "assert", "call-wild", "mutual"] {
        let quick = keys(&mut triager, input.as_bytes());
        let crash = crate::crash(&PLAIN, input.as_bytes());
        assert_eq!(quick, (crash.class.0, crash.keys.major, crash.keys.minor));
    }
}
