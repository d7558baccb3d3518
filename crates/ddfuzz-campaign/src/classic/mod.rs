//! The campaign of the fuzz studies: inputs by the classic generator, for targets that report no
//! coverage.
//!
//! It is a function of its seed: run `i` has the input that (seed, `i`, the user's seeds) names,
//! workers may make runs in any order, and results are *committed* in the order of `i`. A group's
//! founder is its lowest run; a group that only a minimization slipped into is founded by that
//! slip, and minimized last. So the groups and their logs do not depend on the number of workers,
//! nor on when a campaign was killed and resumed.

mod engine;
mod inputs;
mod worker;

pub use engine::run;
pub use inputs::{Plan, RunInput, greatest_length};
