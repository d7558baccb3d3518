//! Records of goals other than a smaller input: the coverage that a trimmed corpus file must keep,
//! and the difference that `diff` and `max` search for.

use ddfuzz_delta::Mode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

use crate::log::{Base64, ContentHash, OsText};

/// The coverage that a candidate must keep. The candidate counts as FAIL if its run ends with the
/// status `exit` and reaches all features of `must` and, if there is a `may`, no others but those
/// of `may` and `besides`. A feature is an instrumented place (edge) together with a range of hit
/// counts. Its number is eight times the number of the place, plus the index of the range, from 0:
/// 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, and more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageRecord {
    /// Exit status with which the runs of the original file end.
    pub exit: i32,
    /// Number of instrumented places (edges) of the target. The feature numbers are valid for this
    /// build only.
    pub places: u64,
    /// Hash of the build of the target to which the feature numbers belong; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Coverage features that each candidate must reach to count as FAIL.
    pub must: Numbers,
    /// Coverage features that a candidate may reach in addition to those of `must`; absent if it
    /// may reach any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Numbers>,
    /// Coverage features outside of `must` and `may` that runs of the original file reached in
    /// fresh processes, and that a candidate may therefore reach, too.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub besides: Numbers,
}

impl CoverageRecord {
    /// Checks whether both records require the same coverage, and the same exit status, of the same
    /// build of the target. Ignores `besides` (features tolerated in addition), which differs from
    /// run to run.
    pub fn same_coverage(&self, other: &CoverageRecord) -> bool {
        *self
            == CoverageRecord {
                besides: self.besides.clone(),
                ..other.clone()
            }
    }
}

/// A set of coverage feature numbers in ascending order. In JSON it is base64 of the differences
/// between them, the first from 0. Each difference is written in groups of 7 bits, lowest first;
/// the high bit is set if another group follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(pub Vec<u32>);

impl Numbers {
    /// Checks whether the set has no feature numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Encodes the set as the differences between its numbers, each in groups of 7 bits, lowest
    /// first.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut last = 0;
        for number in &self.0 {
            let mut rest = number.wrapping_sub(last);
            last = *number;
            while rest >= 0x80 {
                bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        bytes
    }

    /// Decodes a set from the differences between its numbers, each in groups of 7 bits. `Err`
    /// explains why the bytes are invalid.
    fn from_bytes(bytes: &[u8]) -> Result<Numbers, &'static str> {
        let mut numbers = Vec::new();
        let (mut last, mut rest, mut shift) = (0_u64, 0_u64, 0_u32);
        for byte in bytes {
            if shift > 28 {
                return Err("a number is longer than 32 bits");
            }
            rest |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 != 0 {
                continue;
            }
            if rest == 0 && !numbers.is_empty() {
                return Err("a number occurs twice");
            }
            last += rest;
            numbers.push(u32::try_from(last).map_err(|_| "a number is longer than 32 bits")?);
            (rest, shift) = (0, 0);
        }
        match shift {
            0 => Ok(Numbers(numbers)),
            _ => Err("the last number is cut off"),
        }
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Base64(self.to_bytes()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbers, D::Error> {
        let Base64(bytes) = Base64::deserialize(deserializer)?;
        Numbers::from_bytes(&bytes).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Numbers {
    fn schema_name() -> Cow<'static, str> {
        "Numbers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "description": "Ascending numbers: the differences between them, the first from 0, \
                            each in groups of 7 bits, the lowest first, with the high bit set \
                            where another group follows.",
        })
    }
}

/// Goal of a search by general delta debugging (`diff` and `max`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// To find the largest part of the failing input that still passes (`max`).
    Maximize,
    /// To find a passing and a failing text between the two inputs with the smallest difference
    /// (`diff`).
    Isolate,
}

impl Goal {
    /// Returns the mode (maximize or isolate) in which the search `dd` reaches this goal.
    pub fn mode(self) -> Mode {
        match self {
            Goal::Maximize => Mode::Maximize,
            Goal::Isolate => Mode::Isolate,
        }
    }
}

/// What a delta of a `diff` or `max` search is: the unit that the search adds or removes, and that
/// the ranges of `keep` in the log count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// Each delta is a byte of the failing input.
    Bytes,
    /// Each delta is an edit of a byte diff from the passing input to the failing one.
    Edits,
    /// Each delta is a single byte that is removed or inserted by the edits of a byte diff from the
    /// passing input to the failing one.
    EditBytes,
}

