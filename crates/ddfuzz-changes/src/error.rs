//! Why a search for failure-inducing changes has no result.

use std::io;
use std::path::{Path, PathBuf};

use ddfuzz_exec::ExecError;
use ddfuzz_minimize::log::LogError;
use ddfuzz_model::files::FileError;

/// Why a search for failure-inducing changes has no result.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// git is not installed.
    #[error("git is not installed, and versions are read by it")]
    NoGit,
    /// The folder is in no repository.
    #[error("{} is in no git repository: {message}", folder.display())]
    NoRepository {
        /// The folder that was looked at.
        folder: PathBuf,
        /// The message of git.
        message: String,
    },
    /// The repository has no such revision.
    #[error("there is no revision {revision:?} in {}", folder.display())]
    UnknownRevision {
        /// The revision, as given.
        revision: String,
        /// The folder of the repository.
        folder: PathBuf,
        /// Whether the repository is a shallow clone, whose history is cut off.
        shallow: bool,
    },
    /// An object is missing, as in a partial clone.
    #[error("the repository does not have the object {id}")]
    MissingObject {
        /// The id of the object.
        id: String,
    },
    /// git refused a command.
    #[error("git {what}: {message}")]
    Git {
        /// The words of the command.
        what: String,
        /// What git printed to stderr.
        message: String,
    },
    /// Both versions have the same files.
    #[error("both versions have the same files, so no change can make a difference")]
    NoChange,
    /// The old version does not pass.
    #[error("the old version {shown} does not pass: {what}")]
    OldNotPassing {
        /// The old version, as given.
        shown: String,
        /// How the build or the test ended, in words.
        what: String,
        /// The end of what build and test printed.
        output: String,
    },
    /// The new version does not fail.
    #[error("the new version {shown} does not fail: {what}")]
    NewNotFailing {
        /// The new version, as given.
        shown: String,
        /// How the build or the test ended, in words.
        what: String,
        /// The end of what build and test printed.
        output: String,
    },
    /// The three tests of a version do not have the same outcome.
    #[error("the test alternates: three tests of {shown} gave {outcomes}")]
    Alternating {
        /// The version, as given.
        shown: String,
        /// The names of the three outcomes.
        outcomes: String,
    },
    /// A test ended by a signal, or with a status from 128 on, which ends the search.
    #[error("the test ended with {ended}, which ends the search")]
    TestBroken {
        /// How the test ended.
        ended: String,
        /// The end of what the test printed.
        output: String,
    },
    /// The result failed in the search. Built again on the first build of the old version alone, it
    /// does not build, or does not fail in all of three tests.
    #[error(
        "the result has failed in the search, but not built on the old version alone ({outcome})"
    )]
    StaleBuild {
        /// The outcome of the first of these tests that does not fail, in words.
        outcome: String,
    },
    /// The user has stopped the search.
    #[error("interrupted after {executed} tests; the state is in the log")]
    Interrupted {
        /// Number of tests so far.
        executed: u64,
    },
    /// The pattern of the expected failure is invalid.
    #[error("the pattern of --expect is invalid: {message}")]
    Pattern {
        /// What is wrong with the pattern.
        message: String,
    },
    /// The disk is full.
    #[error("the disk of {} is full", folder.display())]
    DiskFull {
        /// A folder on the disk.
        folder: PathBuf,
    },
    /// A log that is only replayed ends before its search does.
    #[error("the log has no end yet")]
    Unfinished,
    /// A program cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The log cannot be used or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of a worktree cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Path {
        /// The operation that failed, for the message.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A system call failed, or a program (git, cp) or a thread could not be started.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed, for the message.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl ChangesError {
    /// Returns a function that turns an error of the system about the file `path` into a
    /// [`ChangesError::Path`]; `what` is what was tried.
    pub fn at<'a>(
        what: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> ChangesError + 'a {
        move |source| ChangesError::Path {
            what,
            path: path.to_owned(),
            source,
        }
    }

    /// Returns a function that turns an error of the system into a [`ChangesError::System`]; `what`
    /// is what was tried.
    pub fn system(what: &str) -> impl Fn(io::Error) -> ChangesError + use<> {
        let what = what.to_owned();
        move |source| ChangesError::System {
            what: what.clone(),
            source,
        }
    }
}
