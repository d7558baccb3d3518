//! `ddfuzz merge`.

use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;

#[test]
fn a_merge_is_the_union_of_groups_and_leaves_its_inputs_alone() {
    let desk = Desk::new();
    for (target, out) in [("crtplot", "one"), ("nroff", "two")] {
        let words = format!("run --target {target} --runs 300 --max-len 2000 --seed 7 -o {out}");
        desk.call(&words).exits(1);
    }
    let majors = |out: &str| {
        let shown = desk.call(&format!("show --json {out}")).exits(0).json();
        let groups = shown["groups"].as_array().unwrap().iter();
        let facts = |group: &serde_json::Value| {
            let text = |key: &str| group[key].to_string();
            (text("major"), text("runs_seen"), text("size_after"))
        };
        let mut majors: Vec<_> = groups.map(facts).collect();
        majors.sort();
        majors
    };
    let mut both = [majors("one"), majors("two")].concat();
    both.sort();
    desk.call("merge one two -o all").exits(0);
    assert_eq!(majors("all"), both);
    // In the other order, and once more, it is the same.
    desk.call("merge two one one -o again").exits(0);
    assert_eq!(majors("again"), both);
    let mut ones = majors("one");
    ones.retain(|group| !both.contains(group));
    assert!(ones.is_empty());
}

#[test]
fn a_directory_is_not_merged_into_itself() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 0 -o one").exits(0);
    let error = desk.call("merge --json one -o one").exits(2).json();
    assert_eq!(error["error"]["kind"], "merge-into-input");
}

#[test]
fn groups_of_all_kinds_are_counted_as_in_the_text() {
    let desk = Desk::new();
    desk.script(
        "frail",
        "case $(cat) in k) kill -SEGV $$ ;; a) kill -ABRT $$ ;; h) while :; do :; done ;; esac",
    );
    for (name, text) in [("one", "k"), ("two", "a"), ("hang", "h")] {
        desk.write(name, text);
    }
    desk.call("triage one hang --timeout 50ms -o left -- ./frail")
        .exits(1);
    desk.call("triage two hang --timeout 50ms -o right -- ./frail")
        .exits(1);
    let merged = desk.call("merge left right -o all --json").exits(0).json();
    let count = |key: &str| merged[key].as_u64().unwrap();
    let counts = ["groups", "hangs", "ooms", "flaky"].map(count);
    assert_eq!(counts, [3, 1, 0, 0], "{merged}");
    let said = desk.call("merge left right -o text").exits(0).out;
    assert!(said.starts_with("2 crash groups, 1 hang"), "{said}");
}

/// The folder of the only crash below the folder `crashes`.
fn only_crash(crashes: &Path) -> PathBuf {
    (0..3).fold(crashes.to_owned(), |folder, _| {
        let mut below = std::fs::read_dir(&folder).unwrap().map(Result::unwrap);
        let below = below.find(|below| below.file_type().unwrap().is_dir());
        below.unwrap().path()
    })
}

#[test]
fn what_is_left_of_an_entry_without_its_input_is_merged_and_its_group_named() {
    let desk = Desk::new();
    desk.script("frail", "grep -q k && kill -SEGV $$; true");
    desk.write("crash", "a long text with a k in it");
    desk.call("triage crash --timeout 5s -o left -- ./frail")
        .exits(1);
    desk.call("min left -- ./frail").exits(0);
    let entry = |out: &str| only_crash(&desk.file(out).join("crashes"));
    let minimized = std::fs::read(entry("left").join("minimized")).unwrap();
    std::fs::remove_file(entry("left").join("original")).unwrap();
    let merged = desk.call("merge left -o union --json").exits(0);
    assert_eq!(merged.json()["groups"], 0, "{merged:?}");
    let warning = "each original is missing); `ddfuzz triage` of the files called minimized there";
    assert!(merged.err.contains(warning), "{merged:?}");
    for file in ["minimized", "crash.json", "log.jsonl", "reproduce.sh"] {
        let read = |out| std::fs::read(entry(out).join(file)).unwrap();
        assert_eq!(read("union"), read("left"), "{file}");
    }
    // Who shows, checks, minimizes or exports the group says the same.
    for call in ["show", "check", "min", "report"] {
        let said = desk.call(&format!("{call} union"));
        assert!(said.err.contains(warning), "{call}: {said:?}");
    }
    let major = entry("union")
        .ancestors()
        .nth(2)
        .unwrap()
        .display()
        .to_string();
    let error = desk
        .call(&format!("export {major} --as script --json"))
        .exits(2);
    let error = error.json()["error"].clone();
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    assert!(
        text("message").ends_with("each original is missing"),
        "{error}"
    );
    assert!(text("hint").contains("files called minimized"), "{error}");
    // With its input from elsewhere the entry is complete again.
    std::fs::write(entry("left").join("original"), desk.read("crash")).unwrap();
    let merged = desk.call("merge left -o union --json").exits(0);
    assert_eq!(merged.json()["groups"], 1, "{merged:?}");
    assert_eq!(
        std::fs::read(entry("union").join("minimized")).unwrap(),
        minimized
    );
}

#[test]
fn a_group_whose_record_is_cut_is_named_and_its_input_merged() {
    let desk = Desk::new();
    desk.script("frail", "grep -q k && kill -SEGV $$; true");
    desk.write("crash", "k");
    desk.call("triage crash --timeout 5s -o left -- ./frail")
        .exits(1);
    let folder = only_crash(&desk.file("left/crashes"));
    std::fs::write(folder.join("crash.json"), "{\"v\":1,").unwrap();
    let merged = desk.call("merge left -o cut --json").exits(0);
    assert_eq!(merged.json()["groups"], 0, "{merged:?}");
    let warning = "each crash.json is missing or damaged)";
    assert!(merged.err.contains(warning), "{merged:?}");
    let original = only_crash(&desk.file("cut/crashes")).join("original");
    assert_eq!(std::fs::read(original).unwrap(), b"k");
}
