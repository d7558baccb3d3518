//! From a crashing run to keys: capture, unwind, normalise, class, keys.
//!
//! A [`Triager`] runs an input again under ptrace. At the signal that kills the process it reads
//! a [`Snapshot`](snapshot::Snapshot) from outside; everything behind that (normalise, class,
//! keys, severity) is a pure function of the snapshot.
//!
//! Localized here: `framehop`, `gimli` and `object` (unwinding and ELF files), `addr2line`
//! (names of frames), `iced-x86` (single instructions), `blake3` (keys).

pub mod abort_text;
pub mod address;
mod capture;
pub mod class;
mod control;
mod copied;
mod crash;
mod exported;
pub mod fault;
pub mod fold;
mod follow;
mod giving_up;
mod hang;
mod instruction;
pub mod keys;
pub mod maps;
mod memory;
mod module;
mod modules;
pub mod normalise;
mod object;
mod observable;
pub mod quick;
mod reading;
pub mod reads;
mod record;
pub mod registers;
mod reported;
pub mod runtime_modules;
pub mod said;
pub mod severity;
mod site;
pub mod snapshot;
mod symbols;
mod tail_call;
pub mod told;
mod tracee;
mod triager;
mod unwind;

pub use crash::{
    Class, Confidence, Crash, Details, Found, Frame, Keys, Level, PanicRecord, Severity, Subject,
    Times,
};
pub use keys::{Key, NotAKey, stable_key};
pub use module::{Entry, function_start_in};
pub use object::Object;
pub use observable::{Conditions, Unobservable};
pub use site::{Site, short_function, short_source};
pub use symbols::{Place, Symbolizer};
pub use tracee::{Start, Tracee, Untraced};
pub use triager::{Quick, Settings, Triager, Verdict};
