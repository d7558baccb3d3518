//! The fuzz loop: makes inputs, runs them, files every crash and minimizes each new group.
//!
//! Two campaigns share what stands here: the ledger, the minimization of entries, the screen. The
//! [classic](Plan) one serves targets that tell no coverage and is a function of its seed.
//!
//! Localized here: `crossbeam` (channels between workers and the one who commits).

mod checkpoint;
mod classic;
mod desk;
mod error;
mod finding;
pub mod generator;
mod ledger;
mod minimizing;
mod rebuild;
mod recheck;
mod room;
mod screen;
mod settings;
mod share;
mod shelf;
mod summary;
mod until;

pub use classic::{Plan, run};
pub use desk::{Desk, KnownKey, Report};
pub use error::CampaignError;
pub use minimizing::{Finished, Minimizing};
pub use rebuild::{Rebuild, Watch};
pub use recheck::{Examined, Recheck, examined};
pub use room::{Fullness, Gate, Room};
pub use screen::{Progress, Screen, Silent};
pub use settings::{DEFAULT_MAX_LEN, Generator, Settings, When};
pub use share::{NoShare, Share};
pub use shelf::Shelf;
pub use summary::Summary;
pub use until::{Course, NoEnd, Until, reached};
