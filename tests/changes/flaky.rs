//! Tests with an odd run: what a search says of them.

use std::path::Path;

use crate::repositories::{Commit, create, files};
use crate::{changes, failure, places, result};

/// Creates a repository of versions of the files `a` and `b`, as the texts of each commit say.
fn versions(at: &Path, texts: &[[&str; 2]]) {
    let commit = |[a, b]: &[&str; 2]| Commit::new("commit", files(&[("a", a), ("b", b)]));
    let commits: Vec<Commit> = texts.iter().map(commit).collect();
    create(&at.join("repository"), &commits);
}

const TWO: [[&str; 2]; 2] = [["0\n", "0\n"], ["bad\n", "1\n"]];

#[test]
fn one_odd_pass_of_a_removal_does_not_make_a_result_minimal() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    versions(at, &TWO);
    // The version with the change of `a` alone passes in its first test only.
    let test = format!(
        "grep -q bad a || exit 0; if grep -q 0 b && ! [ -e {0} ]; then touch {0}; exit 0; fi; exit 1",
        at.join("once").display()
    );
    let words = ["A..B", "--repo", "repository", "--run", &test];
    let found = result(&mut changes(at, &words));
    assert_eq!(places(&found), ["a:1", "b:1"]);
    assert_eq!(
        (&found["claim"], &found["alternates"]),
        (&"best-so-far".into(), &true.into())
    );
    let found = result(changes(at, &words).arg("--force"));
    assert_eq!(
        (places(&found), &found["claim"]),
        (vec!["a:1".to_owned()], &"1-minimal".into())
    );
}

#[test]
fn one_odd_pass_in_a_bisection_does_not_lead_to_a_wrong_commit() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    versions(
        at,
        &[
            ["0\n", "0\n"],
            ["0\n", "1\n"],
            ["bad\n", "1\n"],
            ["bad\n", "2\n"],
            ["bad\n", "3\n"],
        ],
    );
    let test = format!(
        "grep -q bad a || exit 0; if grep -q 1 b && ! [ -e {0} ]; then touch {0}; exit 0; fi; exit 1",
        at.join("once").display()
    );
    let words = ["A..B", "--repo", "repository", "--run", &test];
    let (code, kind, message) = failure(&mut changes(at, &words));
    assert_eq!((code, kind.as_str()), (3, "alternating"), "{message}");
    assert!(message.contains("PASS, FAIL"), "{message}");
    // The same command begins anew.
    let found = result(&mut changes(at, &words));
    assert_eq!(
        (places(&found), &found["claim"]),
        (vec!["a:1".to_owned()], &"1-minimal".into())
    );
}

#[test]
fn a_test_that_alternates_on_one_build_is_not_called_stale() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    versions(at, &TWO);
    let count = at.join("count").display().to_string();
    let of_result = format!(
        "grep -q bad a || exit 0; grep -q 1 b && exit 1; echo >>{count}; [ $(wc -l <{count}) -eq 2 ]"
    );
    let of_seldom = format!(
        "grep -q bad a || exit 0; grep -q 1 b && exit 1; echo >>{count}; \
         [ $(wc -l <{count}) -gt 1 ] && [ $(wc -l <{count}) -lt 16 ]"
    );
    let of_new = format!("grep -q bad a || exit 0; echo >>{count}; [ $(wc -l <{count}) -eq 1 ]");
    for test in [of_result, of_seldom, of_new] {
        let _ = std::fs::remove_file(&count);
        let words = ["A..B", "--repo", "repository", "--force", "--run", &test];
        let (code, kind, message) = failure(&mut changes(at, &words));
        assert_eq!((code, kind.as_str()), (3, "alternating"), "{message}");
    }
}
