//! `ddmin` over any sequence.

use std::collections::HashSet;

use ddfuzz::delta::{NotFailing, Outcome, ddmin};

#[test]
fn the_axiom_is_tested_first_and_no_configuration_twice() {
    let items: Vec<u8> = (0..40).collect();
    let mut tested = Vec::new();
    let result = ddmin(&items, |kept| {
        tested.push(kept.to_vec());
        if [3, 4, 39].iter().all(|unit| kept.contains(unit)) {
            Outcome::Fail
        } else {
            Outcome::Pass
        }
    });
    assert_eq!(result, Ok(vec![3, 4, 39]));
    assert_eq!(tested[..2], [items, Vec::new()]);
    assert_eq!(tested.iter().collect::<HashSet<_>>().len(), tested.len());
}

#[test]
fn an_input_that_does_not_fail_is_an_error_that_says_what_it_did() {
    for outcome in [Outcome::Pass, Outcome::Unresolved] {
        assert_eq!(ddmin(&[1, 2, 3], |_| outcome), Err(NotFailing { outcome }));
    }
    let error = NotFailing {
        outcome: Outcome::Unresolved,
    };
    assert_eq!(
        error.to_string(),
        "the whole input does not fail: its test is UNRESOLVED"
    );
}

#[test]
fn where_nothing_at_all_fails_the_result_is_empty() {
    assert_eq!(ddmin(&["a", "b"], |_| Outcome::Fail), Ok(vec![]));
    assert_eq!(ddmin::<u8>(&[], |_| Outcome::Fail), Ok(vec![]));
}

#[test]
fn equal_items_are_told_apart_by_their_place() {
    let twice = |kept: &[char]| match kept.iter().filter(|item| **item == 'x').count() {
        0 | 1 => Outcome::Pass,
        _ => Outcome::Fail,
    };
    assert_eq!(ddmin(&['x', 'a', 'x', 'b', 'x'], twice), Ok(vec!['x', 'x']));
}
