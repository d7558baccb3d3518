//! Changes that do not build one by one, and builds that miss something.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::repositories::{Commit, Files, create, files};
use crate::{by_build, changes, executed, failure, needs, places, result};

/// A build of small programs without a compiler: each line `use NAME` needs a line `define NAME`
/// somewhere, and messages name what is missing, like those of a compiler.
const BUILD: &str = "sed -n 's/^define //p' *.x | sort >defined; missing=0\n\
    for name in $(sed -n 's/^use //p' *.x); do grep -qx $name defined || \
    { echo \"a.x:1: error: '$name' undeclared\"; missing=1; }; done\nexit $missing";

fn two(old: Files, new: Files) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    create(
        &folder.path().join("repository"),
        &[Commit::new("one", old), Commit::new("two", new)],
    );
    folder
}

fn search(folder: &tempfile::TempDir, test: &str) -> serde_json::Value {
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--build",
        BUILD,
        "--run",
        test,
    ];
    result(&mut changes(folder.path(), &words))
}

/// A version with `count` files of lines that do not matter, and the given lines.
fn version(count: usize, new: bool, lines: &[(&str, &str)]) -> Files {
    let mut all = Files::new();
    for at in 0..count {
        let text = format!("keep {at}\nnoise {}\nkeep\n", usize::from(new) * (at + 1));
        all.insert(format!("n{at}.x").into_bytes(), text.as_str().into());
    }
    all.extend(files(lines));
    all
}

#[test]
fn changes_that_need_each_other_are_kept_together() {
    let old = version(
        40,
        false,
        &[
            ("a.x", "begin\nend\n"),
            ("b.x", "begin\nend\n"),
            ("c.x", "begin\nend\n"),
        ],
    );
    let new = version(
        40,
        true,
        &[
            ("a.x", "begin\nuse helper\nend\n"),
            ("b.x", "begin\ndefine helper\nuse deeper\nend\n"),
            ("c.x", "begin\ndefine deeper\nend\n"),
        ],
    );
    let found = search(&two(old, new), "! grep -q 'use helper' a.x");
    assert_eq!(places(&found), ["a.x:2", "b.x:2", "c.x:2"]);
    assert_eq!(found["claim"], "1-minimal");
    assert_eq!(found["removals_that_do_not_build"], 2);
    assert!(executed(&found) <= 57, "{found}");
}

#[test]
fn what_builds_teach_is_in_the_log_and_replayed() {
    // The old version mentions the name, so that the texts do not show that a change defines it.
    let old = version(
        40,
        false,
        &[("a.x", "note helper\nend\n"), ("z.x", "begin\nend\n")],
    );
    let new = version(
        40,
        true,
        &[
            ("a.x", "note helper\nuse helper\nend\n"),
            ("z.x", "begin\ndefine helper\nend\n"),
        ],
    );
    let folder = two(old, new);
    let found = search(&folder, "! grep -q 'use helper' a.x");
    assert_eq!(places(&found), ["a.x:2", "z.x:2"]);
    let log = folder.path().join("out/changes/log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("\"requires\":[["), "{text}");
    let replay = |log: &std::path::Path| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
        crate::output(command.args(["log", "replay"]).arg(log))
            .status
            .code()
    };
    assert_eq!(replay(&log), Some(0));
    // A log with other relations is not that of this search.
    std::fs::write(
        &log,
        text.replacen("\"requires\":[[", "\"requires\":[[9", 1),
    )
    .unwrap();
    assert_eq!(replay(&log), Some(1));
}

