//! Corpus cleanup: the smallest corpus that keeps everything it is worth.
//!
//! What a corpus is worth is what its runs reach: [`Features`], each an instrumented place together
//! with a range of how often it was passed. The steps: contents that stand twice go, what cannot
//! be read goes, crashes and runs over a limit go to their groups, what is not reached each time
//! does not count, of the rest the least is kept that reaches all of it, and each kept file is made
//! smaller by delta debugging.
//!
//! The input directory is only read. What each content reaches stands in a journal on disk, so that
//! a killed cleanup goes on where it was, and memory is bounded by what the target can reach.

pub mod behaviour;
mod content;
pub mod cover;
mod engine;
mod error;
mod excluded;
mod explain;
mod features;
pub mod health;
pub mod journal;
pub mod listing;
mod lock;
pub mod measure;
mod paths;
pub mod trim;

use features::FeatureUnion;

pub use content::ContentId;
pub use ddfuzz_store::report::clean::Amount;
pub use engine::{Cleaning, Doing, Merged, Ruler, Trim, TrimBy, Watcher, clean};
pub use error::CleanError;
pub use excluded::Excluded;
pub use explain::{Fate, explain};
pub use features::{Feature, Features};
pub use paths::Place;
