//! Parts for any LibAFL fuzzer: a stage that minimizes while it fuzzes, an objective that knows
//! groups, and the desk that both share.
//!
//! Localized here: `libafl`, `libafl_bolts` (in the objective, the stage and what they store), and
//! `crossbeam` (the channel to a minimization).

mod account;
mod coroutine;
mod counting;
mod cursor;
mod ddmin_stage;
mod group_metadata;
mod local_desk;
mod naming;
mod objective;
mod open;
mod passed;
mod settings;
mod sight;
mod statistics;
mod tally;
mod waiting;
mod work;
mod works;

pub use account::{Account, CREDIT, LONGEST_SLICE};
pub use counting::{Counting, SharedStore};
pub use cursor::SolutionCursor;
pub use ddmin_stage::DdminStage;
pub use group_metadata::GroupMetadata;
pub use local_desk::LocalDesk;
pub use objective::GroupObjective;
pub use open::{new_campaign, new_study};
pub use passed::Passed;
pub use settings::StageSettings;
pub use sight::{Seen, Sight};
