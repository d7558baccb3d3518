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

/// The keys of one crash: hashes by which crashes are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Key that identifies the bug: crashes with equal major keys form one group, and the minimizer
    /// preserves it.
    pub major: Key,
    /// Key that identifies the path into the bug: one reproducer is stored per minor key.
    pub minor: Key,
    /// Key computed from function names, which matches crashes across rebuilds of the program;
    /// `None` without symbols.
    pub stable: Option<Key>,
    /// Version number of the rules by which the keys were computed.
    pub version: u32,
}

/// How far the keys of a crash can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The keys are reliable: the stack was read, or the program printed where it failed.
    High,
    /// The keys are unreliable: no frame of user code is known, the stack was read incompletely, or
    /// the program is static and stripped.
    Low,
}

/// Estimate of how dangerous a crash is (docs/src/keys.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The effect is limited: null dereference, failed assertion, arithmetic exception, stack
    /// overflow, panic, hang, memory blow-up.
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
        /// Id of the campaign that found the crash.
        campaign: String,
        /// Index of the run in its campaign, from 0.
        run: u64,
        /// Name by which the generator reproduces the input: `KIND:SEED:LENGTH`, or
        /// `seed+HASH:SEED` for a mutated seed.
        input: String,
    },
    /// A test of the minimization of another input had this crash instead of that input's crash.
    Slip {
        /// Hash of the input that was being minimized, 16 hex digits.
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

/// The program that crashed, where one output directory holds crashes of many programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the program that crashed.
    pub utility: String,
    /// How the program was run (path, arguments, environment), without its limits.
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
    /// Reason for the severity estimate, a phrase for people such as `a null dereference`.
    pub severity_reason: String,
    /// How the run that showed the crash was executed: new process, fork server, or in-process
    /// harness.
    pub way: Way,
    /// Source of the frames: `ptrace`; `copy` where tracing is refused; `report` for the frames of
    /// a sanitizer's report; `text` where only the printed message identifies the crash; `status`
    /// where nothing does.
    pub capture: String,
    /// Number of triage runs of the input that had this crash.
    pub hits: u32,
    /// Number of times that triage ran the input, up to and including the run that crashed.
    pub tries: u32,
    /// All frames of the stack, innermost first.
    pub frames: Vec<Frame>,
    /// Time and memory limits of the run that crashed.
    pub limits: Limits,
    /// How the input was found (campaign, minimization or user's file); `None` until the store
    /// files the record.
    pub found: Option<Found>,
    /// Inputs that the same process ran before, oldest first, for a crash that did not happen again
    /// in a fresh process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Base64>,
    /// The program that crashed, where the output directory holds crashes of many programs; else
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Box<Subject>>,
    /// Registers, fault, messages and other facts read from the dying process.
    #[serde(flatten)]
    pub details: Details,
}

impl Crash {
    /// Returns the GNU build id of the main program; `None` if it has none, or if no frame of the
    /// crash lies in the program.
    pub fn build(&self) -> Option<&str> {
        let main = self.frames.iter().find(|frame| frame.module == "exe");
        main.and_then(|frame| frame.build_id.as_deref())
    }

    /// Returns the innermost stack frame of user code (not of the C library or another runtime);
    /// `None` if there is none.
    pub fn innermost_own(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.own)
    }
}

/// When a crash was captured and how long the capture took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Time at which triage started its first run of the input, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Wall time of the triage run that crashed, with the reading of registers and stack, in
    /// microseconds; 0 if triage did not run the input.
    pub run_us: u64,
    /// Time that reading registers and stack of the dying process took, in microseconds.
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
    /// Text that is hashed into the keys to identify the panic: usually its source location, with a
    /// shortened path.
    pub place: String,
}

impl PanicRecord {
    /// Checks whether `later`, a panic of another build of the program, may be the same panic: file
    /// and message are equal when numbers are ignored, since line numbers change with every edit.
    pub fn may_have_moved_to(&self, later: &PanicRecord) -> bool {
        let known = self.location.is_some() && later.location.is_some();
        known
            && without_numbers(&self.message) == without_numbers(&later.message)
            && without_numbers(&self.place) == without_numbers(&later.place)
    }
}

