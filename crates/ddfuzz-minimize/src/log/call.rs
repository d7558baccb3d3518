//! Which part of a call is minimized, as logged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ContentHash;

/// A part of a call: of the command line and environment with which a target runs its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The arguments; each is a unit, but for those that hold `@@`, which stay.
    Args,
    /// One argument; each of its characters is a unit, or each byte where it is not UTF-8 or has
    /// more than 256 different ones.
    Argument,
    /// The environment; each variable is a unit.
    Env,
}

/// The part of the target's call that is minimized instead of its input. What the log calls input
/// and text is then a sequence of bytes that each stand for a unit of the part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// The part.
    pub part: Part,
    /// Of one argument, its index in the target's arguments, else of the first of at most 256
    /// units that are minimized together, its index among the part's units.
    pub at: u64,
    /// Hash of the input that the target is given; `input` is its path, absent for none.
    pub input_blake3: ContentHash,
}
