//! The crash of a program, and the group of an output directory, as the failure.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::repositories::{Commit, File, Files, create, files, git};
use crate::{changes, failure, needs, output, places, result};

const MAKEFILE: &str = "prog: main.c parse.c\n\tcc -g -O0 -o prog main.c parse.c\n";
const MAIN: &str = "#include <stdio.h>\nint parse(const char *text);\nint main(void)\n{\n    char line[64] = \"\";\n    \
    if (!fgets(line, sizeof line, stdin))\n        return 0;\n    return parse(line);\n}\n";

/// A version of a parser: `limit` is the length above which it writes to an invalid place.
fn version(limit: usize, extra: &str) -> Files {
    let parse = format!(
        "#include <string.h>\n#include <stdlib.h>\n\nint parse(const char *text)\n{{\n    \
         volatile int *place = 0;\n    if (strlen(text) > {limit})\n        *place = 1;\n    return 0;\n}}\n\n\
         int unused(void)\n{{\n    return {};\n}}\n",
        extra.len()
    );
    files(&[
        ("Makefile", MAKEFILE),
        ("main.c", MAIN),
        ("parse.c", &parse),
        ("notes", extra),
    ])
}

fn history() -> Vec<Commit> {
    vec![
        Commit::new("begin", version(60, "")),
        Commit::new("notes", version(60, "a\n")),
        Commit::new("lower the limit", version(3, "ab\n")),
        Commit::new("more notes", version(3, "abc\n")),
    ]
}

fn ddfuzz(at: &Path, words: &[&str]) -> std::process::Output {
    output(
        Command::new(env!("CARGO_BIN_EXE_ddfuzz"))
            .current_dir(at)
            .args(words),
    )
}

fn has_tools() -> bool {
    needs::program("cc").is_some() && needs::program("make").is_some()
}

#[test]
fn the_change_that_brought_a_crash_is_found_by_the_crash() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &history());
    std::fs::write(folder.path().join("input"), "long enough\n").unwrap();
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--input",
        "input",
        "--expect",
        "segv",
        "--",
        "./prog",
    ];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(places(&found), ["parse.c:7"]);
    assert_eq!(
        found["changes"][0]["commits"][0]["subject"],
        "lower the limit"
    );
    let log = ddfuzz(folder.path(), &["log", "verify", "out/changes/log.jsonl"]);
    assert!(log.status.success(), "{log:?}");
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--input",
        "input",
        "--expect",
        "abrt",
        "--force",
        "--",
        "./prog",
    ];
    let other = crate::failure(&mut changes(folder.path(), &words));
    assert_eq!((other.0, other.1.as_str()), (3, "not-failing"));
}

/// A program that aborts if `bug` is set, whose build writes it to `place`.
fn placed(file: &str, place: &str, bug: bool, note: &str) -> Files {
    let line = if bug { "abort();" } else { "return 0;" };
    let build = format!("prog: main.c\n\tmkdir -p bin && cc -g -o {place} main.c\n");
    let main = format!("#include <stdlib.h>\nint main(void)\n{{\n    {line}\n}}\n");
    files(&[(file, &build), ("main.c", &main), ("note", note)])
}

#[test]
fn a_version_that_does_not_make_the_program_is_not_tested_by_that_of_the_current_directory() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let commits = [
        Commit::new("begin", placed("Makefile", "prog", false, "")),
        Commit::new("move", placed("Makefile", "bin/prog", false, "")),
        Commit::new("note", placed("Makefile", "bin/prog", false, "a\n")),
        Commit::new("move back", placed("Makefile", "prog", false, "a\n")),
        Commit::new("bug", placed("Makefile", "prog", true, "a\n")),
        Commit::new("note again", placed("Makefile", "prog", true, "ab\n")),
    ];
    let repository = create(&folder.path().join("repository"), &commits);
    make(&repository);
    let found = result(&mut changes(&repository, &["A..B", "--", "./prog"]));
    assert_eq!(places(&found), ["main.c:4"]);
    assert_eq!(found["changes"][0]["commits"][0]["subject"], "bug");
}

