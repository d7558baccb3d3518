//! The crash record (`crash.json`), and how it is built from a classified run.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::class::Classified;
use crate::fault::{Address, Fault};
use crate::keys::keys_include_object;
use crate::messages::{Diagnostics, FatalMessage, Report, without_numbers};
use crate::normalise::Normalised;
use crate::reported_object::{Object, object};
use crate::severity::severity;
use crate::snapshot::{End, Event, RawFrame, Snapshot, Trust};
use crate::{Class, Key, Symbolizer, stable_key};
use ddfuzz_exec::{Ended, Limits, TargetRecord, Way};
use ddfuzz_model::files::Base64;

/// The keys of one crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Identifies the bug: groups have one major key, and the minimizer preserves it.
    pub major: Key,
    /// Identifies the path into the bug: one reproducer is stored per minor key.
    pub minor: Key,
    /// Key of function names, to match crashes across rebuilds; `None` without symbols.
    pub stable: Option<Key>,
    /// Version of the definition by which the keys were computed.
    pub version: u32,
}

/// How far the keys of a crash can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The stack was read, or the program printed where it failed.
    High,
    /// The effect is limited: null dereference, failed assertion, arithmetic exception, stack
    /// overflow, panic, hang, memory blow-up.
    Low,
}

/// Estimate of how dangerous a crash is (crash-keys.md, "Record").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Null dereference, failed assertion, arithmetic exception, stack overflow, panic, hang,
    /// memory blow-up.
    Low,
    /// Memory is misused: a read of an invalid address, or heap corruption found by the allocator.
    Medium,
    /// Control or memory may be corrupted: jump to an invalid address, smashed stack, write to an
    /// invalid address.
    High,
}

/// How a crashing input was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Found {
    /// A campaign's run number `run` found the crash. `input` reproduces the input
    /// (`KIND:SEED:LENGTH`, or `seed+HASH:SEED` for a mutated seed, with the seeds and words of the
    /// campaign).
    Run {
        /// Id of the campaign.
        campaign: String,
        /// Index of the run, from 0.
        run: u64,
        /// The generator's name of the input.
        input: String,
    },
    /// A test of the minimization of another input had this crash instead of that input's crash.
    Slip {
        /// Hash of the minimized input, 16 hex digits.
        of: String,
        /// Index of the test in the minimization log; `None` for a check and for a discarded
        /// look-ahead test, which have no line in the log.
        test: Option<u64>,
    },
    /// The user passed a file with the input.
    File {
        /// Path of the input file.
        path: std::path::PathBuf,
    },
}

/// The program that crashed, in a study of many programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the program in the study.
    pub utility: String,
    /// How the program was run, without limits.
    pub target: TargetRecord,
}

/// Record of a crash. The input is stored in a separate file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crash {
    /// Version of the schema of this record.
    pub v: u32,
    /// Keys by which the crash is grouped with others.
    pub keys: Keys,
    /// Class of the crash, such as `segv`.
    pub class: Class,
    /// How the run ended: signal, exit status, or exceeded limit.
    pub ended: Ended,
    /// How far the keys can be trusted.
    pub confidence: Confidence,
    /// Estimate of how dangerous the crash is.
    pub severity: Severity,
    /// Reason for the severity estimate, for people.
    pub severity_reason: String,
    /// Way of execution in which the crash was captured.
    pub way: Way,
    /// Source of the frames: `ptrace`; `copy` where tracing is refused; `report` for the frames of
    /// a sanitizer's report; `text` where only the printed message identifies the crash; `status`
    /// where nothing does.
    pub capture: String,
    /// Number of runs of the input that had this crash.
    pub hits: u32,
    /// Number of times that the input was run.
    pub tries: u32,
    /// All frames of the stack, innermost first.
    pub frames: Vec<Frame>,
    /// Limits of the run.
    pub limits: Limits,
    /// How the input was found (campaign, minimization or user's file); `None` until the store
    /// files the record.
    pub found: Option<Found>,
    /// Inputs that the same process ran before, oldest first, for a crash that did not happen again
    /// in a fresh process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Base64>,
    /// The program, where the output directory holds crashes of many programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Box<Subject>>,
    /// Registers, fault, messages and other facts read from the dying process.
    #[serde(flatten)]
    pub details: Details,
}

