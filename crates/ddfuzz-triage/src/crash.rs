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
use crate::triager::TRIES;
use crate::{Class, Key, Symbolizer, stable_key};
use ddfuzz_exec::{Ended, Limits, TargetRecord, Way};
use ddfuzz_model::files::Base64;

/// The keys of one crash: hashes of class, stack and other facts, by which crashes are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The major key: a hash that identifies the bug. Crashes with equal major keys form one group,
    /// and a smaller input counts for the minimizer only if its crash has the same major key.
    pub major: Key,
    /// The minor key: a hash that identifies the path into the bug. One reproducer is stored per
    /// minor key.
    pub minor: Key,
    /// The stable key: a hash of function names, which matches crashes across rebuilds of the
    /// program; `None` if the program has no symbols.
    pub stable: Option<Key>,
    /// Version number of the rules by which the keys of the crash were computed.
    pub version: u32,
}

/// How far the keys (hashes by which crashes are grouped) of a crash can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The keys are reliable: the stack of the crash was read, or the program printed where it
    /// failed.
    High,
    /// The keys are unreliable: no stack frame of user code is known, the stack was read
    /// incompletely, or the program is static and stripped.
    Low,
}

/// An estimate of how dangerous the bug behind a crash is (docs/src/keys.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The effect of the crash is limited: null dereference, failed assertion, arithmetic
    /// exception, stack overflow, panic, hang, memory blow-up.
    Low,
    /// Memory is misused, but in a less dangerous way: a read of an invalid address, or heap
    /// corruption that the allocator found.
    Medium,
    /// Control flow or memory may be corrupted: a jump to an invalid address, a smashed stack, a
    /// write to an invalid address.
    High,
}

/// How the input of a crash was found: by a campaign, in the minimization of another input, or as a
/// file of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Found {
    /// A run of a fuzzing campaign found the crash. `input` is a text from which the campaign's
    /// generator makes the input again.
    Run {
        /// Id of the fuzzing campaign whose run found the crash.
        campaign: String,
        /// Index, in its campaign, of the run that found the crash, from 0.
        run: u64,
        /// Name from which the generator of the campaign makes the input again: `KIND:SEED:LENGTH`,
        /// or `seed+HASH:SEED` for a mutated seed.
        input: String,
    },
    /// A test of the minimization of another input crashed, but with a different crash than that
    /// input (a *slip*).
    Slip {
        /// Hash of the input that was being minimized when the different crash was found, as 16 hex
        /// digits.
        of: String,
        /// Index, in the minimization log, of the test with the different crash; `None` for tests
        /// that have no line in the log: extra checks, and tests made ahead of need whose result
        /// was discarded.
        test: Option<u64>,
        /// Id of the campaign of the input that was being minimized; `None` in a record of an older
        /// version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        campaign: Option<String>,
    },
    /// The user passed a file with the crashing input.
    File {
        /// Path of the user's file with the crashing input.
        path: std::path::PathBuf,
        /// Id of the campaign that ran the file; `None` as long as the record belongs to no
        /// campaign, and in a record of an older version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        campaign: Option<String>,
    },
}

impl Found {
    /// Returns the id of the campaign whose target showed the crash; `None` for a file that belongs
    /// to no campaign yet, and if an older version wrote the record of a file or slip (crash met
    /// while another input was minimized).
    pub fn campaign(&self) -> Option<&str> {
        match self {
            Found::Run { campaign, .. } => Some(campaign),
            Found::Slip { campaign, .. } | Found::File { campaign, .. } => campaign.as_deref(),
        }
    }
}

/// The program that crashed and how it was run, recorded where one output directory holds crashes
/// of many programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the utility (program) that crashed.
    pub utility: String,
    /// How the crashed program was run (path, arguments, environment), without its limits.
    pub target: TargetRecord,
}

