//! The inputs below some paths, one by one: no list of all of them stands in memory.
//!
//! Only directories are opened here. The corpora of AFL++, cargo-fuzz, honggfuzz and ddfuzz are
//! known by their [`Layout`]; of anything else each file is an input.

mod layout;
mod walk;

pub use layout::Layout;
pub use walk::{Found, Listing, NotListed, Report};
