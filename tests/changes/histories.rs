//! Histories that are no line of commits that build.

use std::process::Command;

use crate::repositories::{Commit, Files, create, files};
use crate::{by_build, changes, executed, output, places, result};

/// A version with these values, one a file.
fn values(values: &[(&str, &str)]) -> Files {
    let mut all = files(&[("a", "0\n"), ("b", "0\n"), ("c", "0\n")]);
    for (name, value) in values {
        all.insert(name.as_bytes().to_vec(), (*value).into());
    }
    all
}

#[test]
fn a_commit_inside_a_merged_branch_is_found_by_its_own_lines() {
    let mut commits = vec![
        Commit::new("begin", values(&[])),
        Commit::new("main 1", values(&[("a", "1\n")])),
        Commit::new("branch 1", values(&[("b", "1\n")])),
        Commit::new("branch 2", values(&[("b", "bad\n")])),
        Commit::new("branch 3", values(&[("b", "bad\n"), ("c", "1\n")])),
        Commit::new(
            "merge",
            values(&[("a", "1\n"), ("b", "bad\n"), ("c", "1\n")]),
        ),
        Commit::new(
            "main 2",
            values(&[("a", "2\n"), ("b", "bad\n"), ("c", "1\n")]),
        ),
    ];
    commits[2].parents = vec![0];
    commits[5].parents = vec![1, 4];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", "! grep bad b"],
    ));
    assert_eq!(places(&found), ["b:1"]);
    assert_eq!(found["changes"][0]["commits"][0]["subject"], "branch 2");
}

#[test]
fn a_line_that_two_commits_changed_is_one_change_and_its_absence_is_tested() {
    let commits = [
        Commit::new("begin", values(&[])),
        Commit::new("harmless", values(&[("a", "1\n")])),
        Commit::new("culprit", values(&[("a", "bad\n")])),
        Commit::new("other", values(&[("a", "bad\n"), ("c", "1\n")])),
    ];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", "! grep bad a"],
    ));
    assert_eq!(places(&found), ["a:1"]);
    assert_eq!(found["changes"][0]["commits"][0]["subject"], "culprit");
    assert_eq!(found["claim"], "1-minimal");
    assert_eq!(found["interference"], false);
}

#[test]
fn a_failure_that_only_a_merge_brings_is_found_in_the_merge() {
    let mut commits = vec![
        Commit::new("begin", values(&[])),
        Commit::new("main", values(&[("a", "bad\n")])),
        Commit::new("branch", values(&[("b", "bad\n"), ("c", "1\n")])),
        Commit::new(
            "merge",
            values(&[("a", "bad\n"), ("b", "bad\n"), ("c", "1\n")]),
        ),
    ];
    commits[2].parents = vec![0];
    commits[3].parents = vec![1, 2];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let test = "! { grep bad a && grep bad b; }";
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", test],
    ));
    assert_eq!(places(&found), ["a:1", "b:1"]);
    assert_eq!(found["interference"], true);
}

