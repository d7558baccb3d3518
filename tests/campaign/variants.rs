//! Bugs of several callers of one function share a group: each minor key of it has a reproducer of
//! its own.

use std::collections::BTreeSet;
use std::path::Path;

use ddfuzz::campaign::Variants;
use ddfuzz::triage::Class;
use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

/// A crash file for each caller.
const CALLS: [(&str, &str); 4] = [
    ("name", "Nabcdefghijklmn\n"),
    ("title", "Tabcdefghijklmnop\n"),
    ("city", "Cabcdefghijklmnopqrst\n"),
    ("note", "Oabcdefghijklmnopqrstuv\n"),
];

fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/campaign/programs/callers.c", "callers");
    std::fs::create_dir(desk.file("in")).unwrap();
    for (name, text) in CALLS {
        desk.write(&format!("in/{name}"), text);
    }
    desk
}

/// The first letters of all reproducers, by which callers are told apart, and their sizes.
fn reproducers(out: &Path) -> BTreeSet<(char, usize)> {
    let all = files(out);
    let all = all.iter().filter(|path| path.ends_with("minimized"));
    all.map(|path| std::fs::read(path).unwrap())
        .map(|text| (char::from(text[0]), text.len()))
        .collect()
}

/// The one group of a result.
#[track_caller]
fn group(result: &Value) -> &Value {
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{result}");
    &groups[0]
}

#[test]
fn each_caller_of_a_faulty_function_has_its_own_shortest_reproducer() {
    let desk = desk();
    let result = desk.call("watch in --once --json -o out -- ./callers");
    let result = result.exits(1).json();
    let expected = [('N', 6), ('T', 8), ('C', 10), ('O', 12)];
    assert_eq!(reproducers(&desk.file("out")), expected.into());
    let group = group(&result);
    assert_eq!(group["size_after"], 6, "{result}");
    let variants = group["variants"].as_array().unwrap();
    let sizes: Vec<&Value> = variants.iter().map(|one| &one["size_after"]).collect();
    assert_eq!(sizes, [8, 10, 12], "{result}");
    let callers: Vec<&str> = (variants.iter())
        .map(|one| one["caller"].as_str().unwrap())
        .collect();
    let names = ["set_title", "set_city", "set_note"];
    for (caller, name) in callers.iter().zip(names) {
        assert!(caller.starts_with(name), "{result}");
    }
    let shown = desk.call("show out").exits(0).out;
    assert!(!shown.contains("set_city"), "{shown}");
    let major = group["major"].as_str().unwrap();
    let shown = desk.call(&format!("show out {major}")).exits(0).out;
    let lines = shown.lines().filter(|line| line.contains("variant"));
    assert_eq!(lines.count(), 3, "{shown}");
    assert!(shown.contains("10 bytes, called by set_city"), "{shown}");
    // Logs that hold a minor key are checked by it.
    for log in files(&desk.file("out")) {
        if log.ends_with("log.jsonl") {
            let log = log.display();
            desk.call(&format!("log replay {log}")).exits(0);
            desk.call(&format!("log verify {log}")).exits(0);
        }
    }
    desk.is_left_clean();
}

#[test]
fn variants_are_bounded_and_come_after_all_groups() {
    let desk = desk();
    for (most, expected) in [(0, 1), (1, 2), (2, 3), (9, 4)] {
        let out = format!("out{most}");
        let words = format!("watch in --once --variants {most} -q -o {out}");
        desk.call(&format!("{words} -- ./callers")).exits(1);
        assert_eq!(reproducers(&desk.file(&out)).len(), expected, "{most}");
    }
    let (plain, told) = (
        Class("segv".to_owned()),
        Class("asan:heap-buffer-overflow".to_owned()),
    );
    assert_eq!(Variants::Plain.most(&plain), 3);
    assert_eq!(Variants::Plain.most(&told), 0);
    assert_eq!(Variants::Most(2).most(&told), 2);
}

#[test]
fn a_minimization_that_moves_to_another_caller_leaves_a_reproducer_of_both() {
    let desk = desk();
    let all: String = CALLS.iter().map(|(_, text)| *text).collect();
    std::fs::create_dir(desk.file("all")).unwrap();
    desk.write("all/calls", all);
    // The last line crashes first; the shortest failing prefix is the first line.
    let result = desk.call("watch all --once --json -o out -- ./callers backwards");
    let result = result.exits(1).json();
    let group = group(&result);
    assert_eq!(
        (&group["size_before"], &group["size_after"]),
        (&80.into(), &6.into())
    );
    let variants = group["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 1, "{result}");
    assert!(
        variants[0]["caller"]
            .as_str()
            .unwrap()
            .starts_with("set_note")
    );
    let text = std::fs::read(variants[0]["file"].as_str().unwrap()).unwrap();
    assert_eq!((text[0], text.len()), (b'O', 12), "{result}");
    // Each minor key is represented by a reproducer that shows it.
    let all = files(&desk.file("out"));
    let path = all
        .iter()
        .find(|path| path.ends_with("group.json"))
        .unwrap();
    let representatives = record(path)["representatives"].clone();
    for (minor, hash) in representatives.as_object().unwrap() {
        let folder = path.with_file_name(minor).join(hash.as_str().unwrap());
        let outcome = record(&folder.join("minimized.json"));
        let after = outcome["minor_after"].as_str().unwrap();
        assert!(after.starts_with(minor.as_str()), "{outcome}");
    }
    assert_eq!(representatives.as_object().unwrap().len(), 2);
    desk.is_left_clean();
}

#[test]
fn a_campaign_of_runs_minimizes_the_same_variants_whenever_it_minimizes() {
    let desk = desk();
    let words = "run --generator classic --seeds in --runs 60 --max-len 1000 --seed 3 -q -o";
    desk.call(&format!("{words} one --jobs 1 -- ./callers"))
        .exits(1);
    let one = crate::outcome::outcome(&desk.file("one"));
    assert_eq!(reproducers(&desk.file("one")).len(), 4);
    for (at, options) in ["--jobs 3", "--minimize after", "--minimize worker"]
        .into_iter()
        .enumerate()
    {
        desk.call(&format!("{words} out{at} {options} -- ./callers"))
            .exits(1);
        let other = crate::outcome::outcome(&desk.file(&format!("out{at}")));
        crate::outcome::assert_same(&other, &one, options);
    }
    desk.is_left_clean();
}
