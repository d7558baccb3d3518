//! Why a cleanup could not be finished.

use std::io;
use std::path::PathBuf;

use super::listing::NotListed;
use super::measure::MeasureError;
use super::trim::TrimError;
use ddfuzz_campaign::CampaignError;
use ddfuzz_exec::ExecError;
use ddfuzz_model::files::FileError;
use ddfuzz_store::StoreError;

/// Why a cleanup failed. The corpus is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The output directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A crash cannot be stored or minimized.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A file cannot be trimmed.
    #[error(transparent)]
    Trim(TrimError),
    /// A path of the command line cannot be listed.
    #[error(transparent)]
    NotListed(NotListed),
    /// The journal cannot be read or written.
    #[error("the journal of what each content reaches: {source}")]
    Journal {
        /// Error of the system call.
        source: io::Error,
    },
    /// No file would be kept.
    #[error("nothing would be left of the corpus: {why}")]
    Empty {
        /// The reason, as a sentence for the user.
        why: String,
    },
    /// A file that was to be kept no longer exists or was changed.
    #[error("{} changed while the corpus was cleaned", path.display())]
    Changed {
        /// Path of the file.
        path: PathBuf,
    },
    /// The folder of kept files contains files that no cleanup has written.
    #[error("{} contains files that were not written by a cleanup", path.display())]
    Occupied {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The user stopped the cleanup.
    #[error("interrupted")]
    Interrupted,
}

impl CleanError {
    /// Makes the error for a failed access to the journal.
    pub fn journal(source: io::Error) -> CleanError {
        CleanError::Journal { source }
    }

    /// Makes the error for a corpus without a readable input.
    pub(super) fn unread() -> CleanError {
        CleanError::Empty {
            why: "there is no input that can be read".to_owned(),
        }
    }
}

impl From<TrimError> for CleanError {
    fn from(error: TrimError) -> CleanError {
        match error {
            error if error.is_interrupted() => CleanError::Interrupted,
            error => CleanError::Trim(error),
        }
    }
}

impl From<MeasureError> for CleanError {
    fn from(error: MeasureError) -> CleanError {
        match error {
            MeasureError::Exec(error) => error.into(),
            MeasureError::Identity(error) => error.into(),
            MeasureError::File(error) => error.into(),
            MeasureError::NotListed(error) => CleanError::NotListed(error),
        }
    }
}

impl From<FileError> for CleanError {
    fn from(error: FileError) -> CleanError {
        StoreError::from(error).into()
    }
}
