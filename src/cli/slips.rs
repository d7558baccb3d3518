//! Where slips are kept: beside a result file, or in an output directory.

use std::path::{Path, PathBuf};

use super::Failure;
use super::results::{text_of, with_ending};
use crate::files::{FileError, atomic};
use crate::minimize::{SlipKeys, SlipRecord};
use crate::store::{Kind, Store, hash_of};

/// Keeps a crash with another key beside the result, under the name of its keys and content.
pub fn keep_slip(result: &Path, input: &[u8], keys: &SlipKeys) -> Result<PathBuf, FileError> {
    let folder = with_ending(result, ".slips");
    crate::files::folder::create_all(&folder)?;
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

/// The slip with its file, also where it was kept before a resume.
pub fn slip_on_file(result: &Path, slip: &SlipRecord, kept: &[PathBuf]) -> SlipRecord {
    let begins = format!("{}-{}-", slip.major, slip.minor);
    let named = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&begins))
    };
    let folder = with_ending(result, ".slips");
    let before = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    let file = kept.iter().cloned().chain(before).find(named);
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
