//! Writes down all that is known of a crash.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::keys::take_in_object;
use crate::normalise::Normalised;
use crate::object::object;
use crate::quick::Named;
use crate::severity::severity;
use crate::snapshot::{Event, RawFrame, Snapshot};
use crate::told::{Told, Words};
use crate::{Crash, Details, Frame, PanicRecord, Symbolizer, Times, stable_key};
use ddfuzz_exec::{Ended, Limits, Way};

/// Version of the record's schema.
const SCHEMA: u32 = 1;

/// The run in which a crash was seen.
pub(crate) struct Run<'a> {
    /// How it ended.
    pub ended: Ended,
    /// How it was captured.
    pub capture: CaptureWay,
    /// The way of execution.
    pub way: Way,
    /// Limits in force.
    pub limits: Limits,
    /// Tries made, this one included.
    pub tries: u32,
    /// When the first try was started.
    pub at: SystemTime,
    /// How long this one took.
    pub took: Duration,
    /// What it said.
    pub told: &'a Told,
    /// What the program was compiled with.
    pub instrumentation: Option<Vec<String>>,
    /// Where the memory that it was told of was allocated, and where it was freed.
    pub sites: (Vec<RawFrame>, Vec<RawFrame>),
}

/// The record of a crash.
pub(crate) fn record(
    named: Named,
    snapshot: Option<&Snapshot>,
    run: &Run<'_>,
    symbolizer: &mut Symbolizer,
) -> Crash {
    let Named {
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
    details.panic = place.map(|place| panic_record(place, run.told));
    details.allocated = symbolizer.frames(&run.sites.0);
    details.freed = symbolizer.frames(&run.sites.1);
    details.inside = snapshot.map_or_else(Vec::new, |it| symbolizer.frames(&it.inside));
    let aborts = details.abort_message.as_deref();
    details.message = run.told.message(run.ended, &class, aborts);
    let owner = snapshot.and_then(|snapshot| snapshot.owner.as_ref());
    details.object = object(run.told.report(), owner, symbolizer).map(Box::new);
    let said = details.abort_message.as_deref();
    let report = details.report.as_ref();
    let in_keys = snapshot.is_some_and(|snapshot| take_in_object(&class, snapshot));
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

/// The names of the program's own functions on the stack. Inlined functions belong to the one that
/// holds them, but for a loop that does not end: its first name is that of the function that it is
/// written in.
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

/// The frames with their names and lines. The first one of a hang is where its loop is.
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

/// How much of stderr a record keeps, in bytes.
const STDERR: usize = 4096;

fn last(stderr: &[u8]) -> &[u8] {
    &stderr[stderr.len().saturating_sub(STDERR)..]
}

fn panic_record(place: String, told: &Told) -> PanicRecord {
    let (location, message) = match &told.words {
        Some(Words::RustPanic(panic)) => (Some(panic.location.clone()), panic.message.clone()),
        Some(Words::GoPanic(panic)) => (panic.line.clone(), panic.message.clone()),
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
    let abort = run.told.abort.as_ref();
    let mut details = Details {
        stderr: String::from_utf8_lossy(last(&run.told.stderr)).into_owned(),
        abort_message: abort.map(|abort| abort.message.clone()),
        exception: abort.and_then(|abort| abort.exception.clone()),
        report: run.told.report().cloned(),
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
    details.code = snapshot
        .code
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    details.end = snapshot.end;
    if let Some(message) = &snapshot.abort_message {
        details.abort_message = Some(message.clone()); // read off the C library itself
    }
    details.times.capture_us = micros(snapshot.took);
    details
}

/// How a crash was captured (crash-keys.md, "Capture"); the first that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureWay {
    /// Read off the stopped process from outside.
    Ptrace,
    /// Unwound from what the dying process has copied.
    Copy,
    /// By the first stack of a sanitizer's report.
    Report,
    /// Only what it said names it.
    Text,
    /// Only how it ended is known.
    Status,
}

impl CaptureWay {
    /// As records write it.
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
