//! Classifies crashes: from a crashing run to the keys by which crashes are grouped.
//!
//! ```no_run
//! use std::path::PathBuf;
//!
//! use ddfuzz_exec::{Program, Target, Way};
//! use ddfuzz_triage::{Triager, Verdict};
//!
//! let target = Target::new(Program::Path(PathBuf::from("./parser")));
//! let mut triager = Triager::of_target(&target, Way::Command)?;
//! for file in ["crash-1", "crash-2"] {
//!     match triager.examine(&std::fs::read(file)?)? {
//!         Verdict::Crash(crash) => println!("{file}: {} {}", crash.class, crash.keys.major),
//!         Verdict::Flaky { tries, .. } => println!("{file}: no crash in {tries} runs"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - In: a target, or anything whose runs can be traced ([`Start`]), and an input.
//! - Out: a [`Crash`] record (class, keys, frames, registers, severity), or only the keys.
//! - Central type: [`Triager`], which runs an input again under ptrace. At the signal that kills
//!   the process it reads a [`Snapshot`](snapshot::Snapshot); class, keys and severity are pure
//!   functions of the snapshot and of the [`Diagnostics`](messages::Diagnostics), the messages
//!   that the process printed.
//! - Reading order: `triager.rs`, `capture.rs`, `snapshot.rs`, `normalise.rs`, `class.rs`,
//!   `keys.rs`, `crash.rs`.
//! - Used only here: `framehop`, `gimli` and `object` (unwinding, ELF files), `addr2line` (names
//!   of frames), `iced-x86` (single instructions), `blake3` (keys).

mod avoiding_tracers;
mod called_functions;
mod capture;
pub mod class;
mod crash;
mod crash_copy;
pub mod fault;
mod hang;
pub mod input_reads;
mod instruction;
pub mod keys;
pub mod memory;
pub mod messages;
mod module;
mod modules;
pub mod normalise;
mod observable;
mod overwritten_return;
pub mod registers;
mod report_frames;
mod reported_object;
pub mod runtime_modules;
pub mod severity;
mod site;
pub mod snapshot;
mod snapshot_reader;
mod stopped;
mod symbols;
mod tracee;
mod trap;
mod triager;
mod unwind;
mod verdict;
mod watchdog;
mod watchpoint;
mod wrapper;

pub use avoiding_tracers::programs_avoiding_tracers;
pub use class::Class;
pub use crash::{
    Confidence, Crash, Details, Found, Frame, Keys, Level, PanicRecord, Severity, Subject, Times,
};
pub use keys::{Key, NotAKey, Settings, stable_key};
pub use module::{Entry, function_start_in};
pub use observable::{Conditions, Unobservable, another_program, program_build_id, same_build};
pub use reported_object::Object;
pub use site::{Site, short_function, short_source, without_detours};
pub use stopped::{StoppedClassifier, StoppedCrash};
pub use symbols::demangled::demangle;
pub use symbols::{Place, Symbolizer, separate_debug_file};
pub use tracee::{Start, Tracee, Untraced};
pub use trap::Trap;
pub use triager::{KeyedRun, Triager};
pub use verdict::{Quick, Verdict};
pub use wrapper::Wrapper;
