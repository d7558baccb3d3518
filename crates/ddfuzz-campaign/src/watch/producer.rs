//! Who drops the files.

use std::path::PathBuf;

use crate::error::CampaignError;

/// Whether more files may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producing {
    /// More may come.
    Running,
    /// No more will come: the directories are looked through once more, and the watch ends.
    Ended,
}

/// Who drops the files that are watched for.
pub trait Producer {
    /// Asked several times a second.
    ///
    /// # Errors
    /// Whatever makes it useless to go on watching.
    fn poll(&mut self) -> Result<Producing, CampaignError>;

    /// Files that it has dropped since it was last asked and that stand in none of the
    /// [sources](super::Watching::sources).
    fn dropped(&mut self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Runs that the fuzzer has made, as far as they are known; 0 where they are not, and then
    /// the inputs that were examined are the runs of the result.
    fn runs(&self) -> u64;
}

/// Fuzzers that somebody else has started, and of which nothing is known but their files.
#[derive(Clone, Copy, Debug)]
pub struct Others(
    /// Whether more files are waited for; else what stands there now is all.
    pub Producing,
);

impl Producer for Others {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        Ok(self.0)
    }

    fn runs(&self) -> u64 {
        0
    }
}
