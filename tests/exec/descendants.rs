//! A crash of a descendant is a crash of the run.

use ddfuzz::exec::{Ended, Executor, Freshness, Target, Way, start};
use ddfuzz::triage::{Crash, Triager, Verdict};

use crate::programs::{Compiled, compile, running, target};

const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

/// What `programs/family.c` does, in which a process crashes although the first one exits.
const CRASHES: [&str; 11] = [
    "fork",
    "exec",
    "grandchild",
    "thread",
    "spawn",
    "vfork",
    "system",
    "popen",
    "daemon",
    "unreaped",
    "ignored",
];

fn family() -> Compiled {
    compile("family", &["-pthread", "-g"])
}

fn executor(target: &Target, way: Way) -> Box<dyn Executor> {
    start(target, Some(way), Freshness::Shared)
        .unwrap()
        .executor
}

fn run(executor: &mut dyn Executor, word: &str) -> Ended {
    executor.run(format!("{word}\n").as_bytes()).unwrap().ended
}

#[test]
fn whoever_crashes_the_run_ends_in_that_crash() {
    let program = family();
    for way in WAYS {
        let mut executor = executor(&target(&program), way);
        for word in CRASHES {
            let ended = run(&mut *executor, word);
            assert_eq!(ended, Ended::Signal(libc::SIGSEGV), "{word} by {way}");
        }
        for word in ["wait", "wait3", "wait4", "waitid", "waitpid"] {
            let ended = run(&mut *executor, word);
            assert_eq!(ended, Ended::Signal(libc::SIGABRT), "{word} by {way}");
        }
        drop(executor);
        assert_eq!(running(&program.path), 0, "{way}");
    }
}

#[test]
fn a_crash_is_not_forgotten_with_the_process_that_outlives_its_run() {
    let program = family();
    for way in WAYS {
        for _ in 0..5 {
            let mut executor = executor(&target(&program), way);
            // By now runs are no longer traced, nor compared.
            for _ in 0..50 {
                assert_eq!(run(&mut *executor, "nothing"), Ended::Exit(1), "{way}");
            }
            let ended = run(&mut *executor, "outlived");
            assert_eq!(ended, Ended::Signal(libc::SIGSEGV), "{way}");
        }
    }
    assert_eq!(running(&program.path), 0);
}

#[test]
fn a_crash_soon_after_the_first_process_has_exited_is_one_of_the_run() {
    let program = family();
    for way in WAYS {
        let mut executor = executor(&target(&program), way);
        for _ in 0..3 {
            let ended = run(&mut *executor, "later");
            assert_eq!(ended, Ended::Signal(libc::SIGSEGV), "{way}");
        }
        drop(executor);
        let crash = examine(&target(&program), way, "later");
        assert_eq!(crash.class.0, "segv", "{way}");
    }
    assert_eq!(running(&program.path), 0);
}

#[test]
fn other_ends_of_descendants_are_none_of_the_run() {
    let program = family();
    for way in WAYS {
        let mut executor = executor(&target(&program), way);
        for (word, expected) in [
            ("nothing", Ended::Exit(1)),
            ("well", Ended::Exit(0)),
            ("killed", Ended::Exit(0)),
            ("stops", Ended::Exit(6)),
            ("leaves", Ended::Exit(0)),
            ("own", Ended::Signal(libc::SIGABRT)),
            ("spins", Ended::Timeout),
        ] {
            for _ in 0..2 {
                let ended = run(&mut *executor, word);
                assert_eq!(ended, expected, "{word} by {way}");
            }
        }
        drop(executor);
        assert_eq!(running(&program.path), 0, "{way}");
    }
}

#[test]
fn a_program_that_forks_late_is_seen_to() {
    let program = family();
    for way in WAYS {
        let mut executor = executor(&target(&program), way);
        for _ in 0..10 {
            assert_eq!(run(&mut *executor, "nothing"), Ended::Exit(1), "{way}");
        }
        for word in ["system", "fork", "exec"] {
            let ended = run(&mut *executor, word);
            assert_eq!(ended, Ended::Signal(libc::SIGSEGV), "{word} by {way}");
        }
    }
}

fn examine(target: &Target, way: Way, word: &str) -> Crash {
    let mut triager = Triager::of_target(target, way).unwrap();
    match triager.examine(format!("{word}\n").as_bytes()) {
        Ok(Verdict::Crash(crash)) => *crash,
        other => panic!("{word} by {way}: {other:?}"),
    }
}

#[test]
fn the_crash_of_a_descendant_has_its_own_frames_and_the_same_keys_by_every_way() {
    let program = family();
    let target = target(&program);
    for word in CRASHES {
        let command = examine(&target, Way::Command, word);
        assert_eq!(command.capture, "ptrace", "{word}");
        assert_eq!(command.class.0, "segv", "{word}");
        let frame = command.innermost_own().expect(word);
        assert_eq!(&*frame.module, "exe", "{word}");
        assert_eq!(frame.name.as_deref(), Some("crash"), "{word}");
        let inject = examine(&target, Way::Inject, word);
        assert_eq!(inject.keys, command.keys, "{word}");
        assert_eq!(inject.ended, command.ended, "{word}");
    }
}

#[test]
fn another_programs_crash_is_told_by_its_name() {
    use std::os::unix::fs::PermissionsExt;
    let program = family();
    let script = program.path.with_file_name("pipeline");
    let text = format!(
        "#!/bin/sh\ncat | '{}' crash\ntrue\n",
        program.path.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut target = target(&program);
    target.program = ddfuzz::exec::Program::Path(script);
    for way in WAYS {
        let ended = executor(&target, way).run(b"x").unwrap().ended;
        assert_eq!(ended, Ended::Signal(libc::SIGSEGV), "{way}");
        let crash = examine(&target, way, "x");
        let frame = crash.innermost_own().unwrap();
        assert_eq!(&*frame.module, "family", "{way}");
        assert_eq!(frame.name.as_deref(), Some("crash"), "{way}");
    }
}
