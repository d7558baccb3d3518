//! Corpus cleanup: the smallest corpus that has the same coverage as a given one.
//!
//! In: a [`CleanSettings`]: directories of inputs and a target. Out: the kept files in the output
//! directory, and a result that says why each file is kept. The central function is [`clean`].
//!
//! The steps: duplicates and unreadable files are left out; failing inputs are stored in groups;
//! flaky features do not count; the cheapest subset of inputs that reaches all other [`Features`]
//! is kept; each kept file is minimized by delta debugging; the written files are run again as a
//! check.
//!
//! The input directory is only read. A journal on disk holds the features of each content, so an
//! interrupted cleanup can continue, and memory is bounded by the features of the target.
//!
//! Reading order: `features.rs`, `engine/mod.rs` (the steps), `measure/mod.rs`, `cover/mod.rs`,
//! `trim/mod.rs`.

pub mod behaviour;
mod content;
pub mod cover;
mod engine;
mod error;
mod excluded;
mod explain;
mod features;
pub mod journal;
pub mod listing;
pub mod measure;
mod paths;
pub mod quarantine;
pub mod trim;

use features::FeatureUnion;

pub use content::ContentId;
pub use ddfuzz_store::report::clean::Amount;
pub use engine::{
    CleanPhase, CleanSettings, NewCoverage, OwnFuzzer, Trim, TrimBy, check_any_input, clean,
};
pub use error::CleanError;
pub use excluded::Excluded;
pub use explain::{Explainer, Fate};
pub use features::{Feature, Features};
pub use paths::CleanPaths;
