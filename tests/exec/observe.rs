//! What runs compare, on programs of every make that nobody has prepared.

use std::os::unix::fs::PermissionsExt;

use ddfuzz::delta::Comparison;
use ddfuzz::exec::observe::{self, Observer};
use ddfuzz::exec::{Ended, Freshness, Program, Run, Target, Way, start};

use crate::conformance::inputs;
use crate::needs;
use crate::programs::{Compiled, compile, open_directory, patient, try_compile};

/// The program, which refuses its input by this comparison.
pub fn target_of(program: &Compiled, how: &str) -> Target {
    let mut target = patient(Program::Path(program.path.clone()));
    target.args = vec![how.into()];
    target
}

pub fn observer(target: &Target) -> Box<dyn Observer> {
    let started = observe::start(target, Way::Inject, Freshness::Fresh).unwrap();
    started.expect("something can be observed")
}

pub fn observe(program: &Compiled, how: &str, input: &[u8]) -> (Run, Vec<Comparison>) {
    observer(&target_of(program, how)).observe(input).unwrap()
}

/// Whether two operands were compared, in whatever order; integers of whatever width.
pub fn has(found: &[Comparison], one: &[u8], other: &[u8]) -> bool {
    let number = |bytes: &[u8]| {
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0);
        bytes[..bytes.len() - zeros.count()].to_vec()
    };
    let (one, other) = (number(one), number(other));
    found.iter().any(|pair| {
        let pair = (number(&pair.left), number(&pair.right));
        pair == (one.clone(), other.clone()) || pair == (other.clone(), one.clone())
    })
}

/// How it refuses, what it is given, and the operands.
type Case = (&'static str, &'static [u8], &'static [u8], &'static [u8]);

const MAKES: [&[&str]; 4] = [
    &["-O0", "-pthread"],
    &["-O2", "-pthread"],
    &["-O2", "-pthread", "-no-pie"],
    &["-O2", "-pthread", "-s"],
];

/// Whether instructions can be observed here.
fn sees_instructions() -> bool {
    cfg!(target_arch = "x86_64")
}

#[test]
fn operands_of_functions_are_found_in_programs_of_every_make() {
    let cases: [Case; 6] = [
        ("memcmp", b"MAGIC-butter", b"MAGIC-butter", b"MAGIC-bytes!"),
        ("strcmp", b"the word", b"the word", b"the expected word"),
        ("strcasecmp", b"CONTENT", b"CONTENT", b"Content-Length"),
        (
            "strncasecmp",
            b"content-Tape",
            b"content-Tape",
            b"Content-Type",
        ),
        ("memmem", b"hay and hay", b"hay an", b"needle"),
        ("strstr", b"<html><head>", b"<html>", b"<body>"),
    ];
    for make in MAKES {
        let program = compile("compares", make);
        for (how, input, left, right) in cases {
            let (run, found) = observe(&program, how, input);
            assert_eq!(run.ended, Ended::Exit(1), "{how} {make:?}");
            assert!(has(&found, left, right), "{how} {make:?}: {found:?}");
        }
    }
}

