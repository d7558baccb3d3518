//! The runs printed in the papers (tests/golden/papers.json).

use std::collections::HashSet;

use ddfuzz::delta::{Ddmin, Outcome};
use serde_json::Value;

use crate::trace::{Trace, run};

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
