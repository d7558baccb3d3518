//! Hangs: each is named by the call that never returns, however it is run.

mod programs;

use std::path::Path;
use std::time::Duration;

use ddfuzz::exec::{Ended, Limits};
use ddfuzz::triage::{Crash, Triager, Verdict};
use programs::{PLAIN, STATIC, STATIC_STRIPPED, STRIPPED, UNOPTIMIZED, loops};

use crate::start::Starter;
use crate::{keys, own_names};

/// What runs, and the function that it is named by.
const RUNNING: [(&str, &str); 27] = [
    ("tight", "tight"),
    ("counting", "counting"),
    ("calling", "calling"),
    ("alternating", "alternating"),
    ("slow_calls", "slow_calls"),
    ("nested", "nested"),
    ("descending", "descending"),
    ("copying", "copying"),
    ("allocating", "allocating"),
    ("sorting", "never_sorted"),
    ("searching", "searching"),
    ("tailed", "tailed_end"),
    ("jumping", "jumping"),
    ("again", "again"),
    ("backtracking", "backtracking"),
    ("mutual", "first"),
    ("visit 3", "visit"),
    ("visit 40", "visit"),
    ("visit 300", "visit"),
    ("interrupted", "interrupted"),
    ("faulting", "handling"),
    ("joining", "spinning"),
    ("with_idle_threads", "with_idle_threads"),
    ("crowded", "many"),
    ("forking", "child_spins"),
    ("ending", "at_end"),
    ("main", "main"),
];

/// What waits, and the function that it is named by.
const WAITING: [(&str, &str); 9] = [
    ("reading", "reading"),
    ("sleeping", "sleeping"),
    ("napping", "napping"),
    ("locking", "locking"),
    ("polling", "polling"),
    ("pausing", "pausing"),
    ("stopping", "stopping"),
    ("deadlocked", "deadlock"),
    ("waiting", "child_sleeps"),
];

/// A triager of a program with these limits, in milliseconds.
fn triager(program: &Path, cpu: u64, wall: u64) -> Triager {
    let limits = Limits {
        cpu: Duration::from_millis(cpu),
        wall: Duration::from_millis(wall),
        ..Limits::default()
    };
    Triager::new(Box::new(Starter {
        limits,
        ..Starter::new(program)
    }))
}

fn hang(program: &Path, word: &str) -> Crash {
    match triager(program, 60, 200).examine(word.as_bytes()) {
        Ok(Verdict::Crash(crash)) => {
            assert_eq!(
                (crash.class.0.as_str(), crash.ended),
                ("hang", Ended::Timeout),
                "{word}"
            );
            *crash
        }
        other => panic!("{word}: {other:?}"),
    }
}

#[test]
fn a_hang_is_named_by_the_call_that_never_returns() {
    let program = loops(PLAIN);
    let wrong: Vec<String> = RUNNING
        .iter()
        .chain(&WAITING)
        .filter_map(|(word, name)| {
            let crash = hang(&program, word);
            let names = own_names(&crash);
            let found = names.first().copied().unwrap_or("?");
            let same = found == *name || found.starts_with(&format!("{name}."));
            (!same).then(|| format!("{word}: {names:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
