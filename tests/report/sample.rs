//! A group to show.

use ddfuzz::report::{GroupView, Trace};
use ddfuzz::store::{Kind, Minimized, Proved};
use ddfuzz::triage::{Class, Crash, Key, Severity};
use serde_json::json;

/// A crash, minimized from 40 to 6 bytes, as a campaign shows it.
pub fn view() -> GroupView {
    GroupView {
        kind: Kind::Crash,
        major: Key::of([b"major".as_slice()]),
        minor: Key::of([b"minor".as_slice()]),
        class: Class("segv".to_owned()),
        severity: Severity::High,
        severity_reason: "write to a wild address".to_owned(),
        place: Some("parse_line at ul.c:40".to_owned()),
        trace: Trace::default(),
        flaky: None,
        source: Some("ul.c:40".to_owned()),
        runs_seen: 1234,
        size_before: 40,
        reproducer: b"A\x1b[2J\n".to_vec(),
        minimized: Some(Minimized {
            claim: "1-minimal".to_owned(),
            size_before: 40,
            size_after: 6,
            tests: json!({"executed": 17, "cached": 2}),
            proved: Proved { done: 6, of: 6 },
            minor_after: None,
            debug: None,
            any_input: false,
            untried: 0,
            flaky: None,
            given_up: None,
        }),
        file: "/out/minimized".into(),
        log: Some("/out/log.jsonl".into()),
        script: Some("/my out/reproduce.sh".into()),
        has_gdb: false,
        explanation: None,
        status: None,
        place_now: None,
        known_as: None,
        checked: None,
        utility: None,
        variants: Vec::new(),
    }
}

/// The record of a crash with these frames.
pub fn crash(frames: serde_json::Value) -> Crash {
    let key = Key::of([b"key".as_slice()]);
    serde_json::from_value(json!({
        "v": 1, "keys": {"major": key, "minor": key, "stable": null, "version": 1},
        "class": "segv", "ended": {"signal": 11}, "confidence": "high", "severity": "low",
        "severity_reason": "null dereference", "way": "inject", "capture": "ptrace", "hits": 3,
        "tries": 3, "frames": frames,
        "limits": {"cpu_ms": 1, "wall_ms": 1, "memory": 1, "file_size": 1, "processes": 1},
        "found": null,
    }))
    .unwrap()
}

/// A frame of the program, of the user's own or of a runtime.
pub fn frame(own: bool, name: Option<&str>, line: Option<&str>) -> serde_json::Value {
    json!({"module": "exe", "offset": 255, "function_start": null, "name": name, "line": line,
           "own": own})
}
