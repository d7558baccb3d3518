//! The log: resumed after a kill, replayed, verified; the same whatever the number of workers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::repositories::{Commit, create, files, settings};
use crate::{by_build, changes, failure, output, places, result};

/// The lines of a log without what measures time.
fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for name in ["us", "slowest_us"] {
            line.as_object_mut().unwrap().remove(name);
        }
        if let Some(tests) = line.get_mut("tests").and_then(Value::as_object_mut) {
            tests.remove("speculative");
        }
        line
    };
    text.lines().map(line).collect()
}

fn log_command(at: &Path, words: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    output(command.current_dir(at).arg("log").args(words))
}

#[test]
fn a_log_that_is_cut_anywhere_is_resumed_to_the_same_log() {
    let case = settings(5, 17, 61, 2);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    create(&at.join("repository"), &case.commits);
    let words = ["A..B", "--repo", "repository", "--run", &case.test];
    result(&mut changes(at, &words));
    let log = at.join("out/changes/log.jsonl");
    let (whole, text) = (lines(&log), std::fs::read(&log).unwrap());
    let patch = std::fs::read(at.join("out/changes/cause.patch")).unwrap();
    for part in [0, 1, 3, 5, 7] {
        std::fs::write(&log, &text[..text.len() * part / 8]).unwrap();
        std::fs::remove_file(at.join("out/changes/cause.patch")).unwrap();
        let found = result(&mut changes(at, &words));
        assert_eq!(lines(&log), whole, "cut at {part}/8");
        assert_eq!(
            std::fs::read(at.join("out/changes/cause.patch")).unwrap(),
            patch
        );
        assert_eq!(places(&found).len(), 2);
    }
}

#[test]
fn the_number_of_workers_changes_neither_log_nor_result() {
    let case = settings(6, 12, 70, 2);
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &case.commits);
    let mut logs = Vec::new();
    for jobs in ["1", "3"] {
        let words = [
            "A..B",
            "--repo",
            "repository",
            "--run",
            &case.test,
            "--jobs",
            jobs,
            "--force",
            "--no-history",
        ];
        result(&mut changes(folder.path(), &words));
        logs.push(lines(&folder.path().join("out/changes/log.jsonl")));
    }
    assert_eq!(logs[0], logs[1]);
}

/// Puts a `git` into the folder `at/bin` that runs `script` first, and returns a PATH with it.
fn wrapped_git(at: &Path, script: &str) -> String {
    let bin = at.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\nPATH=${{PATH#*:}}\n{script}\nexec git \"$@\"\n");
    std::fs::write(bin.join("git"), script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("git"), executable).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_merge_that_a_signal_has_ended_is_not_logged_as_a_conflict() {
    let case = settings(5, 17, 61, 2);
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let words = ["A..B", "--repo", "repository", "--run", &case.test];
    for at in [folder.path(), other.path()] {
        create(&at.join("repository"), &case.commits);
    }
    result(&mut changes(other.path(), &words));
    let at = folder.path();
    let once = at.join("once");
    std::fs::write(&once, "").unwrap();
    let kill = format!(
        "case \"$*\" in *merge-file*) [ -e {0} ] && rm {0} && kill -KILL $$;; esac",
        once.display()
    );
    let path = wrapped_git(at, &kill);
    let (code, kind, message) = failure(changes(at, &words).env("PATH", path));
    assert!(!once.exists(), "nothing was merged");
    assert_eq!((code, kind.as_str()), (70, "system"), "{message}");
    assert!(message.contains("SIGKILL"), "{message}");
    result(&mut changes(at, &words));
    let log = |at: &Path| lines(&at.join("out/changes/log.jsonl"));
    let without_start = |at: &Path| log(at).split_off(1);
    assert_eq!(without_start(at), without_start(other.path()));
}

#[test]
fn a_signal_to_ddfuzz_and_its_git_ends_with_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    let words = ["A..B", "--repo", "repository", "--run", &test];
    for asked in [
        "rev-parse",
        "init",
        "ls-tree",
        "rev-list",
        "log",
        "diff-tree",
    ] {
        let met = at.join("met");
        let kill = format!(
            "case \" $* \" in *' {asked} '*) echo >{}; kill -INT $PPID $$;; esac",
            met.display()
        );
        let path = wrapped_git(at, &kill);
        let (code, kind, message) = failure(changes(at, &words).env("PATH", path));
        let found = (code, kind.as_str());
        assert_eq!(found, (130, "interrupted"), "{asked}: {message}");
        std::fs::remove_file(met).unwrap();
    }
    assert_eq!(result(&mut changes(at, &words))["claim"], "1-minimal");
}

#[test]
fn a_log_is_replayed_without_a_build_and_verified_by_builds() {
    let case = settings(7, 10, 40, 1);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    create(&at.join("repository"), &case.commits);
    result(&mut changes(
        at,
        &["A..B", "--repo", "repository", "--run", &case.test],
    ));
    let log = "out/changes/log.jsonl";
    let replayed = log_command(at, &["replay", log, "-o", "rebuilt.patch"]);
    assert!(replayed.status.success(), "{replayed:?}");
    let cause = std::fs::read(at.join("out/changes/cause.patch")).unwrap();
    assert_eq!(std::fs::read(at.join("rebuilt.patch")).unwrap(), cause);
    let verified = log_command(at, &["verify", log]);
    assert!(verified.status.success(), "{verified:?}");
    // A log whose outcomes were changed is not that of the same search.
    let text = std::fs::read_to_string(at.join(log)).unwrap();
    let at_first_pass = text
        .find("\"outcome\":\"PASS\",\"source\":\"run\"")
        .unwrap();
    let mut forged = text.clone();
    forged.replace_range(at_first_pass..at_first_pass + 16, "\"outcome\":\"FAIL\"");
    std::fs::write(at.join(log), forged).unwrap();
    let replayed = log_command(at, &["replay", log]);
    assert_eq!(replayed.status.code(), Some(1), "{replayed:?}");
}

#[test]
fn a_finished_search_is_shown_again_without_a_test_and_another_one_does_not_replace_it() {
    let case = settings(8, 4, 20, 1);
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &case.commits);
    let words = ["A..B", "--repo", "repository", "--run", &case.test];
    let first = result(&mut changes(folder.path(), &words));
    let again = result(&mut changes(folder.path(), &words));
    assert_eq!(first["changes"], again["changes"]);
    assert_eq!(again["builds"]["run"], 0);
    let other = failure(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", "false"],
    ));
    assert_eq!((other.0, other.1.as_str()), (2, "exists"));
    assert!(other.2.contains("--force"), "{}", other.2);
}

