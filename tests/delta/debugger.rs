//! Debugging a failing call.

use std::cell::{Cell, RefCell};

use ddfuzz::delta::{DeltaDebugger, NotFailing, NotPassing, Outcome};
use proptest::prelude::*;

fn string_error(needle: &str, text: &str) {
    assert!(!text.contains(needle), "no substrings");
}

fn list_error(one: &[i32], other: &[i32], most: usize) {
    assert!(
        one.len() < other.len() && other.len() < most,
        "invalid length: {} and {}",
        one.len(),
        other.len()
    );
}

/// FAIL with `x` in the first and `y` in the second text, UNRESOLVED where one of them is alone.
fn together(first: &str, second: &str) -> Outcome {
    match (first.contains('x'), second.contains('y')) {
        (true, true) => Outcome::Fail,
        (false, false) => Outcome::Pass,
        _ => Outcome::Unresolved,
    }
}

#[test]
fn several_arguments_are_minimized_in_turn() {
    let arguments = ("foo".to_owned(), "foobar".to_owned());
    let debugger = DeltaDebugger::new(arguments, |(needle, text)| string_error(needle, text));
    let minimal = debugger.expect("a failing call").min_args();
    assert_eq!(minimal, (String::new(), String::new()));
}

#[test]
fn lists_are_taken_apart_and_numbers_stay() {
    let arguments = ((1..=10).collect::<Vec<i32>>(), vec![1, 2, 3], 5usize);
    let call = |(one, other, most): &(Vec<i32>, Vec<i32>, usize)| list_error(one, other, *most);
    let mut debugger = DeltaDebugger::new(arguments, call).expect("a failing call");
    assert_eq!(debugger.min_args(), (vec![], vec![], 5));
    assert_eq!(debugger.max_args(), Err(NotPassing));
    assert_eq!(debugger.min_arg_diff(), Err(NotPassing));
}

#[test]
fn two_arguments_that_fail_together_are_found_together() {
    let arguments = ("aaxaa".to_owned(), "bybbb".to_owned());
    let call = |(first, second): &(String, String)| together(first, second);
    let mut debugger = DeltaDebugger::new(arguments, call).expect("a failing call");
    assert_eq!(debugger.min_args(), ("x".to_owned(), "y".to_owned()));
    let most = debugger.max_args().expect("nothing passes");
    assert_eq!(most, ("aaaa".to_owned(), "bbbb".to_owned()));
    // No call that mixes the two sides is resolved, so that both are the difference.
    let isolated = debugger.min_arg_diff().expect("nothing passes");
    assert_eq!(isolated.difference, ("x".to_owned(), "y".to_owned()));
    assert_eq!(together(&isolated.fail.0, &isolated.fail.1), Outcome::Fail);
    assert_eq!(together(&isolated.pass.0, &isolated.pass.1), Outcome::Pass);
}

#[test]
fn one_of_two_arguments_is_isolated_where_it_decides_alone() {
    let fails = |(first, second): &(String, Vec<u8>)| {
        assert!(!first.contains('x') || second.len() < 2, "together");
    };
    let arguments = ("aaxaa".to_owned(), vec![1, 2, 3, 4]);
    let mut debugger = DeltaDebugger::new(arguments, fails).expect("a failing call");
    let isolated = debugger.min_arg_diff().expect("nothing passes");
    assert_eq!(isolated.difference, ("x".to_owned(), vec![]));
    assert_eq!(isolated.pass.1, isolated.fail.1);
}

#[test]
fn a_call_that_does_not_fail_is_an_error() {
    let passing = DeltaDebugger::new("harmless".to_owned(), |_| ());
    assert_eq!(
        passing.err(),
        Some(NotFailing {
            outcome: Outcome::Pass
        })
    );
    let unresolved = DeltaDebugger::new("odd".to_owned(), |_| Outcome::Unresolved);
    let outcome = Outcome::Unresolved;
    assert_eq!(unresolved.err(), Some(NotFailing { outcome }));
}

#[test]
fn another_panic_is_unresolved_and_numbers_and_quotations_do_not_matter() {
    let parse = |input: &String| {
        assert!(!input.is_empty(), "nothing to read");
        assert!(
            !input.contains('x'),
            "cannot read {input:?} of {} bytes",
            input.len()
        );
    };
    let mut debugger = DeltaDebugger::new("a\"b\\x123456789".to_owned(), parse).expect("a failure");
    assert_eq!(debugger.min_args(), "x");
    // The empty input panics too, but otherwise.
    assert_eq!(debugger.max_args(), Ok("a\"b\\123456789".to_owned()));
}

#[test]
fn an_error_fails_and_what_is_in_an_ok_counts() {
    let parse = |input: &String| match input.contains('-') {
        true => Err("a dash"),
        false if input.len() == 1 => Ok(Outcome::Unresolved),
        false => Ok(Outcome::Pass),
    };
    let mut debugger = DeltaDebugger::new("12-34".to_owned(), parse).expect("a failing call");
    assert_eq!(debugger.min_args(), "-");
    assert_eq!(debugger.max_args(), Ok("1234".to_owned()));
}

