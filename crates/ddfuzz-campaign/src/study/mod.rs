//! The revisit of the fuzz studies: many utilities, each run on inputs of the classic generator by
//! the channels that suit it, and what became of them.
//!
//! With a number of runs a study is a function of its seed: each run has the call and the input
//! that the seed, the utility's name and its index say, and results are committed in order, the
//! utilities one after the other.

mod engine;
mod fuzzing;
pub mod list;
mod minimize;
mod plan;
mod select;
mod state;
mod utility;
mod worker;

pub use engine::{StudySettings, run};
pub use plan::{Call, StudyInput, StudyPlan};
pub use select::Selection;
pub(crate) use state::StudyState;
pub use state::{StudyRequest, StudySummary};
pub use utility::{Invocation, RunEnvironment, SkipReason, Utility};
