//! What other fuzzers write: which directories are theirs, and what their names say.
//!
//! [`CrashName::parse`] is a pure function of a file's name; [`find`] lists the inputs below a
//! directory, whoever wrote it. Both only read.

mod layout;
mod name;
mod walk;

pub use layout::Layout;
pub use name::{CrashName, Fuzzer, Promise};
pub use walk::{Directory, Input, Inputs, find};
