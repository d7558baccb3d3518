//! The result of `revisit`.

use ddfuzz::exec::Way;
use ddfuzz::report::EndedBy;
use ddfuzz::report::study::{StudyResult, rows};
use ddfuzz::store::Kind;
use serde_json::{Value, json};

use super::{group, small};

fn call(ways: Vec<Way>) -> StudyResult {
    StudyResult {
        runs: 1600,
        runs_per_s: 800.0,
        seconds: 2.0,
        new_groups: 1,
        ways,
        ended_by: EndedBy::Runs,
        ..StudyResult::default()
    }
}

fn value(ways: Vec<Way>) -> Value {
    let (studies, groups) = small();
    let rows = rows(&studies, &groups);
    serde_json::to_value(call(ways).with_results(&rows, &groups)).unwrap()
}

#[test]
fn a_study_has_the_keys_of_a_run_and_its_utilities() {
    let result = value(vec![Way::Inject, Way::Inject]);
    for (key, expected) in [
        ("runs", json!(1600)),
        ("runs_per_s", json!(800.0)),
        ("seconds", json!(2.0)),
        ("new_groups", json!(1)),
        ("hangs", json!(1)),
        ("ooms", json!(0)),
        ("flaky", json!(0)),
        ("exec", json!("inject")),
        ("resumed", json!(false)),
        ("ended_by", json!("runs")),
    ] {
        assert_eq!(result[key], expected, "{key}");
    }
    let group = &result["groups"][0];
    assert_eq!(
        (&group["utility"], &group["class"]),
        (&json!("boxes"), &json!("segv"))
    );
    assert_eq!(result["other_groups"][0]["kind"], "hang");
    assert_eq!(
        result["utilities"][0],
        json!({
            "utility": "boxes", "package": "boxes-package", "version": "1.0",
            "channel": "stdin,cp a.txt", "runs": 1000, "crashes": 3, "hangs": 1, "ooms": 0,
            "label": null, "note": null, "high_exits": 0, "host": "host", "groups": 2,
            "smallest": 1, "reproduce": "sh /out/crash/reproduce.sh",
            "channels": [
                {"channel": "stdin", "kind": "all", "runs": 600, "crashes": 3, "hangs": 1,
                 "ooms": 0, "high_exits": 0, "slow": 0},
                {"channel": "cp a.txt", "kind": "all", "runs": 400, "crashes": 0, "hangs": 0,
                 "ooms": 0, "high_exits": 0, "slow": 0},
            ],
        })
    );
    let refused = &result["utilities"][2];
    assert_eq!(
        (&refused["label"], &refused["channel"]),
        (&json!("setuid"), &Value::Null)
    );
}

#[test]
fn several_ways_of_execution_have_no_one_name() {
    assert_eq!(value(vec![Way::Inject, Way::Command])["exec"], Value::Null);
    let ways = &value(vec![Way::Inject, Way::Command])["ways"];
    assert_eq!(*ways, json!(["command", "inject"]));
    assert_eq!(value(Vec::new())["exec"], Value::Null);
}

#[test]
fn a_group_of_two_utilities_stands_for_both_and_counts_once() {
    let hang = |utility| group(utility, Kind::Hang, "same", 2);
    let result = call(Vec::new()).with_results(&[], &[hang("a"), hang("b")]);
    assert_eq!((result.hangs, result.other_groups.len()), (1, 2));
}
