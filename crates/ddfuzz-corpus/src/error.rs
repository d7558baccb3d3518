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

/// Why a cleanup could not be finished. The corpus stands as it was.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The output directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Crashes cannot be filed.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A file cannot be trimmed.
    #[error(transparent)]
    Trim(TrimError),
    /// A path that was named cannot be listed.
    #[error(transparent)]
    NotListed(NotListed),
    /// The journal, or memory for it, cannot be used.
    #[error("the journal of what each content reaches: {source}")]
    Journal {
        /// What went wrong.
        source: io::Error,
    },
    /// No file would be kept.
    #[error("nothing would be left of the corpus: {why}")]
    Empty {
        /// Why not.
        why: String,
    },
    /// A file that was to be kept is gone, or was changed.
    #[error("{} changed while the corpus was cleaned", path.display())]
    Changed {
        /// Its file.
        path: PathBuf,
    },
    /// The folder of kept files holds what no cleanup has written.
    #[error("{} contains files that were not written by a cleanup", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

impl CleanError {
    /// An error of the journal.
    pub fn journal(source: io::Error) -> CleanError {
        CleanError::Journal { source }
    }

    /// No input could be read.
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
