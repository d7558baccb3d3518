//! Which target an outcome holds for.

use super::error::CampaignError;
use ddfuzz_exec::{Program, Target, TargetRecord, Way, bundled};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::FileError;
use ddfuzz_store::StoreError;
use ddfuzz_triage::keys;

/// The identity of a target: whatever may change how an input ends or what it is called. The way
/// of execution does neither. Libraries, and files that arguments name, are not looked at.
///
/// # Errors
/// When the program cannot be read.
pub fn identity(target: &Target) -> Result<ContentHash, CampaignError> {
    let program = match &target.program {
        Program::Bundled(name) => ContentHash::of(bundled::program(name).unwrap_or_default()),
        Program::Path(path) => {
            let hash = ContentHash::of_file(path).map_err(FileError::at("read", path));
            hash.map_err(StoreError::from)?
        }
    };
    let record = TargetRecord::new(target, Way::Command);
    let text = serde_json::to_vec(&(record, target.limits, program, keys::VERSION));
    let text = text.map_err(|error| CampaignError::System {
        what: "the target cannot be recorded".to_owned(),
        source: error.into(),
    })?;
    Ok(ContentHash::of(&text))
}
