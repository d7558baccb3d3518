//! The fuzz loop: makes inputs, runs them, files every crash and minimizes each new group.
//!
//! Two campaigns share what stands here: the ledger, the minimization of entries, the screen. The
//! [classic](Plan) one serves targets that tell no coverage and is a function of its seed.
//!
//! Inputs are made of the classic generator's characters, of [`Seeds`], and of [`Words`], which
//! come from dictionaries and from the program.
//!
//! Localized here: `crossbeam` (channels between workers and the one who commits), and in
//! `mutation.rs` and `compared.rs` LibAFL.

mod bounds;
mod checkpoint;
mod classic;
mod compared;
mod deadline;
mod desk;
pub mod dictionary;
mod error;
mod finding;
pub mod generator;
mod guided;
mod identity;
pub mod keys;
mod ledger;
pub mod miller;
mod minimizing;
mod mutated;
mod mutation;
mod namer;
mod orders;
mod rebuild;
mod recheck;
mod room;
mod run;
mod schedule;
mod screen;
mod seeds;
mod settings;
mod share;
mod shelf;
mod stage;
mod summary;
mod until;
mod verdict;
pub mod watch;
mod words;

pub use classic::{Plan, RunInput, greatest_length};
pub use compared::Compared;
pub use deadline::Deadline;
pub use desk::{Desk, KnownKey, Report};
pub use error::CampaignError;
pub use identity::identity;
pub use keys::KeysName;
pub use minimizing::{Finished, Minimizing, Variants};
pub use mutated::MutatedName;
pub use mutation::Mutation;
pub use orders::{left_to_minimize, minimize_left};
pub use rebuild::{Rebuild, Watch};
pub use recheck::{Examined, Recheck, examined};
pub use room::{Fullness, Gate, Room};
pub use run::run;
pub use screen::{Phase, Progress, Screen, Silent};
pub use seeds::{LeftOut, Seed, SeedError, Seeds};
pub use settings::{DEFAULT_MAX_LEN, Generator, Monitoring, Network, Settings, When};
pub use share::{NoShare, Share};
pub use shelf::Shelf;
pub use stage::{
    Account, CREDIT, Counting, DdminStage, GroupMetadata, GroupObjective, LONGEST_SLICE, LocalDesk,
    Passed, Seen, SharedStore, Sight, SolutionCursor, StageSettings, new_campaign, new_study,
};
pub use summary::Summary;
pub use until::{Course, NoEnd, Until, reached};
pub use verdict::{Judged, fails_on_anything, judged, kind_of, line_of, may_leak};
pub use words::{Source, Word, Words};
