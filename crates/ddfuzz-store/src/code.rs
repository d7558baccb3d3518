//! Which code of an unmodified program the runs of a campaign have reached (`code.json`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which code of an unmodified program, and of the libraries that it brings along, the runs of a
/// campaign have reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeCoverage {
    /// Id of the campaign.
    pub campaign: String,
    /// The files of the code, the program first.
    pub files: Vec<FileCoverage>,
    /// Functions that no run has reached, those with the most blocks first.
    pub never_reached: Vec<UnreachedFunction>,
}

/// How much code of one file was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCoverage {
    /// Path of the program or library.
    pub file: String,
    /// Number of basic blocks that were reached.
    pub blocks: u64,
    /// Number of all known basic blocks.
    pub blocks_of: u64,
    /// Number of functions that were reached.
    pub functions: u64,
    /// Number of all known functions.
    pub functions_of: u64,
}

/// A function that no run has reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreachedFunction {
    /// Path of the program or library that contains the function.
    pub file: String,
    /// Address of the function in that file, such as `0x4510`.
    pub address: String,
    /// Name of the function; null where the file has no symbol for it.
    pub name: Option<String>,
    /// Number of basic blocks of the function.
    pub blocks: u64,
}
