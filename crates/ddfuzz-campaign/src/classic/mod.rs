//! The classic campaign: inputs of the fuzz studies' generator, for targets that report no
//! coverage.
//!
//! The campaign is a function of its seed. The input of run `i` follows from the seed, `i` and the
//! user's seeds; workers make the runs in any order, and results are *committed* in the order of
//! `i`. The founder (first input) of a group comes from its lowest run. A group that was found only
//! by a slip (a minimization's test that met another crash) is founded by the slip and minimized
//! last. So groups and logs depend neither on the number of workers nor on when a campaign was
//! killed and resumed.

mod engine;
mod inputs;
mod worker;

pub use engine::run;
pub use inputs::{Plan, RunInput, greatest_length};
