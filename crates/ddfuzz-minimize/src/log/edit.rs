//! How a candidate was made, as logged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Base64;
use ddfuzz_delta::Edit;

/// An edit: one of the fields `cut`, `keep` and `set`, ranges in bytes; those of `keep` in deltas
/// where the start line says that these are no bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditRecord {
    /// Ranges removed from the current best.
    Cut(Vec<[u64; 2]>),
    /// Ranges of the original kept.
    Keep(Vec<[u64; 2]>),
    /// Ranges of the current best replaced.
    Set(Vec<(u64, u64, Base64)>),
}

impl From<&Edit> for EditRecord {
    fn from(edit: &Edit) -> EditRecord {
        let pair = |range: &std::ops::Range<usize>| [range.start as u64, range.end as u64];
        match edit {
            Edit::Cut(cuts) => EditRecord::Cut(cuts.iter().map(pair).collect()),
            Edit::Keep(config) => {
                EditRecord::Keep(config.ranges().map(|kept| pair(&kept)).collect())
            }
            Edit::Set(replacements) => EditRecord::Set(
                replacements
                    .iter()
                    .map(|new| {
                        (
                            new.at.start as u64,
                            new.at.end as u64,
                            Base64(new.with.clone()),
                        )
                    })
                    .collect(),
            ),
        }
    }
}
