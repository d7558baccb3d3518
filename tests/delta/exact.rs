//! What the exact searches beside ddmin guarantee, on random failures.

use std::collections::HashSet;

use ddfuzz::delta::{Config, Dd, Dd1999, DdPlus, Ddmin2002, Mode, Outcome, Rule, Search};
use proptest::prelude::*;

use crate::random::failures;
use crate::reference_dd as reference;
use crate::trace::{indices, run, run_on};

type Tests = Vec<(Vec<usize>, Outcome)>;

/// The same tests without those that were made before.
fn first_times(tests: &Tests) -> Tests {
    let mut seen = HashSet::new();
    let new = tests.iter().filter(|(kept, _)| seen.insert(kept.clone()));
    new.cloned().collect()
}

/// Runs `algorithm` with a test that writes down what it is asked.
fn written_down<R>(
    test: impl Fn(&[usize]) -> Outcome,
    algorithm: impl FnOnce(&mut reference::Test<'_>) -> R,
) -> (R, Tests) {
    let mut tests = Vec::new();
    let result = algorithm(&mut |kept: &[usize]| {
        let outcome = test(kept);
        tests.push((kept.to_vec(), outcome));
        outcome
    });
    (result, tests)
}

/// The result without one of its units, for each of them.
fn one_less(result: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..result.len()).map(|gone| {
        let mut fewer = result.to_vec();
        fewer.remove(gone);
        fewer
    })
}

fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Minimize, Mode::Maximize, Mode::Isolate])
}