#[test]
fn a_budget_ends_the_search_with_what_it_has_and_a_larger_one_goes_on_to_the_same_result() {
    let case = settings(14, 21, 66, 2);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    create(&at.join("repository"), &case.commits);
    let words = ["A..B", "--repo", "repository", "--run", &case.test];
    let other = tempfile::tempdir().unwrap();
    create(&other.path().join("repository"), &case.commits);
    let whole = result(&mut changes(other.path(), &words));
    let tests = crate::executed(&whole);
    let mut counts = Vec::new();
    // A test takes longer than this time, so that the first is the last.
    let found = result(changes(at, &words).args(["--budget-time", "1ms"]));
    assert_eq!(
        (crate::executed(&found), &found["budget_used_up"]),
        (1, &Value::Bool(true))
    );
    assert_eq!(found["claim"], "best-so-far");
    for budget in ["1", "3", "9"] {
        let found = result(changes(at, &words).args(["--budget-tests", budget]));
        assert_eq!(found["claim"], "best-so-far", "{budget}");
        assert_eq!(found["budget_used_up"], true, "{budget}");
        assert_eq!(found["found_despite_unbuildable"], 0, "{budget}");
        assert_eq!(crate::executed(&found).to_string(), budget);
        counts.push(places(&found).len());
        let _ = std::fs::remove_file(at.join("rebuilt"));
        let replayed = log_command(at, &["replay", "out/changes/log.jsonl", "-o", "rebuilt"]);
        assert!(replayed.status.success(), "{replayed:?}");
        let cause = std::fs::read(at.join("out/changes/cause.patch")).unwrap();
        assert_eq!(std::fs::read(at.join("rebuilt")).unwrap(), cause);
        let verified = log_command(at, &["verify", "out/changes/log.jsonl"]);
        assert!(verified.status.success(), "{verified:?}");
    }
    assert!(
        counts.windows(2).all(|pair| pair[0] >= pair[1]),
        "{counts:?}"
    );
    let end = result(&mut changes(at, &words));
    assert_eq!(end["changes"], whole["changes"]);
    assert_eq!(
        (end["claim"].as_str(), crate::executed(&end)),
        (Some("1-minimal"), tests)
    );
    assert_eq!(end["budget_used_up"], false);
    let replayed = log_command(at, &["replay", "out/changes/log.jsonl"]);
    assert!(replayed.status.success(), "{replayed:?}");
}

#[test]
fn a_log_is_shown_in_changes() {
    let case = settings(15, 1, 30, 1);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    create(&at.join("repository"), &case.commits);
    let words = ["A..B", "--repo", "repository", "--run", &case.test];
    result(&mut changes(at, &words));
    let shown = log_command(at, &["show", "out/changes/log.jsonl", "--svg", "curve.svg"]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("30 → 1 change"), "{text}");
    assert!(!text.contains("byte"), "{text}");
    assert!(
        std::fs::read_to_string(at.join("curve.svg"))
            .unwrap()
            .contains("changes")
    );
}