impl Crash {
    /// Returns the GNU build id of the main program, where a frame tells it.
    pub fn build(&self) -> Option<&str> {
        let main = self.frames.iter().find(|frame| frame.module == "exe");
        main.and_then(|frame| frame.build_id.as_deref())
    }

    /// Returns the innermost frame of user code, which tables show.
    pub fn innermost_own(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.own)
    }
}

/// When a crash was captured and how long the capture took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Start of the first try, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Duration of the traced run, in microseconds.
    pub run_us: u64,
    /// Part of the run in which registers and stack were read, in microseconds.
    pub capture_us: u64,
}

/// A Rust or Go panic, as its message describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicRecord {
    /// Location of the panic: `FILE:LINE:COLUMN` in Rust, `FILE:LINE` in Go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The panic message.
    pub message: String,
    /// Text that identifies the panic in its keys.
    pub place: String,
}

impl PanicRecord {
    /// Whether `later`, a panic of another build, may be this panic: file and message are equal
    /// when numbers are ignored, since line numbers change with every edit.
    pub fn may_have_moved_to(&self, later: &PanicRecord) -> bool {
        let known = self.location.is_some() && later.location.is_some();
        known
            && without_numbers(&self.message) == without_numbers(&later.message)
            && without_numbers(&self.place) == without_numbers(&later.place)
    }
}

/// Facts of a dying process besides its frames (crash-keys.md, "Record").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Message of the program, its runtime or a sanitizer about the crash, escaped and of bounded
    /// length: a panic message, the first line of a report, a failed assertion, an abort reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Signal at which the snapshot was taken. The process may have died of another signal that its
    /// handler raised.
    pub signal: Option<i32>,
    /// Source of that signal, `si_code` of the kernel.
    pub si_code: Option<i32>,
    /// The memory access that faulted: address, kind, what is mapped there.
    pub fault: Fault,
    /// Registers by name.
    pub registers: BTreeMap<String, Address>,
    /// Up to 16 bytes of code at the program counter, as hex digits.
    pub code: String,
    /// Why the stack walk ended, such as a destroyed stack.
    pub end: End,
    /// Exported name of the outermost runtime frame on top (`free`, `__assert_fail`, `strlen`).
    pub via: Option<String>,
    /// Message with which the C library aborted.
    pub abort_message: Option<String>,
    /// Type of the uncaught C++ exception.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Report of a sanitizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Stack of the allocation of the reported memory (for an uninitialized value, of its
    /// creation), innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Frame>,
    /// Stack of the `free` of the reported memory, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freed: Vec<Frame>,
    /// For a hang: the calls inside the one that does not return, innermost first. They differ from
    /// run to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Frame>,
    /// The object (variable or heap block) that the sanitizer's report is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Box<Object>>,
    /// The Rust or Go panic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<PanicRecord>,
    /// Compiler options of the program that decide which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and `debug-assertions` of Rust; `None` where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<Vec<String>>,
    /// Last 4 KiB of stderr; invalid UTF-8 is replaced.
    pub stderr: String,
    /// When the crash was captured and how long that took.
    pub times: Times,
}

/// One frame of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Base name of the module; `exe` for the main executable.
    pub module: String,
    /// Offset of the code from the module's load bias, in bytes.
    pub offset: u64,
    /// Start of the function that contains the code (by FDE, else by symbol), as an offset like
    /// `offset`.
    pub function_start: Option<u64>,
    /// Demangled name of the function, where symbols exist.
    pub name: Option<String>,
    /// `file:line` of the innermost function at this code, where DWARF exists: of the first
    /// function in `inlined`, else of the function `name`.
    pub line: Option<String>,
    /// Whether the frame is user code, outside the runtime modules.
    pub own: bool,
    /// Whether the function only ends the program (`die`), so that its caller identifies the crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up: bool,
    /// Demangled names of the functions inlined at this code, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// Where functions are inlined: `file:line` of each of them, innermost first, then that of the
    /// function `name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Option<String>>,
    /// GNU build id of the module, as hex digits. Never part of a key.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Evidence that the frame is real and not a stale value on the stack.
    #[serde(default)]
    pub trust: Trust,
}