#[test]
fn the_program_of_another_version_is_not_tested() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The bug comes while the program is elsewhere, so that a program of before has not it.
    let commits = [
        Commit::new("begin", placed("rules", "prog", false, "")),
        Commit::new("move", placed("rules", "bin/prog", false, "")),
        Commit::new("bug", placed("rules", "bin/prog", true, "")),
        Commit::new("move back", placed("rules", "prog", true, "")),
        Commit::new("note", placed("rules", "prog", true, "a\n")),
    ];
    create(&folder.path().join("repository"), &commits);
    let words = ["A..B", "--repo", "repository", "--build", "make -f rules"];
    let found = result(changes(folder.path(), &words).args(["--", "./prog"]));
    assert_eq!(places(&found), ["main.c:4"]);
}

/// A version whose build writes the script `line` to `place`.
fn script(place: &str, line: &str) -> Files {
    let build = format!("cp main.sh {place} && chmod +x {place}\n");
    let main = format!("#!/bin/sh\n{line}\n");
    files(&[("build", &build), ("main.sh", &main)])
}

#[test]
fn a_program_that_builds_make_is_never_one_of_the_same_name_in_path() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A program `true` is in PATH, and passes.
    let commits = [
        Commit::new("begin", script("tool", "exit 0")),
        Commit::new("name", script("true", "exit 0")),
        Commit::new("bug", script("true", "kill -SEGV $$")),
    ];
    let repository = create(&at.join("repository"), &commits);
    git(&repository, &["tag", "M", "B~1"]);
    let search = |versions: &str| {
        let mut words = vec![versions, "--repo", "repository", "--force"];
        words.extend(["--build", "sh build", "--", "true"]);
        changes(at, &words)
    };
    let (code, kind, message) = crate::failure(&mut search("A..B"));
    assert_eq!((code, kind.as_str()), (3, "old-not-passing"), "{message}");
    assert!(message.contains("no program true after"), "{message}");
    let found = result(&mut search("M..B"));
    assert_eq!(places(&found), ["main.sh:2"]);
    let log = std::fs::read_to_string(at.join("out/changes/log.jsonl")).unwrap();
    assert!(log.contains("\"./true\""), "{log}");
    let log = ddfuzz(at, &["log", "verify", "out/changes/log.jsonl"]);
    assert!(log.status.success(), "{log:?}");
}

#[test]
fn a_build_that_does_not_make_the_program_again_is_made_anew() {
    if !has_tools() {
        return;
    }
    let version = |bug: bool, note: &str| {
        let mut files = placed("rules", "prog", bug, note);
        let rules = "stamp: main.c\n\tcc -g -o prog main.c && touch stamp\n";
        files.insert("rules".into(), rules.into());
        files
    };
    let folder = tempfile::tempdir().unwrap();
    let commits = [
        Commit::new("begin", version(false, "")),
        Commit::new("note", version(false, "a\n")),
        Commit::new("bug", version(true, "ab\n")),
    ];
    create(&folder.path().join("repository"), &commits);
    let words = ["A..B", "--repo", "repository", "--build", "make -f rules"];
    let found = result(changes(folder.path(), &words).args(["--", "./prog"]));
    assert_eq!(places(&found), ["main.c:4"]);
    assert_eq!(found["tests"]["unresolved"], 0, "{found}");
}

#[test]
fn the_log_has_the_time_of_a_build_from_scratch_for_a_search_that_goes_on() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    create(&at.join("repository"), &history());
    std::fs::write(at.join("input"), "long enough\n").unwrap();
    // Only the first build in a directory is slow.
    let build = "test -e made || sleep 0.3; touch made; make -k";
    let mut words = vec!["A..B", "--repo", "repository", "--input", "input"];
    words.extend(["--build", build, "--", "./prog"]);
    result(&mut changes(at, &words));
    let log = std::fs::read_to_string(at.join("out/changes/log.jsonl")).unwrap();
    let lines = log
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).unwrap() });
    let is_check = |line: &Value| line["what"] == "axiom" || line["what"] == "baseline";
    let slowest = lines
        .filter(is_check)
        .map(|line| line["slowest_us"][0].as_u64());
    let slowest: Vec<_> = slowest.collect();
    assert_eq!(slowest.len(), 6, "{log}");
    assert!(
        slowest.iter().all(|us| us.is_some_and(|us| us >= 300_000)),
        "{slowest:?}"
    );
}

