//! Bugs in functions that a call in the place of their return has taken off the stack.

use crate::programs::{TAIL_CALLS, TAIL_CALLS_STRIPPED};
use crate::{crash, keys, own_names, triager};

/// Asserts that the crash is in `function`, which `caller` has called; the compiler may have made
/// a copy of either, and so `.constprop.0` of their names.
fn assert_stack(input: &[u8], function: &str, caller: &str) {
    let crash = crash(&TAIL_CALLS, input);
    let names = own_names(&crash);
    let plain = |at: usize| names[at].split('.').next();
    assert_eq!([plain(0), plain(1)], [Some(function), Some(caller)]);
}

#[test]
fn a_function_that_ends_with_a_call_names_its_bug_whoever_called_it() {
    for variant in [&TAIL_CALLS, &TAIL_CALLS_STRIPPED] {
        let (class, one, first_way) = keys(&mut triager(variant), b"1");
        let (_, two, second_way) = keys(&mut triager(variant), b"2");
        assert_eq!((class.as_str(), one), ("abrt", two));
        assert_ne!(first_way, second_way);
    }
    assert_stack(b"1", "release", "one");
}

#[test]
fn a_jump_to_no_code_has_one_name_whatever_the_address_and_whoever_led_there() {
    for variant in [&TAIL_CALLS, &TAIL_CALLS_STRIPPED] {
        let (class, early, _) = keys(&mut triager(variant), b"e");
        let (_, late, late_way) = keys(&mut triager(variant), b"l");
        let (_, nowhere, nowhere_way) = keys(&mut triager(variant), b"n");
        assert_eq!((class.as_str(), early), ("wildcall", late));
        assert_eq!((late, late_way), (nowhere, nowhere_way));
    }
    assert_stack(b"n", "fire", "late");
}
