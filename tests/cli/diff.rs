//! `ddfuzz diff`.

use std::ffi::OsString;

use crate::ddfuzz::{Desk, keys};
use crate::difference::KEYS;

#[test]
fn one_byte_of_the_failing_input_makes_the_difference() {
    let desk = Desk::new();
    desk.write("crash", "any t, but t");
    let said = desk.call("diff --empty crash --json --target crtplot");
    let record = said.exits(0).json();
    assert_eq!(keys(&record), KEYS);
    assert_eq!(record["claim"], "1-minimal-difference");
    let [one] = &record["difference"].as_array().unwrap()[..] else {
        panic!("one place: {record}");
    };
    assert_eq!(keys(one), ["at", "inserted", "removed"]);
    assert_eq!(
        (&one["removed"], &one["inserted"]),
        (&"dA==".into(), &"".into())
    );
    let (failing, passing) = (desk.read("crash.diff"), desk.read("crash.diff.pass"));
    assert_eq!(failing.len(), passing.len() + 1);
    assert_eq!(record["failing"], desk.file("crash.diff").to_str().unwrap());
    assert_eq!(record["output"], record["failing"]);
    assert_eq!(
        record["passing"],
        desk.file("crash.diff.pass").to_str().unwrap()
    );
    assert_eq!(record["size_failing"], failing.len());
    let text = desk.call("diff --empty crash --force --target crtplot");
    assert!(text.exits(0).out.contains("  + 74  |t|"));
    desk.call("log verify crash.diff.log.jsonl").exits(0);
    desk.call("log replay crash.diff.log.jsonl -o again")
        .exits(0);
    assert_eq!(desk.read("again"), failing);
    assert_eq!(desk.read("again.pass"), passing);
    desk.call("log replay crash.diff.log.jsonl -o -").exits(0);
    assert!(!desk.file("-.pass").exists());
    desk.is_left_clean();
}

#[test]
fn of_the_edits_between_two_inputs_one_makes_the_difference() {
    let desk = Desk::new();
    desk.write("good", "One line\nand a word\nand no more\n");
    desk.write("bad", "Two line\nand t word\nor so more\n");
    let said = desk.call("diff good bad --json --target crtplot");
    let record = said.exits(0).json();
    assert_eq!(record["units"], "edits");
    assert_eq!(record["deltas"], 1);
    assert_eq!(record["difference"][0]["at"], serde_json::json!([13, 14]));
    assert_eq!(record["difference"][0]["removed"], "YQ==");
    assert_eq!(record["difference"][0]["inserted"], "dA==");
    desk.call("log verify bad.diff.log.jsonl").exits(0);
    // Both inputs are needed to rebuild it, and only they will do.
    desk.write("good", "something else");
    let error = desk
        .call("log replay --json bad.diff.log.jsonl")
        .exits(1)
        .json();
    assert_eq!(error["error"]["kind"], "input");
    std::fs::remove_file(desk.file("good")).unwrap();
    let error = desk
        .call("log replay --json bad.diff.log.jsonl")
        .exits(2)
        .json();
    assert_eq!(error["error"]["hint"], "give it with --passing FILE");
    desk.write("moved", "One line\nand a word\nand no more\n");
    desk.call("log replay bad.diff.log.jsonl --passing moved")
        .exits(0);
}

#[test]
fn bytes_of_edits_are_told_apart_where_that_is_asked_for() {
    let desk = Desk::new();
    desk.write("good", "head, end");
    desk.write("bad", "head, something put here, end");
    let call = |words: &str| {
        let said = desk.call(&format!("diff good bad --json --target crtplot {words}"));
        said.exits(0).json()
    };
    assert_eq!(call("")["difference"][0]["at"], serde_json::json!([6, 6]));
    let finer = call("--bytes -o fine");
    assert_eq!(finer["units"], "edit-bytes");
    assert_eq!(finer["difference"][0]["inserted"], "dA==");
    desk.call("log verify fine.log.jsonl").exits(0);
}

