//! Critical slices of processes.
#![cfg(target_arch = "x86_64")]

mod explained;

use ddfuzz_explain::report::SliceRecord;
use ddfuzz_explain::{Pattern, SliceGoal, explain};
use explained::{PLAIN, program, request, target};

fn sliced(name: &str, goal: SliceGoal) -> SliceRecord {
    let mut request = request(target(&program(name, PLAIN), &[]), b"", None);
    request.slice = Some(goal);
    let it = explain(&request).unwrap();
    assert!(it.refused.is_none(), "{:?}", it.refused);
    it.slice.unwrap()
}

fn lines(slice: &SliceRecord) -> Vec<u64> {
    slice.kept.iter().map(|event| event.line.unwrap()).collect()
}

#[test]
fn the_published_program() {
    let whole = sliced("stripe.c", SliceGoal::Run);
    assert_eq!((whole.events, whole.kept.len()), (31, 12), "{whole:?}");
    assert!(whole.tests <= 163, "{}", whole.tests);
    let pattern = |text| SliceGoal::Lines(Pattern::new(text).unwrap());
    let sum = sliced("stripe.c", pattern("sum"));
    assert_eq!(
        lines(&sum),
        [15, 13, 15, 13, 15, 13, 15, 13, 15, 13, 17],
        "{sum:?}"
    );
    assert!(sum.tests <= 173, "{}", sum.tests);
    let mul = sliced("stripe.c", pattern("mul"));
    assert_eq!(lines(&mul), [18], "{mul:?}");
    assert!(mul.tests <= 10, "{}", mul.tests);
}

#[test]
fn calls_that_do_not_matter_are_left_out() {
    let pattern = |text| SliceGoal::Lines(Pattern::new(text).unwrap());
    let value = sliced("calls.c", pattern("value"));
    assert_eq!(lines(&value), [24, 26, 18, 18, 29], "{value:?}");
    let total = sliced("calls.c", pattern("total"));
    assert_eq!(lines(&total).last(), Some(&30), "{total:?}");
    assert_eq!(
        lines(&total).iter().filter(|line| **line == 9).count(),
        4,
        "{total:?}"
    );
}
