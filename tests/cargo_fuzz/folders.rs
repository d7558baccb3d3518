//! The other commands on a project: what is in cargo-fuzz's folders is read, and kept.

use std::collections::BTreeSet;
use std::path::Path;

use crate::called::{Checkout, run};
use crate::projects::TWO_PANICS;

/// A project with the crash files of its bugs as artifacts.
fn with_artifacts() -> Option<Checkout> {
    let checkout = Checkout::of(TWO_PANICS)?;
    let folder = checkout.dir.join("fuzz/artifacts/parse");
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(TWO_PANICS.artifacts()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::copy(&path, folder.join(format!("crash-{name}"))).unwrap();
    }
    Some(checkout)
}

#[test]
fn artifacts_are_triaged_and_minimized_where_they_are() {
    let Some(checkout) = with_artifacts() else {
        return;
    };
    let before = checkout.files();
    let result = checkout.call("triage parse --json -o out").exits(1).json();
    assert_eq!(result["groups"].as_array().unwrap().len(), 2, "{result}");
    let input = &result["inputs"][0];
    let file = input["file"].as_str().unwrap();
    let min = checkout
        .call(&format!("min parse {file} --json -o small"))
        .exits(0)
        .json();
    assert_eq!(min["claim"], "1-minimal", "{min}");
    assert_eq!(min["outcome"]["major"], input["major"]);
    let after = checkout.files();
    assert!(
        before
            .iter()
            .all(|(path, bytes)| after.get(path) == Some(bytes))
    );
    checkout.desk.is_left_clean();
}

#[test]
fn a_corpus_becomes_smaller_and_the_old_one_is_kept() {
    let Some(checkout) = Checkout::of(TWO_PANICS) else {
        return;
    };
    let corpus = checkout.dir.join("fuzz/corpus/parse");
    let missing = checkout.call("clean parse").exits(2);
    assert!(missing.err.contains("cargo ddfuzz run"), "{missing:?}");
    std::fs::create_dir_all(&corpus).unwrap();
    for length in 0..40_u8 {
        let text = [b"RC1\n#", &[length][..], &vec![b'c'; usize::from(length)]].concat();
        std::fs::write(corpus.join(format!("{length}")), text).unwrap();
    }
    let result = checkout.call("clean parse --json").exits(0).json();
    assert_eq!(result["before"]["files"], 40, "{result}");
    let left = result["after"]["files"].as_u64().unwrap();
    assert!((1..40).contains(&left), "{result}");
    assert_eq!(count(&corpus), left);
    assert_eq!(count(&corpus.with_file_name("parse.old")), 40);
    let again = checkout.call("clean parse").exits(2);
    assert!(again.err.contains("parse.old"), "{again:?}");
    assert_eq!(count(&corpus.with_file_name("parse.old")), 40);
    checkout.call("clean parse --delete-old").exits(0);
    assert_eq!(count(corpus.parent().unwrap()), 1);
    // The directory that other commands write to by default is named here like any other.
    checkout.call("clean parse -o ddfuzz-out").exits(0);
    assert_eq!(count(corpus.parent().unwrap()), 1);
    assert!(checkout.dir.join("ddfuzz-out/corpus").is_dir());
    checkout.desk.is_left_clean();
}

#[test]
fn what_a_cleanup_has_left_out_is_not_copied_again() {
    let Some(checkout) = Checkout::of(TWO_PANICS) else {
        return;
    };
    let corpus = checkout.dir.join("fuzz/corpus/parse");
    std::fs::create_dir_all(&corpus).unwrap();
    for length in 0..40_u8 {
        let text = [b"RC1\n#", &[length][..], &vec![b'c'; usize::from(length)]].concat();
        std::fs::write(corpus.join(format!("{length}")), text).unwrap();
    }
    let ends = |words: &str| assert!(checkout.call(words).code.is_some_and(|code| code < 2));
    ends("run parse --runs 300 --seed 1 --jobs 1 -o out");
    let before = contents(&corpus);
    checkout.call("clean parse --delete-old").exits(0);
    let kept = contents(&corpus);
    assert!(kept.len() < before.len());
    ends("run parse --resume --runs 50 --jobs 1 -o out");
    let after = contents(&corpus);
    let left_out = |input: &&Vec<u8>| before.contains(*input) && !kept.contains(*input);
    assert_eq!(after.iter().filter(left_out).count(), 0);
    assert_eq!(count(&corpus), after.len() as u64);
    // Nor is anything copied for a target whose campaign cannot be resumed.
    std::fs::remove_dir_all(&corpus).unwrap();
    std::fs::remove_file(checkout.dir.join("out/copied-to-project.txt")).unwrap();
    let refused = checkout.call("run parse --resume --seed 2 -o out").exits(2);
    assert!(refused.err.contains("cannot be resumed"), "{refused:?}");
    assert!(!corpus.exists());
}

/// The different contents of the files in a folder.
fn contents(folder: &Path) -> BTreeSet<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap();
    let files = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.collect()
}

fn count(folder: &Path) -> u64 {
    std::fs::read_dir(folder).unwrap().count() as u64
}

#[test]
fn exported_tests_fail_until_the_bugs_are_fixed() {
    let Some(checkout) = with_artifacts() else {
        return;
    };
    checkout.call("triage parse -q -o out").exits(1);
    checkout
        .ddfuzz("export -o out --into tests/fuzz_regressions")
        .exits(0);
    let test = || {
        let mut command = checkout.command("cargo");
        command.args(["test", "--test", "fuzz_regressions"]);
        run(command)
    };
    let before = test();
    assert_eq!(before.code, Some(101), "{before:?}");
    assert!(before.out.contains("0 passed; 2 failed"), "{before:?}");
    let same = checkout.call("check parse out --json").exits(1).json();
    assert_eq!(same["same"], 2, "{same}");
    // The fix.
    let manifest = checkout.dir.join("fuzz/Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let fixed = text.replace("[features]\n", "[features]\ndefault = [\"fixed\"]\n");
    assert_ne!(fixed, text);
    std::fs::write(&manifest, fixed).unwrap();
    let after = test();
    assert!(after.out.contains("2 passed; 0 failed"), "{after:?}");
    // The fuzz target is built with the fix, too.
    let fixed = checkout.call("check parse out --json").exits(0).json();
    assert_eq!(fixed["fixed"], 2, "{fixed}");
    checkout.desk.is_left_clean();
}
