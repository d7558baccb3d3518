//! A target cannot hurt us: it neither slows a campaign beyond its limits nor leaves a process
//! behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ddfuzz::exec::{Ended, Executor, Freshness, Limits, Way, start};

use crate::needs;
use crate::programs::{Compiled, compile, open_directory, running, target};
use crate::stage::is_scene;

const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

fn executor(program: &Compiled, way: Way) -> Box<dyn Executor> {
    let mut target = target(program);
    target.limits.wall = Duration::from_secs(5); // for those that sleep
    start(&target, Some(way), Freshness::Shared)
        .unwrap()
        .executor
}

#[test]
fn flooding_both_outputs_with_a_gigabyte_is_an_ordinary_run() {
    let program = compile("hostile", &[]);
    // Other users and sandboxes have the same pipes: there, a part of it is enough.
    let word = if is_scene() { "splash\n" } else { "flood\n" };
    for way in WAYS {
        let mut target = target(&program);
        // So much takes a busy machine longer than a run usually may.
        target.limits = Limits::with_cpu(Duration::from_secs(20));
        target.limits.wall = Duration::from_secs(600);
        let started = start(&target, Some(way), Freshness::Shared).unwrap();
        let mut executor = started.executor;
        assert_eq!(executor.run(word.as_bytes()).unwrap().ended, Ended::Exit(0));
    }
}

#[test]
fn spinning_and_sleeping_time_out() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut executor = executor(&program, way);
        for word in ["stubborn\n", "sleep\n"] {
            let run = executor.run(word.as_bytes()).unwrap();
            assert_eq!(run.ended, Ended::Timeout, "{way}: {word}");
        }
        assert_eq!(executor.run(b"crash\n").unwrap().ended, Ended::Signal(11));
    }
}

#[test]
fn eating_memory_ends_at_the_limit() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let ended = executor(&program, way).run(b"eat\n").unwrap().ended;
        assert!(
            matches!(ended, Ended::OutOfMemory | Ended::Timeout),
            "{way}: {ended}"
        );
    }
}

#[test]
fn no_descendant_survives_its_run() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut executor = executor(&program, way);
        for word in ["children\n", "bomb\n"] {
            executor.run(word.as_bytes()).unwrap();
            // The servers of untraced and of traced runs, and the child of each that waits for the
            // next run.
            let most = if way == Way::Command { 0 } else { 4 };
            assert!(running(&program.path) <= most, "{way}: {word}");
        }
        assert_eq!(executor.run(b"crash\n").unwrap().ended, Ended::Signal(11));
        drop(executor);
        assert_eq!(running(&program.path), 0, "{way}");
    }
}

#[test]
fn a_target_that_kills_its_parent_is_started_again() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut executor = executor(&program, way);
        executor.run(b"parent\n").unwrap();
        assert_eq!(
            executor.run(b"\x02\n").unwrap().ended,
            Ended::Exit(2),
            "{way}"
        );
    }
}

#[test]
fn each_run_finds_its_directory_empty() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut executor = executor(&program, way);
        for _ in 0..3 {
            assert_eq!(
                executor.run(b"litter\n").unwrap().ended,
                Ended::Exit(0),
                "{way}"
            );
        }
    }
}

#[test]
fn temporary_files_go_to_the_scratch_directory_and_with_it() {
    let program = compile("hostile", &[]);
    let elsewhere = program.path.parent().unwrap().to_owned();
    for way in WAYS {
        let mut target = target(&program);
        target.cwd = Some(elsewhere.clone());
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        for _ in 0..3 {
            let ended = executor.run(b"temporary\n").unwrap().ended;
            assert_eq!(ended, Ended::Exit(0), "{way}");
        }
    }
}

