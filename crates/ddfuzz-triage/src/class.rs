//! The class of a crash (`segv`, `abrt`, `asan:*`, `hang` …; docs/src/keys.md), and the computation
//! of class and keys from a snapshot (the state of a dying process).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::AddressClass;
use crate::keys::{frameless_keys, keys, panic_keys};
use crate::messages::{
    Diagnostics, FatalMessage, GoPanic, RustPanic, assertion, backtrace_place, from_panic,
    is_std_file, last_line, short_location, without_numbers,
};
use crate::normalise::{Normalised, failed_assertion, failed_check, found_smashed, normalise};
use crate::snapshot::{Control, End, Event, RawFrame, Snapshot};
use crate::{Confidence, Keys};
use ddfuzz_exec::{Ended, Sanitizer};

/// Class of a crash, such as `segv`, `abrt`, `asan:heap-buffer-overflow` or `hang`
/// (docs/src/keys.md).
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Class(pub String);

impl Class {
    /// Returns the sanitizer whose reports give crashes this class; `None` for a class that no
    /// sanitizer gives.
    pub fn sanitizer(&self) -> Option<Sanitizer> {
        Sanitizer::of_class(&self.0)
    }

    /// Returns the part of the class's name after the colon, such as `heap-buffer-overflow` of
    /// `asan:heap-buffer-overflow`; empty without a colon.
    pub fn kind(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, kind)| kind)
    }

    /// Returns the exit status in a class `exit:NUMBER`, the class of crashes whose exit status the
    /// user has declared to be a crash; `None` for other classes.
    pub fn exit_status(&self) -> Option<i32> {
        self.0.strip_prefix("exit:")?.parse().ok()
    }

    /// Checks whether this is the class of memory leaks that LeakSanitizer reports.
    pub fn is_leak(&self) -> bool {
        self.sanitizer() == Some(Sanitizer::Lsan)
    }

    /// Checks whether this is the class of runs that exceed their time limit.
    pub fn is_hang(&self) -> bool {
        self.0 == "hang"
    }

    /// Checks whether crashes of this class are grouped by the function of the innermost user
    /// frame, and not by its exact code address.
    pub(crate) fn is_by_function(&self) -> bool {
        matches!(self.0.as_str(), "smash" | "wildcall" | "hang" | "oom")
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the class of a crash (such as `segv`) from the snapshot of the dying process alone,
/// without the messages that it printed.
pub fn classify(snapshot: &Snapshot) -> Class {
    let signal = match snapshot.event {
        Event::Exit(status) => return Class(format!("exit:{status}")),
        Event::Signal { number, .. } => number,
        Event::OutOfTime => return Class("hang".to_owned()),
        Event::OutOfMemory => return Class("oom".to_owned()),
    };
    let name = match snapshot.control {
        Control::WildCall => "wildcall",
        Control::Smashed => "smash",
        Control::Sound if found_smashed(snapshot) => "smash",
        Control::Sound if signal == libc::SIGSEGV && overflows(snapshot) => "stackoverflow",
        Control::Sound => {
            let check = failed_check(snapshot).filter(|_| signal == libc::SIGABRT);
            let by_check = |check| Class(format!("{}:{check}", Sanitizer::Ubsan.name()));
            return check.map_or_else(|| signal_class(signal), by_check);
        }
    };
    Class(name.to_owned())
}

/// Returns the class of a run that crashed or exceeded a limit, from the snapshot of its process
/// (if there is one), how it ended, and the messages that it printed.
pub fn classify_run(snapshot: Option<&Snapshot>, ended: Ended, diagnostics: &Diagnostics) -> Class {
    let plain = || match snapshot {
        Some(snapshot) => classify(snapshot),
        None => classify_ending(ended),
    };
    // The guard that finds a smashed stack aborts, as a panic may: the stack decides then, and not
    // the panic message.
    let smashed = || plain().0 == "smash";
    let class = match &diagnostics.fatal {
        Some(FatalMessage::Report(report)) => match report.signal_class() {
            // A snapshot taken at the signal itself, before the sanitizer's handler ran, tells
            // more.
            Some(_) if snapshot.is_some_and(faulted) => return plain(),
            Some(class) => class.to_owned(),
            None if report.is_over_limit() => "oom".to_owned(),
            None => format!("{}:{}", report.tool.name(), report.kind),
        },
        Some(FatalMessage::RustPanic(_)) if !smashed() => "rustpanic".to_owned(),
        Some(FatalMessage::GoPanic(_)) if !smashed() => "gopanic".to_owned(),
        _ => return plain(),
    };
    Class(class)
}

/// Checks whether the snapshot was taken at a crash signal other than `SIGABRT`, that is, not at an
/// abort, an exit or an exceeded limit.
fn faulted(snapshot: &Snapshot) -> bool {
    snapshot
        .signal()
        .is_some_and(|signal| signal != libc::SIGABRT)
}

/// Returns the class of a crash, hang or memory blow-up, judged only by how the run ended: by its
/// signal, exit status, or exceeded limit.
pub fn classify_ending(ended: Ended) -> Class {
    match ended {
        Ended::Signal(signal) => signal_class(signal),
        Ended::Exit(status) => Class(format!("exit:{status}")),
        Ended::Timeout => Class("hang".to_owned()),
        Ended::OutOfMemory => Class("oom".to_owned()),
    }
}

fn signal_class(signal: i32) -> Class {
    let name = match signal {
        libc::SIGSEGV => "segv",
        libc::SIGBUS => "bus",
        libc::SIGFPE => "fpe",
        libc::SIGILL => "ill",
        libc::SIGABRT => "abrt",
        libc::SIGSYS => "sys",
        libc::SIGTRAP => "trap",
        other => return Class(format!("signal:{other}")),
    };
    Class(name.to_owned())
}

/// Checks whether the crash in the snapshot is a stack overflow: the faulting address lies just
/// below the stack, or the stack has more frames than are read. A null pointer dereference deep in
/// a recursion is not a stack overflow.
fn overflows(snapshot: &Snapshot) -> bool {
    match snapshot.fault.class {
        Some(AddressClass::NearSp) => true,
        Some(AddressClass::Null | AddressClass::NonCanonical) => false,
        _ => snapshot.end == End::Cap,
    }
}

/// The result of classifying a crash: its class and keys (hashes by which crashes are grouped), the
/// stack frames from which the keys were computed, and how far the keys can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Class of the crash, such as `segv` or `asan:heap-buffer-overflow`.
    pub class: Class,
    /// Major and minor key of the crash. The stable key is not set yet; it is computed when the
    /// crash record is built, because it needs function names.
    pub keys: Keys,
    /// The selected stack frames from which the keys were computed: user frames, without recursion.
    pub normalised: Normalised,
    /// How far the keys of the crash can be trusted: low if the stack was read incompletely or no
    /// user code is known.
    pub confidence: Confidence,
    /// Text that identifies a Rust or Go panic in its keys, usually its source location; `None` if
    /// the crash is not a panic.
    pub place: Option<String>,
}