#[test]
fn no_input_is_run_twice_by_all_three_questions() {
    let calls = RefCell::new(Vec::new());
    let call = |input: &Vec<u8>| {
        calls.borrow_mut().push(input.clone());
        match input.iter().filter(|item| **item == b'a').count() {
            0..=3 => Outcome::Pass,
            _ => Outcome::Fail,
        }
    };
    let mut debugger = DeltaDebugger::new(b"banana-cabana".to_vec(), call).expect("a failure");
    assert_eq!(debugger.min_args(), b"aaaa");
    assert_eq!(debugger.max_args().map(|most| most.len()), Ok(10));
    assert_eq!(
        debugger.min_arg_diff().map(|one| one.difference),
        Ok(vec![b'a'])
    );
    let executed = debugger.tally().executed;
    drop(debugger);
    let mut inputs = calls.into_inner();
    assert_eq!(inputs.len() as u64, executed);
    inputs.sort_unstable();
    inputs.dedup();
    assert_eq!(inputs.len() as u64, executed);
}

#[test]
fn arguments_without_units_leave_nothing_to_do() {
    let calls = Cell::new(0);
    let call = |_: &(i32, f64)| {
        calls.set(calls.get() + 1);
        Outcome::Fail
    };
    let mut debugger = DeltaDebugger::new((7, 0.5), call).expect("a failing call");
    assert_eq!(debugger.min_args(), (7, 0.5));
    assert_eq!(debugger.max_args(), Err(NotPassing));
    drop(debugger);
    assert_eq!(calls.get(), 1);
}

#[cfg(feature = "engine")]
#[test]
fn the_front_runs_the_inputs_of_the_book() {
    use crate::debuggingbook::{DD, runs};

    for run in runs(&DD) {
        let tests = RefCell::new(Vec::new());
        let call = |input: &String| {
            let outcome = run.predicate.test(input);
            tests.borrow_mut().push((input.clone(), outcome));
            outcome
        };
        let mut debugger = DeltaDebugger::new(run.input.clone(), call).expect("a failing call");
        match run.algorithm.as_str() {
            "dd-minimize" => assert_eq!(Some(debugger.min_args()), run.fail),
            "dd-maximize" => assert_eq!(debugger.max_args().ok(), run.pass),
            _ => {
                let isolated = debugger.min_arg_diff().expect("nothing passes");
                let difference = (Some(isolated.pass), Some(isolated.fail));
                assert_eq!(difference, (run.pass, run.fail));
                assert_eq!(Some(isolated.difference), run.difference);
            }
        }
        drop(debugger);
        let mut expected = run.tests;
        // The call that fails is made first.
        expected.swap(0, 1);
        assert_eq!(tests.into_inner(), expected, "{}", run.algorithm);
    }
}

/// Three arguments.
type Lists = (Vec<u8>, Vec<u8>, Vec<u8>);

/// The arguments of a call, and a seed for what fails.
fn calls() -> impl Strategy<Value = (Lists, u64)> {
    let list = |from: u8| prop::collection::vec(from..from + 3, 0..6);
    ((list(0), list(10), list(20)), any::<u64>())
}

proptest! {
    #![proptest_config(crate::fixed::seed())]

    #[test]
    fn the_three_answers_hold_for_three_arguments(((one, two, three), seed) in calls()) {
        let whole = (one, two, three);
        let test = |call: &Lists| {
            let items = [call.0.as_slice(), &[99], &call.1, &[99], &call.2].concat();
            let hash = items.iter().fold(seed, |hash, item| {
                (hash ^ u64::from(*item) ^ 0xff).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
            });
            match hash >> 61 {
                _ if *call == whole => Outcome::Fail,
                _ if items == [99, 99] => Outcome::Pass,
                0..=2 => Outcome::Fail,
                3 => Outcome::Unresolved,
                _ => Outcome::Pass,
            }
        };
        prop_assume!(whole != (vec![], vec![], vec![]));
        let mut debugger = DeltaDebugger::new(whole.clone(), test).expect("a failing call");

        let least = debugger.min_args();
        prop_assert_eq!(test(&least), Outcome::Fail);
        for fewer in without_one(&least) {
            prop_assert_ne!(test(&fewer), Outcome::Fail, "{:?}", least);
        }
        let most = debugger.max_args().expect("nothing passes");
        prop_assert_eq!(test(&most), Outcome::Pass);

        let isolated = debugger.min_arg_diff().expect("nothing passes");
        prop_assert_eq!(test(&isolated.pass), Outcome::Pass);
        prop_assert_eq!(test(&isolated.fail), Outcome::Fail);
        let sizes = [&isolated.pass, &isolated.difference, &isolated.fail].map(size);
        prop_assert_eq!(sizes[0] + sizes[1], sizes[2]);
        prop_assert!(sizes[1] > 0);
    }
}

fn size(call: &Lists) -> usize {
    call.0.len() + call.1.len() + call.2.len()
}

/// The arguments without one item, for each of them.
fn without_one(call: &Lists) -> impl Iterator<Item = Lists> {
    (0..size(call)).map(|gone| {
        let mut fewer = call.clone();
        let (one, two) = (fewer.0.len(), fewer.0.len() + fewer.1.len());
        match gone {
            gone if gone < one => fewer.0.remove(gone),
            gone if gone < two => fewer.1.remove(gone - one),
            gone => fewer.2.remove(gone - two),
        };
        fewer
    })
}
