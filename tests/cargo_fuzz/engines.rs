//! `cargo ddfuzz run`: both engines find the planted bugs of a project that they know nothing of.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::called::{Checkout, run};
use crate::projects::{ARBITRARY, CPP_ASAN, Project, TWO_PANICS, cargo_fuzz};

/// Ends as soon as both bugs are found.
const UNTIL: &str = "--time 600s --until 2_groups --json -o out --seed 1";

fn words(project: Project, more: &str) -> String {
    format!("run {} {UNTIL} {more}", project.target)
}

/// A blank within a word of a command line.
fn call(checkout: &Checkout, words: &str) -> crate::ddfuzz::Said {
    let mut command = checkout.command(env!("CARGO_BIN_EXE_cargo-ddfuzz"));
    command.arg("ddfuzz");
    command.args(words.split_whitespace().map(|word| word.replace('_', " ")));
    run(command)
}

/// The groups of a result: proven minimal, each reproducer in its own group.
fn checked_groups(checkout: &Checkout, result: &Value, project: Project) -> Vec<PathBuf> {
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{result}");
    let mut classes: Vec<&str> = groups
        .iter()
        .map(|g| g["class"].as_str().unwrap())
        .collect();
    classes.sort_unstable();
    let mut planted = project.bugs.map(|(_, class)| class);
    planted.sort_unstable();
    assert_eq!(classes, planted, "{result}");
    let mut files = Vec::new();
    for group in groups {
        assert_eq!(group["claim"], "1-minimal", "{group}");
        let file = PathBuf::from(group["file"].as_str().unwrap());
        let triage = format!("triage {} {} --json", project.target, file.display());
        let again = checkout.call(&triage).exits(1).json();
        assert_eq!(again["inputs"][0]["major"], group["major"], "{again}");
        files.push(file);
    }
    files
}

/// What `cargo fuzz run` says of a file, after `mark`.
fn shown_by_cargo_fuzz(checkout: &Checkout, target: &str, file: &Path, mark: &str) -> String {
    let mut command = cargo_fuzz(&checkout.dir);
    command.args(["run", target]).arg(file);
    let said = run(command);
    assert_ne!(said.code, Some(0), "{said:?}");
    let found = said.err.split_once(mark).map(|(_, rest)| rest.to_owned());
    let line = found.unwrap_or_else(|| panic!("no {mark}: {said:?}"));
    line.lines().next().unwrap().trim().to_owned()
}

/// Everything that a campaign has written to the project stands where cargo-fuzz would have put
/// it, and nothing that was there has changed.
fn only_added(
    checkout: &Checkout,
    before: &std::collections::BTreeMap<PathBuf, Vec<u8>>,
    target: &str,
) {
    let after = checkout.files();
    for (path, bytes) in before {
        assert_eq!(after.get(path), Some(bytes), "{}", path.display());
    }
    let own = ["out", "fuzz/corpus", "fuzz/artifacts"];
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        assert!(
            own.iter().any(|own| path.starts_with(own)),
            "{}",
            path.display()
        );
    }
    for folder in ["fuzz/corpus", "fuzz/artifacts"] {
        let folder = checkout.dir.join(folder).join(target);
        assert!(std::fs::read_dir(folder).unwrap().count() > 1);
    }
}

fn both_bugs_are_found(project: Project, more: &str) {
    let Some(checkout) = Checkout::of(project) else {
        return;
    };
    // Without seeds a campaign finds the bugs in groups.rs.
    if let Some(seed) = project.seed {
        let corpus = checkout.dir.join("fuzz/corpus").join(project.target);
        std::fs::create_dir_all(&corpus).unwrap();
        std::fs::write(corpus.join("seed"), seed).unwrap();
    }
    let before = checkout.files();
    let result = call(&checkout, &words(project, more)).exits(1).json();
    only_added(&checkout, &before, project.target);
    for group in result["groups"].as_array().unwrap() {
        let test = format!(
            "out/fuzz_regressions/g_{}.rs",
            group["major"].as_str().unwrap()
        );
        let test = std::fs::read_to_string(checkout.dir.join(test)).unwrap();
        assert!(test.contains("#[test]"), "{test}");
    }
    for file in checked_groups(&checkout, &result, project) {
        let crash = std::fs::read(file.with_file_name("crash.json")).unwrap();
        let crash: Value = serde_json::from_slice(&crash).unwrap();
        let (mark, place) = match crash["panic"]["location"].as_str() {
            Some(location) => ("panicked at ", location.to_owned()),
            None => ("ERROR: AddressSanitizer: ", String::new()),
        };
        let shown = shown_by_cargo_fuzz(&checkout, project.target, &file, mark);
        assert!(shown.contains(&place), "{shown} is not {place}");
    }
    checkout.desk.is_left_clean();
}

#[test]
fn our_campaign_finds_both_panics_of_a_parser() {
    both_bugs_are_found(TWO_PANICS, "");
}

#[test]
fn our_campaign_finds_both_panics_behind_structured_input() {
    both_bugs_are_found(ARBITRARY, "");
}

#[test]
fn our_campaign_finds_both_reports_of_a_sanitizer() {
    both_bugs_are_found(CPP_ASAN, "");
}

#[test]
fn libfuzzer_finds_both_panics_of_a_parser() {
    both_bugs_are_found(TWO_PANICS, "--engine libfuzzer --jobs 1");
}

#[test]
fn libfuzzer_goes_on_beyond_a_corpus_that_crashes_the_harness() {
    let Some(checkout) = Checkout::of(TWO_PANICS) else {
        return;
    };
    let corpus = checkout.dir.join("fuzz/corpus/parse");
    std::fs::create_dir_all(&corpus).unwrap();
    // Both bugs, and what the way to neither of them is.
    std::fs::write(corpus.join("a"), b"RC1\nN\x01x").unwrap();
    std::fs::write(corpus.join("b"), b"RC1\nV\x017").unwrap();
    std::fs::write(corpus.join("c"), b"RC1\n#\x02ok").unwrap();
    let words = "run parse --engine libfuzzer --jobs 1 --runs 2000 --json -o out";
    let result = checkout.call(words).exits(1).json();
    assert_eq!(result["groups"].as_array().unwrap().len(), 2, "{result}");
    assert!(result["runs"].as_u64().unwrap() >= 2000, "{result}");
    for name in ["a", "b", "c"] {
        assert!(corpus.join(name).is_file());
    }
    checkout.desk.is_left_clean();
}

#[test]
fn flags_for_libfuzzer_choose_its_engine_and_hold_for_the_campaign() {
    let Some(checkout) = Checkout::of(TWO_PANICS) else {
        return;
    };
    let words = "run parse --json -o out --jobs 1 -- -runs=3000 -max_len=3 -seed=1";
    let result = checkout.call(words).exits(0).json();
    // With three bytes there is no header, and so no bug.
    assert_eq!(result["runs"].as_u64().unwrap(), 3000, "{result}");
    for entry in std::fs::read_dir(checkout.dir.join("fuzz/corpus/parse")).unwrap() {
        assert!(entry.unwrap().metadata().unwrap().len() <= 3);
    }
    let refused = checkout
        .call("run parse --engine libafl -- -runs=1")
        .exits(2);
    assert!(refused.err.contains("--engine libfuzzer"), "{refused:?}");
    for option in ["--broker", "--sandbox", "--cwd=.", "--exec=inject"] {
        let refused = checkout
            .call(&format!("run parse --engine libfuzzer {option}"))
            .exits(2);
        let name = option.split('=').next().unwrap();
        assert!(refused.err.contains(name), "{refused:?}");
    }
}
