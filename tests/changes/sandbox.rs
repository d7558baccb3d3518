//! Builds and tests in a sandbox write to their directory only, reach nobody, and lead nothing out of
//! it; where this machine cannot keep that, it is said.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddfuzz::exec::sandbox::{keep_files, supported_parts};
use serde_json::Value;

use crate::repositories::{Commit, File, Files, create, files, git};
use crate::{changes, failure, needs, output, places, result};

/// A folder that everybody may reach, with a repository of two versions, and in it the folder
/// `outside` in which everybody may write.
fn folder_of(old: Files, new: Files) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    mode(folder.path(), 0o755);
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    mode(&outside, 0o777);
    create(
        &folder.path().join("repository"),
        &[Commit::new("one", old), Commit::new("two", new)],
    );
    folder
}

fn values() -> tempfile::TempDir {
    let version = |value: &str| files(&[("value", value), ("other", value)]);
    folder_of(version("1\n"), version("2\n"))
}

const TEST: &str = "! grep -q 2 value";

/// Whether this machine keeps the files outside from what runs in a sandbox.
fn has_walls() -> bool {
    keep_files(&supported_parts())
}

fn is_left(folder: &tempfile::TempDir) -> bool {
    folder.path().join("outside/left").exists()
}

fn words<'a>(build: &'a str, test: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--build",
        build,
        "--run",
        test,
    ];
    [&words, more].concat()
}

#[test]
fn a_build_in_a_sandbox_writes_nowhere_else_and_has_no_network() {
    if !has_walls() {
        return;
    }
    let folder = values();
    let left = folder.path().join("outside/left");
    // The socket needs no peer.
    let build = format!(
        "cat value other > made && mkdir -p new && mv made new/ && ! touch {} \
         && ! ln {}/value stolen && ! bash -c ': > /dev/udp/127.0.0.1/9'",
        left.display(),
        folder.path().join("repository").display(),
    );
    let test = format!("! touch {} || exit 125; grep -q 1 new/made", left.display());
    let found = result(&mut changes(
        folder.path(),
        &words(&build, &test, &["--sandbox"]),
    ));
    assert_eq!(places(&found), ["other:1", "value:1"]);
    assert!(!is_left(&folder), "a build has written outside");
    // Without a sandbox the same build finds that it can do all this, and fails.
    let (code, kind, message) = failure(&mut changes(
        folder.path(),
        &words(&build, &test, &["--force"]),
    ));
    assert_eq!((code, kind.as_str()), (3, "old-not-passing"), "{message}");
    assert!(is_left(&folder));
}

#[test]
fn a_link_that_a_build_puts_in_place_of_a_directory_leads_nothing_out() {
    if !has_walls() {
        return;
    }
    let version = |value: &str| files(&[("deep/er/value", value), ("deep/er/same.h", "1\n")]);
    let folder = folder_of(version("1\n"), version("2\n"));
    let outside = folder.path().join("outside");
    std::fs::create_dir(outside.join("er")).unwrap();
    for name in ["value", "same.h"] {
        std::fs::write(outside.join("er").join(name), "theirs\n").unwrap();
    }
    let build = format!(
        "cp deep/er/value kept; rm -rf deep; ln -s {} deep",
        outside.display()
    );
    let found = result(&mut changes(
        folder.path(),
        &words(&build, "! grep -q 2 kept", &["--sandbox"]),
    ));
    assert_eq!(places(&found), ["deep/er/value:1"]);
    for name in ["value", "same.h"] {
        let text = std::fs::read_to_string(outside.join("er").join(name)).unwrap();
        assert_eq!(text, "theirs\n", "{name} was overwritten");
    }
}

#[test]
fn a_search_in_a_sandbox_is_verified_in_a_sandbox() {
    if !has_walls() {
        return;
    }
    let folder = values();
    let left = folder.path().join("outside/left");
    let build = format!("touch {}; true", left.display());
    let found = result(&mut changes(
        folder.path(),
        &words(&build, TEST, &["--sandbox"]),
    ));
    assert_eq!(places(&found), ["value:1"]);
    let log = folder.path().join("out/changes/log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("\"sandbox\":\"on\""), "{text}");
    let mut verify = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    let done = output(verify.args(["log", "verify"]).arg(&log));
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
    assert!(!is_left(&folder));
    // The same search without a sandbox is another one.
    let (code, kind, _) = failure(&mut changes(folder.path(), &words(&build, TEST, &[])));
    assert_eq!((code, kind.as_str()), (2, "exists"));
}

/// A program that runs another one without some system calls.
fn odd_system(folder: &Path) -> Option<PathBuf> {
    needs::program("cc")?;
    let (source, program) = (folder.join("odd.c"), folder.join("odd"));
    std::fs::write(&source, include_str!("../exec/programs/odd_system.c")).unwrap();
    let done = output(Command::new("cc").arg("-o").arg(&program).arg(&source));
    assert!(done.status.success());
    Some(program)
}

