//! Other crashes met on the way: kept beside a result file, or in an output directory.

use std::path::{Path, PathBuf};

use super::Failure;
use super::results::{text_of, with_ending};
use crate::files::{FileError, atomic, folder};
use crate::minimize::{SlipKeys, SlipRecord};
use crate::store::{Kind, Store, hash_of};

/// Keeps a crash with another key beside the result, under the name of its keys and content.
pub fn keep_slip(result: &Path, input: &[u8], keys: &SlipKeys) -> Result<PathBuf, FileError> {
    let folder = with_ending(result, ".slips");
    folder::create_all(&folder)?;
    let name = format!(
        "{}-{}-{}",
        keys.major.short(),
        keys.minor.short(),
        hash_of(input)
    );
    let path = folder.join(name);
    atomic::write(&path, input)?;
    Ok(path)
}

/// Whether a file is the input of a slip, by its name.
fn is_of(path: &Path, slip: &SlipRecord) -> bool {
    let begins = format!("{}-{}-", slip.major, slip.minor);
    path.file_name()
        .map(|name| name.to_string_lossy())
        .is_some_and(|name| name.starts_with(&begins) && !name.ends_with(".sh"))
}

/// Of the files kept, those of crashes that no test of the log met, but one that was run ahead.
pub fn unlisted<'a>(kept: &'a [PathBuf], listed: &[SlipRecord]) -> impl Iterator<Item = &'a Path> {
    let is_listed = |path: &Path| listed.iter().any(|slip| is_of(path, slip));
    kept.iter()
        .map(PathBuf::as_path)
        .filter(move |path| !is_listed(path))
}

/// The slip with its file, also where it was kept before a resume.
pub fn slip_on_file(result: &Path, slip: &SlipRecord, kept: &[PathBuf]) -> SlipRecord {
    let named = |path: &PathBuf| is_of(path, slip);
    let folder = with_ending(result, ".slips");
    let before = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    // The last of the same keys: that of a test of the log comes behind one that was run ahead.
    let file = kept.iter().rev().cloned().chain(before).find(named);
    SlipRecord {
        file: file.as_deref().and_then(text_of),
        ..slip.clone()
    }
}

/// Names the files of slips that were filed in an output directory.
pub fn find_in_store(store: &Store, slips: &mut [SlipRecord]) -> Result<(), Failure> {
    for slip in slips {
        let entries = store.reader().entries(Kind::Crash, &slip.major)?;
        let found = entries.iter().find(|entry| entry.id.minor() == slip.minor);
        slip.file = found.and_then(|entry| text_of(&entry.original()));
    }
    Ok(())
}
