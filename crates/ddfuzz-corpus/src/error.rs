//! Why a cleanup could not be finished.

use std::io;
use std::path::PathBuf;

use super::listing::NotListed;
use super::measure::{DIFFERS, MeasureError};
use super::trim::TrimError;
use ddfuzz_campaign::CampaignError;
use ddfuzz_exec::{ExecError, NotCovered};
use ddfuzz_model::files::FileError;
use ddfuzz_store::StoreError;

/// Why the cleanup of a corpus failed; the corpus is unchanged then.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The output directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A crashing input of the corpus cannot be stored or minimized.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A kept file cannot be trimmed (made smaller by delta debugging with the same coverage).
    #[error(transparent)]
    Trim(TrimError),
    /// A path of the corpus, as given on the command line, cannot be listed.
    #[error(transparent)]
    NotListed(NotListed),
    /// The journal, a file with the features that each input reached, cannot be read or written.
    #[error("the journal of what each content reaches: {source}")]
    Journal {
        /// Error of the system call that failed to read or write the journal.
        source: io::Error,
    },
    /// The cleanup would keep no file of the corpus.
    #[error("nothing would be left of the corpus: {why}")]
    Empty {
        /// Why no file would be kept, as a sentence for the user.
        why: String,
    },
    /// A file of the corpus that was to be kept was removed or changed during the cleanup.
    #[error("{} changed while the corpus was cleaned", path.display())]
    Changed {
        /// Path of the file that was removed or changed.
        path: PathBuf,
    },
    /// The output folder for the kept files contains files that no cleanup has written; they are
    /// not replaced.
    #[error("{} contains files that were not written by a cleanup", path.display())]
    Occupied {
        /// Path of the output folder that contains other files.
        path: PathBuf,
    },
    /// Some run of an uninstrumented program did not show which basic blocks it reached, so that
    /// the cleanup must be repeated without coverage.
    #[error("{0}")]
    LacksCoverage(NotCovered),
    /// The user stopped the cleanup; another call continues it.
    #[error("interrupted")]
    Interrupted,
}

impl CleanError {
    /// Makes the error for a failed read or write of the cleanup's journal.
    pub fn journal(source: io::Error) -> CleanError {
        CleanError::Journal { source }
    }

    /// Makes the error for a corpus without a readable input. `oversized`: how many of its files
    /// are too long, that is longer than `max_len` bytes.
    pub(super) fn unread(oversized: u64, max_len: u64) -> CleanError {
        CleanError::Empty {
            why: match oversized {
                0 => "there is no input that can be read".to_owned(),
                count => format!(
                    "no input of at most {max_len} bytes (--max-len) can be read, and {} longer",
                    match count {
                        1 => "1 is".to_owned(),
                        _ => format!("{count} are"),
                    }
                ),
            },
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
            MeasureError::LacksCoverage => CleanError::LacksCoverage(DIFFERS),
        }
    }
}

impl From<FileError> for CleanError {
    fn from(error: FileError) -> CleanError {
        StoreError::from(error).into()
    }
}