/// The record of a crash (`crash.json`): class, keys, stack and other facts. The input is stored in
/// a separate file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crash {
    /// Version number of the format of this crash record.
    pub v: u32,
    /// Keys of the crash: hashes by which it is grouped with other crashes of the same bug.
    pub keys: Keys,
    /// Class of the crash, such as `segv` or `asan:heap-buffer-overflow`.
    pub class: Class,
    /// How the run that crashed ended: by a signal, with an exit status, or by exceeding a limit.
    pub ended: Ended,
    /// How far the keys of the crash (hashes by which crashes are grouped) can be trusted: high or
    /// low.
    pub confidence: Confidence,
    /// Estimate of how dangerous the bug behind the crash is: low, medium or high.
    pub severity: Severity,
    /// Reason for the severity estimate, a phrase for people such as `a null dereference`.
    pub severity_reason: String,
    /// How the run that showed the crash was executed: new process, fork server, or in-process
    /// harness.
    pub way: Way,
    /// How the stack frames were obtained: `ptrace`; `copy`, from a copy that the dying process
    /// made of itself, where tracing is refused; `report`, from a sanitizer's report; `text`, no
    /// frames, but a printed message identifies the crash; `status`, nothing but signal or exit
    /// status.
    pub capture: String,
    /// Number of triage's runs of the input, out of `tries`, that ended in this crash.
    pub hits: u32,
    /// Number of times that triage ran the input, up to and including the run that crashed.
    pub tries: u32,
    /// All stack frames of the crashed thread, innermost first.
    pub frames: Vec<Frame>,
    /// Time and memory limits of the run that crashed.
    pub limits: Limits,
    /// How the crashing input was found (by a campaign, by a minimization, or as the user's file);
    /// `None` until the record is put into the store.
    pub found: Option<Found>,
    /// Inputs that the same process ran before the crashing one, oldest first, for a crash that did
    /// not happen again in a fresh process; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Base64>,
    /// The program that crashed, where the output directory holds crashes of many programs; else
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Box<Subject>>,
    /// Further facts about the dying process: registers, the faulting memory access, messages, and
    /// more.
    #[serde(flatten)]
    pub details: Details,
}

impl Crash {
    /// Returns the id of the campaign whose target showed the crash; `None` if the record names no
    /// campaign.
    pub fn campaign(&self) -> Option<&str> {
        self.found.as_ref().and_then(Found::campaign)
    }

    /// Returns true if triage saw the crash only with randomized addresses. Of three runs of an
    /// input, triage randomizes the addresses of the last one; the two before it did not crash.
    pub fn came_with_random_addresses(&self) -> bool {
        self.hits == 1 && self.tries.is_multiple_of(TRIES)
    }

    /// Returns a copy of the crash record which says that the campaign `id` has run the user's file
    /// with the input. If the input was not found as a file of the user, the copy has no change.
    #[must_use]
    pub fn of_campaign(&self, id: String) -> Crash {
        let mut crash = self.clone();
        if let Some(Found::File { campaign, .. }) = &mut crash.found {
            *campaign = Some(id);
        }
        crash
    }