#[test]
fn a_program_that_exceeds_its_time_limit_proves_nothing() {
    if needs::program("cc").is_none() {
        return;
    }
    let version = |one: u32, other: u32| {
        let text = format!(
            "#include <stdlib.h>\nint one = {one};\nint same;\nint other = {other};\nint main(void)\n{{\n    \
             volatile int on = 1;\n    if (!one)\n        return 0;\n    while (!other && on)\n        ;\n    abort();\n}}\n"
        );
        files(&[("main.c", &text)])
    };
    let folder = tempfile::tempdir().unwrap();
    let commits = [
        Commit::new("one", version(0, 0)),
        Commit::new("two", version(1, 1)),
    ];
    create(&folder.path().join("repository"), &commits);
    // Whether the change of `one` alone leads to the call of abort is not known in time.
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--build",
        "cc -o prog main.c",
        "--timeout",
        "300ms",
        "--",
        "./prog",
    ];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(
        (&found["claim"], places(&found).len()),
        (&Value::from("best-so-far"), 2)
    );
}

/// Builds the version that is checked out, and triages an input with it into `groups`.
fn triaged(at: &Path, repository: &Path) -> String {
    make(repository);
    std::fs::write(at.join("crash"), "long enough\n").unwrap();
    let program = repository.join("prog");
    let done = ddfuzz(
        at,
        &[
            "triage",
            "crash",
            "-o",
            "groups",
            "--json",
            "--",
            program.to_str().unwrap(),
        ],
    );
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    report["groups"][0]["major"].as_str().unwrap().to_owned()
}

fn make(repository: &Path) {
    let made = output(Command::new("make").arg("-B").current_dir(repository));
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn a_group_of_an_output_directory_leads_to_the_lines_that_brought_it() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let repository = create(&at.join("repository"), &history());
    let major = triaged(at, &repository);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    command.current_dir(at).args([
        "changes",
        "--json",
        "-o",
        "groups",
        "A..B",
        "--repo",
        "repository",
    ]);
    let found = result(command.args(["--group", &major[..8]]));
    assert_eq!(places(&found), ["parse.c:7"]);
    assert!(at.join("groups/changes/cause.patch").exists());
    let shown = ddfuzz(at, &["show", "groups"]);
    assert!(shown.status.success(), "{shown:?}");
}

#[test]
fn check_notes_no_commit_while_the_working_tree_differs_from_it() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let repository = create(&at.join("repository"), &history());
    triaged(at, &repository);
    let check = || -> Value {
        make(&repository);
        serde_json::from_slice(&ddfuzz(at, &["check", "groups", "--json"]).stdout).unwrap()
    };
    let checks = at.join("groups/checks.jsonl");
    let noted = || std::fs::read_to_string(&checks).unwrap_or_default();
    // The fix is made, built and checked, and then committed.
    let fixed = git(&repository, &["show", "A:parse.c"]);
    std::fs::write(repository.join("parse.c"), fixed).unwrap();
    let index = std::fs::read(repository.join(".git/index")).unwrap();
    assert_eq!(check()["groups"][0]["status"], "fixed");
    assert!(!noted().contains("commit"), "{}", noted());
    assert_eq!(std::fs::read(repository.join(".git/index")).unwrap(), index);
    git(
        &repository,
        &["commit", "--quiet", "--all", "--message", "fix"],
    );
    assert_eq!(check()["groups"][0]["status"], "fixed");
    let head = git(&repository, &["rev-parse", "HEAD"]);
    assert!(noted().contains(&head), "{}", noted());
    // A commit that brings it back is not blamed for what is not committed yet.
    let limit = git(&repository, &["show", "B:parse.c"]);
    std::fs::write(repository.join("parse.c"), limit).unwrap();
    let again = check();
    assert_eq!(again["groups"][0]["status"], "same");
    assert_eq!(again["groups"][0]["came_back"], Value::Null);
}

