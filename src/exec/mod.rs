//! Runs ONE input on ONE target and says how it ended.
//!
//! A [`Target`] says how to start a program; an [`Executor`] is a started one. There is one file
//! per way of execution, and [`mock`] stands beside them so that everything above is tested
//! without processes.

pub mod bundled;
mod ended;
mod error;
mod executor;
mod limits;
pub mod mock;
mod run;
mod target;
mod way;

pub use ended::Ended;
pub use error::ExecError;
pub use executor::Executor;
pub use limits::Limits;
pub use run::Run;
pub use target::{Program, Target};
pub use way::Way;
