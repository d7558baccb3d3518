//! A target cannot hurt us: it neither slows a campaign beyond its limits nor leaves a process
//! behind.

use ddfuzz::exec::{Ended, Executor, Freshness, Way, start};

use crate::programs::{Compiled, compile, target};

const WAYS: [Way; 2] = [Way::Command, Way::Inject];

fn executor(program: &Compiled, way: Way) -> Box<dyn Executor> {
    start(&target(program), Some(way), Freshness::Shared)
        .unwrap()
        .executor
}

/// Processes that execute this program.
fn running(program: &Compiled) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program.path)
        })
        .count()
}

#[test]
fn flooding_both_outputs_with_a_gigabyte_is_an_ordinary_run() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        assert_eq!(
            executor(&program, way).run(b"flood\n").unwrap().ended,
            Ended::Exit(0)
        );
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
            // The server, and the child that waits for the next run.
            let most = if way == Way::Inject { 2 } else { 0 };
            assert!(running(&program) <= most, "{way}: {word}");
        }
        assert_eq!(executor.run(b"crash\n").unwrap().ended, Ended::Signal(11));
        drop(executor);
        assert_eq!(running(&program), 0, "{way}");
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
fn a_file_cannot_grow_beyond_the_limit() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let ended = executor(&program, way).run(b"bigfile\n").unwrap().ended;
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