/// Creates a repository of which three lines change, and a script that fails with one of them; an
/// old version that has not that line is unresolved where there is a file `cannot`.
fn three_lines(at: &Path) -> String {
    let text = |lines: [&str; 3]| {
        let lines = lines.map(|line| format!("{line}\nsame\nsame\n"));
        files(&[("f", &lines.concat())])
    };
    let commits = [
        Commit::new("one", text(["first", "second", "third"])),
        Commit::new("two", text(["bad", "more", "other"])),
    ];
    create(&at.join("repository"), &commits);
    let cannot = at.join("cannot").display().to_string();
    format!("if grep -q bad f; then exit 1; fi; if [ -e {cannot} ]; then exit 125; fi")
}

#[test]
fn a_difference_is_verified_with_the_version_that_passes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        &test,
        "--difference",
    ];
    assert_eq!(
        result(&mut changes(at, &words))["claim"],
        "1-minimal-difference"
    );
    let log = "out/changes/log.jsonl";
    let end = lines(&at.join(log)).pop().unwrap();
    assert_eq!(end["proved"], serde_json::json!({"done": 2, "of": 2}));
    let verified = log_command(at, &["verify", log]);
    assert!(verified.status.success(), "{verified:?}");
    std::fs::write(at.join("cannot"), "").unwrap();
    let verified = log_command(at, &["verify", log]);
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert_eq!(verified.status.code(), Some(1), "{text}");
    assert!(text.contains("does not pass"), "{text}");
}

#[test]
fn best_so_far_is_verified_as_no_more_than_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    let words = ["A..B", "--repo", "repository", "--run", &test];
    let found = result(changes(at, &words).args(["--budget-tests", "1"]));
    assert_eq!(
        (&found["claim"], places(&found).len()),
        (&Value::from("best-so-far"), 2)
    );
    let verified = log_command(at, &["verify", "out/changes/log.jsonl"]);
    let text = String::from_utf8_lossy(&verified.stdout);
    assert_eq!(text.trim_end(), "best-so-far is verified: the result fails");
}

#[test]
fn a_line_after_the_end_is_not_of_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    result(&mut changes(
        at,
        &["A..B", "--repo", "repository", "--run", &test],
    ));
    let log = at.join("out/changes/log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let last = text.lines().last().unwrap();
    std::fs::write(&log, format!("{text}{last}\n")).unwrap();
    let replayed = log_command(at, &["replay", "out/changes/log.jsonl"]);
    assert_eq!(replayed.status.code(), Some(1), "{replayed:?}");
}

#[test]
fn a_log_that_leads_to_no_result_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    result(&mut changes(
        at,
        &["A..B", "--repo", "repository", "--run", &test],
    ));
    let path = at.join("out/changes/log.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    for what in ["axiom", "baseline", "confirm"] {
        let changed = |line: &str| {
            let outcomes = [("\"PASS\"", "\"FAIL\""), ("\"FAIL\"", "\"PASS\"")];
            let is_check = line.contains(&format!("\"{what}\""));
            let other = outcomes
                .iter()
                .find(|(from, _)| is_check && line.contains(from));
            other.map_or(line.to_owned(), |(from, to)| line.replace(from, to)) + "\n"
        };
        std::fs::write(&path, whole.lines().map(changed).collect::<String>()).unwrap();
        for command in ["replay", "verify"] {
            let done = log_command(at, &[command, "out/changes/log.jsonl"]);
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{what}: {said}");
            assert!(said.contains("leads to no result"), "{what}: {said}");
        }
    }
}

#[test]
fn a_test_that_exceeds_its_time_limit_proves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    three_lines(at);
    // Whether `bad` alone fails is not known in time.
    let test = "grep -q bad f || exit 0; grep -q other f && exit 1; while :; do :; done";
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        test,
        "--timeout",
        "300ms",
    ];
    let found = result(&mut changes(at, &words));
    assert_eq!(
        (&found["claim"], places(&found).len()),
        (&Value::from("best-so-far"), 2)
    );
}

