//! What makes a study the one that it is, beside its seed: resumed with other lists, inputs or
//! channels, its runs would be others than their numbers say.

use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use ddfuzz_model::files::OsText;
use ddfuzz_store::Reader;

/// What a study was asked for when it began. Which utilities, and how many runs, is up to each call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The file of the list, as it was named; `None` for the one that comes along.
    pub list: Option<OsText>,
    /// The data set whose inputs are run.
    pub preset: Option<String>,
    /// Which part of how many of the list, from 1.
    pub shard: Option<(u32, u32)>,
    /// The greatest length of inputs that are drawn, in bytes.
    pub max_len: u64,
    /// By which channels alone, in alphabetical order; by all that suit where empty.
    pub channels: Vec<String>,
}

impl Asked {
    /// What the study of a directory was asked for so far; `None` where there is none, or none that
    /// says. What cannot be read is no error here: whoever goes on with the study meets it.
    pub fn so_far(reader: &Reader) -> Option<Asked> {
        reader.load_state::<Checkpoint>().ok()??.study?.asked
    }
}
