//! What is run, and what is refused.

use serde_json::Value;

use crate::lab::Lab;

#[test]
fn no_sandbox_must_be_asked_for_twice() {
    let lab = Lab::with(&["zap"]);
    let said = lab.revisit("zap --runs 10 --no-sandbox").exits(2);
    assert!(said.err.contains("twice"), "{said:?}");
    assert!(!lab.desk.file("ddfuzz-out").exists(), "nothing was begun");
}

#[test]
fn lines_of_a_list_that_are_not_understood_are_said() {
    let lab = Lab::with(&["zap"]);
    lab.desk.write(
        "list",
        "// a comment\nstdin zap\npipe zap\nstdin mail -s \"x\" a@b.c <\n",
    );
    let said = lab.revisit("--list list --dry-run").exits(0);
    assert!(said.err.contains("line 3: pipe zap"), "{said:?}");
    assert!(
        said.out.contains("zap") && said.out.contains("mail"),
        "{said:?}"
    );
    assert!(said.out.contains("denied"), "{said:?}");
}

#[test]
fn runs_are_shared_and_no_more_are_made() {
    let lab = Lab::with(&["high", "slow"]);
    let words = "high slow nowhere --channel stdin --runs 7 --seed 1 --json --timeout 10s";
    let result = lab.revisit(words).exits(0).json();
    let runs: Vec<u64> = (result["utilities"].as_array().unwrap().iter())
        .map(|utility| utility["runs"].as_u64().unwrap())
        .collect();
    assert_eq!(runs, [4, 3, 0], "{result}");
}

#[test]
fn a_list_that_is_none_is_refused() {
    let lab = Lab::with(&[]);
    lab.desk.write("empty", "");
    let said = lab.revisit("--list empty").exits(2);
    assert!(said.err.contains("contains no utilities"), "{said:?}");
    lab.revisit("--list missing").exits(2);
    lab.revisit("zap --shard 6/5").exits(2);
}

#[test]
fn a_study_of_nothing_but_what_cannot_be_run_is_refused() {
    let lab = Lab::with(&["zap"]);
    let said = lab.revisit("nowhere reboot --runs 10").exits(3);
    let why = "no utility can be run: nowhere (missing), reboot (denied: ";
    assert!(said.err.contains(why), "{said:?}");
    assert!(!lab.desk.file("ddfuzz-out").exists(), "nothing was begun");
    let planned = lab
        .revisit("zap nowhere --channel stdin --dry-run --json")
        .exits(0)
        .json();
    let labels = [&planned["utilities"][0], &planned["utilities"][1]].map(|it| &it["label"]);
    assert_eq!(labels, [&Value::Null, &"missing".into()], "{planned}");
}
