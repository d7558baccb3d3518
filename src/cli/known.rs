//! `--known FILE`: groups to mute.

use std::path::Path;

use super::Failure;
use crate::store::{HadGroups, KnownGroups};

/// The list of muted groups, and those of another output directory (`--against OUT`).
pub fn read_both(path: Option<&Path>, against: Option<&Path>) -> Result<KnownGroups, Failure> {
    let known = read(path)?;
    Ok(match against {
        Some(out) => known.and_had(HadGroups::read(out)?),
        None => known,
    })
}

/// Reads the list of muted groups; without a file, none is.
pub fn read(path: Option<&Path>) -> Result<KnownGroups, Failure> {
    let Some(path) = path else {
        return Ok(KnownGroups::default());
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::file(path, "reading the list of known groups", &error))?;
    KnownGroups::parse(&text).map_err(|error| {
        Failure::usage(format!("{}, {error}", path.display()))
            .path(path)
            .hint("a line is 12 to 32 hex digits of a major key, or stable: and those of a stable key")
    })
}
