//! Which place names a Rust panic (crash-keys.md, "Capture", 4).

use super::abort_text::without_numbers;
use super::normalise::Normalised;
use super::said::{RustPanic, backtrace_place, is_std_file, short_location};
use super::snapshot::{RawFrame, Snapshot};

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
