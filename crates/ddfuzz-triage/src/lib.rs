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
mod aftermath;
mod capture;
mod capture_way;
pub mod class;
mod copied;
mod crash;
mod details;
mod exported;
mod family;
pub mod fault;
pub mod fold;
mod follow;
mod frame;
mod giving_up;
mod hang;
mod instruction;
mod key;
pub mod keys;
pub mod maps;
mod memory;
mod module;
mod modules;
pub mod normalise;
mod object;
mod observable;
mod panic_place;
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
mod smash;
pub mod snapshot;
mod source;
mod symbols;
mod tail_call;
mod targets;
pub mod told;
mod tracee;
mod triager;
mod trust;
mod unwind;
mod watch;
mod wildcall;

pub use crash::{Class, Confidence, Crash, Found, Keys, Severity, Subject};
pub use details::{Details, PanicRecord, Times};
pub use frame::{Frame, Level};
pub use key::{Key, NotAKey};
pub use keys::stable_key;
pub use module::{Entry, function_start_in};
pub use object::Object;
pub use observable::{Conditions, Unobservable};
pub use site::{Site, short_function, short_source};
pub use symbols::{Place, Symbolizer};
pub use tracee::{Start, Tracee, Untraced};
pub use triager::{Quick, Settings, Triager, Verdict};
