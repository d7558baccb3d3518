//! What is wrong with a call is said, with what to do next.

use std::path::{Path, PathBuf};

use crate::repositories::{Commit, create, files, git};
use crate::{changes, failure, places, result};

/// A repository of two versions: `value` is 1, then 2.
fn two_versions(folder: &Path) -> PathBuf {
    let version = |value: &str| files(&[("value", value), ("other", "same\n")]);
    let commits = [
        Commit::new("one", version("1\n")),
        Commit::new("two", version("2\n")),
    ];
    create(&folder.join("repository"), &commits)
}

const TEST: &str = "! grep -q 2 value";

#[track_caller]
fn assert_fails(words: &[&str], code: i32, kind: &str, says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    two_versions(folder.path());
    assert_fails_in(folder.path(), words, code, kind, says);
}

#[track_caller]
fn assert_fails_in(folder: &Path, words: &[&str], code: i32, kind: &str, says: &[&str]) {
    let (found, found_kind, message) = failure(&mut changes(folder, words));
    assert_eq!((found, found_kind.as_str()), (code, kind), "{message}");
    for part in says {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(
        !folder.join("out/changes/work").exists(),
        "worktrees are left"
    );
}

#[test]
fn versions_that_are_not_there_are_named() {
    let repo = ["--repo", "repository", "--run", TEST];
    let with = |range: &'static str| [&[range][..], &repo].concat();
    assert_fails(
        &with("A..nowhere"),
        2,
        "unknown-revision",
        &["nowhere", "git tag"],
    );
    assert_fails(&with("A"), 2, "usage", &["A..B"]);
    assert_fails(&with("A...B"), 2, "usage", &["A..B"]);
    assert_fails(&with("A..A"), 2, "no-change", &["same files"]);
    assert_fails(
        &["A..B", "--repo", ".", "--run", TEST],
        2,
        "no-repository",
        &["--repo"],
    );
    assert_fails(
        &["repository", "nowhere", "--run", TEST],
        2,
        "usage",
        &["nowhere", "not a directory"],
    );
}

#[test]
fn a_first_version_that_fails_and_a_second_that_passes_are_told_with_the_output() {
    let repo = ["--repo", "repository"];
    let with =
        |range: &'static str, test: &'static str| [&[range][..], &repo, &["--run", test]].concat();
    assert_fails(
        &with("B..A", TEST),
        3,
        "old-not-passing",
        &["old version B", "exit 1"],
    );
    assert_fails(
        &with("A..B", "echo fine"),
        3,
        "not-failing",
        &["new version B", "exit 0", "fine"],
    );
    assert_fails(
        &with("A..B", "../outside.sh"),
        3,
        "old-not-passing",
        &["exit 127", "outside of the repository by its absolute path"],
    );
    assert_fails(
        &with("A..B", "exit 125"),
        3,
        "old-not-passing",
        &["exit 125"],
    );
    assert_fails(
        &with("A..B", "kill -SEGV $$"),
        3,
        "test-broken",
        &["|| exit 1"],
    );
    assert_fails(&with("A..B", "exit 200"), 3, "test-broken", &["exit 200"]);
}

#[test]
fn files_that_are_not_of_a_search_are_replaced_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    two_versions(at);
    let work = at.join("out/changes/work");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("mine"), "mine").unwrap();
    let words = ["A..B", "--repo", "repository", "--run", TEST];
    let (code, kind, message) = failure(&mut changes(at, &words));
    assert_eq!((code, kind.as_str()), (2, "exists"), "{message}");
    assert!(message.contains("--force"), "{message}");
    assert_eq!(std::fs::read(work.join("mine")).unwrap(), b"mine");
    std::fs::remove_dir_all(&work).unwrap();
    // A file of this name that is no lock does not make the patch one of a search.
    for name in ["lock", "cause.patch"] {
        std::fs::write(at.join("out/changes").join(name), "mine").unwrap();
    }
    assert_eq!(failure(&mut changes(at, &words)).1, "exists");
    let patch = at.join("out/changes/cause.patch");
    assert_eq!(std::fs::read(&patch).unwrap(), b"mine");
    let found = result(changes(at, &words).arg("--force"));
    assert_eq!(places(&found), ["value:1"]);
    assert_eq!(
        result(&mut changes(at, &words))["changes"],
        found["changes"]
    );
}

