//! Where tracing is refused, the copy that the dying process leaves gives the same keys.

use ddfuzz::exec::{Program, Target, Way};
use ddfuzz::triage::{Confidence, Crash, Triager, Verdict};

use crate::keys;
use crate::programs::{DEBUG, FIXED, FORTIFIED, PLAIN, PROTECTED, STATIC, STRIPPED, UNPROTECTED};
use crate::refused::{without_fixed_addresses, without_ptrace};

/// All planted bugs that do not depend on where the program is loaded.
const INPUTS: [&str; 33] = [
    "deep",
    "helper-a",
    "helper-b",
    "other",
    "assert",
    "abort",
    "twice",
    "fpe",
    "ill",
    "trap",
    "call-null",
    "call-wild",
    "call-none",
    "call-data",
    "jump-wild",
    "jump-none",
    "strlen",
    "smash:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "smash:\x01\x02\x03\x04\x05\x06\x07\x08aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "descend-1",
    "descend-2",
    "mutual",
    "bounded",
    "reraised",
    "late-abort",
    "wild-write",
    "wild-read",
    "sort",
    "thread",
    "burst",
    "bus",
    "sys",
    "direct",
];

fn target(path: &std::path::Path) -> Target {
    Target::new(Program::Path(path.to_owned()))
}

fn examined(triager: &mut Triager, input: &str) -> Crash {
    match triager.examine(input.as_bytes()).expect("the target runs") {
        Verdict::Crash(crash) => *crash,
        Verdict::Flaky { ended, .. } => panic!("{input:?} ended with {ended}"),
    }
}

#[test]
fn keys_by_a_copy_are_those_by_ptrace() {
    for variant in [
        &PLAIN,
        &STRIPPED,
        &DEBUG,
        &PROTECTED,
        &UNPROTECTED,
        &FIXED,
        &FORTIFIED,
    ] {
        let target = target(variant.path());
        for way in [Way::Command, Way::Inject] {
            let mut traced = Triager::of_target(&target, way).expect("the target");
            let expected = INPUTS.map(|input| keys(&mut traced, input.as_bytes()));
            let copied = || {
                let mut copied = Triager::of_target(&target, way).expect("the target");
                INPUTS.map(|input| keys(&mut copied, input.as_bytes()))
            };
            let (fixed, random) = (without_ptrace(copied), without_fixed_addresses(copied));
            for (index, input) in INPUTS.iter().enumerate() {
                let what = format!("{input:?} of {}, {way}", variant.path().display());
                assert_eq!(fixed[index], expected[index], "{what}");
                assert_eq!(
                    random[index], expected[index],
                    "{what}, at random addresses"
                );
            }
        }
    }
}

#[test]
fn the_record_of_a_copy_says_what_that_of_a_trace_says() {
    let target = target(PLAIN.path());
    for input in INPUTS {
        let mut traced = Triager::of_target(&target, Way::Command).expect("the target");
        let expected = examined(&mut traced, input);
        let copied = without_ptrace(|| {
            let mut copied = Triager::of_target(&target, Way::Command).expect("the target");
            examined(&mut copied, input)
        });
        assert_eq!(
            (expected.capture.as_str(), copied.capture.as_str()),
            ("ptrace", "copy")
        );
        assert_eq!(copied.keys.major, expected.keys.major, "{input:?}");
        assert_eq!(copied.keys.minor, expected.keys.minor, "{input:?}");
        assert_eq!(copied.ended, expected.ended, "{input:?}");
        assert_eq!(copied.severity, expected.severity, "{input:?}");
        assert_eq!(copied.details.signal, expected.details.signal, "{input:?}");
        assert_eq!(
            copied.details.si_code, expected.details.si_code,
            "{input:?}"
        );
        assert_eq!(
            copied.details.fault.class, expected.details.fault.class,
            "{input:?}"
        );
        assert_eq!(
            copied.details.abort_message, expected.details.abort_message,
            "{input:?}"
        );
        if input != "sys" {
            assert_eq!(copied.confidence, expected.confidence, "{input:?}");
        }
    }
}

#[test]
fn bundled_targets_have_the_keys_of_a_trace_by_every_way() {
    let underlined = [&[b'x'; 516][..], b"\n"].concat();
    let bugs: [(&str, &[u8]); 8] = [
        ("crtplot", b"t"),
        ("flex", &[b'x'; 2121]),
        ("nroff", b"\\D\n%0F"),
        ("nroff", b"\xc2\n"),
        ("troff", b"\\D\n"),
        ("troff", b"\\f%"),
        ("ul", &underlined),
        ("units", &[0x80; 77]),
    ];
    for (name, input) in bugs {
        let target = Target::new(Program::Bundled(name.to_owned()));
        let by = |way| {
            keys(
                &mut Triager::of_target(&target, way).expect("the target"),
                input,
            )
        };
        let expected = by(Way::Command);
        for way in [Way::Command, Way::Inject, Way::Harness] {
            assert_eq!(without_ptrace(|| by(way)), expected, "{name} by {way}");
        }
    }
}

#[test]
fn where_nothing_can_be_preloaded_the_signal_alone_names_the_crash() {
    let target = target(STATIC.path());
    let crash = without_ptrace(|| {
        let mut triager = Triager::of_target(&target, Way::Command).expect("the target");
        examined(&mut triager, "deep")
    });
    assert_eq!(
        (crash.class.0.as_str(), crash.capture.as_str()),
        ("segv", "status")
    );
    assert_eq!(crash.confidence, Confidence::Low);
}
