//! Output directories of an earlier version (`older/`, written by ddfuzz 0.1.0 of 2026-11-22): a campaign
//! that has ended, and one that was interrupted within its runs and within a minimization.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;

/// The words that made the interrupted campaign.
const CUT: &str = "run --target nroff --runs 12000 --max-len 100 --seed 9 --jobs 1";

/// A desk with copies of both directories.
fn desk() -> Desk {
    let desk = Desk::new();
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/older");
    for name in ["ended", "cut"] {
        copy(&older.join(name), &desk.file(name));
    }
    desk
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let copied = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true => copy(&entry, &copied),
            false => drop(std::fs::copy(&entry, copied).unwrap()),
        }
    }
}

/// The files of this name below a directory, with their contents.
fn named(folder: &Path, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(named(&path, name));
        } else if path.ends_with(name) {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// The minimized inputs of an output directory, by their folders within it.
fn minimized(desk: &Desk, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = desk.file(out);
    let found = named(&root.join("crashes"), "minimized").into_iter();
    found
        .map(|(path, bytes)| (path.strip_prefix(&root).unwrap().to_owned(), bytes))
        .collect()
}

#[test]
fn groups_of_an_earlier_version_are_shown_replayed_and_verified() {
    let desk = desk();
    let shown = desk.call("show --json ended").exits(0).json();
    assert_eq!(shown["groups"].as_array().unwrap().len(), 2);
    let ended = named(&desk.file("ended"), "log.jsonl");
    assert_eq!(ended.len(), 2);
    for log in ended.keys() {
        desk.call(&format!("log replay {}", log.display())).exits(0);
        desk.call(&format!("log verify {}", log.display())).exits(0);
    }
    let checked = desk.call("check ended --json").exits(1).json();
    assert_eq!(checked["same"], 2);
}

#[test]
fn an_interrupted_campaign_of_an_earlier_version_goes_on_to_the_same_result() {
    let desk = desk();
    let mut ended = named(&desk.file("cut"), "log.jsonl");
    ended.retain(|log, _| log.with_file_name("minimized.json").exists());
    let resumed = desk.call(&format!("{CUT} -o cut --resume --json")).exits(1);
    let resumed = resumed.json();
    assert_eq!(
        (&resumed["runs"], &resumed["resumed"]),
        (&12000.into(), &true.into())
    );
    for (log, bytes) in ended {
        assert_eq!(std::fs::read(log).unwrap(), bytes);
    }
    for log in named(&desk.file("cut"), "log.jsonl").keys() {
        desk.call(&format!("log replay {}", log.display())).exits(0);
    }
    desk.call(&format!("{CUT} -o whole")).exits(1);
    assert_eq!(minimized(&desk, "cut"), minimized(&desk, "whole"));
    assert_eq!(minimized(&desk, "cut").len(), 3);
}

#[test]
fn directories_of_an_earlier_version_are_merged() {
    let desk = desk();
    desk.call("merge ended cut -o all").exits(0);
    let shown = desk.call("show --json all").exits(0).json();
    assert_eq!(shown["groups"].as_array().unwrap().len(), 2, "{shown}");
}