#[test]
fn operands_of_instructions_are_found_in_programs_of_every_make() {
    if !sees_instructions() {
        return needs::missing("x86-64", "instructions of other machines are not decoded");
    }
    let cases: [Case; 7] = [
        ("u16le", b"\x34\x12abc", b"\x34\x12", b"\x03"),
        ("u16be", b"\x12\x34abc", b"\x34\x12", b"\x03"),
        (
            "u32le",
            b"\x78\x56\x34\x12abc",
            b"\x78\x56\x34\x12",
            b"\x03",
        ),
        (
            "u32be",
            b"\x12\x34\x56\x78abc",
            b"\x78\x56\x34\x12",
            b"\x03",
        ),
        (
            "u64le",
            b"\x01\x02\x03\x04\x05\x06\x07\x08",
            b"\x01\x02\x03\x04\x05\x06\x07\x08",
            b"\x90\x77\x66\x55\x44\x33\x22\x11",
        ),
        (
            // The check value of this checksum.
            "crc32",
            b"\x01\x02\x03\x04123456789",
            b"\x01\x02\x03\x04",
            b"\x26\x39\xf4\xcb",
        ),
        ("strncmp", b"pretix:", b"f", b"t"),
    ];
    let statics: &[&str] = &["-O2", "-pthread", "-static"];
    for make in MAKES.into_iter().chain([statics]) {
        let program = compile("compares", make);
        for (how, input, left, right) in cases {
            let (run, found) = observe(&program, how, input);
            assert_eq!(run.ended, Ended::Exit(1), "{how} {make:?}");
            // Where a function is called, its whole operands are there.
            let whole = how == "strncmp" && has(&found, b"pretix:", b"prefix:");
            assert!(
                whole || has(&found, left, right) || make == statics && how == "strncmp",
                "{how} {make:?}: {found:?}"
            );
        }
    }
}

#[test]
fn comparisons_stand_in_the_order_of_the_program() {
    if !sees_instructions() {
        return needs::missing("x86-64", "instructions of other machines are not decoded");
    }
    let program = compile("compares", &["-O0", "-pthread"]);
    let (_, found) = observe(&program, "u32le", b"\x78\x56\x34\x12abc");
    let at = |one: &[u8]| found.iter().position(|pair| pair.left == one).unwrap();
    // The names of the other ways are compared first, by a function.
    assert!(at(b"u32le") < found.len() - 1);
    let last = found
        .iter()
        .rposition(|pair| has(std::slice::from_ref(pair), b"\x78\x56\x34\x12", b"\x03"));
    assert!(last > Some(at(b"u32le")), "{found:?}");
}

#[test]
fn a_length_and_a_checksum_are_repaired_by_what_was_compared() {
    if !sees_instructions() {
        return needs::missing("x86-64", "instructions of other machines are not decoded");
    }
    let payload: Vec<u8> = (0..1000_u32).map(|index| (index * 7 % 251) as u8).collect();
    for make in [&["-O0", "-pthread"], &["-O2", "-pthread"]] {
        let program = compile("compares", make);
        let mut observer = observer(&target_of(&program, "packet"));
        let mut text = vec![0; 6];
        text.extend_from_slice(&payload);
        // What no one knows but the program: from nothing to an accepted packet, then shorter.
        for length in [payload.len(), payload.len() - 1, 10, 1] {
            text.truncate(6 + length);
            for field in [0..2, 2..6] {
                let (run, found) = observer.observe(&text).unwrap();
                if run.ended == Ended::Exit(0) {
                    break;
                }
                let old = text[field.clone()].to_vec();
                let needed = found.iter().rev().find_map(|pair| {
                    let wide = |bytes: &[u8]| [bytes, &[0; 8]].concat()[..8].to_vec();
                    let (left, right) = (wide(&pair.left), wide(&pair.right));
                    let of = wide(&old);
                    (left == of)
                        .then(|| right.clone())
                        .or((right == of).then_some(left))
                });
                let needed = needed.unwrap_or_else(|| panic!("{length} {field:?}: {found:?}"));
                let size = field.len();
                text[field].copy_from_slice(&needed[..size]);
            }
            let (run, _) = observer.observe(&text).unwrap();
            assert_eq!(run.ended, Ended::Exit(0), "{length} {make:?}");
        }
    }
}

