//! Reading and writing JSON files, and times in RFC 3339.

use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, de::DeserializeOwned};

use super::StoreError;
use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_model::files::{FileError, atomic};

/// Returns a record as indented JSON with a final newline. `path` is for the error message.
pub(super) fn text_of<T: Serialize>(path: &Path, record: &T) -> Result<Vec<u8>, StoreError> {
    let mut text = serde_json::to_vec_pretty(record).map_err(|error| unwritable(path, &error))?;
    text.push(b'\n');
    Ok(text)
}

pub(super) fn write<T: Serialize>(path: &Path, record: &T) -> Result<(), StoreError> {
    Ok(atomic::write(path, &text_of(path, record)?)?)
}

/// Reads all bytes of a file; `None` if it does not exist or is not a regular file. Other files are
/// not read because somebody else may have made the directory, and the end of a fifo may never
/// come.
pub(super) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let unread = |error| StoreError::from(FileError::at("read", path)(error));
    match path.metadata() {
        Ok(facts) if !facts.is_file() => return Ok(None),
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unread(error)),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    match regular::open(path) {
        Ok((mut file, _)) => file.read_to_end(&mut bytes).map_err(unread)?,
        Err(Unread::Missing | Unread::NotAFile(_)) => return Ok(None),
        Err(other) => return Err(unread(io::Error::other(other.to_string()))),
    };
    Ok(Some(bytes))
}

/// Returns whether the system's error means that there is no such file or folder.
pub(super) fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Returns a record as one line of JSON. `path` is for the error message.
pub(super) fn line_of<T: Serialize>(path: &Path, record: &T) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(record).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &serde_json::Error) -> StoreError {
    StoreError::Unwritable {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

/// Reads a JSON record; `None` if the file does not exist. A damaged file is an error.
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

/// Reads a JSON record; `None` if the file does not exist or is damaged.
pub(super) fn read_intact<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    match read(path) {
        Err(StoreError::Damaged { .. }) => Ok(None),
        answer => answer,
    }
}

/// Returns whether `count` is 0, for serde's `skip_serializing_if`.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Formats a time as RFC 3339 in UTC with whole seconds, `2026-01-31T23:59:59Z`, so that later
/// times are also greater as text (until 9999). Times before 1970 become 1970.
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Converts a number of days since 1970-01-01 to year, month and day (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01, in eras of 400 years; years begin in March, so that the leap day
    // is the last one.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
