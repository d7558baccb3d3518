//! What dying programs say: reports of sanitizers, panics of Rust and Go, abort messages of C
//! libraries.
//!
//! All readers are pure functions of bytes that a target wrote, and so of hostile input: whatever
//! they are given they end, without a panic, in time linear in its length.

mod glibc;
mod go_panic;
mod lines;
mod message;
mod rust_panic;
mod sanitizer;

pub(crate) use glibc::HEAP;
pub use glibc::{Abort, abort};
pub use go_panic::{GoPanic, go_panic};
pub(crate) use message::of_report;
pub use message::{last_words, message};
pub(crate) use rust_panic::is_std_function;
pub use rust_panic::{RustPanic, backtrace_place, is_std_file, rust_panic, short_location};
pub use sanitizer::{ObjectKind, Report, ReportAccess, ReportFrame, ReportObject, Tool, report};
