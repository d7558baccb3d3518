//! The keys of a crash do not depend on the way of execution.

use ddfuzz::exec::{Ended, Program, Target, TimeLimit, Way};
use ddfuzz::triage::{Crash, Quick, Triager, Verdict};

use crate::programs::patient;

/// A reproducer of each bug of the bundled targets (`tests/targets/bugs.rs`).
fn bugs() -> Vec<(&'static str, Vec<u8>)> {
    let underlined = [&[b'x'; 516][..], b"\n"].concat();
    vec![
        ("crtplot", b"t".to_vec()),
        ("flex", vec![b'x'; 2121]),
        ("nroff", b"\\D\n%0F".to_vec()),
        ("nroff", b"\xc2\n".to_vec()),
        ("nroff", b"\\$1".to_vec()),
        ("troff", b"\\D\n".to_vec()),
        ("troff", b"\xc2\n".to_vec()),
        ("troff", b"\\f%".to_vec()),
        ("ul", underlined),
        ("units", vec![0x80; 77]),
    ]
}

fn examine(target: &Target, way: Way, input: &[u8]) -> Crash {
    match Triager::of_target(target, way).unwrap().examine(input) {
        Ok(Verdict::Crash(crash)) => *crash,
        other => panic!("{way}: {other:?}"),
    }
}

#[test]
fn every_bundled_bug_has_the_same_record_by_every_way() {
    for (name, input) in bugs() {
        let target = patient(Program::Bundled(name.to_owned()));
        let command = examine(&target, Way::Command, &input);
        assert_eq!(command.capture, "ptrace", "{name}");
        for way in [Way::Inject, Way::Harness] {
            let other = examine(&target, way, &input);
            assert_eq!(other.keys, command.keys, "{name} by {way}");
            assert_eq!(other.class, command.class, "{name} by {way}");
            assert_eq!(other.ended, command.ended, "{name} by {way}");
            let place = |crash: &Crash| crash.innermost_own().map(|frame| frame.place());
            assert_eq!(place(&other), place(&command), "{name} by {way}");
            assert_eq!(other.severity, command.severity, "{name} by {way}");
        }
    }
}

#[test]
fn a_server_that_also_makes_the_runs_of_a_search_gives_the_same_keys() {
    for (name, input) in bugs() {
        let target = patient(Program::Bundled(name.to_owned()));
        let command = examine(&target, Way::Command, &input);
        let shared = Triager::with_executor(&target, None).unwrap();
        let (mut triager, mut executor) = shared.expect("an entry function");
        for round in 0..3 {
            let expected = Quick::Crash {
                class: command.class.clone(),
                major: command.keys.major,
                minor: command.keys.minor,
            };
            let quick = triager.key(&input).unwrap();
            assert_eq!(quick, expected, "{name}, round {round}");
            let within = TimeLimit::from(target.limits);
            let (quick, _) = triager.key_within(&input, within).unwrap().unwrap();
            assert_eq!(quick, expected, "{name}, round {round}");
            let passing = triager.key(b"").unwrap();
            assert!(matches!(passing, Quick::Ended(Ended::Exit(_))), "{name}");
            // Runs before a traced one end with their process.
            assert!(executor.run(b"").unwrap().ended.is_exit(), "{name}");
            assert!(executor.run(b"").unwrap().ended.is_exit(), "{name}");
            assert_eq!(triager.key(&input).unwrap(), expected, "{name}");
            assert_eq!(executor.run(&input).unwrap().ended, command.ended);
            assert!(executor.run(b"").unwrap().ended.is_exit(), "{name}");
            let fresh = executor.run_fresh(&input).unwrap().expect("a fresh run");
            assert_eq!(fresh.ended, command.ended, "{name}");
        }
        let record = match triager.examine(&input) {
            Ok(Verdict::Crash(crash)) => *crash,
            other => panic!("{other:?}"),
        };
        assert_eq!(record.keys, command.keys, "{name}");
        assert_eq!(record.ended, command.ended, "{name}");
    }
}

#[test]
fn a_crash_of_a_program_compiled_by_afl_has_the_same_record_by_its_own_server() {
    for flags in [&[][..], &["-DPERSISTENT"]] {
        let Some(program) = crate::forkserver::instrumented("afl_branches", flags) else {
            return;
        };
        let target = crate::programs::target(&program);
        for input in [b"a".as_slice(), b"c"] {
            let command = examine(&target, Way::Command, input);
            let own = examine(&target, Way::Forkserver, input);
            assert_eq!(own.keys, command.keys, "{flags:?}, {input:?}");
            assert_eq!(own.class, command.class, "{flags:?}, {input:?}");
            assert_eq!(own.ended, command.ended, "{flags:?}, {input:?}");
        }
    }
}

#[test]
fn a_program_that_hides_its_memory_is_named_all_the_same() {
    let program = crate::programs::compile("hides", &[]);
    let target = patient(Program::Path(program.path.clone()));
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let crash = examine(&target, way, b"");
        // Root may look, and so may who owns its namespace; everybody else has the copy that the
        // process makes of itself.
        let may_look = nix::unistd::geteuid().is_root() || crate::programs::is_sandboxed();
        let capture = match may_look {
            true => "ptrace",
            false => "copy",
        };
        assert_eq!(
            (crash.class.0.as_str(), crash.capture.as_str()),
            ("segv", capture)
        );
        let own = crash.innermost_own().and_then(|frame| frame.name.clone());
        assert_eq!(own.as_deref(), Some("dies"), "{way}");
    }
}