#[test]
fn commits_that_cannot_be_tested_widen_the_answer_and_are_told() {
    let mut commits = vec![Commit::new("begin", values(&[]))];
    for at in 1..=12 {
        let value = if at >= 6 { "bad\n" } else { "0\n" };
        let broken = if (5..=7).contains(&at) {
            "broken\n"
        } else {
            "0\n"
        };
        commits.push(Commit::new(
            &format!("c{at}"),
            values(&[("a", value), ("b", broken), ("c", &format!("{at}\n"))]),
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let test = "grep -q broken b && exit 125; ! grep bad a";
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", test],
    ));
    assert_eq!(places(&found), ["a:1"]);
    assert_eq!(found["found_despite_unbuildable"], 3);
    assert_eq!(found["claim"], "1-minimal");
}

#[test]
fn a_history_of_which_no_commit_can_be_tested_is_searched_at_once() {
    let mut commits = vec![Commit::new("begin", values(&[]))];
    for at in 1..=30 {
        let value = if at >= 17 { "bad\n" } else { "0\n" };
        let broken = if at < 30 { "broken\n" } else { "0\n" };
        commits.push(Commit::new(
            "c",
            values(&[("a", value), ("b", broken), ("c", &format!("{at}\n"))]),
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let test = "grep -q broken b && exit 125; ! grep bad a";
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", test],
    ));
    assert_eq!(places(&found), ["a:1"]);
    assert!(executed(&found) <= 20, "{found}");
}

#[test]
fn a_partner_whose_lines_moved_since_is_merged() {
    let numbered = |from: u32| -> String {
        (from..from + 40)
            .map(|line| format!("line {line}\n"))
            .collect()
    };
    let mut text = numbered(0);
    let mut commits = vec![Commit::new("begin", values(&[("a", &text)]))];
    let mut then = |subject: &str, change: &dyn Fn(&str) -> String| {
        text = change(&text);
        commits.push(Commit::new(subject, values(&[("a", &text)])));
    };
    then("first cause", &|text| text.replace("line 20\n", "first\n"));
    for at in 0..5 {
        then("noise", &|text| format!("new {at}\n{text}"));
    }
    then("second cause", &|text| {
        text.replace("line 33\n", "second\n")
    });
    then("noise", &|text| format!("last\n{text}"));
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let test = "! { grep -q first a && grep -q second a; }";
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", test],
    ));
    assert_eq!(places(&found), ["a:27", "a:40"]);
    let old: Vec<u64> = (0..2)
        .map(|at| found["changes"][at]["old"][0].as_u64().unwrap())
        .collect();
    assert_eq!(old, [21, 34]);
    let subject = |at: usize| {
        found["changes"][at]["commits"][0]["subject"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!([subject(0), subject(1)], ["first cause", "second cause"]);
}

#[test]
fn a_difference_is_told_apart_from_a_cause() {
    let commits = [
        Commit::new("begin", values(&[])),
        Commit::new("first", values(&[("a", "bad\n")])),
        Commit::new("second", values(&[("a", "bad\n"), ("b", "bad\n")])),
        Commit::new(
            "third",
            values(&[("a", "bad\n"), ("b", "bad\n"), ("c", "1\n")]),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let repository = create(&folder.path().join("repository"), &commits);
    let test = "! { grep bad a && grep bad b; }";
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        test,
        "--difference",
    ];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(
        (places(&found), &found["goal"]),
        (vec!["b:1".to_owned()], &"difference".into())
    );
    assert_eq!(found["claim"], "1-minimal-difference");
    assert!(found["cause"].is_null());
    // Both patches, one after the other, make the first version fail.
    crate::repositories::git(&repository, &["checkout", "--quiet", "A"]);
    for name in ["applied", "difference"] {
        crate::repositories::git(&repository, &["apply", found[name].as_str().unwrap()]);
    }
    assert_eq!(std::fs::read(repository.join("b")).unwrap(), b"bad\n");
}

#[test]
fn of_many_commits_the_newest_are_printed() {
    let version = |lines: &str| files(&[("f", lines), ("other", "same\n")]);
    let commits = [
        Commit::new("begin", version("")),
        Commit::new("first", version("a\n")),
        Commit::new("second", version("a\nb\n")),
        Commit::new("third", version("a\nb\nc\n")),
        Commit::new("culprit", version("a\nb\nc\nbad\n")),
    ];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    // Only the first and the last commit can be tested.
    let test = "if grep -q bad f; then exit 1; elif grep -q a f; then exit 125; fi";
    let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    command.current_dir(folder.path()).arg("changes");
    let done = output(command.args(["A..B", "--repo", "repository", "--run", test]));
    let text = String::from_utf8_lossy(&done.stdout);
    let line = text.lines().find(|line| line.starts_with("  f:")).unwrap();
    assert!(line.contains("culprit") && line.contains("third"), "{text}");
    assert!(
        !line.contains("first") && line.ends_with("; and 2 more"),
        "{text}"
    );
}

/// The lines from 1 to 30, with some of them replaced.
fn numbered(replaced: &[(usize, &str)]) -> String {
    let line = |at: usize| {
        let other = replaced.iter().find(|(line, _)| *line == at);
        format!(
            "{}\n",
            other.map_or(at.to_string(), |(_, text)| (*text).to_owned())
        )
    };
    (1..=30).map(line).collect()
}

#[test]
fn a_line_of_a_file_that_was_renamed_before_is_of_the_commit_that_added_it() {
    let commits = [
        Commit::new("begin", files(&[("a.txt", &numbered(&[]))])),
        Commit::new("mv", files(&[("b.txt", &numbered(&[]))])),
        Commit::new("culprit", files(&[("b.txt", &numbered(&[(15, "BUG")]))])),
    ];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let test = "! grep -q BUG *.txt";
    let words = ["A..B", "--repo", "repository", "--run", test];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(places(&found), ["a.txt:15"]);
    let commits = found["changes"][0]["commits"].as_array().unwrap();
    assert_eq!(
        (commits.len(), &commits[0]["subject"]),
        (1, &"culprit".into())
    );
}

#[test]
fn a_change_behind_a_rename_that_other_files_follow_is_found_without_the_rename() {
    let version = |name: &str, lines: &[(usize, &str)]| {
        let list = format!("{name}\n");
        files(&[(name, &numbered(lines)), ("list", &list), ("c", "0\n")])
    };
    let mut moved = version("b.txt", &[]);
    moved.insert(b"c".to_vec(), "1\n".into());
    let commits = [
        Commit::new("begin", version("a.txt", &[])),
        Commit::new("mv", version("b.txt", &[])),
        Commit::new("other", moved),
        Commit::new("culprit", version("b.txt", &[(15, "BUG")])),
    ];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    // A version of which the list names no file does not build, or cannot be tested.
    let build = "[ -e $(cat list) ]";
    let test = "! grep -q BUG $(cat list)";
    let both = format!("{build} || exit 125; {test}");
    let by_test = ["A..B", "--repo", "repository", "--force", "--run", &both];
    for words in [&by_build(build, test)[..], &by_test] {
        let found = result(&mut changes(folder.path(), words));
        assert_eq!(places(&found), ["a.txt:15"], "{found}");
        assert_eq!(
            (&found["claim"], &found["interference"]),
            (&"1-minimal".into(), &false.into())
        );
        assert_eq!(found["changes"][0]["commits"][0]["subject"], "culprit");
        let log = folder.path().join("out/changes/log.jsonl");
        for word in ["replay", "verify"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
            command.current_dir(folder.path());
            let done = output(command.args(["log", word]).arg(&log));
            assert!(done.status.success(), "{word}: {done:?}");
        }
    }
}

#[test]
fn lines_of_a_merge_are_of_the_branch_or_of_the_merge_that_added_them() {
    let version = |f: &[(usize, &str)], g: &[(usize, &str)]| {
        files(&[("f", &numbered(f)), ("g", &numbered(g))])
    };
    let all = [(1, "EVIL"), (10, "TEN"), (30, "THIRTY")];
    let mut commits = vec![
        Commit::new("begin", version(&[], &[])),
        Commit::new("twenty", version(&[(20, "TWENTY")], &[])),
        Commit::new("ten", version(&[(20, "TWENTY")], &all[1..2])),
        Commit::new("thirty on branch", version(&[], &all[2..])),
        Commit::new("merge", version(&[(20, "TWENTY")], &all)),
    ];
    commits[3].parents = vec![0];
    commits[4].parents = vec![2, 3];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    for (line, subject) in [("THIRTY", "thirty on branch"), ("EVIL", "merge")] {
        let test = format!("! grep -q {line} g");
        let words = ["A..B", "--repo", "repository", "--no-history", "--force"];
        let found = result(changes(folder.path(), &words).args(["--run", &test]));
        let commits = found["changes"][0]["commits"].as_array().unwrap();
        assert_eq!(
            (commits.len(), &commits[0]["subject"]),
            (1, &subject.into())
        );
    }
}

#[test]
fn a_rename_to_a_file_that_is_there_does_not_overwrite_it_and_the_shown_change_is_proved() {
    let (a, b) = (
        numbered(&[]),
        numbered(&[(1, "other"), (30, "end")]).repeat(2),
    );
    let commits = [
        Commit::new("begin", files(&[("a", &a), ("b", &b), ("k", "0\n")])),
        Commit::new("rm b", files(&[("a", &a), ("k", "0\n")])),
        Commit::new("k 1", files(&[("a", &a), ("k", "1\n")])),
        Commit::new("mv a b", files(&[("b", &a), ("k", "1\n")])),
        Commit::new("k 2", files(&[("b", &a), ("k", "2\n")])),
    ];
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let words = ["A..B", "--repo", "repository", "--run", "[ -e a ]"];
    let found = result(&mut changes(folder.path(), &words));
    let kinds: Vec<&str> = (found["changes"].as_array().unwrap().iter())
        .filter_map(|change| change["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["deleted file"], "{found}");
    assert_eq!(
        (&found["claim"], &found["removals"]),
        (&"1-minimal".into(), &1.into())
    );
}

/// A file of these lines, with some of them replaced.
fn lines(count: usize, replaced: &[(usize, &str)]) -> Files {
    let line = |at: usize| {
        let new = replaced.iter().find(|(line, _)| *line == at);
        new.map_or_else(|| format!("line {at}\n"), |(_, new)| format!("{new}\n"))
    };
    let text: String = (1..=count).map(line).collect();
    files(&[("f", &text)])
}

#[test]
fn a_change_beside_lines_that_other_commits_changed_is_found_alone() {
    let changed: Vec<String> = (1..=9).map(|at| format!("changed {at}")).collect();
    let mut replaced = Vec::new();
    let mut commits = vec![Commit::new("begin", lines(9, &[]))];
    for (at, text) in (1..).zip(&changed) {
        replaced.push((at, if at == 5 { "BUG" } else { text }));
        commits.push(Commit::new(&format!("commit {at}"), lines(9, &replaced)));
    }
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &commits);
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", "! grep BUG f"],
    ));
    assert_eq!(places(&found), ["f:5"]);
    assert_eq!(found["claim"], "1-minimal");
    let commits = found["changes"][0]["commits"].as_array().unwrap();
    assert_eq!(commits.len(), 1, "{commits:?}");
    assert_eq!(commits[0]["subject"], "commit 5");
}

#[test]
fn a_line_that_only_the_branch_of_the_old_version_changed_is_of_no_commit() {
    let mut commits = vec![
        Commit::new("begin", lines(30, &[])),
        Commit::new("old only", lines(30, &[(20, "old")])),
        Commit::new("unrelated", lines(30, &[(5, "five")])),
        Commit::new("more", lines(30, &[(5, "five"), (9, "nine")])),
    ];
    commits[2].parents = vec![0];
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository");
    create(&repository, &commits);
    let git = |words: &[&str]| {
        let done = output(Command::new("git").arg("-C").arg(&repository).args(words));
        assert!(done.status.success(), "{done:?}");
    };
    git(&["tag", "-f", "A", "main-1"]);
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", "grep old f"],
    ));
    assert_eq!(places(&found), ["f:20"]);
    assert_eq!(found["changes"][0]["commits"], serde_json::json!([]));
}
