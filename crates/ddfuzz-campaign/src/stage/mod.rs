//! Parts for any LibAFL fuzzer: a stage that minimizes while it fuzzes, an objective that knows
//! groups, and the desk that both share.
//!
//! Localized here: `libafl`, `libafl_bolts` (in the objective, the stage and what they store), and
//! `crossbeam` (the channel to a minimization).

mod account;
mod classifier;
mod ddmin_stage;
mod local_desk;
mod objective;
mod work;

pub use crate::crash_sink::{RunCounter, SharedStore};
pub use account::{Account, CREDIT, LONGEST_SLICE};
pub use classifier::{Seen, Sight};
pub use ddmin_stage::{DdminStage, SolutionCursor, StageSettings};
pub use local_desk::{LocalDesk, new_campaign, new_study};
pub use objective::{GroupMetadata, GroupObjective, Passed};
