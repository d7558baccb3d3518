//! Interestingness tests that are programs end as in new processes, however many runs share one.

use std::ffi::OsStr;
use std::time::Duration;

use ddfuzz::exec::{Ended, Executor, Freshness, Program, Target, Way, start_test};

use crate::programs::{Compiled, compile, running};

/// Inputs of `verdict.c`, and how the test ends on them.
const INPUTS: [(&str, Ended); 18] = [
    ("", Ended::Exit(1)),
    ("x", Ended::Exit(0)),
    ("ax", Ended::Exit(0)),
    ("u", Ended::Exit(125)),
    ("xs", Ended::Signal(libc::SIGSEGV)),
    ("t", Ended::Signal(libc::SIGTERM)),
    ("lx", Ended::Timeout),
    ("c", Ended::Exit(1)),
    ("cx", Ended::Exit(0)),
    ("dx", Ended::Exit(0)),
    ("m", Ended::Exit(1)),
    ("nx", Ended::Exit(0)),
    ("w", Ended::Exit(1)),
    ("wu", Ended::Exit(125)),
    ("hx", Ended::Exit(0)),
    ("rx", Ended::Exit(0)),
    ("aaaax", Ended::Exit(0)),
    ("-", Ended::Exit(1)),
];

fn begin(program: &Compiled, freshness: Freshness) -> Box<dyn Executor> {
    let mut target = Target::new(Program::Path(program.path.clone()));
    target.limits.cpu = Duration::from_millis(100);
    start_test(&target, OsStr::new("in put"), freshness).unwrap()
}

#[test]
fn a_program_as_a_test_ends_alike_in_any_order() {
    let program = compile("verdict", &[]);
    let mut shared = begin(&program, Freshness::Shared);
    let mut fresh = begin(&program, Freshness::Fresh);
    assert_eq!(shared.way(), Way::Snapshot);
    assert_eq!(shared.freshness(), Freshness::Shared);
    assert_eq!(
        (fresh.way(), fresh.freshness()),
        (Way::Command, Freshness::Fresh)
    );
    let count = INPUTS.len();
    let shuffled = (0..count).map(|index| index * 7 % count);
    let orders = (0..count).chain((0..count).rev()).chain(shuffled);
    // A long time of inputs that change nothing, beyond the first runs, which are compared.
    let calm = std::iter::repeat_n([1, 2, 16, 17, 0], 20).flatten();
    for index in orders.clone().chain(calm).chain(orders) {
        let (input, ended) = INPUTS[index];
        let run = shared.run(input.as_bytes()).unwrap();
        assert_eq!(run.ended, ended, "{input:?}");
    }
    for (input, ended) in INPUTS {
        assert_eq!(
            fresh.run(input.as_bytes()).unwrap().ended,
            ended,
            "{input:?}"
        );
    }
    drop((shared, fresh));
    assert_eq!(running(&program.path), 0);
}

#[test]
fn the_crash_of_a_process_that_a_test_starts_is_not_its_end() {
    let program = compile("verdict", &[]);
    let mut shared = begin(&program, Freshness::Shared);
    for (input, status) in [
        ("x", 0),
        ("px", 0),
        ("p", 1),
        ("cx", 0),
        ("px", 0),
        ("u", 125),
    ] {
        let run = shared.run(input.as_bytes()).unwrap();
        assert_eq!(run.ended, Ended::Exit(status), "{input:?}");
    }
    assert_eq!(shared.freshness(), Freshness::Shared);
}

#[test]
fn a_test_that_names_functions_which_start_processes_is_executed_anew() {
    let program = compile("family", &[]);
    let test = begin(&program, Freshness::Shared);
    assert_eq!(
        (test.way(), test.freshness()),
        (Way::Command, Freshness::Fresh)
    );
}