proptest! {
    #![proptest_config(crate::fixed::seed())]

    #[test]
    fn ddmin_2002_tests_what_its_definition_tests_and_ends_1_minimal(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let trace = run(Ddmin2002::new(failure.units), test);
        let (result, tests) = written_down(test, |test| reference::ddmin_2002(failure.units, test));
        prop_assert_eq!(&trace.tests, &tests);
        prop_assert_eq!(&trace.result, &result);
        prop_assert_eq!(test(&result), Outcome::Fail);
        for fewer in one_less(&result) {
            prop_assert_ne!(test(&fewer), Outcome::Fail);
            let tested = fewer.is_empty() || tests.iter().any(|(kept, _)| *kept == fewer);
            prop_assert!(tested, "the proof lies in the tests themselves");
        }
        let bound = failure.units * failure.units + 3 * failure.units;
        prop_assert!(first_times(&tests).len() <= bound);
    }

    #[test]
    fn dd_tests_what_its_definition_tests_in_the_same_order(
        failure in failures(),
        mode in modes(),
    ) {
        let test = |kept: &[usize]| failure.test(kept);
        let mut search = Dd::new(failure.units, mode);
        let tests = run_on(&mut search, test);
        let (sides, defined) = written_down(test, |test| reference::dd(failure.units, mode, test));
        prop_assert_eq!(first_times(&tests), defined);
        prop_assert_eq!((indices(search.pass()), indices(search.fail())), sides);
    }

    #[test]
    fn dd_minimizes_to_a_1_minimal_failing_side(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let mut search = Dd::new(failure.units, Mode::Minimize);
        let tests = run_on(&mut search, test);
        let result = indices(search.best());
        prop_assert!(search.pass().is_empty());
        prop_assert_eq!(test(&result), Outcome::Fail);
        for fewer in one_less(&result) {
            prop_assert_ne!(test(&fewer), Outcome::Fail, "A.11");
            let tested = fewer.is_empty() || tests.iter().any(|(kept, _)| *kept == fewer);
            prop_assert!(tested, "the proof lies in the tests themselves");
        }
        let bound = failure.units * failure.units + 3 * failure.units;
        prop_assert!(first_times(&tests).len() <= bound);
    }

    #[test]
    fn dd_maximizes_to_a_passing_side_that_no_unit_can_join(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let mut search = Dd::new(failure.units, Mode::Maximize);
        run_on(&mut search, test);
        prop_assert_eq!(test(&indices(search.pass())), Outcome::Pass);
        prop_assert_eq!(search.fail(), &Config::all(failure.units));
        for unit in indices(search.difference()) {
            let mut more = indices(search.pass());
            more.push(unit);
            more.sort_unstable();
            prop_assert_ne!(test(&more), Outcome::Pass);
        }
    }

    #[test]
    fn dd_isolates_a_1_minimal_difference_within_its_bounds(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let mut search = Dd::new(failure.units, Mode::Isolate);
        let tests = run_on(&mut search, test);
        let (pass, fail) = (search.pass(), search.fail());
        prop_assert_eq!(test(&indices(pass)), Outcome::Pass);
        prop_assert_eq!(test(&indices(fail)), Outcome::Fail);
        prop_assert!(pass.is_subset_of(fail));
        prop_assert_eq!(search.difference(), &fail.minus(pass));
        for unit in indices(search.difference()) {
            let one = Config::all(unit + 1).minus(&Config::all(unit));
            prop_assert_ne!(test(&indices(&pass.union(&one))), Outcome::Pass, "A.17");
            prop_assert_ne!(test(&indices(&fail.minus(&one))), Outcome::Fail, "A.17");
        }
        let bound = failure.units * failure.units + 7 * failure.units;
        prop_assert!(first_times(&tests).len() <= bound, "A.18");
    }

    #[test]
    fn dd_isolates_one_unit_in_two_tests_a_halving_where_all_is_resolved(failure in failures()) {
        let resolved = |kept: &[usize]| match failure.test(kept) {
            Outcome::Unresolved => Outcome::Pass,
            outcome => outcome,
        };
        let mut search = Dd::new(failure.units, Mode::Isolate);
        let tests = first_times(&run_on(&mut search, resolved));
        prop_assert_eq!(search.difference().len(), 1, "A.20");
        let halvings = (failure.units as f64).log2().ceil() as usize;
        prop_assert!(tests.len() <= 2 * halvings, "A.19");
    }

    #[test]
    fn dd_1999_tests_what_its_definition_tests_in_the_same_order(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let mut search = Dd1999::new(failure.units);
        let mut tests = run_on(&mut search, test);
        let all: Vec<usize> = (0..failure.units).collect();
        let (result, defined) = written_down(test, |test| reference::dd2(&all, &[], test));
        prop_assert_eq!(search.result().map(indices), Some(result.clone()));
        if tests.len() > defined.len() {
            prop_assert_eq!(tests.pop().map(|(kept, _)| kept), Some(result));
        }
        prop_assert_eq!(tests, defined);
        prop_assert_eq!(test(&indices(search.best())), Outcome::Fail);
    }

    #[test]
    fn dd_plus_tests_what_its_definition_tests_in_the_same_order(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let mut search = DdPlus::new(failure.units);
        let mut tests = run_on(&mut search, test);
        let all: Vec<usize> = (0..failure.units).collect();
        let (result, defined) = written_down(test, |test| reference::dd3(&all, &[], 2, test));
        prop_assert_eq!(search.result().map(indices), Some(result.clone()));
        if tests.len() > defined.len() {
            prop_assert_eq!(tests.pop().map(|(kept, _)| kept), Some(result));
        }
        prop_assert_eq!(tests, defined);
    }

    #[test]
    fn the_best_is_the_smallest_failing_configuration_seen(failure in failures()) {
        let test = |kept: &[usize]| failure.test(kept);
        let searches: [Box<dyn Search>; 2] = [
            Box::new(Dd1999::new(failure.units)),
            Box::new(DdPlus::new(failure.units)),
        ];
        for mut search in searches {
            let tests = run_on(search.as_mut(), test);
            let failed = tests.iter().filter(|(_, outcome)| *outcome == Outcome::Fail);
            let least = failed.map(|(kept, _)| kept.len()).min().unwrap_or(failure.units);
            prop_assert_eq!(search.best().len(), least.min(failure.units));
            prop_assert_eq!(test(&indices(search.best())), Outcome::Fail);
        }
    }

    #[test]
    fn dd_1999_and_dd_plus_find_all_units_that_fail_together(
        units in 1usize..80,
        needed in prop::collection::btree_set(0usize..80, 1..7),
    ) {
        let needed: Vec<usize> = needed.into_iter().filter(|unit| *unit < units).collect();
        prop_assume!(!needed.is_empty());
        let test = |kept: &[usize]| match needed.iter().all(|unit| kept.contains(unit)) {
            true => Outcome::Fail,
            false => Outcome::Pass,
        };
        for trace in [run(Dd1999::new(units), test), run(DdPlus::new(units), test)] {
            prop_assert_eq!(&trace.result, &needed);
        }
    }
}

