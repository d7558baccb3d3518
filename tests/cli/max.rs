//! `ddfuzz max`.

use crate::ddfuzz::{Desk, keys};
use crate::difference::KEYS;

#[test]
fn the_largest_part_that_passes_goes_beside_the_input() {
    let desk = Desk::new();
    desk.write("crash", "any t, but t");
    let record = desk.call("max crash --json --target crtplot");
    let record = record.exits(0).json();
    assert_eq!(keys(&record), KEYS);
    assert_eq!(desk.read("crash.max"), b"any , bu ");
    assert_eq!(desk.read("crash"), b"any t, but t");
    assert_eq!(record["claim"], "1-maximal");
    assert_eq!(record["goal"], "maximize");
    assert_eq!(record["difference"][0]["at"], serde_json::json!([4, 5]));
    assert_eq!(record["difference"][0]["removed"], "dA==");
    assert_eq!(record["passing"], desk.file("crash.max").to_str().unwrap());
    assert_eq!(record["failing"], desk.file("crash").to_str().unwrap());
    assert_eq!(record["proved"]["done"], record["proved"]["of"]);
    let verified = desk.call("log verify --json crash.max.log.jsonl").exits(0);
    assert_eq!(verified.json()["holds"], true);
    desk.call("log replay crash.max.log.jsonl -o again")
        .exits(0);
    assert_eq!(desk.read("again"), b"any , bu ");
    desk.call("log show crash.max.log.jsonl").exits(0);
    desk.is_left_clean();
}

#[test]
fn an_input_that_does_not_fail_has_no_largest_part() {
    let desk = Desk::new();
    desk.write("healthy", "x");
    let error = desk.call("max healthy --json --target crtplot").exits(3);
    assert_eq!(error.json()["error"]["kind"], "not-failing");
    let left = std::fs::read_dir(desk.path()).unwrap().count();
    assert_eq!(left, 2, "the input and the folder of temporary files");
}

#[test]
fn where_the_empty_input_fails_nothing_passes() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/remedy.c", "remedy");
    desk.write("crash", "-g");
    for command in ["max crash", "diff --empty crash"] {
        let said = desk.call(&format!("{command} --json -- ./remedy"));
        let error = said.exits(3).json();
        assert_eq!(error["error"]["kind"], "not-passing");
        assert!(error["error"]["hint"].as_str().unwrap().contains("diff"));
    }
    assert!(!desk.file("crash.max.log.jsonl").exists());
    assert!(!desk.file("crash.diff.log.jsonl").exists());
}

#[test]
fn results_of_max_are_only_overwritten_by_force() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    desk.write("crash.max", "precious");
    desk.call("max crash --target crtplot").exits(2);
    assert_eq!(desk.read("crash.max"), b"precious");
    desk.call("max crash --force --target crtplot").exits(0);
    assert_eq!(desk.read("crash.max"), b"a  b");
    desk.call("max crash --target crtplot -o crash --force")
        .exits(2);
    assert_eq!(desk.read("crash"), b"a t b");
}

#[test]
fn an_output_directory_takes_the_crash_and_its_largest_part() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    let words = "max crash --json --target crtplot -o out/";
    let record = desk.call(words).exits(0).json();
    let output = record["output"].as_str().unwrap().to_owned();
    assert!(output.starts_with(desk.file("out/crashes").to_str().unwrap()));
    assert_eq!(std::fs::read(&output).unwrap(), b"a  b");
    // The same again is the same, from its log.
    let again = desk.call(words).exits(0).json();
    assert_eq!(again["tests"], record["tests"]);
    desk.call(&format!("log verify {output}.log.jsonl"))
        .exits(0);
    // A result without its log is not replaced.
    std::fs::remove_file(format!("{output}.log.jsonl")).unwrap();
    desk.call(words).exits(2);
    desk.call(&format!("{words} --force")).exits(0);
}

#[test]
fn a_budget_ends_max_with_the_best_so_far() {
    let desk = Desk::new();
    desk.write("crash", "some t and t and more t");
    let words = "max crash --json --target crtplot --budget-tests 3";
    let record = desk.call(words).exits(0).json();
    assert_eq!(record["claim"], "best-so-far");
    assert_eq!(record["tests"]["executed"], 3);
    desk.call("log replay crash.max.log.jsonl").exits(0);
    desk.call("log verify crash.max.log.jsonl").exits(0);
}
