//! Records as JSON files.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;
use ddfuzz_model::files::{FileError, atomic};

/// The record as it is written: indented, fields in their order, with a line end.
pub(super) fn text_of<T: Serialize>(path: &Path, record: &T) -> Result<Vec<u8>, StoreError> {
    let mut text = serde_json::to_vec_pretty(record).map_err(|error| StoreError::Unwritable {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    text.push(b'\n');
    Ok(text)
}

/// Writes the record atomically.
pub(super) fn write<T: Serialize>(path: &Path, record: &T) -> Result<(), StoreError> {
    Ok(atomic::write(path, &text_of(path, record)?)?)
}

/// The bytes of a file; `None` where there is none.
pub(super) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(FileError::at("read", path)(error).into()),
    }
}

/// Reads a record; `None` where there is no such file. A damaged one is an error.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let Some(bytes) = bytes(path)? else {
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(record) => Ok(Some(record)),
        Err(error) => Err(StoreError::Damaged {
            path: path.to_owned(),
            why: error.to_string(),
        }),
    }
}

/// Reads a record that can be done without: a damaged one counts as absent.
pub(super) fn read_intact<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    match read(path) {
        Err(StoreError::Damaged { .. }) => Ok(None),
        answer => answer,
    }
}

/// Whether a count is left out of a record.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
