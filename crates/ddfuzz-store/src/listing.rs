//! Names in a folder, sorted.

use std::fs;
use std::io;
use std::path::Path;

use super::StoreError;
use ddfuzz_model::files::FileError;

/// The names in `folder` that `fits` takes, ascending; none where there is no such folder. Names
/// that are not UTF-8 are not of the layout and left out.
pub(super) fn names(folder: &Path, fits: impl Fn(&str) -> bool) -> Result<Vec<String>, StoreError> {
    let failed = FileError::at("list", folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A file in the folder's place is not of the layout either.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.extend(entry.file_name().into_string().ok().filter(|n| fits(n))),
            Err(error) => return Err(failed(error).into()),
        }
    }
    names.sort();
    Ok(names)
}