impl Classified {
    /// Builds the result of classifying a crash of which only the class is known: its keys are
    /// computed from the class alone, so that all such crashes of one class have equal keys.
    pub fn of_class(class: Class) -> Classified {
        let keys = frameless_keys(&class);
        Classified {
            class,
            keys,
            normalised: Normalised::default(),
            confidence: Confidence::Low,
            place: None,
        }
    }
}

/// Computes class and keys of the crash in a snapshot, with the help of the messages that the
/// process printed (`diagnostics`). `depth` is the maximum number of user frames in the minor key
/// (1…5; other values are clamped). For a stack overflow, the keys have the functions of the
/// recursion instead of frames.
pub fn class_and_keys(snapshot: &Snapshot, depth: usize, diagnostics: &Diagnostics) -> Classified {
    let ended = match snapshot.event {
        Event::Signal { number, .. } => Ended::Signal(number),
        Event::Exit(status) => Ended::Exit(status),
        Event::OutOfTime => Ended::Timeout,
        Event::OutOfMemory => Ended::OutOfMemory,
    };
    let class = classify_run(Some(snapshot), ended, diagnostics);
    if let Some(named) = classify_panic(class.clone(), Some(snapshot), depth, diagnostics, None) {
        return named;
    }
    let normalised = normalise(snapshot);
    let text = abort_text(snapshot, &class, &diagnostics.stderr);
    let keys = keys(&class, snapshot, &normalised, depth, text.as_deref());
    let unsure = snapshot.torn
        || normalised.own.is_empty()
        || normalised.runtime_only
        || snapshot.opaque_runtime;
    let confidence = match unsure {
        true => Confidence::Low,
        false => Confidence::High,
    };
    Classified {
        class,
        keys,
        normalised,
        confidence,
        place: None,
    }
}

/// Computes the keys of a Rust or Go panic from the source location that its message in
/// `diagnostics` names, which identifies it better than stack frames; `None` if `class` is not that
/// of a panic, or there is no such message. `depth` is the number of stack frames of `snapshot` in
/// the minor key; `backtrace` is the stderr of a second run with `RUST_BACKTRACE`.
pub fn classify_panic(
    class: Class,
    snapshot: Option<&Snapshot>,
    depth: usize,
    diagnostics: &Diagnostics,
    backtrace: Option<&[u8]>,
) -> Option<Classified> {
    // Of a process that exits the stack is gone.
    let captured = snapshot.filter(|snapshot| snapshot.signal().is_some());
    let normalised = captured.map(normalise).unwrap_or_default();
    let stack = captured.map(|snapshot| (snapshot, &normalised));
    let (place, stack) = match (&diagnostics.fatal, class.0.as_str()) {
        (Some(FatalMessage::RustPanic(panic)), "rustpanic") => {
            (panic_place(panic, backtrace, stack), stack)
        }
        // Go's frames are not unwound: it has no unwind tables.
        (Some(FatalMessage::GoPanic(panic)), "gopanic") => (go_place(panic), None),
        _ => return None,
    };
    let keys = panic_keys(&class, &place, stack, depth);
    Some(Classified {
        class,
        keys,
        normalised,
        confidence: Confidence::High,
        place: Some(place),
    })
}

