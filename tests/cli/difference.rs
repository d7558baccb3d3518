//! What `max` and `diff` have in common.

use std::time::Duration;

use serde_json::Value;

use crate::ddfuzz::Desk;

/// The keys of both results.
pub const KEYS: [&str; 19] = [
    "claim",
    "deltas",
    "difference",
    "failing",
    "goal",
    "inverted",
    "log",
    "outcome",
    "output",
    "passing",
    "proved",
    "rate",
    "search",
    "size_failing",
    "size_passing",
    "slips",
    "tests",
    "units",
    "wall_ms",
];

/// Both commands, with what names their log.
const COMMANDS: [(&str, &str); 3] = [
    ("max crash", "crash.max"),
    ("diff --empty crash", "crash.diff"),
    ("diff healthy crash", "crash.diff"),
];

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("healthy", "No dogs, no cans, no birds: nobody here");
    desk.write("crash", "ten t dogs, ten cats, ten birds: t");
    desk
}

/// A log without what may differ.
fn lines(log: &[u8]) -> Vec<Value> {
    let lines = log
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let value = |line| {
        let mut value: Value = serde_json::from_slice(line).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.remove("us");
        fields.remove("spent_ms");
        value
    };
    lines.map(value).collect()
}

#[test]
fn a_log_cut_anywhere_resumes_to_the_same_result() {
    for (command, result) in COMMANDS {
        let desk = desk();
        let call = format!("{command} --json --target crtplot");
        let record = desk.call(&call).exits(0).json();
        let log = format!("{result}.log.jsonl");
        let (whole, text) = (desk.read(&log), desk.read(result));
        for part in [0, 1, 3, 5, 6, 7] {
            desk.write(&log, &whole[..whole.len() * part / 7]);
            std::fs::remove_file(desk.file(result)).unwrap();
            let again = desk.call(&format!("{call} --resume")).exits(0).json();
            for key in ["claim", "tests", "proved", "difference", "rate"] {
                assert_eq!(again[key], record[key], "{command}: {key}, cut at {part}/7");
            }
            assert_eq!(
                lines(&desk.read(&log)),
                lines(&whole),
                "{command}: {part}/7"
            );
            assert_eq!(desk.read(result), text);
        }
    }
}

#[test]
fn a_search_that_is_killed_resumes_to_the_same_result() {
    let (command, result) = COMMANDS[0];
    let words = format!("{command} --json --exec command --target crtplot");
    let undisturbed = desk();
    let record = undisturbed.call(&words).exits(0).json();
    let log = format!("{result}.log.jsonl");
    let whole = lines(&undisturbed.read(&log));
    for tests in [1, whole.len() / 3, whole.len() / 2] {
        let desk = desk();
        let mut child = desk.start(&format!("{words} --resume"));
        let written = || std::fs::read(desk.file(&log)).unwrap_or_default();
        let ends = |log: Vec<u8>| log.iter().filter(|byte| **byte == b'\n').count();
        while ends(written()) < tests && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let again = desk.call(&format!("{words} --resume")).exits(0).json();
        assert_eq!(again["tests"], record["tests"]);
        assert_eq!(lines(&written())[1..], whole[1..]);
        assert_eq!(desk.read(result), undisturbed.read(result));
        desk.is_left_clean();
    }
}

#[test]
fn a_log_of_min_is_not_gone_on_with_by_max() {
    let desk = desk();
    desk.call("min crash --target crtplot --search dd --log one")
        .exits(0);
    let words = "max crash --json --target crtplot --log one --resume";
    let error = desk.call(words).exits(2).json();
    assert_eq!(error["error"]["kind"], "log");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("another difference"), "{message}");
}
