//! The result of `triage`.

use ddfuzz::exec::Way;
use ddfuzz::report::{
    SameBy, Trace, TriageGroup, TriageInput, TriageResult, triage_doubts, triage_groups_table,
    triage_summary, triage_table,
};
use ddfuzz::store::Kind;
use ddfuzz::triage::{Confidence, Severity};
use serde_json::json;

fn input() -> TriageInput {
    TriageInput {
        file: "/in/a".into(),
        ended: Some("SIGSEGV".to_owned()),
        class: Some("segv".to_owned()),
        major: Some("0123456789ab".to_owned()),
        minor: Some("ba9876543210".to_owned()),
        way: Some(Way::Command),
        confidence: Some(Confidence::High),
        hits: 2,
        tries: 3,
        error: None,
    }
}

fn healthy() -> TriageInput {
    TriageInput {
        class: None,
        major: None,
        minor: None,
        ended: Some("exit 0".to_owned()),
        confidence: None,
        way: None,
        hits: 0,
        ..input()
    }
}

fn unread() -> TriageInput {
    TriageInput {
        ended: None,
        tries: 0,
        error: Some("it is a fifo, not a file".to_owned()),
        ..healthy()
    }
}

fn group() -> TriageGroup {
    TriageGroup {
        major: "0123456789ab".to_owned(),
        kind: Kind::Crash,
        class: "segv".to_owned(),
        severity: Severity::High,
        severity_reason: "a write to a wild address".to_owned(),
        count: 1234,
        minors: vec!["ba9876543210".to_owned()],
        stable: None,
        stables: Vec::new(),
        frame: Some("parse at a.c:1".to_owned()),
        message: None,
        trace: Trace::default(),
        source: Some("/src/a.c:1".to_owned()),
        representative: "/in/a".into(),
        size: 7,
        known: false,
        new: None,
        why: None,
        same_by: None,
        build: None,
        any_input: false,
        explanation: None,
    }
}

fn result() -> TriageResult {
    TriageResult {
        inputs: vec![input(), healthy(), unread()],
        groups: vec![group()],
        minimized: Vec::new(),
        contents: 2,
        flaky: 1,
        healthy: 1,
        unread: 1,
        interrupted: false,
        instrumentation: Some(vec!["address".to_owned()]),
        cannot_tell: Vec::new(),
    }
}

#[test]
fn a_triage_has_exactly_the_keys_of_the_contract() {
    let expected = json!({
        "inputs": [
            {"file": "/in/a", "ended": "SIGSEGV", "class": "segv", "major": "0123456789ab",
             "minor": "ba9876543210", "way": "command", "confidence": "high", "hits": 2,
             "tries": 3, "error": null},
            {"file": "/in/a", "ended": "exit 0", "class": null, "major": null, "minor": null,
             "way": null, "confidence": null, "hits": 0, "tries": 3, "error": null},
            {"file": "/in/a", "ended": null, "class": null, "major": null, "minor": null,
             "way": null, "confidence": null, "hits": 0, "tries": 0,
             "error": "it is a fifo, not a file"},
        ],
        "groups": [{"major": "0123456789ab", "kind": "crash", "class": "segv",
                    "severity": "high", "severity_reason": "a write to a wild address",
                    "count": 1234, "minors": ["ba9876543210"], "stable": null,
                    "frame": "parse at a.c:1", "source": "/src/a.c:1", "message": null, "representative": "/in/a", "size": 7,
                    "known": false, "new": null, "why": null, "same_by": null}],
        "contents": 2, "flaky": 1, "healthy": 1, "unread": 1, "interrupted": false,
        "instrumentation": ["address"], "cannot_tell": [],
    });
    assert_eq!(serde_json::to_value(result()).unwrap(), expected);
}

#[test]
fn of_groups_with_nothing_but_a_class_it_is_said_that_they_may_hold_several_bugs() {
    let placeless = |kind, class: &str| TriageGroup {
        kind,
        class: class.to_owned(),
        frame: None,
        ..group()
    };
    let mut result = result();
    result.groups.push(placeless(Kind::Crash, "exit:9"));
    result.groups.push(placeless(Kind::Flaky, "segv"));
    assert_eq!(triage_doubts(&result), None);
    result.groups.push(placeless(Kind::Hang, "hang"));
    let said = triage_doubts(&result).unwrap();
    assert!(
        said.starts_with("note: of 1 group only the class is known"),
        "{said}"
    );
}

#[test]
fn triaged_inputs_stand_in_columns() {
    assert_eq!(
        triage_table(&result(), None),
        "GROUP         CLASS  ENDED                     HITS  FILE\n\
         0123456789ab  segv   SIGSEGV                   2/3   /in/a\n\
         -             -      exit 0                    0/3   /in/a\n\
         -             -      it is a fifo, not a file  0/0   /in/a\n"
    );
}

#[test]
fn groups_stand_in_columns_with_their_least_input() {
    assert_eq!(
        triage_groups_table(&[group()], None),
        "KIND     GROUP         CLASS  SEVERITY  FILES  WHERE           SIZE     FILE   WHY\n\
         crashes  0123456789ab  segv   high      1,234  parse at a.c:1  7 bytes  /in/a  \
         a write to a wild address\n"
    );
    for width in [0, 1, 40, 79] {
        let text = triage_groups_table(&[group()], Some(width));
        assert!(text.lines().all(|line| line.chars().count() <= width));
    }
}

#[test]
fn what_is_new_known_or_muted_stands_beside_each_group() {
    let with = |known, new, same_by| TriageGroup {
        known,
        new,
        same_by,
        frame: None,
        ..group()
    };
    let groups = [
        with(false, Some(true), None),
        with(false, Some(false), Some(SameBy::Key)),
        with(false, Some(false), Some(SameBy::Names)),
        with(true, Some(true), None),
    ];
    let text = triage_groups_table(&groups, None);
    let news: Vec<&str> = text.lines().map(|line| line[47..60].trim()).collect();
    assert_eq!(news, ["NEWS", "new", "known", "same by names", "muted"]);
}

#[test]
fn the_summary_counts_what_is_in_no_group() {
    assert_eq!(
        triage_summary(&result()),
        "3 files: 1 failing in 1 group, 1 flaky, 1 not failing, 1 not read"
    );
    let twice = TriageResult {
        contents: 1,
        ..result()
    };
    assert!(triage_summary(&twice).starts_with("3 files (1 different): "));
}