    /// Returns this crash as a slip: a different crash that occurred while the input with the hash
    /// `of` (16 hex digits), whose own crash is `minimized`, was minimized. The slip gets the
    /// campaign and the program of `minimized`. `test`: index of the test in the minimization log,
    /// if it has a line there.
    #[must_use]
    pub fn into_slip(self, of: &str, minimized: &Crash, test: Option<u64>) -> Crash {
        let found = Found::Slip {
            of: of.to_owned(),
            test,
            campaign: minimized.campaign().map(str::to_owned),
        };
        Crash {
            found: Some(found),
            of: minimized.of.clone(),
            ..self
        }
    }

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

/// When triage captured a crash, and how long that took.
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

/// A Rust or Go panic that ended the program, as the panic message describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicRecord {
    /// Source location of the panic: `FILE:LINE:COLUMN` in Rust, `FILE:LINE` in Go; `None` if it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Message of the Rust or Go panic, without its source location.
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

/// Facts about the process of a crash besides its stack frames: registers, messages, times and more
/// (docs/src/keys.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Message of the program, its runtime or a sanitizer about the crash, escaped and of bounded
    /// length: a panic message, the first line of a report, a failed assertion, an abort reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Signal at which registers and stack of the process were read; `None` if they were read at an
    /// exit or exceeded limit, or not at all. The process may have died of another signal, which
    /// its signal handler raised.
    pub signal: Option<i32>,
    /// The kernel's `si_code` of `signal`, which tells who raised the signal; `None` without a
    /// signal.
    pub si_code: Option<i32>,
    /// The memory access at which the process crashed: address, read or write, and what is mapped
    /// there.
    pub fault: Fault,
    /// Values of the registers of the crashed thread, by register name.
    pub registers: BTreeMap<String, Address>,
    /// Up to 16 bytes of machine code at the program counter of the crashed thread, as hex digits.
    pub code: String,
    /// Why the walk over the crashed thread's stack ended, such as a destroyed stack.
    pub end: End,
    /// Name of the runtime function (of the C library, say) that user code called and in which the
    /// crash happened: `free`, `__assert_fail`, `strlen`.
    pub via: Option<String>,
    /// Message with which the C library aborted the program, such as `malloc(): corrupted top
    /// size`; `None` if the C library did not abort it.
    pub abort_message: Option<String>,
    /// Type of the uncaught C++ exception that ended the program, such as `std::out_of_range`;
    /// `None` if no exception did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Parsed report of the sanitizer that detected the crash; `None` if no sanitizer did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Stack of the allocation of the memory that a sanitizer's report is about (of an
    /// uninitialized value, the stack of its creation), innermost frame first; empty if the report
    /// has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Frame>,
    /// Stack of the `free` of the memory that a sanitizer's report is about, innermost frame first;
    /// empty if the report has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freed: Vec<Frame>,
    /// For a hang: the calls inside the call that does not return, innermost first. They differ
    /// from run to run, so that they are not part of any key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Frame>,
    /// The object (variable or heap block) that the sanitizer's report is about; `None` if there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Box<Object>>,
    /// The Rust or Go panic that ended the program; `None` if no panic did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<PanicRecord>,
    /// Compiler options of the program that decide which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and `debug-assertions` of Rust; `None` where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<Vec<String>>,
    /// Number of bytes that the crashed run has read of its input on stdin; `None` if the input is
    /// not on stdin, and in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Whether the crashed process is one that the program had started, while the program itself
    /// ended without a crash, so that its own status does not show the crash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_descendant: bool,
    /// The last 4 KiB that the program wrote to stderr; invalid UTF-8 is replaced.
    pub stderr: String,
    /// When triage captured the crash, and how long that took.
    pub times: Times,
}

/// One stack frame of a crash, with function name and source line, as crash records contain it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Base name of the program or library that contains the frame's code; `exe` for the main
    /// executable.
    pub module: String,
    /// Address of the frame's code, as an offset from the load bias of its module, in bytes.
    pub offset: u64,
    /// Start of the function that contains the frame's code (by unwind tables, else by symbols), in
    /// bytes from the module's load bias; `None` where it is unknown.
    pub function_start: Option<u64>,
    /// Demangled name of the function that contains the frame's code, not of a function inlined
    /// into it; `None` without symbols.
    pub name: Option<String>,
    /// Source line `file:line` of the innermost function at the frame's code: of the first one in
    /// `inlined`, else of the function `name`; `None` without debug information.
    pub line: Option<String>,
    /// Whether the stack frame is user code, and not code of a runtime (C library, sanitizer,
    /// standard library).
    pub own: bool,
    /// Whether the frame's function only ends the program (`die`), so that its caller identifies
    /// the crash better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up: bool,
    /// Demangled names of the functions inlined at the frame's code, innermost first; empty if
    /// there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// If functions are inlined at the frame's code: the source line `file:line` of each, innermost
    /// first, and then that of the function `name`. Empty if none is inlined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Option<String>>,
    /// GNU build id of the frame's module, as hex digits; `None` if it has none. It is never part
    /// of a key.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Evidence that the frame is real, and not a stale value that was found on the stack.
    #[serde(default)]
    pub trust: Trust,
}