#[test]
fn runs_of_several_workers_share_a_directory_one_at_a_time() {
    if is_scene() {
        return; // a sandbox keeps runs from writing there
    }
    let program = compile("hostile", &[]);
    let directory = open_directory();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let mut target = target(&program);
    target.cwd = Some(directory.path().to_owned());
    let work = |way| {
        let started = start(&target, Some(way), Freshness::Shared).unwrap();
        let mut executor = started.executor;
        for _ in 0..20 {
            let ended = executor.run(b"same-name\n").unwrap().ended;
            assert_eq!(ended, Ended::Exit(0), "{way}");
        }
    };
    std::thread::scope(|scope| {
        for way in WAYS {
            scope.spawn(move || work(way));
        }
    });
}

#[test]
fn a_file_cannot_grow_beyond_the_limit() {
    let program = compile("hostile", &[]);
    // Small, so that writing it takes little of the CPU time that a run has.
    let mut target = target(&program);
    target.limits.file_size = 4 << 20;
    for way in WAYS {
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        let ended = executor.run(b"bigfile\n").unwrap().ended;
        assert_eq!(ended, Ended::Signal(libc::SIGXFSZ), "{way}");
    }
}

#[test]
fn root_runs_targets_as_nobody() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let ended = executor(&program, way).run(b"who\n").unwrap().ended;
        assert_eq!(ended, Ended::Exit(0), "{way}");
    }
}

#[test]
fn odd_habits_do_not_hide_an_ending() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut executor = executor(&program, way);
        for (word, expected) in [
            ("traced", Ended::Signal(libc::SIGSEGV)),
            ("traced-exec", Ended::Exit(42)),
            ("undumpable", Ended::Signal(libc::SIGSEGV)),
            ("unlimited", Ended::Signal(libc::SIGSEGV)),
            ("group", Ended::Signal(libc::SIGKILL)),
            ("abort-group", Ended::Signal(libc::SIGABRT)),
            ("daemon", Ended::Exit(0)),
            ("blocked", Ended::Timeout),
            ("stops-parent", Ended::Timeout),
            ("writes-input", Ended::Exit(0)),
        ] {
            let run = executor.run(format!("{word}\n").as_bytes()).unwrap();
            assert_eq!(run.ended, expected, "{way}: {word}");
        }
        assert_eq!(executor.run(b"crash\n").unwrap().ended, Ended::Signal(11));
        drop(executor);
        assert_eq!(running(&program.path), 0, "{way}");
    }
}

#[test]
fn a_target_cannot_signal_what_is_not_its_own() {
    use std::os::unix::process::CommandExt;
    // SAFETY: with these arguments the call only tells the version of its interface.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<()>(),
            0,
            1,
        )
    };
    if version < 6 {
        return needs::missing("Landlock's signal scopes", "they came with Linux 6.12");
    }
    let program = compile("hostile", &[]);
    let mut bystander = std::process::Command::new("sleep");
    bystander.arg("60");
    if nix::unistd::geteuid().is_root() {
        bystander.uid(65534); // as the target
    }
    let mut bystander = bystander.spawn().unwrap();
    for way in WAYS {
        let order = format!("kill {}\n", bystander.id());
        let run = executor(&program, way).run(order.as_bytes()).unwrap();
        assert_eq!(run.ended, Ended::Exit(0), "{way}");
    }
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_spoiled_directory_or_input_is_whole_for_the_next_run() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut on_stdin = executor(&program, way);
        for word in ["no-directory", "closed-directory", "nests"] {
            let ended = on_stdin.run(format!("{word}\n").as_bytes()).unwrap().ended;
            // Only its owner's parent directory lets it be removed.
            assert!(
                matches!(ended, Ended::Exit(0 | 16 | 17)),
                "{way}: {word}: {ended}"
            );
            let litter = on_stdin.run(b"litter\n").unwrap().ended;
            assert_eq!(litter, Ended::Exit(0), "{way}: {word}");
        }
        let mut in_file = target(&program);
        in_file.args = vec!["@@".into()];
        let mut in_file = start(&in_file, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        for _ in 0..2 {
            assert_eq!(
                in_file.run(b"no-input\n").unwrap().ended,
                Ended::Exit(0),
                "{way}"
            );
            assert_eq!(
                in_file.run(b"crash\n").unwrap().ended,
                Ended::Signal(11),
                "{way}"
            );
        }
    }
}
