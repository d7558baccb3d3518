//! Corpus cleanup: the smallest corpus that reaches everything the given one reaches.
//!
//! In: a [`Cleaning`]: directories of inputs and a target. Out: the kept files in the output
//! directory, and a result with the reason for each file. The central function is [`clean`].
//!
//! The steps: duplicate and unreadable files are left out; failing inputs are filed as groups; a
//! feature that is not reached each time does not count; of the rest the cheapest subset is kept
//! that reaches all [`Features`]; each kept file is made smaller by delta debugging; the written
//! files are run again as a check.
//!
//! The input directory is only read. A journal on disk holds what each content reaches: a killed
//! cleanup continues from it, and memory is bounded by what the target can reach.
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
pub mod health;
pub mod journal;
pub mod listing;
pub mod measure;
mod paths;
pub mod trim;

use std::sync::{Mutex, MutexGuard, PoisonError};

use features::FeatureUnion;

pub use content::ContentId;
pub use ddfuzz_store::report::clean::Amount;
pub use engine::{Cleaning, Doing, Merged, Ruler, Trim, TrimBy, Watcher, clean};
pub use error::CleanError;
pub use excluded::Excluded;
pub use explain::{Fate, explain};
pub use features::{Feature, Features};
pub use paths::Place;

/// Locks a mutex, even after a thread that held it has panicked: what it guards is whole all the
/// same.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
