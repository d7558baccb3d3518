//! Why a campaign could not go on.

use crate::exec::ExecError;
use crate::minimize::MinimizeError;
use crate::store::StoreError;

/// Why a campaign ended early. What it had committed is saved.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The output directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The campaign is resumed with inputs of other lengths.
    #[error("the campaign has inputs of up to {was} bytes and cannot be resumed with {now}")]
    OtherLengths {
        /// Its greatest length, in bytes.
        was: u64,
        /// The one asked for.
        now: u64,
    },
    /// The campaign is resumed with other seeds.
    #[error("the campaign was begun with other seeds and cannot be resumed with these")]
    OtherSeeds,
    /// The campaign is resumed with other words.
    #[error("the campaign was begun with other dictionaries and cannot be resumed with these")]
    OtherDictionary,
    /// A minimization failed for another reason than its target.
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
}
