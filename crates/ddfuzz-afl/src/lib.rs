//! A library that `afl-fuzz` loads, and that trims the entries of its queue by delta debugging.
//!
//! ```text
//! AFL_CUSTOM_MUTATOR_LIBRARY=target/release/libddfuzz_afl.so afl-fuzz -i seeds -o out -- ./program
//! ```
//!
//! AFL++ asks a *custom mutator* for candidates, runs them, and says of each whether its coverage
//! is that of the entry. That is a test with two outcomes, and so a [`Search`] of ddfuzz can be
//! pulled by it, step by step: FAIL, the outcome that a search keeps, is "same coverage", PASS is
//! any other. [`Trimmer`] is that dialogue, [`border`] the functions that AFL++ knows, [`Settings`]
//! what the environment says. There is no mutator in it: all mutations stay those of AFL++.
//!
//! There is no state outside of a [`Trimmer`]. No panic leaves the library: a trimmer that has met
//! one trims no more, and the campaign goes on. (That needs `panic = "unwind"`, Cargo's default.)
//!
//! [`Search`]: ddfuzz_delta::Search

pub mod border;
mod entry;
mod search;
mod settings;
mod trimmer;

pub use search::{SEARCHES, TrimSearch};
pub use settings::Settings;
pub use settings::{afl_steps, default_steps};
pub use trimmer::Trimmer;
