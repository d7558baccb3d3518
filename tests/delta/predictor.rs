//! Outcomes without a run.

use ddfuzz::delta::{
    Answered, Caching, Config, DdPlus, Ddmin, Monotony, Order, Outcome, Predictor, Requires,
    Search, Tester, TextId,
};

/// The configuration that keeps the units from each mark to the next, by pairs.
fn config(marks: &[usize]) -> Config {
    let ranges = marks.chunks_exact(2).map(|pair| pair[0]..pair[1]);
    Config::from_ranges(ranges).expect("ascending")
}

#[test]
fn an_order_predicts_what_is_no_prefix() {
    for prefix in [config(&[]), config(&[0, 1, 1, 7])] {
        assert_eq!(Order.predict(&prefix), None);
    }
    for gap in [config(&[1, 2, 2, 7]), config(&[0, 1, 3, 4])] {
        assert_eq!(Order.predict(&gap), Some(Outcome::Unresolved));
    }
}

#[test]
fn a_unit_without_what_it_requires_is_unresolved() {
    let relation = Requires::new([(3, 1), (5, 4)]);
    for consistent in [config(&[1, 3]), config(&[1, 2, 3, 4]), config(&[4, 6])] {
        assert_eq!(relation.predict(&consistent), None, "{consistent:?}");
    }
    for torn in [config(&[3, 5]), config(&[1, 4, 5, 6])] {
        assert_eq!(
            relation.predict(&torn),
            Some(Outcome::Unresolved),
            "{torn:?}"
        );
    }
}

#[test]
fn subsets_of_what_passed_pass_and_nothing_else_is_said() {
    let mut monotony = Monotony::default();
    monotony.learn(&config(&[0, 4]), Outcome::Pass);
    monotony.learn(&config(&[2, 6]), Outcome::Pass);
    monotony.learn(&config(&[6, 9]), Outcome::Fail);
    monotony.learn(&config(&[7, 9]), Outcome::Unresolved);
    for subset in [config(&[]), config(&[1, 3]), config(&[2, 3, 5, 6])] {
        assert_eq!(monotony.predict(&subset), Some(Outcome::Pass), "{subset:?}");
    }
    for other in [config(&[1, 5]), config(&[6, 7]), config(&[8, 9])] {
        assert_eq!(monotony.predict(&other), None, "{other:?}");
    }
}

#[test]
fn a_monotone_failure_is_found_in_fewer_runs_with_the_monotony_cache() {
    let needed = [3, 17, 40];
    let minimize = |monotone: bool| {
        let mut tester =
            Tester::new(
                |config| match needed.iter().all(|unit| config.contains(*unit)) {
                    true => Outcome::Fail,
                    false => Outcome::Pass,
                },
            );
        if monotone {
            tester.predict_by(Monotony::default());
        }
        let mut search = Ddmin::new(64);
        tester.run(&mut search);
        (search.best().clone(), tester.tally())
    };
    let ((plain, all), (result, fewer)) = (minimize(false), minimize(true));
    assert_eq!(plain, result);
    assert!(fewer.executed < all.executed, "{fewer:?} {all:?}");
    assert_eq!(fewer.executed + fewer.predicted, all.executed);
    assert_eq!(fewer.repeated, all.repeated);
}

#[test]
fn predicted_tests_are_never_run() {
    let mut run = Vec::new();
    let mut tester = Tester::new(|config| {
        run.push(config.clone());
        match config.len() > 6 {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }
    });
    tester.predict_by(Order);
    tester.run(&mut DdPlus::new(16));
    let executed = tester.tally().executed;
    drop(tester);
    assert_eq!(run.len() as u64, executed);
    assert!(run.iter().all(|config| Order.predict(config).is_none()));
}

#[test]
fn answers_are_told_apart_by_where_they_come_from() {
    let mut tester = Tester::new(|_| Outcome::Pass);
    tester.name_inputs_by(|config| TextId([config.len() as u8; 16]));
    let answers = [[0, 2], [0, 2], [1, 3], [0, 3]].map(|marks| tester.answer(&config(&marks)).1);
    assert_eq!(
        answers,
        [
            Answered::Run,
            Answered::Repeated,
            Answered::Cached,
            Answered::Run
        ]
    );
    tester.answer_by(Caching::Off);
    assert_eq!(tester.answer(&config(&[0, 2])).1, Answered::Run);
    let tally = tester.tally();
    assert_eq!((tally.executed, tally.repeated, tally.cached), (3, 1, 1));
}
