//! Large inputs, of which nothing was tested.

use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::Goal;
use ddfuzz::minimize::{Options, Proved};

use crate::between::Case;
use crate::scripted::{outcomes, run_with, start_by};

const SIZE: usize = 4 << 20;

/// CPU time that all of it may take at most. With a set for each delta it takes several times as long.
const LONGEST: Duration = Duration::from_secs(3);

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanos.expect("a time"))
}

fn input() -> Vec<u8> {
    (0..SIZE).map(|at| (at % 251) as u8).collect()
}

fn without_tests() -> Options<'static> {
    Options {
        budget_tests: Some(0),
        ..Options::default()
    }
}

#[test]
fn what_is_left_to_prove_of_a_large_input_is_counted_at_once() {
    let input = input();
    let fails = |text: &[u8]| match text.len() {
        SIZE => Outcome::Fail,
        _ => Outcome::Pass,
    };
    let proved = |done: u64, of: usize| Proved {
        done,
        of: of as u64,
    };
    let before = cpu_time();
    let start = start_by(&input, "subset");
    let (result, _) = run_with(&input, start, &mut outcomes(fails), &mut without_tests());
    assert_eq!(result.expect("a result").proved, proved(0, SIZE));
    for (goal, of) in [(Goal::Maximize, SIZE), (Goal::Isolate, 2 * SIZE)] {
        let case = Case::of(goal, &input);
        let (isolated, _) = case.go_on(&[], &mut outcomes(fails), &mut without_tests());
        assert_eq!(isolated.expect("a result").proved, proved(0, of));
    }
    let took = cpu_time() - before;
    assert!(took < LONGEST, "{took:?}");
}