/// Returns the text that identifies a Go panic in its keys: function and line of the first stack
/// frame outside Go's runtime, else the panic message without numbers.
fn go_place(panic: &GoPanic) -> String {
    let line = panic.line.as_deref().map(short_location);
    let function = panic.function.as_deref();
    match (function, line) {
        (Some(function), Some(line)) => format!("{function} {line}"),
        _ => without_numbers(&panic.message),
    }
}

/// Returns the text, among the messages of an aborted program, that goes into the keys of the
/// crash: the failed assertion; if there is none and the program is static and stripped, the last
/// line of stderr. `None` for other aborts, and for crashes that are not aborts.
fn abort_text(snapshot: &Snapshot, class: &Class, stderr: &[u8]) -> Option<String> {
    if class.0 != "abrt" {
        return None;
    }
    if failed_assertion(snapshot) {
        let said = snapshot.abort_message.as_deref().and_then(assertion);
        return said.or_else(|| assertion(&String::from_utf8_lossy(stderr)));
    }
    if snapshot.opaque_runtime {
        return last_line(&String::from_utf8_lossy(stderr));
    }
    None
}

/// Checks whether the source location of a panic lies in Rust's standard library, so that it does
/// not identify user code.
pub(crate) fn is_in_std(panic: &RustPanic) -> bool {
    is_std_file(&panic.location)
}

/// Checks whether the stack frame `frame` certainly is user code: true if frames of Rust's standard
/// library were recognized on top of it. In a stripped Rust program none are recognized, because
/// its copy of the standard library cannot be distinguished from its own code.
fn is_known_own(frame: &RawFrame, snapshot: &Snapshot) -> bool {
    let of_std =
        |above: &RawFrame| above.module == frame.module || above.module.starts_with("libstd-");
    !frame.runtime && snapshot.runtime_on_top().iter().any(of_std)
}

/// Returns the stack of a crash that was raised by a Rust panic, if two crashes with this stack
/// certainly have the same backtrace. The caller then need not run the input again with
/// `RUST_BACKTRACE` if it knows the backtrace of an earlier crash with the same stack. `None` if
/// the stack was not read to its end, no signal was raised, or no frames of Rust's standard library
/// are on top of user code.
pub(crate) fn panicking_stack(snapshot: &Snapshot) -> Option<&[RawFrame]> {
    if snapshot.torn || snapshot.end != End::Clean || snapshot.signal().is_none() {
        return None;
    }
    let own = snapshot.frames.get(snapshot.runtime_on_top().len())?;
    is_known_own(own, snapshot).then_some(&snapshot.frames[..])
}

/// Returns the text that identifies a Rust panic in its keys, the first of these that is known: its
/// source location `panic.location`, unless that is in the standard library; the first location
/// outside of the library in `backtrace`; `panic.location` with the innermost user frame of
/// `stack`, if that certainly is user code; `panic.location` with the function in the backtrace and
/// the message without numbers.
pub(crate) fn panic_place(
    panic: &RustPanic,
    backtrace: Option<&[u8]>,
    stack: Option<(&Snapshot, &Normalised)>,
) -> String {
    let location = short_location(&panic.location);
    if !is_in_std(panic) {
        return location;
    }
    let seen = backtrace.and_then(|stderr| backtrace_place(from_panic(stderr, panic)));
    if let Some(place) = &seen
        && place.contains(':')
        && place.ends_with(|digit: char| digit.is_ascii_digit())
    {
        return short_location(place);
    }
    let frame = stack
        .and_then(|(snapshot, normalised)| snapshot.frames.get(*normalised.own.first()?))
        .filter(|frame| stack.is_some_and(|(snapshot, _)| is_known_own(frame, snapshot)));
    if let Some(frame) = frame {
        return format!("{location} from {}+{:#x}", frame.module, frame.offset);
    }
    let function = seen.unwrap_or_default();
    let message = without_numbers(&panic.message);
    format!("{location} from {function}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_tells_a_backtrace_if_it_is_whole_and_the_standard_library_is_on_top() {
        let frame = |module: &str, runtime| RawFrame {
            module: module.into(),
            runtime,
            ..RawFrame::default()
        };
        let aborted = Event::Signal { number: 6, code: 0 };
        let whole = Snapshot {
            frames: vec![
                frame("libc.so.6", true),
                frame("exe", true),
                frame("exe", false),
            ],
            end: End::Clean,
            ..Snapshot::bare(aborted)
        };
        assert_eq!(panicking_stack(&whole), Some(&whole.frames[..]));
        let others = [
            Snapshot {
                end: End::Cap,
                ..whole.clone()
            },
            Snapshot {
                torn: true,
                ..whole.clone()
            },
            Snapshot {
                event: Event::Exit(1),
                ..whole.clone()
            },
            // The program has called `abort` itself.
            Snapshot {
                frames: vec![frame("libc.so.6", true), frame("exe", false)],
                ..whole.clone()
            },
            Snapshot {
                frames: vec![frame("exe", true)],
                ..whole
            },
        ];
        assert!(others.iter().all(|it| panicking_stack(it).is_none()));
    }
}
