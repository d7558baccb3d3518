//! The user's repository is as it was, however the search ends.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::mounts::with_tmpfs;
use crate::repositories::{create, git, settings};
use crate::{changes, output, result};

/// Everything below a folder, by path: mode, time of the last change, and content.
type State = BTreeMap<String, (u32, i64, i64, Vec<u8>)>;

fn state(folder: &Path) -> State {
    let mut found = State::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            let content = match facts.is_file() {
                true => std::fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            if facts.is_dir() {
                folders.push(path.clone());
            }
            let state = (facts.mode(), facts.mtime(), facts.mtime_nsec(), content);
            found.insert(path.display().to_string(), state);
        }
    }
    found
}

/// Compares the state of a folder with an earlier one, and names the paths that differ.
#[track_caller]
fn assert_untouched(folder: &Path, before: &State, when: &str) {
    let now = state(folder);
    let paths = now.keys().chain(before.keys());
    let differing: Vec<&String> = paths
        .filter(|path| now.get(*path) != before.get(*path))
        .collect();
    assert!(differing.is_empty(), "{when}: {differing:?}");
}

/// A repository with a hook, a stash, an untracked file, a second worktree and a dirty file.
fn repository(folder: &Path) -> (std::path::PathBuf, String) {
    let case = settings(11, 9, 33, 1);
    let repository = create(&folder.join("repository"), &case.commits);
    std::fs::write(repository.join("part0/f0.conf"), "stashed\n").unwrap();
    git(&repository, &["stash", "--quiet"]);
    git(
        &repository,
        &["worktree", "add", "--quiet", "--detach", "../second", "A"],
    );
    std::fs::write(repository.join("part0/f0.conf"), "dirty\n").unwrap();
    std::fs::write(repository.join("untracked"), "u\n").unwrap();
    for hook in ["post-checkout", "reference-transaction"] {
        let path = repository.join(".git/hooks").join(hook);
        let here = repository.join("hooked");
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", here.display())).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    (repository, case.test)
}

#[test]
fn success_and_failure_leave_the_repository_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, test) = repository(folder.path());
    let before = state(&repository);
    let words = ["A..B", "--repo", "repository", "--run", &test];
    result(&mut changes(folder.path(), &words));
    assert!(!folder.path().join("out/changes/work").exists());
    assert_untouched(&repository, &before, "after success");
    let words = ["A..B", "--repo", "repository", "--run", "false", "--force"];
    assert_eq!(
        output(&mut changes(folder.path(), &words)).status.code(),
        Some(3)
    );
    assert_untouched(&repository, &before, "after failure");
}

/// Starts a search whose tests wait as soon as the third begins, sends a signal, and returns what the
/// repository was before.
fn signalled(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (repository, test) = repository(at);
    let count = at.join("count");
    let waiting = format!(
        "echo >>{0}; if [ $(wc -l <{0}) -eq 9 ]; then touch {0}.there; sleep 1000; fi; git status >/dev/null 2>&1; {test}",
        count.display()
    );
    let words = ["A..B", "--repo", "repository", "--run", &waiting];
    let before = state(&repository);
    let mut child = changes(at, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let there = at.join("count.there");
    while !there.exists() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before the signal"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let status = child.wait().unwrap();
    if signal == Signal::SIGINT {
        assert_eq!(status.code(), Some(130));
    }
    assert_untouched(&repository, &before, signal.as_str());
    // The same command goes on, and removes what was left.
    let found = result(&mut changes(at, &words));
    assert_eq!(found["claim"], "1-minimal");
    assert!(!at.join("out/changes/work").exists());
    assert_untouched(&repository, &before, "after the end");
}

#[test]
fn an_interrupt_leaves_the_repository_as_it_was_and_the_search_goes_on() {
    signalled(Signal::SIGINT);
}

#[test]
fn a_kill_leaves_the_repository_as_it_was_and_the_search_goes_on() {
    signalled(Signal::SIGKILL);
}

#[test]
fn an_output_directory_inside_the_repository_ignores_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, test) = repository(folder.path());
    let status = git(&repository, &["status", "--short"]);
    result(&mut changes(&repository, &["A..B", "--run", &test]));
    assert_eq!(git(&repository, &["status", "--short"]), status);
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_full_disk_leaves_the_repository_as_it_was_and_the_search_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (repository, test) = repository(at);
    let before = state(&repository);
    // What a build says when the disk is full, as the disk of a test cannot be filled.
    let full = at.join("full");
    std::fs::write(&full, "").unwrap();
    let build = format!(
        "echo >>{0}; if [ -e {1} ] && [ $(wc -l <{0}) -gt 3 ]; then echo 'write error: No space left on device'; exit 1; fi",
        at.join("count").display(),
        full.display()
    );
    let words = crate::by_build(&build, &test);
    let (code, kind, message) = crate::failure(&mut changes(at, &words));
    assert_eq!((code, kind.as_str()), (2, "disk-full"), "{message}");
    assert_untouched(&repository, &before, "with a full disk");
    std::fs::remove_file(full).unwrap();
    assert_eq!(result(&mut changes(at, &words))["claim"], "1-minimal");
}

#[test]
fn a_disk_that_is_full_in_earnest_stops_the_search_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (repository, test) = repository(at);
    let before = state(&repository);
    std::fs::create_dir(at.join("out")).unwrap();
    with_tmpfs(&at.join("out"), "size=3m", |_| {
        // The build fills the disk of the output directory after a few tests, while the file is there.
        let fill = at.join("fill");
        std::fs::write(&fill, "").unwrap();
        let build = format!(
            "echo >>{0}; if [ -e {1} ] && [ $(wc -l <{0}) -gt 3 ]; then cat /dev/zero >filled; fi",
            at.join("count").display(),
            fill.display()
        );
        let words = crate::by_build(&build, &test);
        let (code, kind, message) = crate::failure(&mut changes(at, &words));
        assert_eq!((code, kind.as_str()), (2, "disk-full"), "{message}");
        assert_untouched(&repository, &before, "with a full disk");
        assert!(!at.join("out/changes/work").exists());
        std::fs::remove_file(fill).unwrap();
        let found = result(&mut changes(at, &words));
        assert_eq!(found["claim"], "1-minimal");
        // A disk without any room is named before anything is built.
        let rest = at.join("out/rest");
        let _ = std::fs::write(&rest, vec![1; 4 << 20]);
        let full = crate::failure(changes(at, &words).arg("--force"));
        assert_eq!((full.0, full.1.as_str()), (2, "disk-full"), "{}", full.2);
        std::fs::remove_file(rest).unwrap();
        assert_eq!(result(&mut changes(at, &words))["claim"], "1-minimal");
        assert_untouched(&repository, &before, "after the end");
    });
}
