//! Errors of opening, reading, writing and merging output directories.

use std::path::{Path, PathBuf};

use ddfuzz_model::files::{FileError, LockError};

/// Error of opening, reading, writing or merging an output directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The output directory to read does not exist; holds its path.
    #[error("there is no output directory {}", .0.display())]
    Missing(PathBuf),
    /// The path (held here) is not an output directory of ddfuzz: it is a file, or a directory with
    /// other content.
    #[error("{} is not an output directory of ddfuzz", .0.display())]
    NotOurs(PathBuf),
    /// The path to read exists, but is not an output directory, because it has no `ddfuzz.json`.
    #[error("there is no output directory in {}: it has no ddfuzz.json", path.display())]
    NothingToRead {
        /// The path that the user gave as the output directory.
        path: PathBuf,
        /// An output directory near the path (a parent, or `ddfuzz-out` inside), for the hint;
        /// `None` if there is none.
        near: Option<PathBuf>,
    },
    /// The output directory has a format version that this ddfuzz does not know.
    #[error("{} is an output directory of version {found}; this ddfuzz knows version {known}", path.display())]
    OtherVersion {
        /// Path of the output directory that has the unknown format version.
        path: PathBuf,
        /// Format version of the output directory, which this ddfuzz does not know.
        found: u64,
        /// The only format version of output directories that this ddfuzz supports.
        known: u64,
    },
    /// Another process holds the lock of the output directory.
    #[error("{} is in use by {}", path.display(), match holder {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    })]
    InUse {
        /// Path of the output directory whose lock another process holds.
        path: PathBuf,
        /// Id of the process that holds the lock of the output directory; `None` if unknown.
        holder: Option<u32>,
    },
    /// A file of the output directory has invalid content.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// Path of the file, in the output directory, that has invalid content.
        path: PathBuf,
        /// Reason why the content of the file is invalid.
        why: String,
    },
    /// A record that was to be written to the output directory cannot be serialized as JSON.
    #[error("{} cannot be written: {why}", path.display())]
    Unwritable {
        /// Path of the file to which the record was to be written.
        path: PathBuf,
        /// Reason why the record could not be serialized as JSON.
        why: String,
    },
    /// The destination of a merge is one of its sources, or lies inside one.
    #[error("{} cannot be merged into {}, which is the same directory or one inside it", input.display(), into.display())]
    MergeIntoInput {
        /// The source directory of the merge that is the destination, or contains it.
        input: PathBuf,
        /// Path of the destination directory of the refused merge.
        into: PathBuf,
    },
    /// A `reproduce.sh` needs a bundled program that is not installed in the output directory.
    #[error("the bundled program {name:?} is not installed in {}", path.display())]
    NotInstalled {
        /// Path of the output directory in which the bundled program is missing.
        path: PathBuf,
        /// Name of the bundled program that is not installed.
        name: String,
    },
    /// An entry, group or file does not exist in the output directory; holds the path of what is
    /// missing.
    #[error("there is no {}", .0.display())]
    NoSuch(PathBuf),
    /// An operation on a file or folder failed, such as a write to a full disk.
    #[error(transparent)]
    File(#[from] FileError),
}

impl StoreError {
    /// Converts an error of locking the output directory `root` into the store's error: `InUse` if
    /// another process holds the lock, else `File`.
    pub(super) fn of_lock(root: &Path, error: LockError) -> StoreError {
        match error {
            LockError::AlreadyLocked { holder, .. } => StoreError::InUse {
                path: root.to_owned(),
                holder,
            },
            LockError::File(error) => StoreError::File(error),
        }
    }

    /// Returns the error's name for scripts (`disk-full`, `in-use`, …), the `kind` of
    /// `{"error":{"kind":…}}`.
    pub fn kind(&self) -> &'static str {
        match self {
            StoreError::Missing(_) => "no-output-directory",
            StoreError::NotOurs(_) | StoreError::NothingToRead { .. } => "not-an-output-directory",
            StoreError::OtherVersion { .. } => "other-version",
            StoreError::InUse { .. } => "in-use",
            StoreError::Damaged { .. } => "damaged",
            StoreError::Unwritable { .. } => "unwritable",
            StoreError::MergeIntoInput { .. } => "merge-into-input",
            StoreError::NotInstalled { .. } => "not-installed",
            StoreError::NoSuch(_) => "no-such-group",
            StoreError::File(error) if error.is_full() => "disk-full",
            StoreError::File(error) if error.is_read_only() => "read-only",
            StoreError::File(_) => "file",
        }
    }

    /// Returns the file or directory that the error is about; for a refused merge, its destination.
    pub fn path(&self) -> &Path {
        match self {
            StoreError::Missing(path)
            | StoreError::NotOurs(path)
            | StoreError::NothingToRead { path, .. }
            | StoreError::OtherVersion { path, .. }
            | StoreError::InUse { path, .. }
            | StoreError::Damaged { path, .. }
            | StoreError::Unwritable { path, .. }
            | StoreError::NotInstalled { path, .. }
            | StoreError::NoSuch(path)
            | StoreError::MergeIntoInput { into: path, .. } => path,
            StoreError::File(error) => error.path(),
        }
    }

    /// Returns advice how to solve the problem; `None` where there is no advice.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            StoreError::NothingToRead {
                near: Some(near), ..
            } => return Some(format!("give {}, which is one", near.display())),
            StoreError::Missing(_) | StoreError::NothingToRead { .. } => {
                "give the directory that `ddfuzz run`, `triage -o` or `watch` wrote (ddfuzz-out \
                 unless -o named another)"
            }
            StoreError::NotOurs(_) => "give an empty or new directory with `-o DIR`",
            StoreError::OtherVersion { .. } => {
                "use the version of ddfuzz that wrote it, or give another directory with `-o DIR`"
            }
            StoreError::InUse { .. } => {
                "wait until it has ended, or give another directory with `-o DIR`"
            }
            StoreError::Damaged { .. } => {
                "restore the file, or give another directory with `-o DIR`"
            }
            StoreError::MergeIntoInput { .. } => "give another directory with `-o DIR`",
            StoreError::NoSuch(_) => "`ddfuzz show OUT` lists the groups",
            StoreError::File(error) if error.is_full() => FileError::FREE_SPACE,
            StoreError::File(error) if error.is_read_only() => {
                "give a writable directory with `-o DIR`"
            }
            StoreError::Unwritable { .. }
            | StoreError::NotInstalled { .. }
            | StoreError::File(_) => return None,
        };
        Some(text.to_owned())
    }
}
