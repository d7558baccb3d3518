//! Why a corpus could not be measured.

use crate::listing::NotListed;
use ddfuzz_campaign::CampaignError;
use ddfuzz_exec::ExecError;
use ddfuzz_model::files::FileError;

/// Why measuring ended early. What was measured until then stands in the journal. Files that
/// cannot be read are no reason.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A path that was named cannot be listed.
    #[error(transparent)]
    NotListed(#[from] NotListed),
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// What tells the target from others cannot be found out.
    #[error(transparent)]
    Identity(#[from] CampaignError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