#[test]
fn a_group_does_not_come_back_in_a_commit_from_before_the_fix() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut commits = history();
    commits.push(Commit::new("raise the limit", version(60, "abcd\n")));
    let repository = create(&at.join("repository"), &commits);
    git(&repository, &["checkout", "--quiet", "B~1"]);
    triaged(at, &repository);
    let check = |revision: &str| -> Value {
        git(&repository, &["checkout", "--quiet", revision]);
        make(&repository);
        serde_json::from_slice(&ddfuzz(at, &["check", "groups", "--json"]).stdout).unwrap()
    };
    assert_eq!(check("B")["groups"][0]["status"], "fixed");
    let older = check("B~1");
    assert_eq!(older["groups"][0]["status"], "same");
    assert_eq!(older["groups"][0]["came_back"], Value::Null);
}

#[test]
fn check_says_in_which_range_a_group_came_back() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let repository = create(&at.join("repository"), &history());
    triaged(at, &repository);
    let check = |revision: &str| -> Value {
        git(&repository, &["checkout", "--quiet", revision]);
        make(&repository);
        serde_json::from_slice(&ddfuzz(at, &["check", "groups", "--json"]).stdout).unwrap()
    };
    assert_eq!(check("B")["groups"][0]["status"], "same");
    assert_eq!(check("A")["groups"][0]["status"], "fixed");
    let again = check("B");
    let back = &again["groups"][0]["came_back"];
    assert_eq!(
        back["fixed"],
        git(&repository, &["rev-parse", "A"]).as_str()
    );
    assert_eq!(back["now"], git(&repository, &["rev-parse", "B"]).as_str());
    // The command that it prints finds the change.
    let command = back["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let found = ddfuzz(at, &words);
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(
        found.status.success() && text.contains("parse.c:7"),
        "{text}"
    );
    assert!(text.lines().count() <= 15, "{text}");
}

/// Triages an input on a script that fails only with a variable of the environment and by an exit
/// status; `more` are further words. Returns the key of its group.
fn triaged_script(at: &Path, more: &[&str]) -> String {
    let script =
        "#!/bin/sh\n[ \"$MODE\" = on ] && grep -q bad \"${0%/*}/value\" && exit 42\nexit 0\n";
    let version = |value: &str| {
        let mut all = files(&[("value", value), ("other", value)]);
        all.insert(b"prog".to_vec(), File::Script(script.into()));
        all
    };
    let commits = [
        Commit::new("one", version("0\n")),
        Commit::new("two", version("bad\n")),
    ];
    let repository = create(&at.join("repository"), &commits);
    std::fs::write(at.join("crash"), "input\n").unwrap();
    let program = repository.join("prog").display().to_string();
    let mut words = vec![
        "triage", "crash", "-o", "groups", "--json", "--env", "MODE=on",
    ];
    words.extend(["--crash-exit", "42"]);
    words.extend(more);
    words.extend(["--", &program, "@@"]);
    let done = ddfuzz(at, &words);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    report["groups"][0]["major"].as_str().unwrap().to_owned()
}

#[test]
fn a_group_is_searched_under_the_conditions_in_which_it_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let major = triaged_script(folder.path(), &[]);
    let words = [
        "changes",
        "--json",
        "A..B",
        "--repo",
        "repository",
        "-o",
        "groups",
    ];
    let group = ["--build", "true", "--group", &major];
    let search = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
        command.current_dir(folder.path()).args(words).args(group);
        command
    };
    assert_eq!(places(&result(&mut search())), ["value:1"]);
    let (code, kind, message) = failure(search().args(["--force", "--", "./prog"]));
    assert_eq!((code, kind.as_str()), (2, "usage"), "{message}");
    assert!(message.contains("@@"), "{message}");
}

#[test]
fn a_group_whose_input_has_a_file_name_is_not_searched_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let major = triaged_script(folder.path(), &["--file-name", "input.txt"]);
    let group = folder.path().join("groups/crashes").join(&major);
    let words = ["A..B", "--repo", "repository", "--build", "true", "--group"];
    let (code, kind, message) = failure(changes(folder.path(), &words).arg(group));
    assert_eq!((code, kind.as_str()), (2, "usage"), "{message}");
    assert!(message.contains("--file-name"), "{message}");
}
