//! Why a file stays as it is.

use serde::{Deserialize, Serialize};

/// Why a file was not trimmed and stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Left {
    /// Its run does not end by itself, or by a status that is, or may be, a crash.
    EndsBadly,
    /// It does not end in the same way each time, or does not reach what is wanted in each run in
    /// a fresh process.
    Unsteady,
    /// The result did not reach all that is wanted each time.
    ResultUnsteady,
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Left::EndsBadly => "it does not end normally",
            Left::Unsteady => "it does not reach the features that it is kept for each time",
            Left::ResultUnsteady => "after trimming it does not reach them each time",
        })
    }
}
