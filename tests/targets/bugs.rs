//! Every bug: its reproducer crashes each time, and nothing in it can be left out.

use std::collections::BTreeSet;

use ddfuzz::exec::Ended;

pub use crate::reproducers::all;
use crate::running::{TARGETS, ending, ending_at_fixed_addresses};

const CRASH: Ended = Ended::Signal(libc::SIGSEGV);

/// How often a crash must come, without a miss.
const TIMES: usize = 20;

#[test]
fn every_reproducer_crashes_each_time() {
    for bug in all() {
        for _ in 0..TIMES {
            let ended = ending(bug.target, &bug.reproducer);
            assert_eq!(ended, CRASH, "{} in {}", bug.target, bug.function);
        }
    }
}

#[test]
fn every_reproducer_crashes_at_fixed_addresses_too() {
    for bug in all() {
        for _ in 0..TIMES {
            let ended = ending_at_fixed_addresses(bug.target, &bug.reproducer);
            assert_eq!(ended, CRASH, "{} in {}", bug.target, bug.function);
        }
    }
}

#[test]
fn without_any_one_byte_no_reproducer_crashes() {
    for bug in all() {
        let mut shorter = BTreeSet::new();
        for at in 0..bug.reproducer.len() {
            let mut input = bug.reproducer.clone();
            input.remove(at);
            shorter.insert(input);
        }
        for input in shorter {
            let ended = ending(bug.target, &input);
            assert!(
                !ended.is_crash(None),
                "{} on {input:x?}: {ended}",
                bug.target
            );
        }
    }
}

#[test]
fn each_target_has_a_bug_and_the_formatters_have_two_or_more() {
    for target in TARGETS {
        let functions: BTreeSet<&str> = all()
            .iter()
            .filter(|bug| bug.target == target)
            .map(|bug| bug.function)
            .collect();
        let least = if target.ends_with("roff") { 2 } else { 1 };
        assert!(functions.len() >= least, "{target}");
    }
}

/// The run that overruns a buffer crashes with `size` characters and not with one less.
fn assert_threshold(target: &str, size: usize, input: impl Fn(usize) -> Vec<u8>) {
    for _ in 0..TIMES {
        assert_eq!(ending(target, &input(size)), CRASH, "{target} with {size}");
        let below = ending(target, &input(size - 1));
        assert!(!below.is_crash(None), "{target} with {}: {below}", size - 1);
    }
}

#[test]
fn flex_overruns_at_2121_characters_on_any_line_of_any_section() {
    let inside = |before: &'static str, after: &'static str| {
        move |size| [before.as_bytes(), &vec![0xfe; size], after.as_bytes()].concat()
    };
    assert_threshold("flex", 2121, inside("", ""));
    assert_threshold("flex", 2121, inside("a b\n", "\nc d\n"));
    assert_threshold("flex", 2121, inside("%%\na\t;\n\0", "\0"));
    assert_threshold("flex", 2121, inside("%%\na\t;\n%%\nint x;\n", "\n"));
    // A NUL ends a run like a newline.
    let cut = [&[b'x'; 2120][..], b"\0", &[b'x'; 2120]].concat();
    assert!(!ending("flex", &cut).is_crash(None));
}

#[test]
fn ul_overruns_at_516_printable_characters_before_a_newline() {
    assert_threshold("ul", 516, |size| {
        [&vec![b'~'; size][..], b"\nand more\n"].concat()
    });
    assert_threshold("ul", 516, |size| {
        [b"before\n", &vec![b' '; size][..], b"\n"].concat()
    });
    // What is not printable does not count.
    assert_threshold("ul", 516, |size| {
        [&b"\t\x80\x01\x7f".repeat(200), &vec![b'a'; size][..], b"\n"].concat()
    });
    assert_threshold("ul", 516, |size| {
        [&b"_\x08".repeat(size)[..], b"\n"].concat()
    });
    // Without a newline nothing is packed.
    assert!(!ending("ul", &[b'x'; 100_000]).is_crash(None));
}

#[test]
fn units_overruns_at_77_8_bit_characters_in_a_line() {
    assert_threshold("units", 77, |size| vec![0xff; size]);
    assert_threshold("units", 77, |size| {
        [b"1 m\n3 k", &vec![0xb5; size][..], b"m\n"].concat()
    });
    assert_threshold("units", 77, |size| b"a\x80".repeat(size));
    // The next line is counted anew, and printable characters are not counted at all.
    let lines = [&[0x80; 76][..], b"\n", &[0x80; 76]].concat();
    assert!(!ending("units", &lines).is_crash(None));
    assert!(!ending("units", &[b'm'; 100_000]).is_crash(None));
}

#[test]
fn crtplot_dies_of_one_letter_and_no_other() {
    for byte in 0..=255 {
        assert_eq!(
            ending("crtplot", &[byte]).is_crash(None),
            byte == b't',
            "{byte:#x}"
        );
    }
}

#[test]
fn the_formatters_helpers_crash_whoever_calls_them() {
    for input in [
        "\\h'3q",
        "\\v|3~|",
        "\\l'3%",
        "\\D'l 3q 0'",
        ".sp 3x",
        ".in0F",
        ".nr x 1&",
    ] {
        assert_eq!(ending("nroff", input.as_bytes()), CRASH, "{input}");
    }
    for input in [
        "\\h'",
        "\\v|3|\\v'",
        "\\l(3)",
        "\\wxy",
        "\\o'ab",
        "\\D~l 3 0'",
    ] {
        assert_eq!(ending("troff", input.as_bytes()), CRASH, "{input}");
    }
    for input in ["\\fq", "\\f(XY", ".ft Z"] {
        assert_eq!(ending("troff", input.as_bytes()), CRASH, "{input}");
    }
}
