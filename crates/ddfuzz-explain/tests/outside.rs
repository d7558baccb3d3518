//! What explanations say of reads outside of arrays, of texts without an end, and of variables that
//! are read before anything sets them; and that they say nothing of what is meant or set.

mod explained;

use ddfuzz_explain::report::FrameRecord;
use ddfuzz_explain::{Explanation, story};
use explained::{PLAIN, explained, program, program_by};

const BOTH: [&[&str]; 2] = [PLAIN, &["-g", "-Og", "-fno-stack-protector"]];

/// Explains an input of the program `name` of `tests/programs`, and returns the text as well.
fn told(name: &str, flags: &[&str], failing: &str, passing: &str) -> (Explanation, String) {
    let program = program(name, flags);
    let it = explained(&program, failing.as_bytes(), Some(passing.as_bytes()));
    let text = story::text(&it);
    (it, text)
}

/// The functions of a place, innermost first.
fn functions(place: &[FrameRecord]) -> Vec<&str> {
    place.iter().map(|it| it.function.as_str()).collect()
}

/// The function that is named first, if it was tested, with what is said of it.
fn first(it: &Explanation) -> (&str, &str) {
    let suspect = &it.look_first[0];
    assert!(suspect.tested, "{suspect:?}");
    (&suspect.place[0].function, &suspect.why)
}

#[test]
fn a_field_that_nothing_has_set_is_named_with_who_sets_the_others() {
    for flags in BOTH {
        let (it, text) = told("unset.c", flags, "l 7\n", "l 2\n");
        let found = it.unset.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(functions(&found.since)[..2], ["made", "listed"], "{text}");
        assert_eq!(functions(&found.beside)[..2], ["made", "listed"], "{text}");
        assert!(!found.is_local && !found.is_reused, "{text}");
        assert_eq!(found.variable, "it->next", "{text}");
        assert_eq!(
            first(&it),
            (
                "made",
                "sets other fields, and leaves it->next of listed unset"
            )
        );
        assert!(
            text.contains("With 0 there, the run does not fail"),
            "{text}"
        );
        // A pointer that is NULL fails as well: the passing run's value is tested.
        let (it, text) = told("unset.c", flags, "s 7\n", "s 2\n");
        let found = it.unset.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(found.is_local, "{text}");
        assert_eq!(found.variable, "it.text", "{text}");
        assert_eq!(first(&it).0, "prepared", "{text}");
        assert!(
            text.contains("With the value of the passing run there"),
            "{text}"
        );
    }
}

#[test]
fn a_field_from_an_earlier_use_of_its_record_is_told_as_that() {
    for flags in BOTH {
        let (it, text) = told("unset.c", flags, "r 7\n", "r 2\n");
        let found = it.unset.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(found.is_reused, "{text}");
        assert_eq!(functions(&found.since)[0], "reused", "{text}");
        assert_eq!(first(&it).0, "taken", "{text}");
    }
}

#[test]
fn what_a_library_or_the_kernel_has_set_is_not_called_unset() {
    for flags in BOTH {
        for command in ["c", "k", "p"] {
            let failing = format!("{command} 7\n");
            let (it, text) = told("unset.c", flags, &failing, &format!("{command} 2\n"));
            assert_eq!(it.unset, None, "{text}");
            let origins = it.origin.iter();
            let mut all = origins.flat_map(|it| std::iter::once(it).chain(&it.earlier));
            assert!(!all.any(|it| it.unset), "{text}");
        }
    }
}

#[test]
fn an_element_that_an_array_does_not_have_is_named() {
    let array = |flags, failing, passing| {
        let (it, text) = told("outside.c", flags, failing, passing);
        let found = it.overread.clone().unwrap_or_else(|| panic!("{text}"));
        assert!(!found.is_text && found.filled.is_empty(), "{text}");
        let told = (found.access.variable, found.access.element.unwrap());
        let (function, why) = first(&it);
        assert!(why.starts_with("reads element"), "{text}");
        (told.0, told.1, function.to_owned())
    };
    for flags in BOTH {
        let (variable, element, function) = array(flags, "d 6 x\n", "d 3 x\n");
        assert_eq!((&*variable, element, &*function), ("of.parts", 6, "shared"));
    }
    // Of a run that is too long to be recorded, the end is.
    let (variable, element, function) = array(PLAIN, "l 6 x\n", "l 3 x\n");
    assert_eq!((&*variable, element, &*function), ("of.parts", 6, "shared"));
    let (variable, element, function) = array(PLAIN, "t 6 x\n", "t 5 x\n");
    assert_eq!((&*variable, element, &*function), ("all", 5, "tail"));
}

