//! The records of general delta debugging: goal, units, and the passing input.

use ddfuzz_delta::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::log::{ContentHash, OsText};

/// The goal of general delta debugging, minimizing aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// The largest part of the input that still passes.
    Maximize,
    /// The smallest difference between a part that passes and one that fails.
    Isolate,
}

impl Goal {
    /// The mode of the search.
    pub fn mode(self) -> Mode {
        match self {
            Goal::Maximize => Mode::Maximize,
            Goal::Isolate => Mode::Isolate,
        }
    }
}

/// What the deltas are; `keep` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// The bytes of the input.
    Bytes,
    /// The edits of a byte diff from the passing input to the failing one.
    Edits,
    /// The single bytes that those edits remove and insert.
    EditBytes,
}

/// The passing input, where it is not the empty one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassingRecord {
    /// Its hash.
    pub blake3: ContentHash,
    /// Its size, in bytes.
    pub size: u64,
    /// Its path, as an absolute one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<OsText>,
}

/// What is searched for, in the start line of `diff` and `max`; absent in that of `min`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceRecord {
    /// The goal.
    pub goal: Goal,
    /// What the deltas are.
    pub units: Units,
    /// How many there are.
    pub deltas: u64,
    /// The passing input; absent where it is the empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<PassingRecord>,
    /// Whether PASS and FAIL are swapped: FAIL is a run without a crash, PASS the crash of `key`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inverted: bool,
    /// Whether what is part of a passing configuration is PASS without a run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub monotone: bool,
    /// Whether each delta implies all earlier ones: what is no prefix is UNRESOLVED without a run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ordered: bool,
}

impl DifferenceRecord {
    /// Whether both search for the same on the same terms; paths may differ.
    pub fn same_search(&self, other: &DifferenceRecord) -> bool {
        let without_path = |record: &DifferenceRecord| DifferenceRecord {
            passing: record.passing.clone().map(|passing| PassingRecord {
                path: None,
                ..passing
            }),
            ..record.clone()
        };
        without_path(self) == without_path(other)
    }
}

/// The passing end of a finished `diff` or `max`; the failing one is the line's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassingEnd {
    /// Its size, in bytes.
    pub size: u64,
    /// Its hash.
    pub blake3: ContentHash,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
