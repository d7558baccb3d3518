//! From a crashing run to keys: capture, unwind, normalise, class, keys.

pub mod address;
mod capture;
mod crash;
mod exported;
pub mod fault;
mod instruction;
mod key;
pub mod maps;
pub mod memory;
mod module;
mod modules;
mod reading;
pub mod registers;
pub mod runtime_modules;
pub mod snapshot;
pub mod tracee;
mod smash;
mod trust;
mod unwind;
mod watch;
mod wildcall;

pub use crash::{Class, Confidence, Crash, Found, Frame, Keys, Severity};
pub use key::{Key, NotAKey};
pub use module::Entry;
