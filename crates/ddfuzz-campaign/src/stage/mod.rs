//! Parts for any LibAFL fuzzer: a stage that minimizes while it fuzzes ([`DdminStage`]), an
//! objective that knows groups ([`GroupObjective`]), and the [`GroupRegistry`] that both share.
//!
//! The folder uses `libafl` and `libafl_bolts` (in the objective, the stage and their metadata),
//! and `crossbeam` (for the channel to the thread of a minimization).

mod ddmin_stage;
mod group_registry;
mod objective;
mod slices;
mod time_budget;

pub use crate::classifier::{FailedRun, FailedRunSlot};
pub use crate::crash_sink::{RunCounter, SharedStore};
pub use ddmin_stage::{DdminStage, SolutionCursor, StageSettings};
pub use group_registry::{GroupRegistry, new_campaign, new_study};
pub use objective::{GroupMetadata, GroupObjective, Passed};