/// Facts of a dying process besides its frames (docs/src/keys.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Message of the program, its runtime or a sanitizer about the crash, escaped and of bounded
    /// length: a panic message, the first line of a report, a failed assertion, an abort reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Signal at which registers and stack were read; `None` if they were read at an exit or
    /// exceeded limit, or not at all. The process may have died of another signal that its handler
    /// raised.
    pub signal: Option<i32>,
    /// Source of `signal`: the kernel's `si_code`.
    pub si_code: Option<i32>,
    /// The memory access that faulted: address, kind, what is mapped there.
    pub fault: Fault,
    /// Values of the crashed thread's registers, by register name.
    pub registers: BTreeMap<String, Address>,
    /// Up to 16 bytes of code at the program counter, as hex digits.
    pub code: String,
    /// Why the stack walk ended, such as a destroyed stack.
    pub end: End,
    /// Name of the runtime function (of the C library, say) that user code called and in which the
    /// crash happened: `free`, `__assert_fail`, `strlen`.
    pub via: Option<String>,
    /// Message with which the C library aborted.
    pub abort_message: Option<String>,
    /// Type of the uncaught C++ exception that ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Parsed report of the sanitizer that detected the crash.
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
    /// The Rust or Go panic that ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<PanicRecord>,
    /// Compiler options of the program that decide which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and `debug-assertions` of Rust; `None` where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<Vec<String>>,
    /// Last 4 KiB that the program wrote to stderr; invalid UTF-8 is replaced.
    pub stderr: String,
    /// When the crash was captured and how long that took.
    pub times: Times,
}

/// One frame of the stack of a crash, with function name and source line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Base name of the program or library that contains the code; `exe` for the main executable.
    pub module: String,
    /// Offset of the code from the module's load bias, in bytes.
    pub offset: u64,
    /// Start of the function that contains the code (by FDE, else by symbol), in bytes from the
    /// module's load bias.
    pub function_start: Option<u64>,
    /// Demangled name of the function, where symbols exist; of the containing function, not of
    /// those inlined into it.
    pub name: Option<String>,
    /// `file:line` of the innermost function at this code, where DWARF exists: of the first
    /// function in `inlined`, else of the function `name`.
    pub line: Option<String>,
    /// Whether the frame is user code, and not code of a runtime (C library, sanitizer, standard
    /// library).
    pub own: bool,
    /// Whether the function only ends the program (`die`), so that its caller identifies the crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up: bool,
    /// Demangled names of the functions inlined at this code, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// If functions are inlined at this code: `file:line` of each, innermost first, then that of
    /// the function `name`. Empty if none is inlined.
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
    /// Demangled name of the function; `None` where unknown.
    pub name: Option<&'a str>,
    /// `file:line` of the code in the function; `None` where unknown.
    pub line: Option<&'a str>,
}

impl Frame {
    /// Iterates over the functions of the frame, innermost first, each with its source line: the
    /// inlined functions, then the function that contains them.
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

    /// Returns the innermost function of the frame and its source line as text, as far as they are
    /// known: `parse at list.c:12`; else module and offset: `exe+0x1189`.
    pub fn place(&self) -> String {
        self.site().to_string()
    }
}

/// Version of the schema of crash records (`crash.json`).
const SCHEMA: u32 = 1;

/// Facts of a crashed run, other than its stack and keys, that the crash record contains.
pub(crate) struct Run<'a> {
    /// How the run ended.
    pub ended: Ended,
    /// Source of the stack frames: ptrace, the process's copy of itself, a sanitizer's report, or
    /// none.
    pub capture: CaptureWay,
    /// How the target was executed: new process, fork server, or in-process harness.
    pub way: Way,
    /// Time and memory limits of the run.
    pub limits: Limits,
    /// Number of triage runs of the input, including this run.
    pub tries: u32,
    /// Time at which triage started its first run of the input.
    pub at: SystemTime,
    /// Wall time of triage's run of the input, with the reading of the stack; 0 if triage did not
    /// run it.
    pub took: Duration,
    /// Messages that the run printed.
    pub diagnostics: &'a Diagnostics,
    /// Names of the sanitizers and Rust debug assertions that the program was compiled with; `None`
    /// where unknown.
    pub instrumentation: Option<Vec<String>>,
    /// Stack of the allocation, and stack of the `free`, of the memory that a sanitizer reported.
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

/// Returns the names of the user functions on the stack, innermost first, for the stable key, up to
/// the first function without a name. An inlined function counts as the function that contains it;
/// only for an endless loop the first name is the innermost one, because it is the function that
/// the loop is written in.
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

/// Returns the frames of a snapshot with function names and source lines. If a hang has an endless
/// loop, the first frame gets the function and line of the loop. Empty without a snapshot.
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

/// Source of the frames of a crash (docs/src/keys.md), best first.
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
