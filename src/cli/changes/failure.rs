//! Converts errors of a search for failure-inducing changes (`ddfuzz changes`) to failures with
//! exit code, name, and a hint what to do next.

use std::io::ErrorKind;

use crate::changes::ChangesError;
use crate::cli::{Exit, Failure};

/// Hint to the user when a full disk has stopped a search for changes.
pub(super) const FREE_SPACE: &str = "free some space, and continue with the same command";

impl From<ChangesError> for Failure {
    fn from(error: ChangesError) -> Failure {
        if let Some((exit, kind, hint)) = of_versions(&error).or_else(|| of_tests(&error)) {
            let message = match printed(&error) {
                Some(output) if !output.is_empty() => format!("{error}\n{output}"),
                _ => error.to_string(),
            };
            return Failure::new(exit, kind, message).hint(hint);
        }
        match error {
            ChangesError::Exec(error) => error.into(),
            ChangesError::Log(error) => error.into(),
            ChangesError::File(error) => error.into(),
            ChangesError::DiskFull { ref folder } => Failure::new(Exit::Usage, "disk-full", &error)
                .hint(FREE_SPACE)
                .path(folder),
            ChangesError::Path {
                ref path,
                ref source,
                ..
            } => {
                let failure = match source.kind() {
                    ErrorKind::StorageFull => {
                        Failure::new(Exit::Usage, "disk-full", &error).hint(FREE_SPACE)
                    }
                    _ => Failure::new(Exit::Usage, "file", &error)
                        .hint("check the permissions, and continue with the same command"),
                };
                failure.path(path)
            }
            other => Failure::new(Exit::Internal, "system", other)
                .hint("check the limits of this machine that the message names"),
        }
    }
}

/// Words of Cargo's error message about a package that lies below the directory of a workspace, but
/// is not named by that workspace.
const IN_WORKSPACE: &str = "believes it's in a workspace when it's not";

/// Returns what a build or a test printed, if `error` is of one of three kinds: the old version
/// does not pass, the new one does not fail, or the test itself is broken. `None` for all other
/// errors.
fn printed(error: &ChangesError) -> Option<&str> {
    match error {
        ChangesError::OldNotPassing { output, .. }
        | ChangesError::NewNotFailing { output, .. }
        | ChangesError::TestBroken { output, .. } => Some(output),
        _ => None,
    }
}

/// Returns the exit code, the error's short name and a hint for an error about git, the repository
/// or the two versions; `None` for other errors.
fn of_versions(error: &ChangesError) -> Option<(Exit, &'static str, &'static str)> {
    Some(match error {
        ChangesError::NoGit => (Exit::Baseline, "no-git", "install git"),
        ChangesError::NoRepository { .. } => (
            Exit::Usage,
            "no-repository",
            "give a directory of the repository with --repo, or two directories instead of A..B",
        ),
        ChangesError::UnknownRevision { shallow: true, .. } => (
            Exit::Usage,
            "unknown-revision",
            "the clone is shallow: `git fetch --unshallow` gets the whole history",
        ),
        ChangesError::UnknownRevision { .. } => (
            Exit::Usage,
            "unknown-revision",
            "`git log --oneline` and `git tag` show the revisions",
        ),
        ChangesError::MissingObject { .. } => (
            Exit::Usage,
            "missing-object",
            "the clone is partial: `git fetch --refetch --no-filter` gets all objects",
        ),
        ChangesError::Git { .. } => (Exit::Usage, "git", "see the message of git"),
        ChangesError::InvalidPath { .. } => (
            Exit::Usage,
            "invalid-path",
            "such a path is no accident: `git fsck` says what else is wrong with the repository",
        ),
        ChangesError::NoChange => (
            Exit::Usage,
            "no-change",
            "give the version that works first and the one that fails second",
        ),
        _ => return None,
    })
}

/// Hint to the user when a build has missed changes, so that its results were wrong.
const STALE_BUILD: &str = "the build does not notice all changes: let it begin with a clean-up, \
                           as in --build 'make clean && make'; or the test seldom has another outcome";
/// Hint to the user for a search without a build command if tests of one version influence later
/// tests.
const STALE_TEST: &str = "the test leaves files behind that change later tests: let it begin by removing them; or it \
     seldom has another outcome";

/// Returns a hint for users by the way in which the build or test of a version has ended, such as
/// by a time limit; it is for builds and tests that print no reason. `what` says in words how the
/// build or test ended. `None` if there is no hint for this way.
fn hint_by_end(what: &str) -> Option<&'static str> {
    match what {
        "the test ended with timeout" => Some(
            "a test that reaches its time limit is unresolved: let it end by itself and exit with 1, as \
             `timeout 5 ./program || exit 1` does, or raise the limit with --timeout",
        ),
        "the program ended with timeout" => Some("raise the limit on its time with --timeout"),
        "the build ended with timeout" => Some("raise the limit with --build-timeout"),
        // By these two a shell says that it has not found a command, or cannot execute it.
        "the test ended with exit 126" | "the test ended with exit 127" => Some(
            "commands run in a copy of the version: give a program or script outside of the repository \
             by its absolute path",
        ),
        _ if what.starts_with("the build ") => Some(
            "both versions have to build: give the command that builds them with --build, and versions \
             that it builds",
        ),
        _ if what.starts_with("there is no program ") => Some(
            "give the program by its path in the version after the build, such as ./build/program",
        ),
        _ => None,
    }
}

/// Returns the exit code, the error's short name and a hint for an error about building or testing
/// the versions; `None` for other errors.
fn of_tests(error: &ChangesError) -> Option<(Exit, &'static str, &'static str)> {
    let is_in_workspace = printed(error).is_some_and(|text| text.contains(IN_WORKSPACE));
    Some(match error {
        ChangesError::OldNotPassing { .. } if is_in_workspace => (
            Exit::Baseline,
            "old-not-passing",
            "Cargo takes the version for a part of the workspace around the output directory: give \
             another output directory with -o, outside of the repository",
        ),
        ChangesError::OldNotPassing { what, .. } if hint_by_end(what).is_some() => {
            (Exit::Baseline, "old-not-passing", hint_by_end(what)?)
        }
        ChangesError::NewNotFailing { what, .. } if hint_by_end(what).is_some() => {
            (Exit::Baseline, "not-failing", hint_by_end(what)?)
        }
        ChangesError::OldNotPassing { .. } => (
            Exit::Baseline,
            "old-not-passing",
            "give an older version that works, or see why this one does not",
        ),
        ChangesError::NewNotFailing { .. } => (
            Exit::Baseline,
            "not-failing",
            "the second version has to fail: check the order of the versions, and the test",
        ),
        ChangesError::Alternating { .. } => (
            Exit::Baseline,
            "alternating",
            "make the test steady: let it run the program several times, and exit with 1 if one run fails",
        ),
        ChangesError::TestBroken { .. } => (
            Exit::Baseline,
            "test-broken",
            "a status from 128 on ends the search: write `|| exit 1` if a signal is the failure, or give \
             the program after `--`",
        ),
        ChangesError::StaleBuild { has_build, .. } => {
            let hint = if *has_build { STALE_BUILD } else { STALE_TEST };
            (Exit::Baseline, "stale-build", hint)
        }
        ChangesError::Interrupted { .. } => (
            Exit::Interrupted,
            "interrupted",
            "continue with the same command",
        ),
        ChangesError::Pattern { .. } => (
            Exit::Usage,
            "usage",
            "escape special characters with a backslash",
        ),
        ChangesError::Unfinished => (
            Exit::Found,
            "unfinished",
            "finish the search with the same command first",
        ),
        _ => return None,
    })
}
