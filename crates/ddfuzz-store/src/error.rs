//! Why an output directory could not be used.

use std::path::{Path, PathBuf};

use ddfuzz_model::files::{FileError, LockError};

/// Why an output directory could not be opened, written or merged.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A directory to be read is not there.
    #[error("there is no output directory {}", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with something in it, but not of ours, or something that is no directory.
    #[error("{} is not an output directory of ddfuzz", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// What is to be read is no output directory.
    #[error("there is no output directory in {}: it has no ddfuzz.json", path.display())]
    NothingToRead {
        /// What was named.
        path: PathBuf,
        /// The output directory that it lies in, or that lies in it under the usual name.
        near: Option<PathBuf>,
    },
    /// A directory of another contract version.
    #[error("{} is an output directory of version {found}; this ddfuzz knows version {known}", path.display())]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version that this program knows.
        known: u64,
    },
    /// Another process writes to the directory.
    #[error("{} is in use by {}", path.display(), match holder {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    })]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The writer's process id, where it is known.
        holder: Option<u32>,
    },
    /// A file that only ddfuzz writes holds something else.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A record that cannot be written as JSON.
    #[error("{} cannot be written: {why}", path.display())]
    Unwritable {
        /// The file that was to be written.
        path: PathBuf,
        /// What is wrong with the record.
        why: String,
    },
    /// Merging would change a directory that is merged.
    #[error("{} cannot be merged into {}, which is the same directory or one inside it", input.display(), into.display())]
    MergeIntoInput {
        /// The directory to be merged.
        input: PathBuf,
        /// The directory to merge into.
        into: PathBuf,
    },
    /// A reproducer script was asked for a bundled program that is not installed.
    #[error("the bundled program {name:?} is not installed in {}", path.display())]
    NotInstalled {
        /// The output directory.
        path: PathBuf,
        /// The program's name.
        name: String,
    },
    /// There is no such entry or group.
    #[error("there is no {}", path.display())]
    NoSuch {
        /// The folder it would have.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl StoreError {
    /// The error of a lock on the directory `root`.
    pub(super) fn of_lock(root: &Path, error: LockError) -> StoreError {
        match error {
            LockError::AlreadyLocked { holder, .. } => StoreError::InUse {
                path: root.to_owned(),
                holder,
            },
            LockError::File(error) => StoreError::File(error),
        }
    }

    /// A name for scripts, as in `{"error":{"kind":…}}`.
    pub fn kind(&self) -> &'static str {
        match self {
            StoreError::Missing { .. } => "no-output-directory",
            StoreError::NotOurs { .. } | StoreError::NothingToRead { .. } => {
                "not-an-output-directory"
            }
            StoreError::OtherVersion { .. } => "other-version",
            StoreError::InUse { .. } => "in-use",
            StoreError::Damaged { .. } => "damaged",
            StoreError::Unwritable { .. } => "unwritable",
            StoreError::MergeIntoInput { .. } => "merge-into-input",
            StoreError::NotInstalled { .. } => "not-installed",
            StoreError::NoSuch { .. } => "no-such-group",
            StoreError::File(error) if error.is_full() => "disk-full",
            StoreError::File(error) if error.is_read_only() => "read-only",
            StoreError::File(_) => "file",
        }
    }

    /// The path concerned.
    pub fn path(&self) -> &Path {
        match self {
            StoreError::Missing { path }
            | StoreError::NotOurs { path }
            | StoreError::NothingToRead { path, .. }
            | StoreError::OtherVersion { path, .. }
            | StoreError::InUse { path, .. }
            | StoreError::Damaged { path, .. }
            | StoreError::Unwritable { path, .. }
            | StoreError::NotInstalled { path, .. }
            | StoreError::NoSuch { path }
            | StoreError::MergeIntoInput { into: path, .. } => path,
            StoreError::File(error) => error.path(),
        }
    }

    /// What to do about it, where that can be said.
    pub fn hint(&self) -> Option<String> {
        if let StoreError::NothingToRead {
            near: Some(near), ..
        } = self
        {
            return Some(format!("give {}, which is one", near.display()));
        }
        self.fixed_hint().map(str::to_owned)
    }

    fn fixed_hint(&self) -> Option<&'static str> {
        match self {
            StoreError::Missing { .. } | StoreError::NothingToRead { .. } => Some(
                "give the directory that `ddfuzz run`, `triage -o` or `watch` wrote (ddfuzz-out \
                 unless -o named another)",
            ),
            StoreError::NotOurs { .. } => Some("give an empty or new directory with `-o DIR`"),
            StoreError::OtherVersion { .. } => Some(
                "use the version of ddfuzz that wrote it, or give another directory with `-o DIR`",
            ),
            StoreError::InUse { .. } => {
                Some("wait until it has ended, or give another directory with `-o DIR`")
            }
            StoreError::Damaged { .. } => {
                Some("restore the file, or give another directory with `-o DIR`")
            }
            StoreError::MergeIntoInput { .. } => Some("give another directory with `-o DIR`"),
            StoreError::NoSuch { .. } => Some("`ddfuzz show OUT` lists the groups"),
            StoreError::File(error) if error.is_full() => {
                Some("free some space, and continue with --resume")
            }
            StoreError::File(error) if error.is_read_only() => {
                Some("give a writable directory with `-o DIR`")
            }
            StoreError::Unwritable { .. }
            | StoreError::NotInstalled { .. }
            | StoreError::File(_) => None,
        }
    }
}
