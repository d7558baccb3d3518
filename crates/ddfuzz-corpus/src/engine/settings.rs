//! What a cleanup is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Ruler;
use crate::health::Quarantining;
use ddfuzz_exec::{Target, Way};

/// What is cleaned, and how.
#[derive(Clone, Debug)]
pub struct Cleaning {
    /// What is run to see what it reaches.
    pub target: Target,
    /// What crashes are filed for: the same, but for a bundled target the variant that counts
    /// nothing.
    pub filed_for: Target,
    /// How.
    pub way: Way,
    /// The corpus: directories and files, which are only read.
    pub corpus: Vec<PathBuf>,
    /// A corpus to which is added what it does not reach.
    pub onto: Option<PathBuf>,
    /// Workers. No result depends on their number.
    pub jobs: usize,
    /// Longer files are left out, in bytes.
    pub max_len: u64,
    /// Whether the limit on the time of a run is learned.
    pub learn_limit: bool,
    /// How often a content that is to be kept is run in all.
    pub repeats: u32,
    /// How what did not end well is filed and minimized; `None` where it is only left out.
    pub groups: Option<Quarantining>,
    /// Whether a subset is chosen, or every content that ends well kept.
    pub subset: bool,
    /// The target's own fuzzer, which is to count no less of what is kept than of the corpus.
    pub ruler: Option<Arc<dyn Ruler>>,
    /// How kept files are trimmed; not at all where `None`.
    pub trim: Option<Trim>,
    /// Whether files keep their names, instead of being named by their content.
    pub keep_names: bool,
}

/// How kept files are trimmed.
#[derive(Clone, Debug)]
pub struct Trim {
    /// What a file may lose.
    pub by: TrimBy,
    /// Name of the search.
    pub search: String,
    /// Most tests for one file, in one round.
    pub tests: u64,
    /// Longest time for one file, in one round.
    pub time: Option<Duration>,
}

/// What a trimmed file has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimBy {
    /// What it is kept for: what no smaller one of the kept files reaches.
    Worth,
    /// All that it reaches, and nothing else.
    Signature,
}
