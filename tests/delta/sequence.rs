//! `ddmin` over any sequence.

use std::collections::HashSet;

use ddfuzz::delta::{
    AxiomError, Dd, Dd1999, DdPlus, Ddmin2002, Full, Mode, NotFailing, NotPassing, Outcome, dd,
    ddmin, minimize,
};

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
        "the whole input does not fail: its outcome is UNRESOLVED"
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

#[test]
fn any_search_minimizes_any_sequence() {
    let lines = ["int a;", "int b;", "return a / b;", "}"];
    let fails = |kept: &[&str]| match kept.contains(&"int b;") && kept.contains(&"return a / b;") {
        true => Outcome::Fail,
        false => Outcome::Pass,
    };
    let expected = Ok(vec!["int b;", "return a / b;"]);
    assert_eq!(minimize(&lines, Ddmin2002::new, fails), expected);
    assert_eq!(minimize(&lines, Dd1999::new, fails), expected);
    assert_eq!(minimize(&lines, DdPlus::new, fails), expected);
    let by_dd = |units| Dd::new(units, Mode::Minimize);
    assert_eq!(minimize(&lines, by_dd, fails), expected);
}

#[test]
fn dd_tests_the_axiom_first_and_no_configuration_twice() {
    for mode in [Mode::Minimize, Mode::Maximize, Mode::Isolate] {
        let items: Vec<u8> = (0..20).collect();
        let mut tested = Vec::new();
        let sides = dd(&items, mode, |kept| {
            tested.push(kept.to_vec());
            match kept.contains(&7) && kept.contains(&12) {
                true => Outcome::Fail,
                false => Outcome::Pass,
            }
        });
        let sides = sides.expect("the axiom holds");
        assert_eq!(tested[..2], [Vec::new(), items]);
        assert_eq!(tested.iter().collect::<HashSet<_>>().len(), tested.len());
        let mut both = [sides.pass, sides.difference].concat();
        both.sort_unstable();
        assert_eq!(both, sides.fail);
    }
}

#[test]
fn dd_says_which_half_of_the_axiom_does_not_hold() {
    let passes = dd(&[1, 2], Mode::Isolate, |_| Outcome::Pass);
    let outcome = Outcome::Pass;
    assert_eq!(passes, Err(AxiomError::NotFailing(NotFailing { outcome })));
    for mode in [Mode::Maximize, Mode::Isolate] {
        let fails = dd(&[1, 2], mode, |_| Outcome::Fail);
        assert_eq!(fails, Err(AxiomError::NotPassing(NotPassing)));
    }
    let least = dd(&[1, 2], Mode::Minimize, |_| Outcome::Fail).expect("it may fail");
    assert_eq!((least.fail, least.pass), (vec![], vec![]));
    let messages = [
        AxiomError::from(NotFailing { outcome }).to_string(),
        AxiomError::from(NotPassing).to_string(),
    ];
    assert_eq!(
        messages,
        [
            "the whole input does not fail: its outcome is PASS",
            "the empty input fails, but a passing input is needed to start with"
        ]
    );
}

#[test]
fn a_search_that_also_replaces_bytes_deletes_all_that_it_can() {
    let items: Vec<u8> = (0..=255).chain(0..=255).collect();
    let needs = |kept: &[u8]| match kept.contains(&7) && kept.contains(&200) {
        true => Outcome::Fail,
        false => Outcome::Pass,
    };
    let kept = minimize(&items, |_| Full::new(&items), needs).unwrap();
    assert_eq!(kept, [7, 200]);
}
