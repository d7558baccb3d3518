//! Functions that only give up: `die()`, `fatal()`, `usage()`. Many bugs end in one of them, and
//! which one it was, only its caller tells.
//!
//! They are known by their code, which is there with and without symbols: it cannot return, has no
//! loop, and is entered by a direct call. (A part that the compiler has moved out of a function,
//! as it does with what it takes for cold, is jumped to, and so is none.)

use super::instruction::{CallTarget, only_gives_up};
use super::memory::Memory;
use super::snapshot::{Event, RawFrame};
use crate::modules::Layout;
use crate::unwind::Step;
use crate::unwind::called_before;

/// The longest function that is taken for one, in bytes: what gives up has little to do.
const LONGEST_FUNCTION: u64 = 1024;

/// How many frames of a C library that cannot be told from the program may stand on top of its
/// `abort`.
const DEEPEST: usize = 5;

/// Whether such a function may be where this happens: nobody gives up by a bad pointer.
pub(crate) fn may_be(event: Event) -> bool {
    match event {
        Event::Signal { number, .. } => {
            matches!(number, libc::SIGABRT | libc::SIGILL | libc::SIGTRAP)
        }
        Event::Exit(_) => true,
        Event::OutOfTime | Event::OutOfMemory => false,
    }
}

/// Marks the innermost own frames that are such functions'. Where the runtime is `opaque` its
/// `abort` is one of them, with what it has called.
pub(crate) fn mark(
    frames: &mut [RawFrame],
    steps: &[Step],
    opaque: bool,
    layout: &Layout,
    memory: &mut dyn Memory,
) {
    let Some(first) = frames.iter().position(|frame| !frame.runtime) else {
        return;
    };
    let mut gives_up = |at: usize, loops: bool| match (steps.get(at), steps.get(at + 1)) {
        (Some(callee), Some(caller)) => is_one(*callee, *caller, loops, layout, memory),
        _ => false,
    };
    // A library's own `abort` tries again and again.
    let abort = (first..first + DEEPEST).find(|at| opaque && gives_up(*at, true));
    let mut next = abort.map_or(first, |abort| abort + 1);
    while next < frames.len() && gives_up(next, false) {
        next += 1;
    }
    for frame in frames.iter_mut().take(next).skip(first) {
        frame.gives_up = true;
    }
}

/// Whether `callee` is in such a function, which `caller` has called by its name.
fn is_one(
    callee: Step,
    caller: Step,
    loops: bool,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> bool {
    let function = || {
        let region = layout.region(callee.address)?;
        let offset = callee.address.wrapping_sub(region.bias);
        let function = region.module.function(offset)?;
        let length = function.end.checked_sub(function.start)?;
        let start = function.start.wrapping_add(region.bias);
        (length <= LONGEST_FUNCTION && !region.is_runtime(callee.address))
            .then_some((start, length as usize))
    };
    let Some((start, length)) = function() else {
        return false;
    };
    let Some(behind_call) = caller.address.checked_add(1) else {
        return false;
    };
    if called_before(behind_call, layout, memory) != Some(CallTarget::Address(start)) {
        return false;
    }
    let code = memory.bytes(start, length);
    code.len() == length && only_gives_up(&code, start, loops)
}