#[test]
fn a_continued_search_confirms_its_result_on_the_build_of_the_old_version() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let old = files(&[("z.c", "int z;\n")]);
    let mut new = old.clone();
    for name in ["a.c", "b.c", "c.c", "d.c"] {
        new.insert(name.into(), "int new;\n".into());
    }
    let commits = [Commit::new("one", old), Commit::new("two", new)];
    create(&at.join("repository"), &commits);
    // The build never removes what it has copied, so that `b.c` is there in each later version.
    let (build, test) = ("mkdir -p made && cp *.c made/", "! test -e made/b.c");
    let by_test = format!("{build}; {test}");
    let alone = ["A..B", "--repo", "repository", "--run", &by_test];
    for (words, hint) in [
        (&by_build(build, test)[..], "make clean"),
        (&alone, "the test leaves files behind"),
    ] {
        let mut first = changes(at, words);
        let found = result(first.args(["--budget-tests", "0", "--force"]));
        assert_eq!(found["claim"], "best-so-far");
        let (code, kind, message) = failure(&mut changes(at, words));
        assert_eq!((code, kind.as_str()), (3, "stale-build"), "{message}");
        assert!(message.contains(hint), "{message}");
    }
}

#[test]
fn a_search_that_ended_with_a_stale_build_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    let words = ["A..B", "--repo", "repository", "--run", &test];
    result(&mut changes(at, &words));
    let log = at.join("out/changes/log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    // The log ends with a confirmation that does not fail.
    let first = text.find("\"what\":\"confirm\"").unwrap();
    let begin = text[..first].rfind('\n').unwrap() + 1;
    let end = first + text[first..].find('\n').unwrap() + 1;
    let confirm = text[begin..end].replace("FAIL", "PASS");
    std::fs::write(&log, format!("{}{confirm}", &text[..begin])).unwrap();
    let replayed = log_command(at, &["replay", "out/changes/log.jsonl"]);
    let error = String::from_utf8_lossy(&replayed.stderr);
    assert!(error.contains("has failed in the search"), "{error}");
    let found = result(&mut changes(at, &words));
    assert_eq!(found["claim"], "1-minimal");
    assert_eq!(lines(&log).len(), text.lines().count());
}

#[test]
fn the_output_directory_is_no_part_of_a_version_in_whose_directory_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    for (name, text) in [("old", "1\n"), ("new", "2\n")] {
        let version = folder.path().join(name);
        std::fs::create_dir(&version).unwrap();
        std::fs::write(version.join("value"), text).unwrap();
    }
    let words = ["../old", ".", "--run", "! grep -q 2 value"];
    let first = result(&mut changes(&new, &words));
    assert_eq!(places(&first), ["value:1"]);
    let log = new.join("out/changes/log.jsonl");
    let start = lines(&log).remove(0);
    assert_eq!(start["size"], 1, "{start}");
    let again = result(&mut changes(&new, &words));
    assert_eq!(again["changes"], first["changes"]);
    for action in ["replay", "verify"] {
        let done = log_command(&new, &[action, "out/changes/log.jsonl"]);
        assert!(done.status.success(), "{done:?}");
    }
    // The directory of a version cannot be the output directory itself.
    let mut inside = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    inside
        .current_dir(&new)
        .args(["changes", "--json", "-o", "."]);
    let (code, kind, message) = failure(inside.args(words));
    assert_eq!((code, kind.as_str()), (2, "usage"), "{message}");
    assert!(message.contains("output directory"), "{message}");
}

#[test]
fn another_script_of_the_same_name_makes_another_search() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    let script = at.join("test.sh");
    let write = |text: &str| std::fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
    write(&test);
    let line = format!("sh {}", script.display());
    let words = ["A..B", "--repo", "repository", "--run", &line];
    assert_eq!(places(&result(&mut changes(at, &words))), ["f:1"]);
    let again = output(&mut changes(at, &words));
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(
        again.status.success() && said.contains("finished earlier: nothing was run"),
        "{said}"
    );
    write("! grep -q other f");
    let (code, kind, message) = failure(&mut changes(at, &words));
    assert_eq!((code, kind.as_str()), (2, "exists"), "{message}");
    assert!(message.contains("test.sh was another file"), "{message}");
    let found = result(changes(at, &words).arg("--force"));
    assert_eq!(places(&found), ["f:7"]);
}

#[test]
fn no_result_stands_beside_the_log_of_another_search() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let test = three_lines(at);
    result(&mut changes(
        at,
        &["A..B", "--repo", "repository", "--run", &test],
    ));
    let other = ["A..B", "--repo", "repository", "--run", "false", "--force"];
    assert_eq!(failure(&mut changes(at, &other)).1, "old-not-passing");
    for name in ["changes.json", "cause.patch"] {
        assert!(!at.join("out/changes").join(name).exists(), "{name}");
    }
    // A search that has found nothing is replaced by any other.
    let found = result(&mut changes(
        at,
        &["A..B", "--repo", "repository", "--run", &test],
    ));
    assert_eq!(places(&found), ["f:1"]);
}