#[test]
fn the_option_that_prevents_a_crash_is_found_by_the_inverted_test() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/remedy.c", "remedy");
    desk.write("options", "-O2 -g -funroll-loops -ffast-math -fgcse -Wall");
    let said = desk.call("diff --invert --empty options --json -- ./remedy");
    let record = said.exits(0).json();
    assert_eq!(record["inverted"], true);
    assert_eq!(record["claim"], "1-minimal-difference");
    assert_eq!(record["deltas"], 1);
    // What \"fails\" is what does not crash.
    let has_remedy = |file: &str| {
        String::from_utf8(desk.read(file))
            .unwrap()
            .contains("-ffast-math")
    };
    assert!(has_remedy("options.diff"));
    assert!(!has_remedy("options.diff.pass"));
    desk.call("log verify options.diff.log.jsonl").exits(0);
    // The largest part that still crashes.
    let record = desk
        .call("max --invert options --json -- ./remedy")
        .exits(0)
        .json();
    assert_eq!(record["claim"], "1-maximal");
    assert_eq!(
        desk.read("options.max").len() + 1,
        desk.read("options").len()
    );
    // Between two inputs, into an output directory.
    desk.write("without", "-O2 -g");
    let words = "diff --invert without options --json -o out/ -- ./remedy";
    let record = desk.call(words).exits(0).json();
    let log = record["log"].as_str().unwrap();
    desk.call(&format!("log verify {log}")).exits(0);
}

#[test]
fn the_inverted_test_needs_a_crash_that_something_prevents() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/remedy.c", "remedy");
    desk.write("without", "-O2");
    desk.write("with", "-ffast-math");
    for (words, kind) in [
        ("diff --invert --empty without", "not-failing"),
        ("diff --invert with without", "not-passing"),
        ("diff without with", "not-failing"),
    ] {
        let said = desk.call(&format!("{words} --json -- ./remedy"));
        assert_eq!(said.exits(3).json()["error"]["kind"], kind, "{words}");
    }
}

#[test]
fn a_crash_of_another_bug_on_the_way_is_filed_beside_the_difference() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "even length, with a k.");
    for (words, other) in [
        ("diff --empty", "crash.diff.slips"),
        ("max", "crash.max.slips"),
    ] {
        let said = desk.call(&format!("{words} crash --json -- ./two_bugs"));
        let record = said.exits(0).json();
        let slips = record["slips"].as_array().unwrap();
        assert_eq!(slips.len(), 1, "{words}");
        assert_ne!(slips[0]["major"], record["outcome"]["major"]);
        let file = slips[0]["file"].as_str().unwrap();
        assert!(file.contains(other), "{file}");
        desk.call(&format!("triage {file} -- ./two_bugs")).exits(1);
    }
    // It is beside the input, too, if the result is printed.
    desk.write("other", "even length, with a k.");
    desk.call("max other -o - -- ./two_bugs").exits(0);
    let names = std::fs::read_dir(desk.file("")).unwrap();
    let mut folders: Vec<OsString> = names.map(|entry| entry.unwrap().file_name()).collect();
    folders.retain(|name| name.as_encoded_bytes().ends_with(b".slips"));
    folders.sort();
    let expected = ["crash.diff.slips", "crash.max.slips", "other.max.slips"];
    assert_eq!(folders, expected);
    // In an output directory it is a group of its own.
    let record = desk
        .call("max crash --json -o out/ -- ./two_bugs")
        .exits(0)
        .json();
    assert!(
        record["slips"][0]["file"]
            .as_str()
            .unwrap()
            .contains("/out/crashes/")
    );
    let groups = desk.call("show --json out").exits(0).json();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 2);
}

#[test]
fn unresolved_outcomes_are_told_of_in_a_warning() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "kk");
    // One letter less is the other bug, none is no bug.
    let said = desk
        .call("diff --empty crash --json -- ./two_bugs")
        .exits(0);
    assert!(
        said.err
            .contains("warning: the difference is not a single delta but 2"),
        "{said:?}"
    );
    assert_eq!(said.json()["deltas"], 2);
}

#[test]
fn wrong_numbers_of_inputs_are_usage_errors_with_a_hint() {
    let desk = Desk::new();
    desk.write("one", "t");
    desk.write("two", "x");
    for words in [
        "diff one",
        "diff --empty two one",
        "diff one two one",
        "diff",
    ] {
        let said = desk.call(&format!("{words} --json --target crtplot"));
        assert_eq!(said.exits(2).json()["error"]["kind"], "usage", "{words}");
    }
    let said = desk.call("diff two missing --json --target crtplot");
    assert_eq!(said.exits(2).json()["error"]["kind"], "file");
    let said = desk.call("diff two one --json --target crtplot -o two --force");
    assert_eq!(said.exits(2).json()["error"]["kind"], "usage");
    assert_eq!(desk.read("two"), b"x");
}
