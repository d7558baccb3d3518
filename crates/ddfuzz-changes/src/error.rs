//! Why a search for failure-inducing changes has no result.

use std::io;
use std::path::{Path, PathBuf};

use ddfuzz_delta::Outcome;
use ddfuzz_exec::ExecError;
use ddfuzz_minimize::log::LogError;
use ddfuzz_model::files::FileError;

/// An error of the search for failure-inducing changes: why it has no result.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The program `git`, which the search needs, is not installed.
    #[error("git is not installed, and versions are read by it")]
    NoGit,
    /// The folder from which versions are to be read belongs to no git repository.
    #[error("{} is in no git repository: {message}", folder.display())]
    NoRepository {
        /// The folder that belongs to no git repository.
        folder: PathBuf,
        /// The error message that git printed about the folder that belongs to no repository.
        message: String,
    },
    /// The git repository has no revision of the name that the user gave for a version.
    #[error("there is no revision {revision:?} in {}", folder.display())]
    UnknownRevision {
        /// The unknown revision, as the user gave it.
        revision: String,
        /// The folder of the repository that was searched for the unknown revision.
        folder: PathBuf,
        /// Whether the repository is a shallow clone, whose history is cut off, so that the
        /// revision may be missing for that reason.
        shallow: bool,
    },
    /// An object that the search needs is missing from the git repository, as in a partial clone.
    #[error("the repository does not have the object {id}")]
    MissingObject {
        /// The id of the missing git object.
        id: String,
    },
    /// A git command that the search has run ended with an error.
    #[error("git {what}: {message}")]
    Git {
        /// The arguments of the git command that failed.
        what: String,
        /// What the failed git command printed to stderr.
        message: String,
    },
    /// A version has a file at a path that git would not check out, because it may lead out of the
    /// directory of the version (`..`), into git's own files (`.git`), or through a file. Nothing
    /// of the version is written.
    #[error("a version has a file at the path {path:?}, which no checkout can have")]
    InvalidPath {
        /// The path in the version that git would not check out.
        path: String,
    },
    /// There is nothing to search, because the old and the new version have the same files.
    #[error("both versions have the same files, so no change can make a difference")]
    NoChange,
    /// The test of the old version, which must pass, has another outcome, or its build fails.
    #[error("the old version {shown} does not pass: {what}")]
    OldNotPassing {
        /// The old version, by its commit id or as the user typed it.
        shown: String,
        /// How the build or the test of the old version ended, in words.
        what: String,
        /// The end of what the build or the test of the old version printed.
        output: String,
    },
    /// The test of the new version, which must fail, has another outcome, or its build fails.
    #[error("the new version {shown} does not fail: {what}")]
    NewNotFailing {
        /// The new version, by its commit id or as the user typed it.
        shown: String,
        /// How the build or the test of the new version ended, in words.
        what: String,
        /// The end of what the build or the test of the new version printed.
        output: String,
    },
    /// The test is not deterministic: several tests of one version, such as the old or the new one,
    /// do not all have the same outcome.
    #[error("the test alternates: tests of {shown} gave {outcomes}")]
    Alternating {
        /// The version whose tests have different outcomes: its commit id, what the user typed for
        /// it, or a description.
        shown: String,
        /// The outcomes of the tests of this version, separated by commas.
        outcomes: String,
    },
    /// The test command ended by a signal or with an exit status of 128 or more, which counts as
    /// broken and ends the search, as for `git bisect run`.
    #[error("the test ended with {ended}, which ends the search")]
    TestBroken {
        /// How the test command ended: its exit status or signal.
        ended: String,
        /// The end of what the test command printed.
        output: String,
    },
    /// The outcome of a test depends on what earlier builds or tests have left in the directory.
    /// Either the version with the found changes failed in the search, but when it is built again
    /// on the untouched build of the old version, it does not build, or does not fail in all of
    /// three tests. Or the new version fails only if it is built in an empty directory, not on the
    /// build of the old one.
    #[error("{what}")]
    StaleBuild {
        /// What was tested in two ways, and with which outcomes, in words.
        what: String,
        /// Whether a command builds each version; if false, the tests themselves leave files that
        /// change the outcomes of later tests.
        has_build: bool,
    },
    /// The user stopped the search before it was finished.
    #[error("interrupted after {executed} tests; the state is in the log")]
    Interrupted {
        /// Number of tests that the search had run when it was stopped.
        executed: u64,
    },
    /// The regular expression that the user gave for the output of a failing test is invalid.
    #[error("the pattern of --expect is invalid: {message}")]
    Pattern {
        /// What is wrong with the regular expression that the user gave, in words.
        message: String,
    },
    /// The disk on which versions are built is full.
    #[error("the disk of {} is full", folder.display())]
    DiskFull {
        /// A folder on the full disk.
        folder: PathBuf,
    },
    /// The log of a search was only to be replayed, without running tests, but the log ends before
    /// the search does.
    #[error("the log has no end yet")]
    Unfinished,
    /// A program, such as the build or test command, cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The log of the search cannot be read or written, or does not belong to this search.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file that the search reads or writes cannot be accessed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of a worktree or of the private repository cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Path {
        /// The operation on the file that failed, such as `creating`, for the message.
        what: &'static str,
        /// The path of the file that cannot be read or written.
        path: PathBuf,
        /// The error that the system returned for the operation on the file.
        source: io::Error,
    },
    /// A system call failed, or a program (git, cp) or a thread could not be started.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed, such as `starting a worker thread`, for the message.
        what: String,
        /// The error that the system returned for the failed operation.
        source: io::Error,
    },
}

impl ChangesError {
    /// Returns the error that several tests of one version, which messages call `shown`, had
    /// different outcomes, listed in `outcomes`.
    pub fn alternating(shown: &str, outcomes: &[Outcome]) -> ChangesError {
        let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.name()).collect();
        ChangesError::Alternating {
            shown: shown.to_owned(),
            outcomes: names.join(", "),
        }
    }

    /// Returns a function, for `map_err`, that turns an `io::Error` about the file `path` into a
    /// [`ChangesError::Path`]; `what` is the operation that failed.
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

    /// Returns a function, for `map_err`, that turns an `io::Error` into a
    /// [`ChangesError::System`]; `what` is the operation that failed.
    pub fn system(what: &str) -> impl Fn(io::Error) -> ChangesError + use<> {
        let what = what.to_owned();
        move |source| ChangesError::System {
            what: what.clone(),
            source,
        }
    }
}
