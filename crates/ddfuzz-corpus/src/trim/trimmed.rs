//! What trimming a file came to.

use super::Left;
use crate::Features;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_minimize::{Claim, Counts, Proved};

/// What trimming one file came to. Its content stands in `minimized` of its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Size of the file, in bytes.
    pub size_before: u64,
    /// Size of the result, in bytes: never more.
    pub size_after: u64,
    /// Hash of the result.
    pub blake3: ContentHash,
    /// Tests by kind; all 0 where it was left as it is before the first.
    pub tests: Counts,
    /// What is proven of the result; [`Claim::BestSoFar`] where it was left as it is.
    pub claim: Claim,
    /// How much is proven.
    pub proved: Proved,
    /// What the result reaches in each run, by runs in fresh processes.
    pub features: Features,
    /// Why it was left as it is, if it was.
    pub left: Option<Left>,
    /// Whether all this was known from an earlier call, and nothing was run.
    pub reused: bool,
}
