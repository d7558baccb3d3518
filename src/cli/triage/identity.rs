//! Which target an outcome holds for.

use crate::cli::Failure;
use crate::exec::{Program, Target, TargetRecord, Way, bundled};
use crate::minimize::log::ContentHash;
use crate::triage::keys;

/// The identity of a target: whatever may change how an input ends or what it is called. The way
/// of execution does neither. Libraries, and files that arguments name, are not looked at.
pub fn identity(target: &Target) -> Result<ContentHash, Failure> {
    let program = match &target.program {
        Program::Bundled(name) => ContentHash::of(bundled::program(name).unwrap_or_default()),
        Program::Path(path) => {
            let bytes = std::fs::read(path);
            ContentHash::of(&bytes.map_err(|error| Failure::file(path, "reading", &error))?)
        }
    };
    let record = TargetRecord::new(target, Way::Command);
    let text = serde_json::to_vec(&(record, target.limits, program, keys::VERSION));
    let text = text.map_err(|error| Failure::new(crate::cli::Exit::Internal, "system", error))?;
    Ok(ContentHash::of(&text))
}
