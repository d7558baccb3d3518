//! The families of inputs that `subset` and `full` are measured by, and how many tests they may take.
//!
//! Each case is a text and what its program would say of a candidate, computed here, so that tests
//! are counted exactly and nothing else plays a part.

mod binary;
mod bytes;
mod count;
mod deep;
mod json;
mod random;
mod structured;
mod targets;
