//! The fuzz loop: makes inputs, runs them, files every crash and minimizes each new group.
//!
//! With the classic generator a campaign is a function of its seed: run `i` has the input that
//! (seed, `i`) names, workers may make runs in any order, and results are *committed* in the order
//! of `i`. A group's founder is its lowest run; a group that only a minimization slipped into is
//! founded by that slip, and minimized last. So the groups and their logs do not depend on the
//! number of workers, nor on when a campaign was killed and resumed.
//!
//! Localized here: `crossbeam` (channels between workers and the one who commits).

mod checkpoint;
mod engine;
mod error;
mod finding;
pub mod generator;
mod ledger;
mod minimizing;
mod plan;
mod screen;
mod settings;
mod summary;
mod worker;

pub use engine::run;
pub use error::CampaignError;
pub use minimizing::{Finished, Minimizing};
pub use plan::Plan;
pub use screen::{Progress, Screen, Silent};
pub use settings::{DEFAULT_MAX_LEN, Settings, When};
pub use summary::Summary;