#[test]
fn a_text_without_an_end_is_named_with_who_has_filled_it() {
    for flags in BOTH {
        for command in ["s", "w"] {
            let [failing, passing] =
                ["abcdefgh", "abcdefg"].map(|name| format!("{command} 1 {name}\n"));
            let (it, text) = told("outside.c", flags, &failing, &passing);
            let found = it.overread.as_ref().unwrap_or_else(|| panic!("{text}"));
            assert!(found.is_text, "{text}");
            assert_eq!(found.access.bytes, 8, "{text}");
            assert_eq!(functions(&found.filled)[0], "named", "{text}");
            assert_eq!(first(&it).0, "named", "{text}");
        }
    }
}

#[test]
fn reads_that_are_meant_are_not_told() {
    for flags in BOTH {
        for command in ["f", "b"] {
            let (it, text) = told(
                "outside.c",
                flags,
                &format!("{command} 7 abcdefgh\n"),
                &format!("{command} 2 abcdefgh\n"),
            );
            assert_eq!(it.overread, None, "{text}");
        }
    }
}

#[test]
fn a_write_over_a_return_address_is_told_with_what_writes_on_from_there() {
    let long = format!("c {}\n", "0123456789".repeat(5));
    for flags in BOTH {
        let (it, text) = told("returns.c", flags, &long, "c 0123456789\n");
        let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(functions(&found.place)[..2], ["copied", "put"], "{text}");
        assert_eq!((found.written, found.bytes), (50, 16), "{text}");
        assert_eq!(found.return_of.as_deref(), Some("put"), "{text}");
        assert!(found.is_averted && found.next.len() == 1, "{text}");
        let why = "writes past the end of out, over the return address of put";
        assert_eq!(first(&it), ("copied", why), "{text}");
        assert!(text.contains("writes behind it undone"), "{text}");
    }
}

#[test]
fn statements_that_write_over_a_return_address_in_turn_are_undone_together() {
    let long = "r 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n";
    let (it, text) = told("returns.c", BOTH[1], long, "r 1,2\n");
    let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(found.variable, "value", "{text}");
    assert_eq!(found.return_of.as_deref(), Some("range"), "{text}");
    assert!(found.is_averted && found.next.len() == 1, "{text}");
    assert_eq!(first(&it).0, "range", "{text}");
}

#[test]
fn a_write_to_the_array_of_each_call_of_a_recursion_is_undone_in_all_of_them() {
    for flags in BOTH {
        let failing = format!("d {}\n", "0123456789".repeat(4));
        let (it, text) = told("returns.c", flags, &failing, "d 0123\n");
        let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(found.is_averted && found.element.is_some(), "{text}");
        assert_eq!(found.variable, "indent", "{text}");
        assert_eq!(first(&it).0, "entered", "{text}");
    }
}

#[test]
fn a_function_that_others_call_with_more_room_is_judged_by_calls_from_the_same_place() {
    for flags in BOTH {
        let (it, text) = told("returns.c", flags, "n abcdefghijklmno\n", "n ab\n");
        let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(found.is_averted && found.is_unusual, "{text}");
        assert_eq!(found.variable, "it.code", "{text}");
        assert_eq!(functions(&found.place)[..2], ["word", "named"], "{text}");
    }
}

#[test]
fn a_block_that_is_freed_after_it_was_copied_is_named_with_its_later_use() {
    let flags: [&[&str]; 2] = [&["-g", "-O0"], &["-g", "-Og"]];
    for flags in flags {
        let program = program_by("g++", "listeners.cc", flags);
        let it = explained(&program, b"a 0\nmore 3\n", Some(b"a 0\nmore 2\n"));
        let text = story::text(&it);
        assert!(it.is_copied, "{text}");
        assert!(functions(&it.moved_early).contains(&"add"), "{text}");
        assert_eq!(first(&it).0, "call", "{text}");
        assert!(text.contains("with the content of the new one"), "{text}");
    }
}
