//! The result of `check`.

use ddfuzz::report::{CheckResult, CheckedGroup, CurrentFailure, Status, check_table};
use ddfuzz::store::Kind;
use serde_json::json;

fn fixed() -> CheckedGroup {
    CheckedGroup {
        major: "0123456789ab".to_owned(),
        kind: Kind::Crash,
        class: "segv".to_owned(),
        frame: Some("parse at a.c:1".to_owned()),
        status: Status::Fixed,
        why: None,
        hint: None,
        now: None,
        file: "/out/minimized".into(),
        inputs: 2,
        utility: None,
        came_back: None,
        has_passing_result: false,
        is_disturbed: false,
    }
}

fn other() -> CheckedGroup {
    CheckedGroup {
        status: Status::Other,
        now: Some(CurrentFailure {
            class: "abrt".to_owned(),
            major: "ffffffffffff".to_owned(),
            minor: "eeeeeeeeeeee".to_owned(),
            frame: None,
        }),
        ..fixed()
    }
}

fn result() -> CheckResult {
    let mut result = CheckResult::default();
    for group in [fixed(), other()] {
        result.add(group);
    }
    result
}

#[test]
fn a_check_has_the_keys_of_its_groups_and_counts_them() {
    let value = serde_json::to_value(result()).unwrap();
    assert_eq!(
        value["groups"][1],
        json!({"major": "0123456789ab", "kind": "crash", "class": "segv",
               "frame": "parse at a.c:1", "status": "other", "inputs": 2,
               "why": null, "hint": null,
               "now": {"class": "abrt", "major": "ffffffffffff", "minor": "eeeeeeeeeeee",
                       "frame": null},
               "file": "/out/minimized"})
    );
    assert_eq!(value["groups"][0]["now"], serde_json::Value::Null);
    let counts = ["fixed", "same", "other", "flaky"].map(|key| value[key].as_u64().unwrap());
    assert_eq!(counts, [1, 0, 1, 0]);
}

#[test]
fn a_group_that_fails_otherwise_is_shown_as_it_was_and_as_it_is() {
    assert_eq!(
        check_table(&result(), None),
        "STATUS  KIND     GROUP         CLASS  WHERE           NOW                  FILE\n\
         fixed   crashes  0123456789ab  segv   parse at a.c:1  -                    \
         /out/minimized\n\
         other   crashes  0123456789ab  segv   parse at a.c:1  abrt ffffffffffff -  \
         /out/minimized\n\
         2 groups: 1 fixed, 0 still failing, 1 failing differently, 0 flaky"
    );
}

#[test]
fn of_what_cannot_be_told_the_reason_stands_below_once() {
    let mut result = result();
    for major in ["aaaaaaaaaaaa", "bbbbbbbbbbbb"] {
        result.add(CheckedGroup {
            major: major.to_owned(),
            status: Status::CannotTell,
            why: Some("there is no AddressSanitizer".to_owned()),
            hint: Some("compile with -fsanitize=address".to_owned()),
            ..fixed()
        });
    }
    let value = serde_json::to_value(&result).unwrap();
    assert_eq!(
        (&value["fixed"], &value["cannot_tell"]),
        (&1.into(), &2.into())
    );
    assert_eq!(value["groups"][2]["status"], "cannot tell");
    let table = check_table(&result, None);
    assert!(
        table.contains("\ncannot tell  crashes  bbbbbbbbbbbb  "),
        "{table}"
    );
    let below = "\ncannot tell whether aaaaaaaaaaaa, bbbbbbbbbbbb are fixed: there is no AddressSanitizer\n  \
                 to find out: compile with -fsanitize=address\n\
                 4 groups: 1 fixed, 0 still failing, 1 failing differently, 0 flaky; 2 undecided";
    assert!(table.ends_with(below), "{table}");
}
