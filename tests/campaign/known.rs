//! Groups that are known already: exit codes, and muting.

use crate::ddfuzz::Desk;
use crate::outcome::files;

const WORDS: &str = "run --json --target crtplot --runs 60 --max-len 1000";

#[test]
fn a_second_campaign_that_finds_only_known_groups_exits_with_4() {
    let desk = Desk::new();
    let first = desk
        .call(&format!("{WORDS} --seed 1 -o out"))
        .exits(1)
        .json();
    let second = desk
        .call(&format!("{WORDS} --seed 2 -o out"))
        .exits(4)
        .json();
    assert_eq!(first["new_groups"], 1);
    assert_eq!(second["new_groups"], 0);
    assert_eq!(second["resumed"], false);
    let seen = |result: &serde_json::Value| result["groups"][0]["runs_seen"].as_u64().unwrap();
    assert!(seen(&second) > seen(&first));
    assert_eq!(first["groups"][0]["log"], second["groups"][0]["log"]);
    // A third finds nothing in no runs.
    desk.call("run --target crtplot --runs 0 -o out").exits(0);
}

#[test]
fn what_an_ended_call_has_told_is_known_to_the_next_count() {
    let desk = Desk::new();
    let words = format!("{WORDS} --seed 1 --resume -o out");
    let first = desk.call(&words).exits(1).json();
    assert_eq!(first["resumed"], false);
    let second = desk.call(&words).exits(4).json();
    assert_eq!(second["resumed"], true);
    assert_eq!(second["new_groups"], 0);
    // No runs meet no group, new or known.
    let nothing = "run --json --target crtplot --runs 0 --max-len 1000 --resume -o out";
    desk.call(nothing).exits(0);
}

#[test]
fn what_a_call_of_unlimited_runs_has_told_is_known_to_the_next() {
    let desk = Desk::new();
    let words = "run --json --target crtplot --time 500ms --max-len 1000 --seed 1 --resume -o out";
    desk.call(words).exits(1);
    desk.call(words).exits(4);
}

#[test]
fn a_muted_group_is_stored_but_not_minimized() {
    let desk = Desk::new();
    let first = desk
        .call(&format!("{WORDS} --seed 1 -o first"))
        .exits(1)
        .json();
    let major = first["groups"][0]["major"].as_str().unwrap();
    for known in [
        major.to_owned(),
        format!("# the letter t\n{}  # so\n", major.to_uppercase()),
    ] {
        desk.write("known", known);
        let out = desk.file("muted");
        let _ = std::fs::remove_dir_all(&out);
        let said = desk.call(&format!("{WORDS} --seed 1 -o muted --known known"));
        let result = said.exits(4).json();
        assert_eq!(result["new_groups"], 0);
        assert_eq!(result["groups"][0]["claim"], serde_json::Value::Null);
        assert!(files(&out).iter().any(|path| path.ends_with("original")));
        assert!(!files(&out).iter().any(|path| path.ends_with("log.jsonl")));
    }
    desk.write("known", "ffffffffffff\n");
    let said = desk.call(&format!("{WORDS} --seed 1 -o other --known known"));
    assert_eq!(said.exits(1).json()["new_groups"], 1);
}

#[test]
fn a_campaign_that_finds_nothing_exits_with_0() {
    let desk = Desk::new();
    let said = desk.call("run --json --target crtplot-fixed --runs 60 --max-len 1000 --seed 1");
    assert_eq!(said.exits(0).json()["new_groups"], 0);
    desk.call("run --json --runs 10 -- /no/such/program")
        .exits(3);
}

#[test]
fn a_group_is_muted_by_the_names_of_its_functions_too() {
    let desk = Desk::new();
    desk.call(&format!("{WORDS} --seed 1 -o first")).exits(1);
    let records = files(&desk.file("first"));
    let record = records.iter().find(|path| path.ends_with("crash.json"));
    let record = std::fs::read(desk.file("first").join(record.unwrap())).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let stable = record["keys"]["stable"].as_str().unwrap();
    desk.write("known", format!("stable:{stable}\n"));
    let said = desk.call(&format!("{WORDS} --seed 1 -o muted --known known"));
    let result = said.exits(4).json();
    assert_eq!(result["new_groups"], 0);
    assert_eq!(result["groups"][0]["claim"], serde_json::Value::Null);
}
