//! Which code of an unmodified program the runs of a campaign have reached (`code.json`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Coverage of a program without instrumentation: which basic blocks and functions of the program,
/// and of the libraries that it brings along (not those of the system), the runs of a campaign have
/// reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeCoverage {
    /// Id of the campaign whose runs have reached the code.
    pub campaign: String,
    /// Coverage of each file of code: the program first, then its libraries.
    pub files: Vec<FileCoverage>,
    /// Functions of the program and its libraries that no run has reached, those with the most
    /// basic blocks first.
    pub never_reached: Vec<UnreachedFunction>,
}

/// Coverage of one file of code (the program or a library): how many of its basic blocks and
/// functions the runs of a campaign have reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCoverage {
    /// Path of the program or library whose coverage is counted.
    pub file: String,
    /// Number of basic blocks of the program or library that the campaign's runs have reached.
    pub blocks: u64,
    /// Number of all known basic blocks of the program or library, reached or not.
    pub blocks_of: u64,
    /// Number of functions of the program or library that the campaign's runs have reached.
    pub functions: u64,
    /// Number of all known functions of the program or library, reached or not.
    pub functions_of: u64,
}

/// A function of the fuzzed program or of one of its libraries that no run of the campaign has
/// reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreachedFunction {
    /// Path of the program or library that contains the function.
    pub file: String,
    /// Address of the function in the file of the program or library that contains it, such as
    /// `0x4510`.
    pub address: String,
    /// Name of the function; null if the program or library has no symbol for it.
    pub name: Option<String>,
    /// Number of basic blocks of the function, which no run has reached.
    pub blocks: u64,
}
