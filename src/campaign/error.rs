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
    /// A minimization failed for another reason than its target.
    #[error(transparent)]
    Minimize(#[from] MinimizeError),
}