#[test]
fn a_test_that_alternates_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    two_versions(folder.path());
    let count = folder.path().join("count");
    let test = format!("echo >>{0}; [ $(wc -l <{0}) -ne 2 ]", count.display());
    let words = ["A..B", "--repo", "repository", "--run", &test];
    assert_fails_in(
        folder.path(),
        &words,
        3,
        "alternating",
        &["PASS, FAIL, PASS", "steady"],
    );
}

#[test]
fn a_search_that_ended_with_a_wrong_check_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    two_versions(at);
    let (mode, count) = (at.join("mode"), at.join("count"));
    // The environment is wrong as the file `mode` says: each test fails, each one passes, or the
    // second one fails.
    let test = format!(
        "echo >>{1}; case $(cat {0}) in fail) exit 1;; pass) exit 0;; second) [ $(wc -l <{1}) -ne 2 ];; \
         *) {TEST};; esac",
        mode.display(),
        count.display()
    );
    let words = ["A..B", "--repo", "repository", "--run", &test];
    for (wrong, kind) in [
        ("fail", "old-not-passing"),
        ("pass", "not-failing"),
        ("second", "alternating"),
    ] {
        std::fs::write(&mode, wrong).unwrap();
        for _ in 0..2 {
            let _ = std::fs::remove_file(&count);
            let (code, found, message) = failure(&mut changes(at, &words));
            assert_eq!((code, found.as_str()), (3, kind), "{message}");
            assert!(
                kind == "alternating" || message.contains("the test ended"),
                "{message}"
            );
        }
        let mut replay = std::process::Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
        let log = at.join("out/changes/log.jsonl");
        let replayed = crate::output(replay.args(["log", "replay"]).arg(&log));
        let error = String::from_utf8_lossy(&replayed.stderr);
        assert!(error.contains("gave "), "{error}");
        std::fs::write(&mode, "right").unwrap();
        let found = result(&mut changes(at, &words));
        assert_eq!(places(&found), ["value:1"], "{wrong}");
        // The log of a search that has ended well stays.
        std::fs::write(&mode, "fail").unwrap();
        assert_eq!(places(&result(&mut changes(at, &words))), ["value:1"]);
        std::fs::remove_dir_all(at.join("out")).unwrap();
    }
}

#[test]
fn a_build_that_is_unknown_fails_or_never_ends_is_told() {
    let repo = ["A..B", "--repo", "repository"];
    let with = |words: &[&'static str]| [&repo[..], words].concat();
    assert_fails(&with(&["--", "./program"]), 2, "usage", &["--build"]);
    let broken = with(&["--build", "echo no compiler; false", "--run", TEST]);
    assert_fails(
        &broken,
        3,
        "old-not-passing",
        &[
            "the build ended with exit 1",
            "no compiler",
            "have to build",
        ],
    );
    let endless = with(&[
        "--build",
        "sleep 1000",
        "--build-timeout",
        "300ms",
        "--run",
        TEST,
    ]);
    assert_fails(
        &endless,
        3,
        "old-not-passing",
        &["the build ended with timeout"],
    );
    let missing = with(&["--build", "true", "--", "./program"]);
    let says = ["no program ./program", "by its path in the version"];
    assert_fails(&missing, 3, "not-failing", &says);
    let hangs = with(&["--run", "while :; do :; done", "--timeout", "200ms"]);
    assert_fails(&hangs, 3, "old-not-passing", &["timeout", "--timeout"]);
    assert_fails(
        &with(&["--run", TEST, "--expect", "("]),
        2,
        "usage",
        &["--expect"],
    );
}

#[test]
fn a_failure_with_another_output_is_unresolved() {
    let folder = tempfile::tempdir().unwrap();
    two_versions(folder.path());
    let test = "grep -q 2 value && echo wrong value && exit 1 || exit 0";
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        test,
        "--expect",
        "wrong v.lue",
    ];
    assert_eq!(
        places(&result(&mut changes(folder.path(), &words))),
        ["value:1"]
    );
    let other = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        test,
        "--expect",
        "overflow",
        "--force",
    ];
    assert_fails_in(
        folder.path(),
        &other,
        3,
        "not-failing",
        &["does not match --expect"],
    );
}

