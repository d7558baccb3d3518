//! `ddfuzz max` and `diff` by an interestingness test.

use crate::ddfuzz::Desk;

/// Interesting is what divides by zero; what has no division cannot be told.
const DIVIDES: &str = "grep -q / \"$1\" || exit 125; grep -q 'b = 0' \"$1\"";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("good", "int b = 2;\nreturn a / b;\n");
    desk.write("bad", "int b = 0;\nreturn (a / b);\n");
    desk.script("test.sh", DIVIDES);
    desk
}

#[test]
fn a_test_isolates_the_edit_that_makes_it_interesting() {
    let desk = desk();
    let said = desk.call("diff good bad --json --test ./test.sh");
    let record = said.exits(0).json();
    assert_eq!(record["claim"], "1-minimal-difference");
    assert_eq!(record["difference"][0]["removed"], "Mg==");
    assert_eq!(record["difference"][0]["inserted"], "MA==");
    assert_eq!(record["outcome"]["class"], serde_json::Value::Null);
    let log = "bad.diff.log.jsonl";
    desk.call(&format!("log verify {log}")).exits(0);
    desk.call(&format!("log replay {log}")).exits(0);
    let shown = desk.call(&format!("log show {log}")).exits(0).out;
    assert!(shown.contains("→ 1 edit"), "{shown}");
    desk.is_left_clean();
}

#[test]
fn a_test_has_a_largest_part_that_is_not_interesting() {
    let desk = desk();
    desk.script("test.sh", "grep -q 'b = 0' \"$1\"");
    let record = desk.call("max bad --json --test test.sh").exits(0).json();
    assert_eq!(record["claim"], "1-maximal");
    let (largest, whole) = (desk.read("bad.max"), desk.read("bad"));
    assert_eq!(largest.len() + 1, whole.len());
    desk.call("log verify bad.max.log.jsonl").exits(0);
    let error = desk.call("log verify bad.max.log.jsonl --json --target ul");
    assert_eq!(error.exits(2).json()["error"]["kind"], "usage");
}

#[test]
fn an_inverted_test_finds_what_keeps_it_from_being_interesting() {
    let desk = desk();
    let words = "diff bad good --json --invert --test test.sh";
    let record = desk.call(words).exits(0).json();
    assert_eq!(record["inverted"], true);
    assert_eq!(record["difference"][0]["inserted"], "Mg==");
    desk.call("log verify good.diff.log.jsonl").exits(0);
    let words = "diff good bad --json --invert --test test.sh";
    let error = desk.call(words).exits(3).json();
    assert_eq!(error["error"]["kind"], "not-passing");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("is not interesting"), "{message}");
}

#[test]
fn a_larger_budget_goes_on_where_a_smaller_one_ended() {
    let desk = desk();
    desk.script("test.sh", "grep -q 'b = 0' \"$1\"");
    let words = "max bad --json --test test.sh -o part";
    let record = desk
        .call(&format!("{words} --budget-tests 3"))
        .exits(0)
        .json();
    assert_eq!(record["claim"], "best-so-far");
    let record = desk.call(&format!("{words} --resume")).exits(0).json();
    assert_eq!(record["claim"], "1-maximal");
    desk.call("max bad --test test.sh -o whole").exits(0);
    assert_eq!(desk.read("part"), desk.read("whole"));
    desk.call("log verify part.log.jsonl").exits(0);
}

#[test]
fn what_a_test_cannot_do_is_explained() {
    let desk = desk();
    for (words, code, kind) in [
        ("diff good bad --test nowhere.sh", 3, "test-missing"),
        ("diff bad good --test test.sh", 3, "not-failing"),
        ("max bad --test test.sh -o out/", 2, "usage"),
        ("max bad --test test.sh --target ul", 2, "usage"),
    ] {
        let error = desk.call(&format!("{words} --json")).exits(code).json();
        assert_eq!(error["error"]["kind"], kind, "{words}");
    }
    // The empty text is interesting: nothing passes to begin with.
    desk.script("test.sh", "true");
    let error = desk.call("max bad --json --test test.sh").exits(3).json();
    assert_eq!(error["error"]["kind"], "not-passing");
    assert!(!desk.file("bad.max.log.jsonl").exists());
}
