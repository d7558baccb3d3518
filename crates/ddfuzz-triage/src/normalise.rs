//! From the frames that were read to those that name a bug (crash-keys.md, "Normalise").

use std::sync::Arc;

use super::Entry;
use super::fold::fold_cycles;
use super::snapshot::{Control, End, RawFrame, Snapshot};

/// The frames that keys are computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// Own frames, innermost first, recursion folded: indices into the snapshot's frames.
    pub own: Vec<usize>,
    /// Own frames that were dropped because they only give up (`die`). They have told routes apart
    /// already, as far as the minor key wants that.
    pub given_up: usize,
    /// Own frames before folding, for stack overflows.
    pub unfolded: Vec<usize>,
    /// Exported name of the outermost runtime frame on top.
    pub via: Option<Arc<str>>,
    /// Whether there was no own frame, so that the innermost frame of the runtime stands in.
    pub runtime_only: bool,
}

/// Functions in which a smashed stack is noticed; below them only one frame can be believed.
pub(crate) const SMASH_GUARDS: [&str; 3] = ["__stack_chk_fail", "__fortify_fail", "__chk_fail"];

/// Functions by which an assertion fails.
const ASSERTS: [&str; 3] = ["__assert_fail", "__assert", "__assert_perror_fail"];

/// Drops the runtime's frames, cuts the entry and what is below it, and folds recursion.
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

/// Drops the functions that only give up (`die`, `fatal`), but never the last own frame. Gives how
/// many it has dropped.
fn drop_giving_up(own: &mut Vec<usize>, frames: &[RawFrame]) -> usize {
    let only = own
        .iter()
        .take_while(|index| frames[**index].gives_up)
        .count();
    let dropped = only.min(own.len().saturating_sub(1));
    own.drain(..dropped);
    dropped
}

/// Whether the walk came as far as `main`: a Rust program that aborts on panics has no unwind
/// tables for it, so that it goes on from there only by luck.
fn ends_at_main(frames: &[RawFrame]) -> bool {
    frames.last().is_some_and(|last| last.entry.is_some())
}

/// Whether the runtime itself says that the stack is smashed.
pub(crate) fn found_smashed(snapshot: &Snapshot) -> bool {
    has_on_top(snapshot, &SMASH_GUARDS)
}

/// Whether an assertion has failed.
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

/// Cuts the outermost entry function and what is below it, but never the last own frame. The
/// entry of a harness comes before `main`, which is the fuzzer's then.
fn cut_entry(own: &mut Vec<usize>, frames: &[RawFrame]) {
    let outermost = |entry: Entry| {
        own.iter()
            .rposition(|index| frames[*index].entry == Some(entry))
    };
    if let Some(cut) = outermost(Entry::Harness).or_else(|| outermost(Entry::Main)) {
        own.truncate(cut.max(1));
    }
}
