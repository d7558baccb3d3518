//! Records to file.

use ddfuzz::exec::{Program, Target, TargetRecord, Way};
use ddfuzz::store::{Campaign, Minimized, Proved, StudyRecord, Tally, UtilityRecord};
use ddfuzz::triage::{Crash, Found, Key, Subject};
use serde_json::json;

/// The key of a name.
pub fn key(name: &str) -> Key {
    Key::of([name.as_bytes()])
}

/// A crash with the keys of these names, found by no one yet.
pub fn crash(major: &str, minor: &str) -> Crash {
    serde_json::from_value(json!({
        "v": 1,
        "keys": {"major": key(major), "minor": key(minor), "stable": null, "version": 1},
        "class": "segv",
        "ended": {"signal": 11},
        "confidence": "high",
        "severity": "low",
        "severity_reason": "null dereference",
        "way": "inject",
        "capture": "ptrace",
        "hits": 3,
        "tries": 3,
        "frames": [
            {"module": "libc.so.6", "offset": 4660, "function_start": null, "name": "strlen",
             "line": null, "own": false},
            {"module": "exe", "offset": 22136, "function_start": 22016, "name": "parse_line",
             "line": "ul.c:40", "own": true},
        ],
        "limits": {"cpu_ms": 1000, "wall_ms": 2000, "memory": 1073741824, "file_size": 67108864,
                   "processes": 64},
        "found": null,
    }))
    .unwrap()
}

/// The crash as run `run` of campaign `c1` found it.
pub fn by_run(crash: Crash, run: u64) -> Crash {
    let campaign = "c1".to_owned();
    let input = format!("all:1:{run}");
    Crash {
        found: Some(Found::Run {
            campaign,
            run,
            input,
        }),
        ..crash
    }
}

/// A campaign of this id.
pub fn campaign(id: &str) -> Campaign {
    Campaign {
        id: id.to_owned(),
        command_line: Vec::new(),
        settings: None,
        builds: Vec::new(),
        target: None,
        limits: None,
        ways: Vec::new(),
        seed: Some(1),
        started: "2026-01-02T03:04:05Z".to_owned(),
        host: "host".to_owned(),
    }
}

/// The outcome of a minimization to `size` bytes.
pub fn outcome(size: u64, proved: bool) -> Minimized {
    Minimized {
        claim: if proved { "1-minimal" } else { "best-so-far" }.to_owned(),
        size_before: 40,
        size_after: size,
        tests: json!({"executed": 7}),
        proved: Proved {
            done: if proved { size } else { 0 },
            of: size,
        },
        minor_after: Some(key("after")),
        debug: None,
        any_input: false,
        untried: 0,
        flaky: None,
        given_up: None,
    }
}

/// A study of these utilities.
pub fn study(campaign: &str, utilities: Vec<UtilityRecord>) -> StudyRecord {
    StudyRecord {
        v: StudyRecord::VERSION,
        campaign: campaign.to_owned(),
        host: "host".to_owned(),
        system: "system".to_owned(),
        kernel: "6.1".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        seed: 1,
        list: "list".to_owned(),
        shard: None,
        sandbox: Vec::new(),
        utilities,
    }
}

/// The utility of this place in the list, after so many runs.
pub fn utility(place: u64, runs: u64) -> UtilityRecord {
    UtilityRecord {
        utility: format!("u{place}"),
        place,
        tallies: vec![Tally {
            channel: "stdin".to_owned(),
            kind: "all".to_owned(),
            runs,
            ..Tally::default()
        }],
        ..UtilityRecord::default()
    }
}

/// A program of a study, called with so many arguments.
pub fn subject(utility: &str, arguments: usize) -> Subject {
    let mut target = Target::new(Program::Path(format!("/bin/{utility}").into()));
    target.args = vec!["-x".into(); arguments];
    Subject {
        utility: utility.to_owned(),
        target: TargetRecord::new(&target, Way::Command),
    }
}
