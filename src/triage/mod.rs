//! From a crashing run to keys: capture, unwind, normalise, class, keys.

mod crash;
mod key;

pub use crash::{Class, Confidence, Crash, Found, Frame, Keys, Severity};
pub use key::{Key, NotAKey};
