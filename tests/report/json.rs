//! Results for scripts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use ddfuzz::exec::Way;
use ddfuzz::report::{EndedBy, ErrorReport, GroupView, RunGroup, RunResult};
use ddfuzz::store::StoreError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::sample::view;

fn value(result: &impl Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(result).unwrap()).unwrap()
}

#[test]
fn a_run_has_exactly_the_keys_of_the_contract() {
    let result = RunResult {
        runs: 10,
        runs_of_campaign: Some(300),
        runs_per_s: 5.0,
        seconds: 2.0,
        groups: vec![RunGroup::from(&view())],
        new_groups: 1,
        hangs: 2,
        ooms: 3,
        flaky: 4,
        unnamed_hangs: 0,
        unstored: 0,
        exec: Way::Inject,
        resumed: false,
        ended_by: EndedBy::Until,
        rebuilt: false,
        warnings: Vec::new(),
        settings: None,
    };
    let expected = json!({
           "runs": 10, "runs_of_campaign": 300, "runs_per_s": 5.0, "seconds": 2.0,
           "groups": [{
               "major": view().major.short(), "minor": view().minor.short(), "class": "segv",
               "runs_seen": 1234, "size_before": 40, "size_after": 6, "claim": "1-minimal",
               "tests": {"executed": 17, "cached": 2}, "file": "/out/minimized",
               "log": "/out/log.jsonl", "kind": "crash", "severity": "high",
               "severity_reason": "write to a wild address", "debug": null,
    "frame": "parse_line at ul.c:40", "source": "ul.c:40", "message": null, "flaky": null,
               "status": null,
           }],
           "new_groups": 1, "hangs": 2, "ooms": 3, "flaky": 4, "exec": "inject", "resumed": false,
           "ended_by": "until", "rebuilt": false, "warnings": [], "settings": null,
       });
    assert_eq!(value(&result), expected);
}

#[test]
fn a_group_that_is_not_minimized_has_null_for_what_is_not_known() {
    let group = value(&RunGroup::from(&GroupView {
        minimized: None,
        log: None,
        ..view()
    }));
    for key in ["claim", "tests", "log"] {
        assert_eq!(group.get(key), Some(&Value::Null), "{key}");
    }
}

#[test]
fn an_error_has_kind_message_path_and_hint() {
    let report = ErrorReport::from(&StoreError::NotOurs("/x".into()));
    let expected = json!({"error": {
        "kind": "not-an-output-directory",
        "message": "/x is not an output directory of ddfuzz",
        "path": "/x",
        "hint": "give an empty or new directory with `-o DIR`",
    }});
    assert_eq!(value(&report), expected);
}

#[test]
fn a_path_that_is_not_utf8_does_not_cost_the_result() {
    let file = OsString::from_vec(b"/a\xff".to_vec()).into();
    let group = value(&RunGroup {
        file,
        ..RunGroup::from(&view())
    });
    assert_eq!(group["file"], json!({ "base64": "L2H/" }));
}
