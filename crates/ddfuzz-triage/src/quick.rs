//! Class and keys of one snapshot.

use crate::abort_text::{assertion, last_line, without_numbers};
use crate::class::classify_told;
use crate::keys::{frameless_keys, keys, panic_keys};
use crate::normalise::{Normalised, failed_assertion, normalise};
use crate::said::{GoPanic, RustPanic, backtrace_place, is_std_file, short_location};
use crate::snapshot::{Event, RawFrame, Snapshot};
use crate::told::{Told, Words};
use crate::{Class, Confidence, Keys};
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

/// Whether the panic's own location names nobody: it lies in the standard library.
pub(crate) fn is_in_std(panic: &RustPanic) -> bool {
    is_std_file(&panic.location)
}

/// Whether a frame is surely the user's: a stripped program's standard library cannot be told from
/// the program, and would stand on top of every panic.
fn is_known_own(frame: &RawFrame, snapshot: &Snapshot) -> bool {
    let of_std =
        |above: &RawFrame| above.module == frame.module || above.module.starts_with("libstd-");
    !frame.runtime && snapshot.runtime_on_top().iter().any(of_std)
}

/// What names a panic: its location; of one in the standard library the first location outside of
/// it, by the backtrace that another run has written to `backtrace`. Without debug information it
/// is the first own frame where the stack was read, else the function in the backtrace and the
/// message, without numbers.
pub(crate) fn panic_place(
    panic: &RustPanic,
    backtrace: Option<&[u8]>,
    stack: Option<(&Snapshot, &Normalised)>,
) -> String {
    let location = short_location(&panic.location);
    if !is_in_std(panic) {
        return location;
    }
    let told = backtrace.and_then(backtrace_place);
    if let Some(place) = &told
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
    let function = told.unwrap_or_default();
    let message = without_numbers(&panic.message);
    format!("{location} from {function}: {message}")
}
