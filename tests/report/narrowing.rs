//! How `max` and `diff` come to a difference.

use ddfuzz::exec::{Limits, Program, Target, Way};
use ddfuzz::minimize::log::{DifferenceRecord, Goal, Line, StartLine, TargetRecord, Units};
use ddfuzz::report::{MinimizationHistory, curve};
use serde_json::json;

fn start(goal: Goal, units: Units) -> StartLine {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let target = TargetRecord::new(&target, Way::Mock);
    StartLine {
        difference: Some(DifferenceRecord {
            goal,
            units,
            deltas: 8,
            passing: None,
            inverted: false,
            monotone: false,
            ordered: false,
        }),
        ..StartLine::new(b"a text", "dd", target, None, Limits::default())
    }
}

fn line(value: serde_json::Value) -> Line {
    serde_json::from_value(value).expect("a line")
}

/// A test that keeps these deltas; sizes in bytes are those of no delta.
fn test(i: u64, keep: &[[u64; 2]]) -> Line {
    line(json!({
        "kind": "test", "i": i, "hash": "0123456789abcdef", "keep": keep, "size": 100,
        "outcome": "PASS", "source": "run", "us": 9,
    }))
}

fn reduce(i: u64, rule: &str) -> Line {
    line(json!({"kind": "reduce", "i": i, "rule": rule, "size": 100}))
}

#[test]
fn the_deltas_between_both_ends_are_what_is_left() {
    let lines = [
        test(0, &[[0, 4]]),
        reduce(0, "complement"),
        test(1, &[[0, 1], [2, 3]]),
        test(2, &[[0, 3]]),
        reduce(1, "increase-to-complement"),
    ];
    let shrinking = MinimizationHistory::of(&start(Goal::Isolate, Units::Edits), &lines);
    let sizes: Vec<u64> = shrinking.steps.iter().map(|step| step.size).collect();
    assert_eq!(sizes, [4, 2]);
    assert_eq!(shrinking.sizes(), "8 → 2 edits");
    assert_eq!(shrinking.passes[0].removed, 6);
    assert!(curve(&shrinking, None).contains("edits over executed tests, to 3 tests"));
}

#[test]
fn a_part_that_grows_leaves_less_of_the_difference() {
    let lines = [test(0, &[[0, 7]]), reduce(0, "increase-to-subset")];
    let shrinking = MinimizationHistory::of(&start(Goal::Maximize, Units::Bytes), &lines);
    assert_eq!(shrinking.sizes(), "8 → 1 byte");
    assert_eq!(shrinking.best_after(1), 1);
}