#[test]
fn one_unit_or_none_needs_no_test_by_any_search() {
    for units in [0, 1] {
        let searches: [Box<dyn Search>; 6] = [
            Box::new(Ddmin2002::new(units)),
            Box::new(Dd::new(units, Mode::Minimize)),
            Box::new(Dd::new(units, Mode::Maximize)),
            Box::new(Dd::new(units, Mode::Isolate)),
            Box::new(Dd1999::new(units)),
            Box::new(DdPlus::new(units)),
        ];
        for mut search in searches {
            assert_eq!(search.next(), None);
            search.tell(Outcome::Fail);
            search.tell(Outcome::Pass);
            assert_eq!((search.next(), search.best().len()), (None, units));
        }
    }
}

#[test]
fn a_result_that_does_not_fail_leaves_the_best_so_far() {
    // Either of two units makes it fail, but not both together, as ambiguous changes may.
    let test = |kept: &[usize]| match [kept.contains(&1), kept.contains(&6), kept.len() == 8] {
        [true, true, false] => Outcome::Pass,
        [false, false, _] => Outcome::Pass,
        [_, _, true] => Outcome::Fail,
        _ if kept.len() > 4 => Outcome::Fail,
        _ => Outcome::Pass,
    };
    let mut search = Dd1999::new(8);
    let tests = run_on(&mut search, test);
    let result = search.result().map(indices).expect("an end");
    assert_eq!(test(&result), Outcome::Pass);
    assert_eq!(tests.last(), Some(&(result, Outcome::Pass)));
    assert_eq!(test(&indices(search.best())), Outcome::Fail);
}

#[test]
fn a_clone_of_any_search_goes_its_own_way() {
    let searches: [Box<dyn Search>; 4] = [
        Box::new(Ddmin2002::new(8)),
        Box::new(Dd::new(8, Mode::Isolate)),
        Box::new(Dd1999::new(8)),
        Box::new(DdPlus::new(8)),
    ];
    for mut search in searches {
        let asked = search.next();
        let mut ahead = search.clone();
        ahead.tell(Outcome::Fail);
        assert_eq!((ahead.best().len(), search.best().len()), (4, 8));
        assert_eq!(search.next(), asked);
        search.tell(Outcome::Unresolved);
        assert_ne!(search.next(), asked);
    }
}

#[test]
fn a_candidate_is_named_by_the_rule_that_it_may_apply() {
    let asked = |mode: Mode, outcomes: &[Outcome]| {
        let mut search = Dd::new(8, mode);
        let mut told = outcomes.iter();
        let mut rules = Vec::new();
        while let (Some(asked), Some(outcome)) = (search.next(), told.next()) {
            rules.push(asked.rule);
            search.tell(*outcome);
        }
        rules
    };
    let unresolved = [Outcome::Unresolved; 5];
    assert_eq!(
        asked(Mode::Minimize, &unresolved),
        [
            Rule::Subset,
            Rule::Complement,
            Rule::Subset,
            Rule::Complement,
            Rule::Complement
        ]
    );
    assert_eq!(
        asked(Mode::Maximize, &unresolved),
        [
            Rule::IncreaseToSubset,
            Rule::IncreaseToComplement,
            Rule::IncreaseToSubset,
            Rule::IncreaseToComplement,
            Rule::IncreaseToComplement
        ]
    );
    assert_eq!(
        asked(Mode::Isolate, &unresolved)[3..],
        [Rule::Complement, Rule::Complement]
    );
}

#[test]
fn dd_goes_on_between_any_two_configurations() {
    let pass = Config::from_ranges([0..2, 30..32]).expect("ascending");
    let fail = Config::from_ranges([0..10, 20..40]).expect("ascending");
    let mut search = Dd::between(pass.clone(), fail.clone(), Mode::Isolate);
    run_on(&mut search, |kept| match kept.contains(&25) {
        true => Outcome::Fail,
        false => Outcome::Pass,
    });
    assert_eq!(indices(search.difference()), [25]);
    assert!(pass.is_subset_of(search.pass()) && search.fail().is_subset_of(&fail));
    let mut equal = Dd::between(pass.clone(), pass, Mode::Isolate);
    assert_eq!(equal.next(), None);
}
