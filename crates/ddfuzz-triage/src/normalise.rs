//! Selects the frames that identify a bug (crash-keys.md, "Normalise"): drops runtime frames,
//! functions that only end the program, and `main`; folds recursion.

use std::sync::Arc;

use crate::Entry;
use crate::snapshot::{Control, End, RawFrame, Snapshot};

/// The frames from which keys are computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// User frames, innermost first, with folded recursion: indices into the snapshot's frames.
    pub own: Vec<usize>,
    /// Number of dropped user frames whose function only ends the program (`die`). The minor key is
    /// shorter by as many frames.
    pub given_up: usize,
    /// User frames before recursion is folded; the keys of stack overflows need them.
    pub unfolded: Vec<usize>,
    /// Exported name of the outermost runtime frame on top.
    pub via: Option<Arc<str>>,
    /// Whether there is no user frame, so that the innermost runtime frame replaces it.
    pub runtime_only: bool,
}

/// Functions that detect a smashed stack; only one frame below them is reliable.
pub(crate) const SMASH_GUARDS: [&str; 3] = ["__stack_chk_fail", "__fortify_fail", "__chk_fail"];

/// Functions that report a failed assertion.
const ASSERTS: [&str; 3] = ["__assert_fail", "__assert", "__assert_perror_fail"];

/// Drops runtime frames, cuts the entry function and the frames below it, and folds recursion.
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

/// Drops functions that only end the program (`die`, `fatal`), but never the last user frame.
/// Returns the number of dropped frames.
fn drop_giving_up(own: &mut Vec<usize>, frames: &[RawFrame]) -> usize {
    let only = own.iter().take_while(|index| frames[**index].gives_up);
    let dropped = only.count().min(own.len().saturating_sub(1));
    own.drain(..dropped);
    dropped
}

/// Whether the stack was walked to `main`. A Rust program that aborts on panic has no unwind tables
/// for `main`, so frames beyond it are unreliable.
fn ends_at_main(frames: &[RawFrame]) -> bool {
    frames.last().is_some_and(|last| last.entry.is_some())
}

/// Whether the runtime detected a smashed stack.
pub(crate) fn found_smashed(snapshot: &Snapshot) -> bool {
    has_on_top(snapshot, &SMASH_GUARDS)
}

/// Whether an assertion failed.
pub(crate) fn failed_assertion(snapshot: &Snapshot) -> bool {
    has_on_top(snapshot, &ASSERTS)
}

fn has_on_top(snapshot: &Snapshot, functions: &[&str]) -> bool {
    let is_one = |frame: &RawFrame| {
        let name = frame.exported.as_deref();
        name.is_some_and(|name| functions.contains(&name))
    };
    snapshot.runtime_on_top().iter().any(is_one)
}

/// Cuts the outermost entry function and the frames below it, but never the last user frame. A
/// harness's entry takes precedence over `main`, which belongs to the fuzzer then.
fn cut_entry(own: &mut Vec<usize>, frames: &[RawFrame]) {
    let entries = || own.iter().map(|index| frames[*index].entry);
    let outermost = |entry: Entry| entries().rposition(|it| it == Some(entry));
    if let Some(cut) = outermost(Entry::Harness).or_else(|| outermost(Entry::Main)) {
        own.truncate(cut.max(1));
    }
}

/// Maximum length of a folded cycle, in frames.
const LONGEST_CYCLE: usize = 10;

/// Folds adjacent repetitions of cycles of length 1…10 to one, shortest cycles first, so that the
/// depth of a recursion does not matter.
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