/// One function of a frame: an inlined function, or the function that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level<'a> {
    /// Demangled name of the function.
    pub name: Option<&'a str>,
    /// `file:line` of the code in the function.
    pub line: Option<&'a str>,
}

impl Frame {
    /// Iterates over the functions of the frame, innermost first, each with its line.
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

    /// Returns the innermost function and its line, as far as they are known: `parse at list.c:12`,
    /// else `exe+0x1189`.
    pub fn place(&self) -> String {
        self.site().to_string()
    }
}

/// Version of the schema of the record.
const SCHEMA: u32 = 1;

/// Facts of the run that goes into a record.
pub(crate) struct Run<'a> {
    /// How the run ended.
    pub ended: Ended,
    /// Source of the frames.
    pub capture: CaptureWay,
    /// Way of execution.
    pub way: Way,
    /// Limits of the run.
    pub limits: Limits,
    /// Number of tries, including this run.
    pub tries: u32,
    /// Time at which the first try was started.
    pub at: SystemTime,
    /// Duration of this run.
    pub took: Duration,
    /// Messages that the run printed.
    pub diagnostics: &'a Diagnostics,
    /// Sanitizers and debug assertions of the program; `None` where unknown.
    pub instrumentation: Option<Vec<String>>,
    /// Stacks of the allocation and of the `free` of the memory that a sanitizer reported.
    pub sites: (Vec<RawFrame>, Vec<RawFrame>),
}

/// Builds the record of a crash from its class and keys, its snapshot and facts of its run.
pub(crate) fn record(
    named: Classified,
    snapshot: Option<&Snapshot>,
    run: &Run<'_>,
    symbolizer: &mut Symbolizer,
) -> Crash {
    let Classified {
        class,
        mut keys,
        normalised,
        confidence,
        place,
    } = named;
    let frames = frames(snapshot, &normalised, symbolizer);
    let has_loop = snapshot.is_some_and(|it| it.endless.is_some());
    let own = own_names(&frames, &normalised, has_loop);
    let via = normalised.via.as_deref();
    let mut details = details(snapshot, via, run);
    details.panic = place.map(|place| panic_record(place, run.diagnostics));
    details.allocated = symbolizer.frames(&run.sites.0);
    details.freed = symbolizer.frames(&run.sites.1);
    details.inside = snapshot.map_or_else(Vec::new, |it| symbolizer.frames(&it.inside));
    let aborts = details.abort_message.as_deref();
    details.message = run.diagnostics.message(run.ended, &class, aborts);
    let owner = snapshot.and_then(|snapshot| snapshot.owner.as_ref());
    details.object = object(run.diagnostics.report(), owner, symbolizer).map(Box::new);
    let said = details.abort_message.as_deref();
    let report = details.report.as_ref();
    let in_keys = snapshot.is_some_and(|snapshot| keys_include_object(&class, snapshot));
    let object = details.object.as_deref().filter(|_| in_keys);
    keys.stable = stable_key(&class, &own, object);
    let (severity, mut severity_reason) = severity(&class, &details.fault, via, said, report);
    if let Some(object) = &details.object {
        severity_reason = format!("{severity_reason}, {object}");
    }
    Crash {
        v: SCHEMA,
        keys,
        class,
        ended: run.ended,
        confidence,
        severity,
        severity_reason,
        way: run.way,
        capture: run.capture.name().to_owned(),
        hits: 1,
        tries: run.tries,
        frames,
        limits: run.limits,
        found: None,
        preceding: Vec::new(),
        of: None,
        details,
    }
}