#[test]
fn a_dirty_tree_does_not_matter_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let repository = two_versions(folder.path());
    std::fs::write(repository.join("value"), "7\n").unwrap();
    std::fs::write(repository.join("untracked"), "u\n").unwrap();
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", TEST],
    ));
    assert_eq!(places(&found), ["value:1"]);
    assert_eq!(std::fs::read(repository.join("value")).unwrap(), b"7\n");
    assert_eq!(
        git(&repository, &["status", "--short"]),
        "M value\n?? untracked"
    );
}

#[test]
fn modified_files_that_are_in_no_version_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let repository = two_versions(folder.path());
    let search = |versions: &str, test: &str| {
        let words = [versions, "--repo", "repository", "--force", "--run", test];
        let (code, kind, message) = crate::failure(&mut changes(folder.path(), &words));
        assert!(code == 2 || code == 3, "{message}");
        (kind, message.contains("commit them"))
    };
    assert_eq!(search("A..HEAD", "true"), ("not-failing".to_owned(), false));
    std::fs::write(repository.join("value"), "7\n").unwrap();
    assert_eq!(search("A..HEAD", "true"), ("not-failing".to_owned(), true));
    assert_eq!(search("B..HEAD", "true"), ("no-change".to_owned(), true));
    // It may be the version before that works as it should not.
    assert_eq!(search("B..A", "true"), ("not-failing".to_owned(), false));
    assert_eq!(
        search("A..HEAD", "false"),
        ("old-not-passing".to_owned(), false)
    );
}

#[test]
fn a_shallow_clone_is_searched_without_its_history_or_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let version = |value: &str| files(&[("value", value)]);
    let commits: Vec<Commit> = (0..6)
        .map(|at| Commit::new("c", version(&format!("{at}\n"))))
        .collect();
    create(&folder.path().join("whole"), &commits);
    let clone = format!("file://{}", folder.path().join("whole").display());
    git(
        folder.path(),
        &["clone", "--quiet", "--depth", "3", &clone, "repository"],
    );
    let test = "! grep -q 5 value";
    let words = ["HEAD~2..HEAD", "--repo", "repository", "--run", test];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(places(&found), ["value:1"]);
    let words = ["HEAD~4..HEAD", "--repo", "repository", "--run", test];
    assert_fails_in(
        folder.path(),
        &words,
        2,
        "unknown-revision",
        &["--unshallow"],
    );
}

#[test]
fn two_searches_do_not_use_one_output_directory_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    two_versions(folder.path());
    let held = folder.path().join("held");
    let test = format!(
        "touch {0}; while [ -e {0} ]; do sleep 0.02; done; {TEST}",
        held.display()
    );
    let mut first = changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", &test],
    );
    let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
    while !held.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = failure(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", TEST],
    ));
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!((second.0, second.1.as_str()), (2, "locked"), "{}", second.2);
}

#[test]
fn options_and_programs_that_do_not_fit_are_refused() {
    let repo = ["A..B", "--repo", "repository"];
    let with = |words: &[&'static str]| [&repo[..], words].concat();
    let exit = with(&["--run", TEST, "--crash-exit", "3"]);
    assert_fails(&exit, 2, "usage", &["--crash-exit"]);
    let folder = tempfile::tempdir().unwrap();
    let repository = two_versions(folder.path());
    for name in ["one", "two"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    for option in [&["--no-history"][..], &["--repo", "repository"]] {
        let words = [&["one", "two", "--run", TEST], option].concat();
        assert_fails_in(
            folder.path(),
            &words,
            2,
            "usage",
            &[option[0], "two directories"],
        );
    }
    // A program of the working tree is tested in place of that of each version.
    let program = repository.join("program");
    std::fs::write(&program, "#!/bin/sh\nkill -SEGV $$\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).unwrap();
    let program = program.display().to_string();
    let words = [&repo[..], &["--build", "true", "--", &program]].concat();
    let says = ["same program for each version", "./program"];
    assert_fails_in(folder.path(), &words, 3, "old-not-passing", &says);
    // The same version twice has no history that could be searched.
    let words = ["A..A", "--repo", "repository", "--run", TEST];
    let done = crate::output(&mut changes(folder.path(), &words));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!said.contains("first-parent"), "{said}");
}
