//! Run after run the terminal is as new, and nothing is left behind.

use std::path::Path;
use std::time::Duration;

use ddfuzz::exec::{Ended, Way};

use crate::programs::compile;
use crate::terminal::{WAYS, started};

#[test]
fn the_terminal_is_the_targets_own_in_all_respects() {
    let program = compile("terminal", &[]);
    for way in WAYS {
        let mut executor = started(&program, &["who"], way);
        for _ in 0..3 {
            assert_eq!(executor.run(b"").unwrap().ended, Ended::Exit(0), "{way}");
        }
    }
}

#[test]
fn a_terminal_left_in_disorder_is_as_new_for_the_next_run() {
    let program = compile("terminal", &[]);
    for way in WAYS {
        let mut executor = started(&program, &["state"], way);
        for keys in [&b"unread keys\r"[..], b"", b"more of them", b"\x13"] {
            assert_eq!(executor.run(keys).unwrap().ended, Ended::Exit(0), "{way}");
        }
    }
}

/// How many descriptors of this process are our sides of terminals.
fn terminals() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.ends_with("ptmx")).count()
}

/// Whether no process of this program is left, or comes to its end.
fn nobody_runs(program: &Path) -> bool {
    let runs = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut programs =
            all.filter_map(|entry| std::fs::read_link(entry.path().join("exe")).ok());
        programs.any(|running| running == program)
    };
    let ends = || {
        std::thread::sleep(Duration::from_millis(10));
        !runs()
    };
    !runs() || (0..2000).any(|_| ends())
}

#[test]
fn two_hundred_runs_end_alike_and_leave_nothing() {
    let program = compile("terminal", &[]);
    let before = terminals();
    for way in WAYS {
        let mut executor = started(&program, &["keys"], way);
        let inputs: [(&[u8], Ended); 4] = [
            (b"axyb", Ended::Signal(11)),
            (b"ayxb", Ended::Exit(0)),
            (b"xq", Ended::Exit(0)),
            (b"\x1b[Axy", Ended::Signal(11)),
        ];
        for (keys, ended) in inputs.iter().cycle().take(200) {
            assert_eq!(executor.run(keys).unwrap().ended, *ended, "{way} {keys:?}");
        }
        // Other tests of this process have some, too; each run that leaked one would make 200.
        assert!(
            terminals() < before + 60,
            "{before} before, {}",
            terminals()
        );
        drop(executor);
    }
    assert!(nobody_runs(&program.path), "a process is left");
}

#[test]
fn a_child_that_outlives_its_session_is_ended_with_the_run() {
    let program = compile("terminal", &[]);
    let mut executor = started(&program, &["child"], Way::Inject);
    for _ in 0..5 {
        // The parent waits for its child, which waits for a key that does not come.
        assert_eq!(executor.run(b"ab").unwrap().ended, Ended::Exit(0));
    }
}
