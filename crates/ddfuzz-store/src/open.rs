//! Whether a directory may be opened, found out without changing anything in it.

use std::path::{Path, PathBuf};

use super::{CampaignFile, StoreError, layout, listing};
use ddfuzz_model::files::atomic;

/// The version of the output directory's contract.
pub const VERSION: u64 = 1;

/// What stands in a directory's place.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing, or an empty directory.
    Nothing,
    /// A directory of ours.
    Ours(Box<CampaignFile>),
}

/// Looks at the directory.
///
/// # Errors
/// When it is not ours, or of another version, or its campaign file is damaged.
pub(super) fn examine(root: &Path) -> Result<Found, StoreError> {
    if let Some(file) = CampaignFile::read(root)? {
        return Ok(Found::Ours(Box::new(file)));
    }
    // A lock and temporary files are what a writer leaves that was killed before all else; what
    // git is to ignore a user may have said before.
    let foreign = |name: &str| {
        let ours = [layout::LOCK, layout::IGNORE.0].contains(&name);
        !ours && !atomic::is_temporary(name.as_ref())
    };
    let empty = listing::names(root, foreign)?.is_empty() && !has_undecodable(root);
    if empty && (root.is_dir() || !exists(root)) {
        Ok(Found::Nothing)
    } else {
        Err(StoreError::NotOurs {
            path: root.to_owned(),
        })
    }
}

/// The output directory that `path` lies in, or that lies in it under the usual name.
pub(super) fn near(path: &Path) -> Option<PathBuf> {
    let is_ours = |folder: &Path| folder.join(layout::CAMPAIGN).is_file();
    let below = path.join(layout::USUAL);
    if is_ours(&below) {
        return Some(below);
    }
    let whole = std::fs::canonicalize(path).ok()?;
    let above = whole.ancestors().skip(1).find(|folder| is_ours(folder))?;
    Some(above.to_owned())
}

/// Whether anything, be it a dangling link, has this name.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether the folder has names that are not UTF-8, which listings leave out.
fn has_undecodable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        (entries.flatten()).any(|entry| entry.file_name().into_string().is_err())
    })
}