#[test]
fn changes_that_need_a_removed_one_go_with_it() {
    // Twenty users of a definition that does not matter, in as many files, and one cause.
    let mut old_lines: Vec<(String, String)> = vec![
        ("d.x".into(), "begin\n".into()),
        ("cause.x".into(), "good\n".into()),
    ];
    let mut new_lines = vec![
        ("d.x".into(), "begin\ndefine common\n".into()),
        ("cause.x".into(), "bad\n".into()),
    ];
    for at in 0..20 {
        old_lines.push((format!("u{at}.x"), "begin\n".into()));
        new_lines.push((format!("u{at}.x"), "begin\nuse common\n".into()));
    }
    fn borrowed(lines: &[(String, String)]) -> Vec<(&str, &str)> {
        lines
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect()
    }
    let (old, new) = (
        version(10, false, &borrowed(&old_lines)),
        version(10, true, &borrowed(&new_lines)),
    );
    let found = search(&two(old, new), "! grep -q bad cause.x");
    assert_eq!(places(&found), ["cause.x:1"]);
    assert!(executed(&found) <= 45, "{found}");
}

#[test]
fn a_cause_among_many_that_do_not_build_without_it_is_found() {
    let old = version(
        5,
        false,
        &[
            ("a.x", "define old\nuse old\n"),
            ("b.x", "use old\n"),
            ("c.x", "1\n"),
        ],
    );
    let new = version(
        5,
        true,
        &[
            ("a.x", "define new\nuse new\n"),
            ("b.x", "use new\n"),
            ("c.x", "2\n"),
        ],
    );
    let found = search(&two(old, new), "! grep -q 'use new' b.x");
    assert_eq!(places(&found), ["a.x:1", "b.x:1"]);
}

#[test]
fn a_header_that_the_build_does_not_know_of_is_noticed() {
    let Some(_) = needs::program("cc") else {
        return;
    };
    let Some(_) = needs::program("make") else {
        return;
    };
    let makefile = "prog: main.o other.o\n\tcc -o prog main.o other.o\n%.o: %.c\n\tcc -c $<\n";
    let version = |limit: u32, noise: u32| {
        files(&[
            ("Makefile", makefile),
            ("limit.h", &format!("#define LIMIT {limit}\n")),
            (
                "main.c",
                "#include \"limit.h\"\nint other(void);\nint main(void)\n{\n    return other() > LIMIT;\n}\n",
            ),
            (
                "other.c",
                &format!("int unused;\n\n\nint other(void)\n{{\n    return 5 + 0 * {noise};\n}}\n"),
            ),
        ])
    };
    let folder = two(version(9, 1), version(3, 2));
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--build",
        "make -k",
        "--run",
        "./prog",
    ];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(places(&found), ["limit.h:1"]);
}

#[test]
fn the_build_is_chosen_by_the_files_and_told() {
    let Some(_) = needs::program("cc") else {
        return;
    };
    let Some(_) = needs::program("make") else {
        return;
    };
    let version = |line: &str| {
        files(&[
            ("Makefile", "prog: main.c\n\tcc -o prog main.c\n"),
            (
                "main.c",
                &format!("#include <stdlib.h>\nint main(void)\n{{\n    {line}\n}}\n"),
            ),
        ])
    };
    let folder = two(version("return 0;"), version("abort();"));
    let done = crate::output(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--", "./prog"],
    ));
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
    assert!(error.contains("build: make -k"), "{error}");
}

#[test]
fn a_result_that_only_left_over_files_made_fail_is_refused() {
    let version = |a: &str, b: &str| files(&[("a", a), ("b", b), ("c", a)]);
    // The build never forgets that it has seen the second version of b.
    let build = "grep -q 2 b && touch seen; true";
    let folder = two(version("1\n", "1\n"), version("2\n", "2\n"));
    let test = "! { grep -q 2 a && [ -e seen ]; }";
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--build",
        build,
        "--run",
        test,
    ];
    let done = crate::output(&mut changes(folder.path(), &words));
    let text = String::from_utf8_lossy(&done.stdout);
    // Either the copies of built versions keep the left-over file away, or the last check does.
    let honest = text.contains("stale-build") || text.contains("\"a\"") && text.contains("\"b\"");
    assert!(honest, "{text}");
}

