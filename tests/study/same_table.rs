//! With a number of runs, a study is a function of its seed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::lab::{Lab, groups, utility};
use crate::outcome::{assert_same, files, outcome};

/// The outcome of a study with these options.
fn study(lab: &Lab, options: &str, out: &str) -> BTreeMap<String, String> {
    lab.desk.write(
        "list",
        "stdin zap\nstdin choosy [-a -x -b]\ntwo_files pair\n",
    );
    let said = lab.revisit(&format!("--list list --runs 900 -q -o {out} {options}"));
    assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
    let mut all = outcome(&lab.desk.file(out));
    all.retain(|name, _| !name.starts_with("studies/"));
    for text in all.values_mut() {
        *text = text.replace(&*lab.desk.file(out).to_string_lossy(), "OUT");
    }
    all
}

#[test]
fn tables_and_groups_do_not_depend_on_workers() {
    let lab = Lab::with(&["zap", "choosy", "pair"]);
    let alone = study(&lab, "--seed 5 --jobs 1", "alone");
    assert!(
        alone.keys().any(|name| name.ends_with("minimized")),
        "{alone:?}"
    );
    let three = study(&lab, "--seed 5 --jobs 3", "three");
    assert_same(&three, &alone, "by three workers");
    let other = study(&lab, "--seed 6 --jobs 3", "other");
    assert_ne!(other["state.json"], alone["state.json"]);
}

#[test]
fn what_is_slow_and_what_hangs_does_not_depend_on_workers() {
    let lab = Lab::with(&["dozes"]);
    let table = |jobs: u32| {
        let words = "dozes --channel stdin --runs 128 --seed 8 --timeout 50ms --minimize off";
        let said = lab.revisit(&format!("{words} --jobs {jobs} --json -o by{jobs}"));
        let dozes = utility(&said.json(), "dozes").clone();
        (dozes["hangs"].clone(), dozes["channels"].clone())
    };
    let alone = table(1);
    assert!(alone.0.as_u64() > Some(0), "{alone:?}");
    let is_slow = |tally: &serde_json::Value| tally["slow"].as_u64() > Some(0);
    assert!(alone.1.as_array().unwrap().iter().any(is_slow), "{alone:?}");
    assert_eq!(table(3), alone);
}

#[test]
fn the_shards_of_a_study_are_the_whole() {
    let lab = Lab::with(&["zap", "choosy", "pair"]);
    study(&lab, "--seed 5", "whole");
    study(&lab, "--seed 5 --shard 1/2", "first");
    study(&lab, "--seed 5 --shard 2/2", "second");
    lab.desk.call("merge first second -o both").exits(0);
    let inputs = |out: &str| {
        let root = lab.desk.file(out);
        let all = files(&root).into_iter();
        let all = all.filter(|path| path.ends_with("original") || path.ends_with("minimized"));
        all.map(|path| (name(&path, &root), std::fs::read(path).unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    assert!(!inputs("whole").is_empty());
    assert!(
        inputs("both") == inputs("whole"),
        "{:?}",
        inputs("both").keys()
    );
    let shown = lab.desk.call("show both --json").exits(0).json();
    assert_eq!(groups(&shown, "choosy").len(), 1, "{shown}");
}

fn name(path: &Path, root: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap().to_owned()
}
