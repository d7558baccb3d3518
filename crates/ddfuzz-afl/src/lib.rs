//! A library that `afl-fuzz` loads, and that trims the entries of its queue by delta debugging.
//!
//! ```text
//! AFL_CUSTOM_MUTATOR_LIBRARY=target/release/libddfuzz_afl.so afl-fuzz -i seeds -o out -- ./program
//! ```
//!
//! AFL++ asks a *custom mutator* for candidates, runs them, and reports for each whether its
//! coverage is that of the entry. This is a test with two outcomes for a [`Search`]: FAIL, the
//! outcome that a search preserves, is "same coverage"; PASS is any other coverage. [`Trimmer`] is
//! the protocol in safe Rust, [`ffi`] has the C functions that AFL++ calls, and [`Settings`] reads
//! the environment. The library mutates nothing: all mutations remain those of AFL++.
//!
//! All state is in a [`Trimmer`]. No panic leaves the library: after a panic a trimmer trims
//! nothing more, and the campaign continues. (This needs `panic = "unwind"`, Cargo's default.)
//!
//! [`Search`]: ddfuzz_delta::Search

mod entry;
pub mod ffi;
mod search;
mod settings;
mod trimmer;

pub use search::{SEARCHES, TrimSearch};
pub use settings::Settings;
pub use settings::{afl_steps, default_steps};
pub use trimmer::Trimmer;
