//! What a record says of the dying process beside its frames.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Frame;
use super::abort_text::without_numbers;
use super::address::Address;
use super::fault::Fault;
use super::object::Object;
use super::said::Report;
use super::snapshot::End;

/// When a crash was captured and how long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// When the run was started, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// The traced run as a whole, in microseconds.
    pub run_us: u64,
    /// The reading of registers and stack in it, in microseconds.
    pub capture_us: u64,
}

/// A panic of Rust or Go, as its message tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicRecord {
    /// Where it began: `FILE:LINE:COLUMN` of Rust, `FILE:LINE` of Go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What it was about.
    pub message: String,
    /// What names it in keys.
    pub place: String,
}

impl PanicRecord {
    /// Whether another build of the program may have its panic `self` at the place of `later`:
    /// the same message in the same file, numbers left out, since lines move with each change.
    pub fn may_have_moved_to(&self, later: &PanicRecord) -> bool {
        let known = self.location.is_some() && later.location.is_some();
        known
            && without_numbers(&self.message) == without_numbers(&later.message)
            && without_numbers(&self.place) == without_numbers(&later.place)
    }
}

/// What a record says of the dying process beside its frames (crash-keys.md, "Record").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// What the program, its runtime or a sanitizer said of the crash, made harmless and of bounded
    /// length: the message of a panic, the first line of a report, a failed assertion, why it aborts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The signal at which the process was read; it may have died of another one that its
    /// handler raised.
    pub signal: Option<i32>,
    /// Where that signal came from, as the kernel codes it.
    pub si_code: Option<i32>,
    /// The access that faulted.
    pub fault: Fault,
    /// The registers by name.
    pub registers: BTreeMap<String, Address>,
    /// Up to 16 bytes of code from the program counter on, as hex digits.
    pub code: String,
    /// Why there are no more frames.
    pub end: End,
    /// Exported name of the outermost runtime frame on top (`free`, `__assert_fail`, `strlen`).
    pub via: Option<String>,
    /// What the C library said that it aborts for.
    pub abort_message: Option<String>,
    /// The type of the C++ exception that nobody caught.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// The report of a sanitizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Where the memory that the report is about was allocated (or, of an uninitialized value,
    /// created), innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Frame>,
    /// Where it was freed, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freed: Vec<Frame>,
    /// Of a hang the calls inside the one that does not return, innermost first: they come and go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Frame>,
    /// The object that the sanitizer's report is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Box<Object>>,
    /// The panic of Rust or Go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<PanicRecord>,
    /// What the program was compiled with that decides which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and `debug-assertions` of Rust. Absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<Vec<String>>,
    /// The last 4 KiB written to stderr; what is no UTF-8 is replaced.
    pub stderr: String,
    /// When it was captured and how long that took.
    pub times: Times,
}
