//! Selects the frames that identify a bug (docs/src/keys.md): drops runtime frames,
//! functions that only end the program, and `main`; folds recursion.

use std::sync::Arc;

use crate::Entry;
use crate::snapshot::{Control, End, RawFrame, Snapshot};
use ddfuzz_exec::Sanitizer;

/// The stack frames of a crash from which its keys are computed: without runtimes, `main` and
/// repetitions by recursion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// User frames that identify the bug, innermost first, with repetitions by recursion removed;
    /// each is an index into the frames of the snapshot.
    pub own: Vec<usize>,
    /// Number of innermost user frames that were dropped because their functions only end the
    /// program (`die`). The minor key is shortened by as many frames.
    pub given_up: usize,
    /// User frames before repetitions by recursion were removed, as indices into the frames of the
    /// snapshot. The keys of stack overflows are computed from them.
    pub unfolded: Vec<usize>,
    /// Name of the runtime function (`free`, `strlen`) that the innermost user frame called; `None`
    /// if the crash is in user code itself, or no name is known.
    pub via: Option<Arc<str>>,
    /// Whether the stack of the crash has no frame of user code; `own` then has the innermost
    /// runtime frame.
    pub runtime_only: bool,
}

/// C library functions that abort the program when they find a smashed stack. Only the first of the
/// user frames that called them is reliable.
pub(crate) const SMASH_GUARDS: [&str; 3] = ["__stack_chk_fail", "__fortify_fail", "__chk_fail"];

/// C library functions that report a failed assertion.
const ASSERTS: [&str; 3] = ["__assert_fail", "__assert", "__assert_perror_fail"];

/// Selects the stack frames that identify the bug: drops frames of runtimes (C library, sanitizer)
/// and of functions that only end the program, cuts `main` or a fuzzing harness's entry with its
/// callers, and folds recursion. Of a smashed stack, only the first user frame is selected.
pub fn normalise(snapshot: &Snapshot) -> Normalised {
    let frames = &snapshot.frames;
    let top = snapshot.runtime_on_top();
    let via = top.last().and_then(|frame| frame.exported.clone());
    let mut own: Vec<usize> = (0..frames.len())
        .filter(|index| !frames[*index].runtime)
        .collect();
    let runtime_only = own.is_empty();
    if runtime_only {
        own.extend((!frames.is_empty()).then_some(0));
    }
    let mut given_up = 0;
    if snapshot.control == Control::Smashed || found_smashed(snapshot) {
        own.truncate(1);
    } else {
        // An assertion is told from others by its text.
        if !failed_assertion(snapshot) {
            given_up = drop_giving_up(&mut own, frames);
        }
        if snapshot.end == End::Clean || ends_at_main(frames) {
            cut_entry(&mut own, frames);
        }
    }
    let same = |a: &usize, b: &usize| {
        frames[*a].module == frames[*b].module && frames[*a].offset == frames[*b].offset
    };
    let unfolded = own.clone();
    Normalised {
        own: fold_cycles(own, same),
        given_up,
        unfolded,
        via,
        runtime_only,
    }
}

/// Removes from `own` the innermost user frames whose functions only end the program (`die`,
/// `fatal`), but never the last frame; returns the number of removed frames.
fn drop_giving_up(own: &mut Vec<usize>, frames: &[RawFrame]) -> usize {
    let only = own.iter().take_while(|index| frames[**index].gives_up);
    let dropped = only.count().min(own.len().saturating_sub(1));
    own.drain(..dropped);
    dropped
}

/// Returns true if the outermost frame that the stack walk found is in `main` or a fuzzing
/// harness's entry, else false. In a Rust program that aborts on panic, the walk ends at `main`,
/// which has no unwind tables in such a program.
fn ends_at_main(frames: &[RawFrame]) -> bool {
    frames.last().is_some_and(|last| last.entry.is_some())
}

/// Checks whether the C library's stack guard found a smashed stack and aborted the process: true
/// if one of the guard's functions is among the innermost frames.
pub(crate) fn found_smashed(snapshot: &Snapshot) -> bool {
    has_on_top(snapshot, &SMASH_GUARDS)
}

/// Checks whether the process died of a failed C assertion: true if `__assert_fail` or a similar
/// function is among the innermost frames.
pub(crate) fn failed_assertion(snapshot: &Snapshot) -> bool {
    has_on_top(snapshot, &ASSERTS)
}

/// Returns the check of UndefinedBehaviorSanitizer (`out-of-bounds`) whose minimal runtime has
/// aborted the process; `None` if no handler of that runtime is among the innermost frames. The
/// frames decide, because the runtime prints one line only, which could be the program's own.
pub(crate) fn failed_check(snapshot: &Snapshot) -> Option<String> {
    let names = exported_on_top(snapshot);
    names.filter_map(minimal_check).last()
}

/// Returns the check (`out-of-bounds`) whose handler, in UndefinedBehaviorSanitizer's minimal
/// runtime, is the function `name`; `None` for any other function.
pub(crate) fn minimal_check(name: &str) -> Option<String> {
    let handler = name.strip_prefix(Sanitizer::Ubsan.symbol())?;
    let handler = handler.strip_suffix("_abort").unwrap_or(handler);
    Some(handler.strip_suffix("_minimal")?.replace('_', "-"))
}

fn has_on_top(snapshot: &Snapshot, functions: &[&str]) -> bool {
    exported_on_top(snapshot).any(|name| functions.contains(&name))
}

/// Returns the names of the functions whose frames are on top of the innermost user frame: frames
/// of the runtime (C library, sanitizer). Frames whose function is unknown are left out.
fn exported_on_top(snapshot: &Snapshot) -> impl Iterator<Item = &str> {
    let frames = snapshot.runtime_on_top().iter();
    frames.filter_map(|frame| frame.exported.as_deref())
}

/// Removes from the user frames `own` the outermost entry function (`main`, or that of a fuzzing
/// harness) and its callers, but never the last frame. A harness's entry takes precedence over
/// `main`, which belongs to the fuzzer then.
fn cut_entry(own: &mut Vec<usize>, frames: &[RawFrame]) {
    let entries = || own.iter().map(|index| frames[*index].entry);
    let outermost = |entry: Entry| entries().rposition(|it| it == Some(entry));
    if let Some(cut) = outermost(Entry::Harness).or_else(|| outermost(Entry::Main)) {
        own.truncate(cut.max(1));
    }
}

/// Maximum number of functions in the cycle of a recursion whose repetitions are folded.
const LONGEST_CYCLE: usize = 10;

/// Returns a list of stack frames in which recursion is folded: adjacent repetitions of a cycle of
/// 1 to 10 frames become one, shortest cycles first, so that the depth of the recursion does not
/// matter. `same`: whether two frames count as equal.
pub fn fold_cycles<T>(mut frames: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    for length in 1..=LONGEST_CYCLE {
        let mut folded: Vec<T> = Vec::with_capacity(frames.len());
        for frame in frames {
            folded.push(frame);
            let Some(middle) = folded.len().checked_sub(length) else {
                continue;
            };
            let Some(start) = middle.checked_sub(length) else {
                continue;
            };
            let (earlier, later) = (&folded[start..middle], &folded[middle..]);
            if earlier.iter().zip(later).all(|(a, b)| same(a, b)) {
                folded.truncate(middle);
            }
        }
        frames = folded;
    }
    frames
}