#[test]
fn where_namespaces_are_refused_it_is_said_and_without_any_wall_nothing_is_built() {
    let folder = values();
    let Some(odd) = odd_system(folder.path()) else {
        return;
    };
    let left = folder.path().join("outside/left");
    let build = format!("touch {}; true", left.display());
    let without = |calls: &[i64]| {
        let mut command = Command::new(&odd);
        for call in calls {
            command.arg(format!("{call}:{}", libc::EPERM));
        }
        let inner = changes(folder.path(), &words(&build, TEST, &["--sandbox"]));
        command
            .arg("--")
            .arg(inner.get_program())
            .args(inner.get_args());
        command.current_dir(folder.path());
        output(&mut command)
    };
    let both = [libc::SYS_unshare, libc::SYS_landlock_create_ruleset];
    let done = without(&both);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(done.status.code(), Some(2), "{message}");
    assert!(
        message.contains("no protection against builds") && message.contains("landlock"),
        "{message}"
    );
    assert!(!is_left(&folder) && !folder.path().join("out/changes/log.jsonl").exists());
    let has_landlock = supported_parts()
        .iter()
        .any(|part| part.what == "landlock" && part.works);
    if has_landlock {
        let done = without(&both[..1]);
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{error}");
        assert!(error.contains("not: mount namespace"), "{error}");
        assert!(!is_left(&folder));
    }
}

/// Stores a tree with one entry that git itself would not make, and returns its id.
fn tree_of(repository: &Path, mode: &str, name: &str, id: &str) -> String {
    let mut tree = format!("{mode} {name}\0").into_bytes();
    let digit = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
    tree.extend((0..id.len()).step_by(2).map(digit));
    let file = repository.join("tree.tmp");
    std::fs::write(&file, tree).unwrap();
    let path = file.to_str().unwrap();
    let words = ["hash-object", "-t", "tree", "-w", "--literally", path];
    git(repository, &words)
}

#[test]
fn a_path_that_leads_out_of_the_version_is_refused_before_anything_is_written() {
    let folder = values();
    let (repository, victim) = (
        folder.path().join("repository"),
        folder.path().join("victim"),
    );
    let blob = git(&repository, &["rev-parse", "B:value"]);
    let commit = |tree: &str| git(&repository, &["commit-tree", "-m", "c", tree]);
    // From `out/changes/work/tree-0` four directories up.
    let mut out = tree_of(&repository, "100644", "victim", &blob);
    for _ in 0..4 {
        out = tree_of(&repository, "40000", "..", &out);
    }
    let absolute = tree_of(&repository, "100644", victim.to_str().unwrap(), &blob);
    let hooks = tree_of(&repository, "100644", "config", &blob);
    let hooks = tree_of(&repository, "40000", ".Git", &hooks);
    let plain = git(&repository, &["rev-parse", "A^{tree}"]);
    for tree in [out, absolute, hooks] {
        for (old, new) in [(&tree, &plain), (&plain, &tree)] {
            std::fs::write(&victim, "theirs\n").unwrap();
            let range = format!("{}..{}", commit(old), commit(new));
            let words = [
                range.as_str(),
                "--repo",
                "repository",
                "--run",
                "true",
                "--force",
            ];
            let (code, kind, message) = failure(&mut changes(folder.path(), &words));
            assert_eq!((code, kind.as_str()), (2, "invalid-path"), "{message}");
            let text = std::fs::read_to_string(&victim).unwrap();
            assert_eq!(text, "theirs\n", "{range} wrote outside");
        }
    }
}

#[test]
fn a_link_of_one_version_that_is_a_directory_in_the_other_leads_nothing_out() {
    for link_first in [true, false] {
        let folder = values();
        let outside = folder.path().join("outside");
        std::fs::write(outside.join("f"), "theirs\n").unwrap();
        let outside: &'static str = outside.to_str().unwrap().to_owned().leak();
        let mut link = files(&[("value", "1\n")]);
        link.insert(b"d".to_vec(), File::Link(outside));
        let directory = files(&[("value", "1\n"), ("d/f", "ours\n")]);
        let (old, new, test) = match link_first {
            true => (link, directory, "[ -L d ]"),
            false => (directory, link, "[ ! -L d ]"),
        };
        let commits = [Commit::new("one", old), Commit::new("two", new)];
        create(&folder.path().join("linked"), &commits);
        let words = ["A..B", "--repo", "linked", "--run", test];
        let found = result(&mut changes(folder.path(), &words));
        assert_eq!(found["claim"], "1-minimal");
        let text = std::fs::read_to_string(folder.path().join("outside/f")).unwrap();
        assert_eq!(text, "theirs\n", "the link is first: {link_first}");
    }
}