/// Returns the names of the user functions on the stack. An inlined function counts as the function
/// that contains it; only for an endless loop the innermost name comes first, because it is the
/// function that the loop is written in.
fn own_names<'a>(frames: &'a [Frame], normalised: &Normalised, has_loop: bool) -> Vec<&'a str> {
    let own = normalised.own.iter();
    let own = own.map_while(|index| frames.get(*index)?.levels().last()?.name);
    let mut own: Vec<&str> = own.collect();
    let innermost = frames.first().filter(|_| has_loop);
    let innermost = innermost.and_then(|frame| frame.levels().next()?.name);
    if let (Some(first), Some(name)) = (own.first_mut(), innermost) {
        *first = name;
    }
    own
}

/// Adds names and lines to the frames. The first frame of a hang gets those of its endless loop.
fn frames(
    snapshot: Option<&Snapshot>,
    normalised: &Normalised,
    symbolizer: &mut Symbolizer,
) -> Vec<Frame> {
    let Some(snapshot) = snapshot else {
        return Vec::new();
    };
    let mut frames = symbolizer.frames(&snapshot.frames);
    let first = frames.first_mut().zip(snapshot.frames.first());
    if let (Some(endless), Some((frame, raw))) = (&snapshot.endless, first) {
        symbolizer.stand_in(frame, raw, &endless.pieces);
    }
    let own = frames.iter_mut().filter(|frame| frame.own);
    own.take(normalised.given_up)
        .for_each(|frame| frame.gives_up = true);
    frames
}

/// Number of bytes of stderr that a record keeps, from the end.
const STDERR: usize = 4096;

fn panic_record(place: String, diagnostics: &Diagnostics) -> PanicRecord {
    let (location, message) = match &diagnostics.fatal {
        Some(FatalMessage::RustPanic(panic)) => {
            (Some(panic.location.clone()), panic.message.clone())
        }
        Some(FatalMessage::GoPanic(panic)) => (panic.line.clone(), panic.message.clone()),
        _ => (None, String::new()),
    };
    PanicRecord {
        location,
        message,
        place,
    }
}

fn details(snapshot: Option<&Snapshot>, via: Option<&str>, run: &Run<'_>) -> Details {
    let micros = |time: Duration| time.as_micros().try_into().unwrap_or(u64::MAX);
    let since_1970 = run.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let abort = run.diagnostics.abort.as_ref();
    let stderr = &run.diagnostics.stderr;
    let last = &stderr[stderr.len().saturating_sub(STDERR)..];
    let mut details = Details {
        stderr: String::from_utf8_lossy(last).into_owned(),
        abort_message: abort.map(|abort| abort.message.clone()),
        exception: abort.and_then(|abort| abort.exception.clone()),
        report: run.diagnostics.report().cloned(),
        via: via.map(str::to_owned),
        instrumentation: run.instrumentation.clone(),
        times: Times {
            at_unix_ms: since_1970.as_millis().try_into().unwrap_or(u64::MAX),
            run_us: micros(run.took),
            capture_us: 0,
        },
        ..Details::default()
    };
    let Some(snapshot) = snapshot else {
        return details;
    };
    if let Event::Signal { number, code } = snapshot.event {
        details.signal = Some(number);
        details.si_code = Some(code);
    }
    details.fault = snapshot.fault;
    details.registers = snapshot.registers.addresses();
    let code = snapshot.code.iter();
    details.code = code.map(|byte| format!("{byte:02x}")).collect();
    details.end = snapshot.end;
    if let Some(message) = &snapshot.abort_message {
        details.abort_message = Some(message.clone()); // read off the C library itself
    }
    details.times.capture_us = micros(snapshot.took);
    details
}

/// Source of the frames of a crash (crash-keys.md, "Capture"), best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureWay {
    /// Frames were read from the stopped process by ptrace.
    Ptrace,
    /// Frames were unwound from the copy that the dying process made of itself.
    Copy,
    /// Frames are the first stack of a sanitizer's report.
    Report,
    /// There are no frames; the printed message identifies the crash.
    Text,
    /// There are no frames; only the signal or exit status is known.
    Status,
}

impl CaptureWay {
    /// Returns the name of the capture way in crash records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CaptureWay::Ptrace => "ptrace",
            CaptureWay::Copy => "copy",
            CaptureWay::Report => "report",
            CaptureWay::Text => "text",
            CaptureWay::Status => "status",
        }
    }
}