#[test]
fn observed_runs_end_as_others_do() {
    let hows = [
        "children", "threads", "traps", "edge", "nothing", "null", "memcmp", "crc32", "switch",
    ];
    let accepted: [&[u8]; 6] = [
        b"\x01\x00\xfe\xca",
        b"\x02\x00\xfe\xca",
        b"\x03\x00\xfe\xca",
        b"XYZ",
        b"\x04\x00\xfe\xca",
        b"",
    ];
    let refused: [&[u8]; 2] = [b"", b"other than that"];
    let makes: [&[&str]; 4] = [
        &["-O0", "-pthread"],
        &["-O2", "-pthread"],
        &["-O2", "-static"],
        &["-O1", "-fsanitize=address"],
    ];
    for make in makes {
        let Some(program) = try_compile("compares", make) else {
            needs::missing("libc.a or libasan", "a program cannot be linked with it");
            continue;
        };
        for how in hows {
            let target = target_of(&program, how);
            let mut plain = start(&target, Some(Way::Command), Freshness::Fresh)
                .unwrap()
                .executor;
            let mut observer = observer(&target);
            for input in accepted.iter().chain(&refused) {
                let expected = plain.run(input).unwrap();
                let (run, _) = observer.observe(input).unwrap();
                let context = format!("{how} {make:?} on {input:?}");
                assert_eq!(
                    (run.ended, run.read),
                    (expected.ended, expected.read),
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn observed_runs_of_each_bundled_target_end_as_others_do() {
    for name in ["crtplot", "flex", "nroff", "troff", "ul", "units"] {
        let target = patient(Program::Bundled(name.to_owned()));
        let mut plain = start(&target, Some(Way::Command), Freshness::Fresh)
            .unwrap()
            .executor;
        for way in [Way::Command, Way::Harness] {
            let mut observer = observe::start(&target, way, Freshness::Fresh)
                .unwrap()
                .unwrap();
            for (index, input) in inputs(60).enumerate().step_by(5) {
                let expected = plain.run(&input).unwrap().ended;
                let (run, _) = observer.observe(&input).unwrap();
                assert_eq!(run.ended, expected, "{name} as {way}, input {index}");
            }
        }
    }
}

#[test]
fn the_same_run_is_seen_the_same_again() {
    let program = compile("compares", &["-O0", "-pthread"]);
    let mut observer = observer(&target_of(&program, "crc32"));
    // Long enough for breakpoints to wear out.
    let input: Vec<u8> = (0..8000_u32).map(|index| (index % 253) as u8).collect();
    let first = observer.observe(&input).unwrap().1;
    assert!(!first.is_empty() && first.len() <= 256, "{}", first.len());
    if sees_instructions() {
        assert!(first.iter().any(
            |pair| has(std::slice::from_ref(pair), &input[..4], &pair.left)
                || has(std::slice::from_ref(pair), &input[..4], &pair.right)
        ));
    }
    for _ in 0..3 {
        assert_eq!(observer.observe(&input).unwrap().1, first);
    }
}

#[test]
fn a_run_that_does_not_end_is_cut_off() {
    let program = compile("compares", &["-O0", "-pthread"]);
    let mut target = target_of(&program, "spin");
    target.limits.cpu = std::time::Duration::from_millis(50);
    let mut observer = observer(&target);
    assert_eq!(observer.observe(b"").unwrap().0.ended, Ended::Timeout);
}

#[test]
fn nothing_is_observed_of_a_script_and_a_missing_program_is_an_error() {
    let directory = open_directory();
    let script = directory.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 7\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut target = patient(Program::Path(script));
    assert!(
        observe::start(&target, Way::Command, Freshness::Fresh)
            .unwrap()
            .is_none()
    );
    target.program = Program::Path("/nonexistent/program".into());
    assert!(observe::start(&target, Way::Command, Freshness::Fresh).is_err());
}

#[test]
fn an_ordinary_program_of_the_system_is_observed() {
    let Some(grep) = needs::program("grep") else {
        return;
    };
    let mut target = patient(Program::Path(grep));
    target.args = vec!["-F".into(), "needle".into()];
    let mut observer = observer(&target);
    let (run, found) = observer.observe(b"some hay\n").unwrap();
    assert_eq!(run.ended, Ended::Exit(1));
    assert!(!found.is_empty());
}
