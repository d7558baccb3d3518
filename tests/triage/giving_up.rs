//! Bugs that end in one function which only gives up.

use crate::programs::{GIVING_UP, GIVING_UP_STATIC_STRIPPED, GIVING_UP_STRIPPED, Variant};
use crate::{crash, keys, own_names, triager};
use ddfuzz::triage::Key;

const VARIANTS: [&Variant; 3] = [&GIVING_UP, &GIVING_UP_STRIPPED, &GIVING_UP_STATIC_STRIPPED];

fn major(variant: &Variant, input: &[u8]) -> Key {
    let (class, major, _) = keys(&mut triager(variant), input);
    assert_eq!(class, "abrt");
    major
}

#[test]
fn what_calls_a_function_that_only_gives_up_names_the_bug() {
    for variant in VARIANTS {
        let all: Vec<Key> = [b"n", b"m", b"u", b"w"]
            .iter()
            .map(|input| major(variant, *input))
            .collect();
        for (at, key) in all.iter().enumerate() {
            assert!(!all[..at].contains(key), "{at} of {:?}", variant.path());
        }
    }
}

#[test]
fn a_function_that_may_come_back_names_its_own_abort() {
    for variant in VARIANTS {
        assert_eq!(major(variant, b"c"), major(variant, b"d"));
    }
}

#[test]
fn a_loop_that_never_returns_names_its_own_aborts() {
    for variant in VARIANTS {
        assert_ne!(major(variant, b"r"), major(variant, b"s"));
    }
    let crash = crash(&GIVING_UP, b"s");
    assert!(own_names(&crash)[0].starts_with("serve"), "{crash:?}");
}

#[test]
fn the_way_in_is_told_by_as_many_frames_as_elsewhere() {
    let minor = |input: &[u8]| keys(&mut triager(&GIVING_UP), input).2;
    assert_ne!(minor(b"u"), minor(b"w"));
    assert_ne!(minor(b"c"), minor(b"d"));
}
