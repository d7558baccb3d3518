//! A group to show.

use ddfuzz::report::GroupView;
use ddfuzz::store::{Kind, Minimized, Proved};
use ddfuzz::triage::{Class, Key, Severity};
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
            given_up: None,
        }),
        file: "/out/minimized".into(),
        log: Some("/out/log.jsonl".into()),
        script: Some("/my out/reproduce.sh".into()),
        status: None,
        utility: None,
    }
}
