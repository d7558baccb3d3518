//! No death of a target loses its header: signal, code, program counter and fault address are
//! there, by ptrace and by a copy.

use ddfuzz::exec::{Ended, Program, Target, Way};
use ddfuzz::triage::{Crash, Triager, Verdict};

use crate::programs::DEATHS;
use crate::refused::without_ptrace;

/// How often each is made.
const REPEATS: usize = 10;

/// What must be known of a death.
#[derive(Debug, PartialEq)]
struct Header {
    class: String,
    signal: Option<i32>,
    code: Option<i32>,
    /// The fault address, where it does not depend on the stack's place.
    address: Option<String>,
    /// The innermost of the program's own functions, where the stack was left.
    own: Option<String>,
}

/// The word on stdin, the class, the function, and the fault address.
type Row = (&'static str, &'static str, &'static str, &'static str);

const FAULTS: [Row; 30] = [
    ("plain", "segv", "touch", "0x1230"),
    ("wild", "wildcall", "calls", "0x13370000"),
    ("overflow", "stackoverflow", "descends", ""),
    ("overflow-in-thread", "stackoverflow", "descends", ""),
    ("overflow-on-own-stack", "stackoverflow", "descends", ""),
    ("thread", "segv", "touch", "0x1230"),
    ("beside-threads", "segv", "touch", "0x1230"),
    ("closed", "segv", "touch", "0x1230"),
    ("blocked", "segv", "touch", "0x1230"),
    ("blocked-in-thread", "segv", "touch", "0x1230"),
    ("undumpable", "segv", "touch", "0x1230"),
    ("no-files", "segv", "touch", "0x1230"),
    ("closed-no-files", "segv", "touch", "0x1230"),
    ("no-memory", "segv", "touch", "0x1230"),
    ("executes", "segv", "touch", "0x1230"),
    ("vfork", "segv", "touch", "0x1230"),
    ("fork", "segv", "touch", "0x1230"),
    ("clone", "segv", "touch", "0x1230"),
    ("handler-returns", "segv", "touch", "0x1230"),
    ("handler-reraises", "segv", "touch", "0x1230"),
    ("handler-on-stack", "segv", "touch", "0x1230"),
    ("handler-faults", "segv", "touch", "0x1230"),
    ("handler-faults-again", "segv", "touch", "0x1230"),
    ("handler-jumps", "segv", "touch", "0x1230"),
    ("handler-jumps-from-stack", "segv", "touch", "0x1230"),
    ("ignored", "segv", "touch", "0x1230"),
    ("sent-ignored", "segv", "touch", "0x1230"),
    ("pivot", "stackoverflow", "pivots", "0x7330ff8"),
    ("smash", "smash", "overwrites", ""),
    ("sent", "fpe", "main", ""),
];

fn target() -> Target {
    Target::new(Program::Path(DEATHS.path().to_owned()))
}

fn header(crash: &Crash) -> Header {
    let details = &crash.details;
    assert!(details.registers.contains_key("rip"), "{crash:?}");
    let own = crash.innermost_own();
    Header {
        class: crash.class.0.clone(),
        signal: details.signal,
        code: details.si_code,
        address: details.fault.address.map(|address| format!("{address}")),
        own: own.and_then(|frame| frame.name.clone()),
    }
}

fn headers(word: &str) -> Vec<(String, Header)> {
    let mut triager = Triager::of_target(&target(), Way::Command).expect("the target");
    let examined = (0..REPEATS).map(|_| {
        let verdict = triager.examine(word.as_bytes()).expect("the target runs");
        let Verdict::Crash(crash) = verdict else {
            panic!("{word}: {verdict:?}");
        };
        (crash.capture.clone(), header(&crash))
    });
    examined.collect()
}

/// What is wrong with the headers of one row.
fn wrong(capture: &str, row: Row, headers: Vec<(String, Header)>) -> Vec<String> {
    let (word, class, own, address) = row;
    let is_right = |way: &str, header: &Header| {
        way == capture
            && header.class == class
            && header.signal.is_some()
            && header.code.is_some_and(|code| code > 0) == (word != "sent")
            && header.own.as_deref() == Some(own)
            && (address.is_empty() || header.address.as_deref() == Some(address))
    };
    let wrong = headers.iter().filter(|(way, it)| !is_right(way, it));
    wrong.map(|it| format!("{word}: {it:?}\n")).collect()
}

#[test]
fn no_death_loses_its_header_by_ptrace() {
    let rows = FAULTS.into_iter();
    let wrong: String = rows
        .flat_map(|row| wrong("ptrace", row, headers(row.0)))
        .collect();
    assert!(wrong.is_empty(), "{wrong}");
}

/// Of threads that have not run yet, the first event is their death.
#[test]
fn the_threads_that_a_death_takes_along_do_not_hide_it() {
    let mut triager = Triager::of_target(&target(), Way::Command).expect("the target");
    let mut keys = || crate::keys(&mut triager, b"beside-threads");
    let first = keys();
    for repeat in 0..10 * REPEATS {
        assert_eq!(keys(), first, "{repeat}");
    }
}

#[test]
fn no_death_loses_its_header_by_a_copy() {
    let rows = FAULTS.into_iter();
    let of = |row: Row| wrong("copy", row, without_ptrace(|| headers(row.0)));
    let wrong: String = rows.flat_map(of).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_is_no_crash_is_none_by_a_copy_either() {
    let ends = [
        ("fine", Ended::Exit(0)),
        ("handler-exits", Ended::Exit(3)),
        ("sent-blocked", Ended::Exit(5)),
    ];
    let end = |word: &str| {
        let mut triager = Triager::of_target(&target(), Way::Command).expect("the target");
        match triager.examine(word.as_bytes()).expect("the target runs") {
            Verdict::Flaky { ended, .. } => ended,
            Verdict::Crash(crash) => panic!("{word}: {crash:?}"),
        }
    };
    for (word, ended) in ends {
        assert_eq!(end(word), ended, "{word}");
        assert_eq!(without_ptrace(|| end(word)), ended, "{word}");
    }
}
