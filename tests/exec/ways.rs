//! What every way of execution must do alike.

use ddfuzz::exec::{Ended, Freshness, Way, start};

use crate::programs::{compile, patient, target};

const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

/// `count` inputs from a fixed stream, some of which crash.
fn inputs(count: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|index| {
        let mut stream = blake3::Hasher::new()
            .update(&index.to_le_bytes())
            .finalize_xof();
        let mut bytes = vec![0; (index % 60) as usize];
        stream.fill(&mut bytes);
        match index % 7 {
            0 => b"crash\n".to_vec(),
            1 => b"abort\n".to_vec(),
            _ => bytes,
        }
    })
}

#[test]
fn inject_snapshot_and_command_give_equal_endings_on_1000_inputs() {
    let program = compile("hostile", &[]);
    let target = target(&program);
    let mut command = start(&target, Some(Way::Command), Freshness::Shared)
        .unwrap()
        .executor;
    let mut inject = start(&target, Some(Way::Inject), Freshness::Shared)
        .unwrap()
        .executor;
    let mut snapshot = start(&target, Some(Way::Snapshot), Freshness::Shared)
        .unwrap()
        .executor;
    for input in inputs(1000) {
        let ended = command.run(&input).unwrap().ended;
        assert_eq!(inject.run(&input).unwrap().ended, ended, "on {input:?}");
        assert_eq!(snapshot.run(&input).unwrap().ended, ended, "on {input:?}");
    }
}

#[test]
fn a_file_argument_reaches_the_target_in_every_way() {
    let program = compile("hostile", &[]);
    let mut target = target(&program);
    target.args = vec!["@@".into()];
    for way in WAYS {
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        assert_eq!(
            executor.run(b"crash\n").unwrap().ended,
            Ended::Signal(11),
            "{way}"
        );
        assert_eq!(
            executor.run(b"\x01\n").unwrap().ended,
            Ended::Exit(1),
            "{way}"
        );
        assert_eq!(executor.run(b"").unwrap().ended, Ended::Exit(3), "{way}");
    }
}

#[test]
fn the_target_sees_neither_our_variables_nor_our_descriptors() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut executor = start(&target(&program), Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        for word in ["environment\n", "descriptors\n", "writes-stdin\n"] {
            let run = executor.run(word.as_bytes()).unwrap();
            assert_eq!(run.ended, Ended::Exit(0), "{way}: {word}");
        }
    }
}

#[test]
fn a_library_that_the_user_preloads_stays_in_the_targets_environment() {
    let program = compile("hostile", &[]);
    let mut target = target(&program);
    let own = ("LD_PRELOAD".into(), "/no/such/library.so".into());
    target.env.push(own);
    for way in WAYS {
        let started = start(&target, Some(way), Freshness::Shared).unwrap();
        let run = { started.executor }.run(b"own-preload\n").unwrap();
        assert_eq!(run.ended, Ended::Exit(0), "{way}");
    }
}

#[test]
fn a_static_program_falls_back_to_command_and_says_why() {
    let program = compile("hostile", &["-static"]);
    let started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Command);
    assert!(started.why.contains("static"), "{}", started.why);
}

#[test]
fn what_is_not_started_by_glibc_falls_back_to_command_and_says_why() {
    let bare = ["-nostdlib", "-nostartfiles", "-ffreestanding"];
    let linker = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    let cases: [(&str, &[&str], &str); 4] = [
        ("hostile", &["-static-pie"], "statically linked"),
        (
            "no_libc",
            &[&bare[..], &["-static"]].concat(),
            "statically linked",
        ),
        ("no_libc", &bare, "does not start through glibc"),
        // Only its linker is asked for; there need be none of that name.
        ("hostile", &[linker], "musl"),
    ];
    for (name, flags, why) in cases {
        let program = compile(name, flags);
        let mut started = start(&target(&program), None, Freshness::Shared).unwrap();
        assert_eq!(started.executor.way(), Way::Command, "{name} {flags:?}");
        assert!(started.why.contains(why), "{flags:?}: {}", started.why);
        if name == "no_libc" {
            let ended = started.executor.run(b"*").unwrap().ended;
            assert_eq!(ended, Ended::Exit(42), "{flags:?}");
        }
        let forced = start(&target(&program), Some(Way::Inject), Freshness::Shared);
        let error = forced.err().unwrap().to_string();
        assert!(error.contains(why), "{flags:?}: {error}");
    }
}

#[test]
fn threads_before_main_fall_back_to_command_and_say_why() {
    let program = compile("early_thread", &["-pthread"]);
    let mut started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Command);
    assert!(started.why.contains("threads"), "{}", started.why);
    assert_eq!(started.executor.run(b"").unwrap().ended, Ended::Exit(5));
}

#[test]
fn a_script_runs_by_its_interpreter() {
    use std::os::unix::fs::PermissionsExt;
    let program = compile("hostile", &[]);
    let script = program.path.with_file_name("script");
    std::fs::write(&script, "#!/bin/sh\nread -r word\nexit \"$word\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut target = target(&program);
    target.program = ddfuzz::exec::Program::Path(script);
    let mut started = start(&target, None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Snapshot, "{}", started.why);
    assert_eq!(
        started.executor.run(b"42\n").unwrap().ended,
        Ended::Exit(42)
    );
}

#[test]
fn a_missing_or_unfit_program_is_a_named_error() {
    let program = compile("hostile", &[]);
    let dir = program.path.parent().unwrap();
    let plain = dir.join("plain");
    std::fs::write(&plain, "no program").unwrap();
    for (path, words) in [
        (dir.join("nothing-here"), "no program"),
        (dir.to_owned(), "directory"),
        (plain, "permission"),
    ] {
        let mut target = target(&program);
        target.program = ddfuzz::exec::Program::Path(path);
        let error = start(&target, None, Freshness::Shared)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn how_far_stdin_was_read_is_known() {
    let mut target = patient(ddfuzz::exec::Program::Path("/usr/bin/head".into()));
    target.args = vec!["-c".into(), "10".into()];
    for way in WAYS {
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        assert_eq!(executor.run(&[b'x'; 100]).unwrap().read, Some(10), "{way}");
    }
}

#[test]
fn what_several_processes_read_of_stdin_counts_together() {
    let mut target = patient(ddfuzz::exec::Program::Path("/bin/sh".into()));
    let script = "head -c 10 >/dev/null; (head -c 7 >/dev/null); exit 4";
    target.args = vec!["-c".into(), script.into()];
    for way in WAYS {
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        for _ in 0..5 {
            let run = executor.run(&[b'x'; 100]).unwrap();
            assert_eq!((run.ended, run.read), (Ended::Exit(4), Some(17)), "{way}");
        }
    }
}