/// The passing input of a `diff` or `max` search, if it is not the empty input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassingRecord {
    /// BLAKE3 hash of the passing input.
    pub blake3: ContentHash,
    /// Size of the passing input, in bytes.
    pub size: u64,
    /// Absolute path of the passing input; absent if it could not be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<OsText>,
}

/// What a `diff` or `max` search looks for, and between which inputs; part of the start line of its
/// log, absent in that of `min`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceRecord {
    /// Goal of the search: the smallest difference, or the largest part that passes.
    pub goal: Goal,
    /// Unit of a delta: bytes of the input, or edits between the two inputs.
    pub units: Units,
    /// Number of deltas (bytes or edits) in which the passing and the failing input differ.
    pub deltas: u64,
    /// The passing input; absent if it is the empty input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<PassingRecord>,
    /// Whether PASS and FAIL are swapped: FAIL is a run without a crash, PASS a run with the crash
    /// that `key` names.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inverted: bool,
    /// If true, each subset of a configuration (set of deltas, which are bytes or edits) that
    /// passed is taken for PASS without a run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub monotone: bool,
    /// If true, each delta requires all earlier ones: a configuration (set of deltas, which are
    /// bytes or edits) that is not a prefix is UNRESOLVED without a run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ordered: bool,
}

impl DifferenceRecord {
    /// Checks whether both records describe the same `diff` or `max` search of the same inputs; the
    /// paths of the inputs may differ.
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

/// What `ddfuzz changes` searches for: two versions of a program, and the failure between them. It
/// is part of the start line of its log, and absent in all others. The `keep` of a test then counts
/// changes, which are numbered in the order in which the search compares versions: first those
/// between the first pair of versions that it compares, then those of the second pair, and so on;
/// within a pair by file and line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesRecord {
    /// True if two sets of changes are searched for, one that passes and one that fails, with the
    /// smallest difference between them; false if the smallest set of changes that fails is
    /// searched for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub difference: bool,
    /// Absolute path of the repository; absent if two directories are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<OsText>,
    /// Absolute paths of the directories with the old and the new version; absent if two revisions
    /// are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directories: Option<(OsText, OsText)>,
    /// Commit of the old version, which passes.
    pub old: String,
    /// Commit of the new version, which fails.
    pub new: String,
    /// Whether the search first looks among the commits between both versions.
    pub history: bool,
    /// Shell command that builds the program; absent if the command of the test builds it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Shell command that tests the program; absent if the crash of a program is searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Regular expression, class or key of the failure that is searched for; absent if any failure
    /// counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Stable key of the crash that is searched for; absent if it is the first crash that the new
    /// version shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// BLAKE3 hash of the input that the program is tested with; absent without an input. Its path
    /// is `input` of the start line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<ContentHash>,
    /// Programs and scripts outside of the versions that the commands of build and test name by
    /// absolute paths, with the BLAKE3 hashes of their contents: they decide the outcomes, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<(OsText, ContentHash)>,
}

/// The fields of a test's log line that only `ddfuzz changes` writes: the version that the changes
/// were applied to, and what the messages of a failed build name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesTest {
    /// Commit to whose version the changes were applied; absent if that is the version that passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Whether the test could not be run, because the changes do not build or cannot be merged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unbuilt: bool,
    /// Identifiers that the messages of the failed build name as missing or wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// Files that the messages of the failed build name, each with a line number, which is 0 for a
    /// missing file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<(OsText, u64)>,
    /// Requirements that builds have shown since the previous line of the log: pairs of numbers of
    /// changes, where the first change requires the second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<[u64; 2]>,
}

/// The passing result of a finished `diff` or `max`; the failing result is in the end line itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassingEnd {
    /// Size of the passing result, in bytes.
    pub size: u64,
    /// BLAKE3 hash of the passing result.
    pub blake3: ContentHash,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for set in [
            vec![],
            vec![0],
            vec![0, 1, 127, 128, 300, 1 << 20, u32::MAX],
            vec![u32::MAX],
        ] {
            let numbers = Numbers(set);
            assert_eq!(Numbers::from_bytes(&numbers.to_bytes()), Ok(numbers));
        }
    }

    #[test]
    fn bytes_that_hold_no_numbers_are_refused() {
        for bytes in [
            &[0x80][..],
            &[1, 0],
            &[0xff, 0xff, 0xff, 0xff, 0x7f],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0xff, 0xff, 0xff, 0xff, 0x0f, 1],
        ] {
            assert!(Numbers::from_bytes(bytes).is_err(), "{bytes:?}");
        }
    }
}
