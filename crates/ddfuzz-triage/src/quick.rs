//! Class and keys of one snapshot.

use super::abort_text::{assertion, last_line};
use super::class::classify_told;
use super::keys::{frameless_keys, keys, panic_keys};
use super::normalise::{Normalised, failed_assertion, normalise};
use super::panic_place::panic_place;
use super::said::{GoPanic, short_location};
use super::snapshot::{Event, Snapshot};
use super::told::{Told, Words};
use super::{Class, Confidence, Keys};
use ddfuzz_exec::Ended;

/// A crash with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What kind of death.
    pub class: Class,
    /// Its keys, without the stable one.
    pub keys: Keys,
    /// The frames that they were computed from.
    pub normalised: Normalised,
    /// How far they can be trusted.
    pub confidence: Confidence,
    /// What names a panic.
    pub place: Option<String>,
}

impl Named {
    /// A crash of which only the class is known.
    pub fn of_class(class: Class) -> Named {
        let keys = frameless_keys(&class);
        Named {
            class,
            keys,
            normalised: Normalised::default(),
            confidence: Confidence::Low,
            place: None,
        }
    }
}

/// Names the crash that a snapshot shows. `depth` is the number of frames in the minor key;
/// `told` is what the run said.
pub fn name(snapshot: &Snapshot, depth: usize, told: &Told) -> Named {
    let ended = match snapshot.event {
        Event::Signal { number, .. } => Ended::Signal(number),
        Event::Exit(status) => Ended::Exit(status),
        Event::OutOfTime => Ended::Timeout,
        Event::OutOfMemory => Ended::OutOfMemory,
    };
    let class = classify_told(Some(snapshot), ended, told);
    if let Some(named) = name_panic(class.clone(), Some(snapshot), depth, told, None) {
        return named;
    }
    let normalised = normalise(snapshot);
    let text = text(snapshot, &class, &told.stderr);
    let keys = keys(&class, snapshot, &normalised, depth, text.as_deref());
    let unsure = snapshot.torn
        || normalised.own.is_empty()
        || normalised.runtime_only
        || snapshot.opaque_runtime;
    let confidence = if unsure {
        Confidence::Low
    } else {
        Confidence::High
    };
    Named {
        class,
        keys,
        normalised,
        confidence,
        place: None,
    }
}

/// Names a panic of Rust or Go, which a place names better than frames; `None` of another
/// `class`. `backtrace` is what another run wrote to show its backtrace.
pub fn name_panic(
    class: Class,
    snapshot: Option<&Snapshot>,
    depth: usize,
    told: &Told,
    backtrace: Option<&[u8]>,
) -> Option<Named> {
    // Of a process that exits the stack is gone.
    let captured = snapshot.filter(|snapshot| snapshot.signal().is_some());
    let normalised = captured.map(normalise).unwrap_or_default();
    let stack = captured.map(|snapshot| (snapshot, &normalised));
    let (place, stack) = match (&told.words, class.0.as_str()) {
        (Some(Words::RustPanic(panic)), "rustpanic") => {
            (panic_place(panic, backtrace, stack), stack)
        }
        // Go's frames are not unwound: it has no unwind tables.
        (Some(Words::GoPanic(panic)), "gopanic") => (go_place(panic), None),
        _ => return None,
    };
    let keys = panic_keys(&class, &place, stack, depth);
    Some(Named {
        class,
        keys,
        normalised,
        confidence: Confidence::High,
        place: Some(place),
    })
}

/// What names a panic of Go: where the first frame is that is not the runtime's.
fn go_place(panic: &GoPanic) -> String {
    let line = panic.line.as_deref().map(short_location);
    let function = panic.function.as_deref();
    match (function, line) {
        (Some(function), Some(line)) => format!("{function} {line}"),
        _ => super::abort_text::without_numbers(&panic.message),
    }
}

/// What an aborting program said, where keys take that in.
fn text(snapshot: &Snapshot, class: &Class, stderr: &[u8]) -> Option<String> {
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
