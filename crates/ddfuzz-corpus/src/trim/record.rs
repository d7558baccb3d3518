//! What is kept of a file that was trimmed, so that nothing is run again for it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::held::{features, numbers};
use super::{Left, Trimmed, Trimming, Wanted};
use ddfuzz_minimize::log::{ContentHash, Numbers, TargetRecord};
use ddfuzz_minimize::{Claim, Counts, Proved};
use ddfuzz_model::files::{FileError, atomic};

/// The file's name in its folder.
const NAME: &str = "trimmed.json";

/// What the file says; written last, so that all else is there where it is.
#[derive(Serialize, Deserialize)]
struct Record {
    /// What was asked: [`asked`].
    asked: ContentHash,
    size_before: u64,
    size_after: u64,
    blake3: ContentHash,
    tests: Counts,
    claim: Claim,
    proved: Proved,
    features: Numbers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Left>,
}

/// A hash of all that the result depends on: the file, what is wanted of it, the target, the
/// search and its bounds.
pub(super) fn asked(input: &[u8], wanted: &Wanted, trimming: &Trimming) -> Option<ContentHash> {
    let target = TargetRecord::new(&trimming.target, trimming.way);
    let bounds = (trimming.budget_tests, trimming.budget_time);
    let wanted = (numbers(&wanted.must), wanted.may.as_deref().map(numbers));
    let asked = (
        ContentHash::of(input),
        wanted,
        (target, trimming.target.limits, &trimming.build),
        (&trimming.search, bounds, trimming.log_inputs),
    );
    let text = serde_json::to_vec(&asked).ok()?;
    Some(ContentHash::of(&text))
}

/// What an earlier call has come to that was asked the same; `None` where there was none, or where
/// anything of it is damaged.
pub(super) fn read(folder: &Path, asked: ContentHash) -> Option<Trimmed> {
    let bytes = std::fs::read(folder.join(NAME)).ok()?;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    if record.asked != asked {
        return None;
    }
    let minimized = std::fs::read(folder.join("minimized")).ok()?;
    if ContentHash::of(&minimized) != record.blake3 {
        return None;
    }
    Some(Trimmed {
        size_before: record.size_before,
        size_after: record.size_after,
        blake3: record.blake3,
        tests: record.tests,
        claim: record.claim,
        proved: record.proved,
        features: features(&record.features),
        left: record.left,
        reused: true,
    })
}

/// Writes it.
pub(super) fn write(folder: &Path, asked: ContentHash, trimmed: &Trimmed) -> Result<(), FileError> {
    let record = Record {
        asked,
        size_before: trimmed.size_before,
        size_after: trimmed.size_after,
        blake3: trimmed.blake3,
        tests: trimmed.tests,
        claim: trimmed.claim,
        proved: trimmed.proved,
        features: numbers(&trimmed.features),
        left: trimmed.left,
    };
    let path = folder.join(NAME);
    let mut text =
        serde_json::to_vec(&record).map_err(|error| FileError::at("write", &path)(error.into()))?;
    text.push(b'\n');
    atomic::write(&path, &text)
}
