//! The record of one crash (`crash.json`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Key;
use crate::abort_text::without_numbers;
use crate::address::Address;
use crate::fault::Fault;
use crate::object::Object;
use crate::said::Report;
use crate::snapshot::{End, Trust};
use ddfuzz_exec::{Ended, Limits, Sanitizer, TargetRecord, Way};
use ddfuzz_model::files::Base64;

/// What kind of death (crash-keys.md, "Class").
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Class(pub String);

impl Class {
    /// The sanitizer whose reports make this class.
    pub fn sanitizer(&self) -> Option<Sanitizer> {
        Sanitizer::of_class(&self.0)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of one crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Which bug: groups are counted by it, the minimizer holds it equal.
    pub major: Key,
    /// Which way into it: one reproducer is kept per minor key.
    pub minor: Key,
    /// For matching across rebuilds; only where symbols exist.
    pub stable: Option<Key>,
    /// Version of the keys' definition.
    pub version: u32,
}

/// How far the keys can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The stack was read, or the program said where it dies.
    High,
    /// Only the signal or the exit status is known, or the runtime cannot be told from the program.
    Low,
}

/// An estimate of how bad a crash is (crash-keys.md, "Record").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Null dereference, assert, fpe, stack overflow, panic, hang, oom.
    Low,
    /// Wild read, heap abort.
    Medium,
    /// Wild call, smash, write to a wild address.
    High,
}

/// Where a crash came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Found {
    /// Run number `run` of campaign `campaign`; `input` rebuilds it (`KIND:SEED:LENGTH`),
    /// with the seeds and words of the campaign where it is a mutated seed (`seed+HASH:SEED`).
    Run {
        /// The campaign's id.
        campaign: String,
        /// Index of the run, from 0.
        run: u64,
        /// The generator's name of the input.
        input: String,
    },
    /// A test of the minimization of the input whose hash is `of` slipped into it.
    Slip {
        /// The 16 hex digits of the minimized input's hash.
        of: String,
        /// Index of the test in the log; null for a check, and for a test that was run ahead in
        /// vain, which has no line.
        test: Option<u64>,
    },
    /// A file that the user gave.
    File {
        /// Its path.
        path: std::path::PathBuf,
    },
}

/// The program that crashed, in a study of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// What the study calls it.
    pub utility: String,
    /// How it was run, limits aside.
    pub target: TargetRecord,
}

/// Everything known of one crash. The input itself is stored beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crash {
    /// Version of this record's schema.
    pub v: u32,
    /// Its keys.
    pub keys: Keys,
    /// What kind of death.
    pub class: Class,
    /// How the run ended.
    pub ended: Ended,
    /// How far the keys can be trusted.
    pub confidence: Confidence,
    /// An estimate.
    pub severity: Severity,
    /// Why that estimate.
    pub severity_reason: String,
    /// The way of execution in which it was captured.
    pub way: Way,
    /// How it was captured: `ptrace`; where tracing is refused, `copy`; `report` where the frames
    /// are those of a sanitizer's report; `text` where only what it said names it; `status` where
    /// nothing does.
    pub capture: String,
    /// Tries that crashed so.
    pub hits: u32,
    /// Tries made.
    pub tries: u32,
    /// All frames, innermost first.
    pub frames: Vec<Frame>,
    /// Limits in force.
    pub limits: Limits,
    /// Where it came from; `None` until the store files it.
    pub found: Option<Found>,
    /// Of a crash that did not come again in a process of its own: the inputs that the process
    /// had run before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Base64>,
    /// What was run, where the output directory is one of many programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Box<Subject>>,
    /// What else was read off the dying process.
    #[serde(flatten)]
    pub details: Details,
}

impl Crash {
    /// The GNU build id of the main program, where the stack tells it.
    pub fn build(&self) -> Option<&str> {
        let main = self.frames.iter().find(|frame| frame.module == "exe");
        main.and_then(|frame| frame.build_id.as_deref())
    }

    /// The frame to show: the innermost one of the user's own code.
    pub fn innermost_own(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.own)
    }
}

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

/// One frame of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Base name of the module's mapping; `exe` for the main executable.
    pub module: String,
    /// Offset from the module's load bias, in bytes.
    pub offset: u64,
    /// Start of the function that covers it (FDE, else symbol), same origin as `offset`.
    pub function_start: Option<u64>,
    /// Demangled name, where symbols exist.
    pub name: Option<String>,
    /// `file:line` of the innermost function there, where DWARF exists: of the first of `inlined`,
    /// else of the one with this name.
    pub line: Option<String>,
    /// Whether it is a frame of the user's code: outside the runtime modules.
    pub own: bool,
    /// Whether it only gives up (`die`), so that its caller names the crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up: bool,
    /// Demangled names of the functions inlined there, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// Where functions are inlined: `file:line` of each of them, innermost first, and behind these
    /// that of the function with this name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Option<String>>,
    /// The module's GNU build id, as hex digits. Never part of a key.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Why the frame is believed.
    #[serde(default)]
    pub trust: Trust,
}

/// One of the functions that a frame is in: one that was inlined there, or the one that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level<'a> {
    /// Its demangled name.
    pub name: Option<&'a str>,
    /// `file:line` in it.
    pub line: Option<&'a str>,
}

impl Frame {
    /// The functions that it is in, innermost first, each with its own line.
    pub fn levels(&self) -> impl Iterator<Item = Level<'_>> {
        let names = self.inlined.iter().map(Some).chain([self.name.as_ref()]);
        names.enumerate().map(|(at, name)| Level {
            name: name.map(String::as_str),
            line: match (at, self.lines.get(at)) {
                (_, Some(line)) => line.as_deref(),
                // Older records have the innermost one alone.
                (0, None) => self.line.as_deref(),
                (_, None) => None,
            },
        })
    }

    /// The innermost function and its line, as far as they are known: `parse at list.c:12`, else
    /// `exe+0x1189`.
    pub fn place(&self) -> String {
        self.site().to_string()
    }
}