/// One of the functions at the code of a stack frame: an inlined function, or the function that
/// contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level<'a> {
    /// Demangled name of the inlined or containing function; `None` where unknown.
    pub name: Option<&'a str>,
    /// Source line `file:line` of the frame's code in the inlined or containing function; `None`
    /// where unknown.
    pub line: Option<&'a str>,
}

impl Frame {
    /// Iterates over the functions at the frame's code, each with its source line: the inlined
    /// functions, innermost first, and then the function that contains them.
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

    /// Returns, as text, the innermost known function at the frame's code and its source line, or
    /// whichever of the two is known: `parse at list.c:12`. If neither is known, returns module and
    /// offset: `exe+0x1189`.
    pub fn place(&self) -> String {
        self.site().to_string()
    }
}

/// Version of the schema of crash records (`crash.json`).
const SCHEMA: u32 = 1;

/// What goes into a crash record about the run that crashed, besides stack and keys: how it was
/// made and ended, its limits and messages.
pub(crate) struct Run<'a> {
    /// How the crashed run ended: by a signal, with an exit status, or by exceeding a limit.
    pub ended: Ended,
    /// How the stack frames of the crash were obtained: by ptrace, from a copy of registers and
    /// stack that the process made of itself, from a sanitizer's report, or not at all.
    pub capture: CaptureWay,
    /// How the target was executed in the crashed run: as a new process, by a fork server, or as an
    /// in-process harness.
    pub way: Way,
    /// Time and memory limits of the crashed run.
    pub limits: Limits,
    /// Number of times that triage ran the input, up to and including the crashed run.
    pub tries: u32,
    /// Time at which triage started its first run of the input.
    pub at: SystemTime,
    /// Wall time of triage's run of the input, including the reading of the stack; 0 if triage did
    /// not run the input.
    pub took: Duration,
    /// Number of input bytes that the crashed run has read; `None` where it is unknown.
    pub read: Option<u64>,
    /// Parsed messages that the crashed run printed.
    pub diagnostics: &'a Diagnostics,
    /// Names of the sanitizers and Rust debug assertions that the program was compiled with; `None`
    /// where unknown.
    pub instrumentation: Option<Vec<String>>,
    /// Two stacks in the sanitizer's report about some memory: that of its allocation, and that of
    /// its `free`; each is empty if the report lacks it.
    pub sites: (Vec<RawFrame>, Vec<RawFrame>),
}

/// Builds the record of a crash from its class and keys (`named`), its snapshot (if there is one)
/// and facts about its run.
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

/// Returns the names of the user functions on the stack of a crash, innermost first, up to the
/// first function without a name; the stable key is computed from them. For an inlined function,
/// the name is that of the function that contains it; but if the crash has an endless loop
/// (`has_loop`), the first name is that of the innermost inlined function, because it contains the
/// loop.
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

/// Converts the stack frames of a snapshot to frames with function names and source lines. If a
/// hang has an endless loop, the first frame gets the function and line of the loop. Without a
/// snapshot, the result is empty.
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

/// Number of bytes of stderr, from the end, that a crash record keeps.
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
        read: run.read,
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
    details.of_descendant = snapshot.of_descendant;
    if let Some(message) = &snapshot.abort_message {
        details.abort_message = Some(message.clone()); // read off the C library itself
    }
    details.times.capture_us = micros(snapshot.took);
    details
}

/// How the stack frames of a crash were obtained (docs/src/keys.md), best way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureWay {
    /// The frames were read by ptrace from the stopped process.
    Ptrace,
    /// The frames were unwound from the copy of its registers and stack that the dying process made
    /// of itself.
    Copy,
    /// The frames are those of the first stack in a sanitizer's report.
    Report,
    /// There are no frames; the message that the program printed identifies the crash.
    Text,
    /// There are no frames; only the signal or the exit status of the crash is known.
    Status,
}

impl CaptureWay {
    /// Returns the name that crash records have for this way of obtaining stack frames, such as
    /// `ptrace`.
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
