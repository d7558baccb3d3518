//! `ddfuzz merge`.

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
    desk.call("triage one hang --timeout 100ms -o left -- ./frail")
        .exits(1);
    desk.call("triage two hang --timeout 100ms -o right -- ./frail")
        .exits(1);
    let merged = desk.call("merge left right -o all --json").exits(0).json();
    let count = |key: &str| merged[key].as_u64().unwrap();
    let counts = ["groups", "hangs", "ooms", "flaky"].map(count);
    assert_eq!(counts, [3, 1, 0, 0], "{merged}");
    let said = desk.call("merge left right -o text").exits(0).out;
    assert!(said.starts_with("2 crash groups, 1 hang"), "{said}");
}
