//! What a run may use: of its whole tree of processes, and of address space.

use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Executor, Freshness, Limits, Target, Way, start};

use crate::needs;
use crate::programs::{Compiled, compile, target, try_compile};

const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

fn executor(target: &Target, way: Way) -> Box<dyn Executor> {
    start(target, Some(way), Freshness::Shared)
        .unwrap()
        .executor
}

/// A target whose wall limit is out of reach.
fn patient(program: &Compiled) -> Target {
    let mut target = target(program);
    target.limits.wall = OUT_OF_REACH;
    target
}

/// A run that takes so long was not ended by its CPU time.
const OUT_OF_REACH: Duration = Duration::from_secs(600);

#[test]
fn busy_children_and_orphans_use_up_the_cpu_time_of_their_run() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut target = patient(&program);
        // Of the crowd, at least 64 processes run: so many a control group admits.
        target.limits.cpu = Duration::from_millis(300);
        let mut executor = executor(&target, way);
        for word in ["busy-children\n", "busy-orphans\n", "busy-crowd\n"] {
            let began = Instant::now();
            let run = executor.run(word.as_bytes()).unwrap();
            assert_eq!(run.ended, Ended::Timeout, "{way}: {word}");
            assert!(began.elapsed() < OUT_OF_REACH, "{way}: {word}");
        }
    }
}

#[test]
fn memory_that_a_family_shares_counts_once() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let mut target = patient(&program);
        target.limits.cpu = Duration::from_secs(30);
        let run = executor(&target, way).run(b"shares\n").unwrap();
        assert_eq!(run.ended, Ended::Exit(0), "{way}");
    }
}

#[test]
fn address_space_that_is_only_reserved_is_no_memory() {
    let program = compile("hostile", &[]);
    for way in WAYS {
        let run = executor(&target(&program), way).run(b"reserves\n").unwrap();
        assert_eq!(run.ended, Ended::Exit(0), "{way}");
    }
}

#[test]
fn a_sanitizers_report_is_a_crash_by_every_way() {
    let Some(program) = try_compile("hostile", &["-fsanitize=address"]) else {
        return needs::missing("AddressSanitizer", "a program does not compile with it");
    };
    // No process runs many inputs with a sanitizer.
    for way in [Way::Command, Way::Inject] {
        let mut target = patient(&program);
        target.limits.cpu = Duration::from_secs(30);
        let mut executor = executor(&target, way);
        let mut ended = |input: &[u8]| executor.run(input).unwrap().ended;
        assert_eq!(ended(b"\x01\n"), Ended::Exit(1), "{way}");
        assert_eq!(ended(b"overflow\n"), Ended::Signal(libc::SIGABRT), "{way}");
        assert_eq!(ended(b"\x01\n"), Ended::Exit(1), "{way}");
    }
}

#[test]
fn the_longest_limit_is_no_overflow() {
    assert_eq!(Limits::with_cpu(Duration::MAX).wall, Duration::MAX);
}