#[test]
fn a_new_version_that_fails_only_without_results_of_the_old_one_is_told() {
    // The build makes `object` once, whatever becomes of `flags`.
    let version = |flags: &str| files(&[("flags", flags), ("note", flags)]);
    let folder = two(
        version("#!/bin/sh\nexit 0\n"),
        version("#!/bin/sh\nkill -SEGV $$\n"),
    );
    let build = "[ -e object ] || cp flags object; cp object prog; chmod +x prog";
    let by_program = [
        "A..B",
        "--repo",
        "repository",
        "--build",
        build,
        "--",
        "./prog",
    ];
    for words in [by_build(build, "! grep -q kill prog"), by_program] {
        let (code, kind, message) = failure(&mut changes(folder.path(), &words));
        assert_eq!((code, kind.as_str()), (3, "stale-build"), "{message}");
        assert!(message.contains("in an empty directory"), "{message}");
    }
}

/// Makes a command run as `nobody` if the tests run as root, who may write everywhere. Returns false,
/// and says so, if that user cannot start ddfuzz.
fn as_nobody(command: &mut Command) -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0);
    if !is_root {
        return true;
    }
    let mut version = Command::new(command.get_program());
    let started = version.arg("--version").uid(65534).gid(65534).output();
    command.uid(65534).gid(65534).env("HOME", "/nonexistent");
    if let Err(error) = &started {
        needs::missing("a directory that everybody reaches", &error.to_string());
    }
    started.is_ok()
}

#[test]
fn worktrees_with_read_only_directories_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o777)).unwrap();
    for (version, value) in [("old", "1\n"), ("new", "2\n")] {
        std::fs::create_dir(at.join(version)).unwrap();
        std::fs::write(at.join(version).join("value"), value).unwrap();
    }
    let build = "mkdir -p made/deep && touch made/deep/file && chmod -R a-w made";
    let words = ["old", "new", "--build", build, "--run", "! grep -q 2 value"];
    for more in [&[][..], &["--force"]] {
        let mut command = changes(at, &words);
        if !as_nobody(command.args(more)) {
            return;
        }
        assert_eq!(places(&result(&mut command)), ["value:1"]);
        assert!(!at.join("out/changes/work").exists(), "worktrees are left");
    }
}

#[test]
fn the_target_directory_of_cargo_is_not_inherited() {
    let folder = two(files(&[("value", "1\n")]), files(&[("value", "2\n")]));
    let mine = folder.path().join("mine");
    let none = "test -z \"$CARGO_TARGET_DIR$CARGO_BUILD_TARGET_DIR\"";
    let given = "test \"$CARGO_TARGET_DIR\" = own";
    for (build, more) in [
        (none, &[][..]),
        (given, &["--env", "CARGO_TARGET_DIR=own", "--force"]),
    ] {
        let words = by_build(build, "! grep -q 2 value");
        let mut command = changes(folder.path(), &words);
        command.args(more);
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
            command.env(name, &mine);
        }
        assert_eq!(places(&result(&mut command)), ["value:1"]);
    }
}

#[test]
fn a_workspace_around_the_output_directory_is_told() {
    let package = "[package]\nname = \"made\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let version = |workspace: &str| {
        files(&[
            ("Cargo.toml", &format!("{package}{workspace}")),
            ("src/main.rs", "fn main() {}\n"),
        ])
    };
    let folder = two(version(""), version("[workspace]\nmembers = []\n"));
    let build = concat!(env!("CARGO"), " build --offline");
    let words = ["A..B", "--build", build, "--run", "false"];
    let mut command = changes(&folder.path().join("repository"), &words);
    let (code, kind, message) = failure(&mut command);
    assert_eq!((code, kind.as_str()), (3, "old-not-passing"), "{message}");
    assert!(
        message.contains("workspace around the output directory"),
        "{message}"
    );
}
