//! The study of system utilities: runs many utilities on inputs of the classic generator, each with
//! the channels that suit it, and records how each utility behaved.
//!
//! With a number of runs, a study is a function of its seed: the call and the input of each run
//! follow from the seed, the utility's name and the number of the run, and results are committed
//! (counted and stored) in order, the utilities one after the other.

mod engine;
mod fuzzing;
pub mod list;
mod minimize;
mod plan;
mod state;
mod utility;

pub use engine::{StudySettings, run};
pub use plan::{Call, StudyInput, StudyPlan};
pub(crate) use state::StudyState;
pub use state::{StudyRequest, StudySummary};
pub use utility::{Invocation, RequestedUtilities, RunEnvironment, Selection, SkipReason, Utility};
