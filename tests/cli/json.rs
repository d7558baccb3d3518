//! The JSON results have exactly the keys that scripts may rely on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ddfuzz::files::OsText;

use crate::ddfuzz::{Desk, keys};

const TESTS: [&str; 6] = [
    "cached",
    "checks",
    "executed",
    "predicted",
    "repeated",
    "speculative",
];

#[test]
fn results_name_paths_that_are_not_utf_8() {
    let desk = Desk::new();
    let words = "run --json --target crtplot --runs 64 --max-len 1000 --seed 5 -o out";
    let result = desk.call(words).exits(1).json();
    let major = result["groups"][0]["major"].as_str().unwrap();
    for (words, key) in [
        ("merge out --json -o", "/output"),
        ("gen -s 1 5 --json -o", "/files/0/file"),
        (
            &format!("export {major} -o out --as hexdump --json --to"),
            "/to",
        ),
        ("man --json --to", "/directory"),
        ("completions bash --json --to", "/files/0"),
    ] {
        let name = [words.split(' ').next().unwrap().as_bytes(), b"-\xff"].concat();
        let result = desk.call_with(words, &[OsStr::from_bytes(&name)]);
        let result = result.exits(0).json();
        let path = result.pointer(key).unwrap().clone();
        let OsText(path) = serde_json::from_value(path).unwrap();
        assert!(Path::new(&path).starts_with(desk.path()));
        let is_named = |part: &OsStr| part.as_bytes() == name;
        assert!(Path::new(&path).iter().any(is_named), "{words}");
    }
}

#[test]
fn run_has_the_keys_of_the_contract() {
    let desk = Desk::new();
    let words = "run --json --target crtplot --runs 64 --max-len 1000 --seed 5 -o out";
    let result = desk.call(words).exits(1).json();
    let expected = [
        "ended_by",
        "exec",
        "flaky",
        "groups",
        "hangs",
        "new_groups",
        "ooms",
        "rebuilt",
        "resumed",
        "runs",
        "runs_per_s",
        "seconds",
        "settings",
        "warnings",
    ];
    assert_eq!(keys(&result), expected);
    let group = &result["groups"][0];
    let expected = [
        "claim",
        "class",
        "debug",
        "file",
        "flaky",
        "frame",
        "kind",
        "log",
        "major",
        "message",
        "minor",
        "runs_seen",
        "severity",
        "severity_reason",
        "size_after",
        "size_before",
        "source",
        "status",
        "tests",
    ];
    assert_eq!(keys(group), expected);
    assert_eq!(keys(&group["tests"]), TESTS);
    for path in ["file", "log"] {
        assert!(group[path].as_str().unwrap().starts_with('/'));
    }
    assert_eq!(group["major"].as_str().unwrap().len(), 12);
}

#[test]
fn min_has_the_keys_of_the_contract() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    let record = desk
        .call("min crash --json --target crtplot")
        .exits(0)
        .json();
    let expected = [
        "claim",
        "log",
        "minor_after",
        "outcome",
        "output",
        "proved",
        "rate",
        "search",
        "size_after",
        "size_before",
        "slips",
        "tests",
        "wall_ms",
    ];
    assert_eq!(keys(&record), expected);
    assert_eq!(keys(&record["tests"]), TESTS);
    assert_eq!(keys(&record["proved"]), ["done", "of"]);
    assert_eq!(keys(&record["outcome"]), ["class", "major", "minor"]);
    assert_eq!(keys(&record["rate"]), ["hits", "tries"]);
    assert_eq!(record["output"], desk.file("crash.min").to_str().unwrap());
    assert_eq!(
        record["log"],
        desk.file("crash.min.log.jsonl").to_str().unwrap()
    );
}

#[test]
fn triage_has_the_keys_of_the_contract() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    desk.write("healthy", "x");
    let result = desk
        .call("triage crash healthy --json --target crtplot")
        .exits(1)
        .json();
    let expected = [
        "cannot_tell",
        "contents",
        "flaky",
        "groups",
        "healthy",
        "inputs",
        "instrumentation",
        "interrupted",
        "unread",
    ];
    assert_eq!(keys(&result), expected);
    let expected = [
        "class",
        "confidence",
        "ended",
        "error",
        "file",
        "hits",
        "major",
        "minor",
        "tries",
        "way",
    ];
    for input in result["inputs"].as_array().unwrap() {
        assert_eq!(keys(input), expected);
    }
    let expected = [
        "class",
        "count",
        "frame",
        "kind",
        "known",
        "major",
        "message",
        "minors",
        "new",
        "representative",
        "same_by",
        "severity",
        "severity_reason",
        "size",
        "source",
        "stable",
        "why",
    ];
    assert_eq!(keys(&result["groups"][0]), expected);
}

#[test]
fn the_counts_of_tests_are_those_of_the_log() {
    let desk = Desk::new();
    desk.write("crash", "abcdefgh t ijklmnop");
    let record = desk
        .call("min crash --json --target crtplot")
        .exits(0)
        .json();
    let log = String::from_utf8(desk.read("crash.min.log.jsonl")).unwrap();
    let count = |parts: [&str; 2]| {
        let lines = log.lines();
        lines
            .filter(|line| parts.iter().all(|part| line.contains(part)))
            .count() as u64
    };
    let tests = &record["tests"];
    assert_eq!(
        tests["executed"],
        count(["\"kind\":\"test\"", "\"source\":\"run\""])
    );
    assert_eq!(tests["checks"], count(["\"kind\":\"check\"", ""]));
    let cached = tests["cached"].as_u64().unwrap() + tests["repeated"].as_u64().unwrap();
    assert_eq!(cached, count(["\"kind\":\"test\"", "\"source\":\"cache\""]));
}
