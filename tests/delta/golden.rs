//! The runs printed in the papers (tests/golden/papers.json).

use std::collections::HashSet;

use ddfuzz::delta::{
    Answered, Config, Dd1999, DdPlus, Ddmin, Order, Outcome, Rule, Search, Tester,
};
use serde_json::Value;

use crate::trace::{Trace, indices, run};

fn case(name: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/papers.json");
    let text = std::fs::read_to_string(path).expect("the golden runs");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    cases
        .into_iter()
        .find(|case| case["case"] == name)
        .expect("the case")
}

/// The case's result, counted from 0.
fn result(case: &Value) -> Vec<usize> {
    let changes = case["result"].as_array().expect("a list");
    changes
        .iter()
        .map(|change| change.as_u64().expect("a number") as usize - 1)
        .collect()
}

fn reproduce(case: &Value, needed: &[usize]) -> Trace {
    let changes = case["changes"].as_u64().expect("a number") as usize;
    run(Ddmin::new(changes), |kept| {
        match needed.iter().filter(|change| kept.contains(change)).count() {
            0 => Outcome::Pass,
            some if some == needed.len() => Outcome::Fail,
            _ => Outcome::Unresolved,
        }
    })
}

/// Number of different configurations asked for.
fn different(trace: &Trace) -> usize {
    trace
        .tests
        .iter()
        .map(|(kept, _)| kept)
        .collect::<HashSet<_>>()
        .len()
}

#[test]
fn issta_table_1_ends_at_the_one_change_that_fails() {
    let case = case("issta-table-1");
    let trace = reproduce(&case, &[6]);
    assert_eq!(trace.result, result(&case));
    assert!(
        trace.tests.len() <= 6,
        "2 log2 8 tests, not {}",
        trace.tests.len()
    );
}

#[test]
fn issta_table_2_takes_27_steps_with_17_different_configurations() {
    let case = case("issta-table-2");
    let trace = reproduce(&case, &[0, 6, 7]);
    assert_eq!(trace.result, result(&case));
    assert_eq!(Some(trace.tests.len() as u64), case["steps"].as_u64());
    let axiom_tests = 2;
    assert_eq!(
        Some((different(&trace) + axiom_tests) as u64),
        case["different_tests"].as_u64()
    );
}

/// What each test of a search was, as the paper prints it: changes counted from 1, and the outcome.
/// The test of the united result, which the papers leave out, is given apart.
struct Printed {
    tests: Vec<(Vec<usize>, String)>,
    last: Option<(Vec<usize>, String)>,
}

/// The case's tests.
fn printed(case: &Value) -> Vec<(Vec<usize>, String)> {
    serde_json::from_value(case["tests"].clone()).expect("the tests")
}

/// Runs a search; tests that the cache answers are left out.
fn print(search: &mut dyn Search, mut tester: Tester<'_>) -> Printed {
    let mut printed = Printed {
        tests: Vec::new(),
        last: None,
    };
    while let Some(asked) = search.next() {
        let config = asked.edit.apply(search.best()).expect("a configuration");
        let (outcome, answered) = tester.answer(&config);
        let changes = indices(&config).iter().map(|unit| unit + 1).collect();
        let word = match answered {
            Answered::Predicted => "PREDICTED".to_owned(),
            _ => outcome.to_string(),
        };
        if asked.rule == Rule::Result {
            printed.last = Some((changes, word));
        } else if matches!(answered, Answered::Run | Answered::Predicted) {
            printed.tests.push((changes, word));
        }
        search.tell(outcome);
    }
    printed
}

/// Whether a configuration applies this change, counted from 1.
fn applies(config: &Config, change: usize) -> bool {
    config.contains(change - 1)
}

fn fails(yes: bool) -> Outcome {
    if yes { Outcome::Fail } else { Outcome::Pass }
}

/// Reproduces a table by `dd-1999` with the rule that all of `needed` fail together.
fn reproduce_1999(name: &str, needed: &[usize]) -> Option<(Vec<usize>, String)> {
    let case = case(name);
    assert_eq!(case["algorithm"], "dd-1999");
    let mut search = Dd1999::new(8);
    let tester = Tester::new(|config| fails(needed.iter().all(|one| applies(config, *one))));
    let again = print(&mut search, tester);
    assert_eq!(again.tests, printed(&case), "{name}");
    assert_eq!(search.result().map(indices), Some(result(&case)), "{name}");
    assert_eq!(indices(search.best()), result(&case), "{name}");
    again.last
}

#[test]
fn esec_table_1_finds_the_one_change_that_fails() {
    assert_eq!(reproduce_1999("1999-table-1", &[7]), None);
}

#[test]
fn esec_table_2_finds_two_changes_that_interfere() {
    let last = reproduce_1999("1999-table-2", &[3, 6]);
    assert_eq!(last, Some((vec![3, 6], "FAIL".to_owned())));
}

#[test]
fn esec_table_3_finds_that_all_changes_are_needed() {
    let all: Vec<usize> = (1..=8).collect();
    assert_eq!(reproduce_1999("1999-table-3", &all), None);
}

#[test]
fn esec_tables_5_and_6_find_the_change_among_unresolved_ones() {
    let case = case("1999-tables-5-6");
    assert_eq!(case["algorithm"], "dd-plus-1999");
    let mut search = DdPlus::new(8);
    let tester = Tester::new(|config| {
        let together = [2, 3, 7].map(|change| applies(config, change));
        match together {
            [true, true, true] | [false, false, false] => fails(applies(config, 8)),
            _ => Outcome::Unresolved,
        }
    });
    let again = print(&mut search, tester);
    assert_eq!(again.tests, printed(&case));
    assert_eq!(again.last, Some((vec![8], "FAIL".to_owned())));
    assert_eq!(search.result().map(indices), Some(result(&case)));
    assert_eq!(indices(search.best()), result(&case));
}

#[test]
fn esec_table_7_predicts_what_is_no_prefix_of_the_history() {
    let case = case("1999-table-7");
    assert_eq!(case["algorithm"], "dd-plus-1999");
    let mut search = DdPlus::new(8);
    let mut tester = Tester::new(|config| fails(applies(config, 7)));
    tester.predict_by(Order);
    let again = print(&mut search, tester);
    assert_eq!(again.tests, printed(&case));
    assert_eq!(search.result().map(indices), Some(result(&case)));
    // Alone, the change that was found cannot be applied.
    assert_eq!(again.last, Some((vec![7], "PREDICTED".to_owned())));
    assert_eq!(indices(search.best()), [0, 1, 2, 3, 4, 5, 6]);
}
