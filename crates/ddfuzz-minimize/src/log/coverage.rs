//! The record of what a corpus file has to reach while it is trimmed.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

use crate::log::Base64;

/// The coverage being held: FAIL is a run that ends with `exit`, reaches all of `must`, and where
/// there is a `may` nothing but `must`, `may` and `besides`. Numbers are those of features: eight
/// times the number of an instrumented place, plus that of a range of how often it was passed
/// (from 0: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, and more).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageRecord {
    /// The exit status of the original's runs.
    pub exit: i32,
    /// How many instrumented places the target has: its numbers hold for this build alone.
    pub places: u64,
    /// Which build of the target the numbers are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// What has to be reached.
    pub must: Numbers,
    /// What else may be reached; absent where that is anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Numbers>,
    /// What else the original reaches in a fresh process, and may.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub besides: Numbers,
}

impl CoverageRecord {
    /// Whether both ask for the same of the same build; what the original has reached besides may
    /// differ from run to run.
    pub fn same_coverage(&self, other: &CoverageRecord) -> bool {
        *self
            == CoverageRecord {
                besides: self.besides.clone(),
                ..other.clone()
            }
    }
}

/// A set of numbers, ascending; written as base64 of the differences between them, the first from
/// 0, each in groups of 7 bits, the lowest first, with the high bit set where another group
/// follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(pub Vec<u32>);

impl Numbers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The differences, as they are written.
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

    /// The numbers again; `Err` says why these bytes hold none.
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
