//! Hangs: each is named by the call that never returns, however it is run.

pub mod programs;

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
const WAITING: [(&str, &str); 10] = [
    ("reading", "reading"),
    ("sleeping", "sleeping"),
    ("napping", "napping"),
    ("locking", "locking"),
    ("polling", "polling"),
    ("woken", "woken"),
    ("pausing", "pausing"),
    ("stopping", "stopping"),
    ("deadlocked", "deadlock"),
    ("waiting", "child_sleeps"),
];

/// Wall limit, in milliseconds. What runs ends by its CPU time before; what waits has to have come
/// to where it waits, on a busy machine, too.
const WALL: u64 = 900;

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
    match triager(program, 60, WALL).examine(word.as_bytes()) {
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

/// Those that are named by another function than they should be.
fn misnamed(program: &Path, cases: &[(&str, &str)]) -> Vec<String> {
    let cases = cases.iter().filter_map(|(word, name)| {
        let crash = hang(program, word);
        let names = own_names(&crash);
        let found = names.first().copied().unwrap_or("?");
        let same = found == *name || found.starts_with(&format!("{name}."));
        (!same).then(|| format!("{word}: {names:?}"))
    });
    cases.collect()
}

const NONE: Vec<String> = Vec::new();

#[test]
fn a_hang_is_named_by_the_call_that_never_returns() {
    assert_eq!(misnamed(&loops(PLAIN), &RUNNING), NONE);
}

#[test]
fn who_waits_is_named_by_the_call_that_waits() {
    assert_eq!(misnamed(&loops(PLAIN), &WAITING), NONE);
}

#[test]
fn a_program_that_is_not_optimized_is_named_alike() {
    assert_eq!(misnamed(&loops(UNOPTIMIZED), &RUNNING[2..16]), NONE);
}

#[test]
fn a_static_program_is_named_alike() {
    assert_eq!(misnamed(&loops(STATIC), &RUNNING[2..7]), NONE);
}

/// The cases of which the keys change with symbols, limits or from run to run.
fn unsteady(one: &Path, other: &Path, cases: &[(&str, &str)]) -> Vec<String> {
    let cases = cases.iter().filter_map(|(word, _)| {
        let first = keys(&mut triager(one, 50, WALL), word.as_bytes());
        let mut later = triager(other, 90, WALL + 200);
        let same = keys(&mut later, word.as_bytes()) == first;
        (!same).then(|| (*word).to_owned())
    });
    cases.collect()
}

#[test]
fn a_hang_has_the_same_keys_without_symbols_and_with_other_limits() {
    assert_eq!(
        unsteady(&loops(PLAIN), &loops(STRIPPED), &RUNNING[..14]),
        NONE
    );
}

#[test]
fn a_hang_in_recursion_threads_or_children_has_the_same_keys_each_time() {
    assert_eq!(
        unsteady(&loops(PLAIN), &loops(STRIPPED), &RUNNING[14..]),
        NONE
    );
}

#[test]
fn who_waits_has_the_same_keys_each_time() {
    assert_eq!(unsteady(&loops(PLAIN), &loops(STRIPPED), &WAITING), NONE);
}

#[test]
fn a_static_program_without_symbols_has_the_same_keys_each_time() {
    let program = loops(STATIC_STRIPPED);
    assert_eq!(unsteady(&program, &program, &RUNNING[2..7]), NONE);
}

#[test]
fn different_loops_have_different_keys() {
    let mut triager = triager(&loops(PLAIN), 50, WALL);
    let mut majors: Vec<_> = ["calling", "nested", "reading", "main", "backtracking"]
        .map(|word| keys(&mut triager, word.as_bytes()).1)
        .to_vec();
    majors.sort();
    majors.dedup();
    assert_eq!(majors.len(), 5);
}

/// Threads that burn as much CPU time as they get, until they are dropped.
struct Hogs(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Hogs {
    fn start() -> Hogs {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        for _ in 0..2 {
            let stop = stop.clone();
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Hogs(stop)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_busy_machine_does_not_change_the_keys() {
    let mut triager = triager(&loops(PLAIN), 60, WALL);
    let words = [
        "calling",
        "slow_calls",
        "backtracking",
        "joining",
        "napping",
        "reading",
    ];
    let quiet = words.map(|word| keys(&mut triager, word.as_bytes()));
    let _hogs = Hogs::start();
    for (word, quiet) in words.iter().zip(quiet) {
        assert_eq!(keys(&mut triager, word.as_bytes()), quiet, "{word}");
    }
}

#[test]
fn a_hang_is_ended_also_where_exits_are_watched() {
    let limits = Limits::with_cpu(Duration::from_millis(50));
    let mut triager = Triager::new(Box::new(Starter {
        limits,
        crash_exit: Some(7),
        ..Starter::new(&loops(PLAIN))
    }));
    for word in ["calling", "forking", "crowded"] {
        assert_eq!(keys(&mut triager, word.as_bytes()).0, "hang", "{word}");
    }
}
