//! Who called whom at the top of a stack: names of the runtime functions there, functions that a
//! tail call removed from the stack, and functions such as `die()` that only end the program.

use std::sync::Arc;

use crate::instruction::{CallTarget, LONGEST, only_ends_program, stub_slot};
use crate::memory::Memory;
use crate::modules::Layout;
use crate::snapshot::{Control, Event, RawFrame, Trust};
use crate::snapshot_reader::frame;
use crate::unwind::{Step, called_before};

/// Returns, for each of the runtime frames (C library, sanitizer) at the top of the stack of a
/// crash, the exported name of its function, innermost first; `None` where the name is unknown.
///
/// The function of the outermost of these frames may be a processor-specific variant that is not
/// exported (`__strlen_avx2` on one machine, `__strlen_evex` on another). Its name is then that of
/// the imported function that its caller calls or, if the caller's code does not tell, the nearest
/// exported name below its address.
pub(crate) fn exported_names(
    steps: &[Step],
    frames: &[RawFrame],
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Vec<Option<Arc<str>>> {
    let count = frames.iter().take_while(|frame| frame.runtime).count();
    let mut names: Vec<Option<Arc<str>>> = steps[..count]
        .iter()
        .map(|step| exact_name(*step, layout))
        .collect();
    if let Some(outermost @ None) = names.last_mut() {
        let asked = steps
            .get(count)
            .and_then(|caller| called_name(*caller, layout, memory));
        *outermost = asked.or_else(|| nearest_name(steps[count - 1], layout));
    }
    names
}

/// Checks whether one of the stack frames `steps` is in the C library's function `exit`, which
/// calls the handlers that the program has registered (`atexit`).
pub(crate) fn is_at_exit(steps: &[Step], layout: &Layout) -> bool {
    let mut names = steps.iter().filter_map(|step| exact_name(*step, layout));
    names.any(|name| &*name == "exit")
}

fn exact_name(step: Step, layout: &Layout) -> Option<Arc<str>> {
    let region = layout.region(step.address)?;
    region
        .module
        .runtime_name(step.address.wrapping_sub(region.bias))
}

fn nearest_name(step: Step, layout: &Layout) -> Option<Arc<str>> {
    let region = layout.region(step.address)?;
    let offset = step.address.wrapping_sub(region.bias);
    Some(region.module.exports.nearest(offset)?.name)
}

/// Returns the name of the imported function that the stack frame `caller` called last, as told by
/// the call instruction before the frame's return address; `None` if that instruction does not call
/// an imported function, or calls through a register.
fn called_name(caller: Step, layout: &Layout, memory: &mut dyn Memory) -> Option<Arc<str>> {
    let region = layout.region(caller.address)?;
    let slot = match called_before(caller.address.checked_add(1)?, layout, memory)? {
        CallTarget::Slot(slot) => slot,
        CallTarget::Address(stub) => stub_slot(&memory.bytes(stub, LONGEST), stub)?,
    };
    let slots = &region.module.slots;
    slots.get(&slot.wrapping_sub(region.bias)).cloned()
}

/// Inserts a missing frame into the stack of a crash: that of a user function that ended in a tail
/// call (`free(p)` or `hook()`) into a runtime or to an invalid address. Such a function has left
/// no frame on the stack, so that its bug would count as a bug of each of its callers. The call
/// instruction in its caller tells where the function starts, but not where in it the tail call is.
pub(crate) fn recover_tail_call(
    frames: &mut Vec<RawFrame>,
    steps: &mut Vec<Step>,
    control: Control,
    layout: &Layout,
    memory: &mut dyn Memory,
) {
    let Some(first) = frames.iter().position(|frame| !frame.runtime) else {
        return;
    };
    // If the innermost frame is that of a user function, no frame is missing, unless a wild call
    // has left the code.
    let left_no_frame = first > 0 || control == Control::WildCall;
    let Some(caller) = steps.get(first).filter(|step| {
        left_no_frame && step.trust == Trust::Call && frames[first].function_start.is_some()
    }) else {
        return;
    };
    let Some(step) = called(*caller, layout, memory) else {
        return;
    };
    if let Some(missing) = frame(step, layout) {
        frames.insert(first, missing);
        steps.insert(first, step);
    }
}

/// Returns a frame at the start of the user function that the stack frame `caller` called last, as
/// told by the call instruction before the frame's return address; `None` for an indirect call, and
/// if the called function belongs to a runtime or is unknown.
fn called(caller: Step, layout: &Layout, memory: &mut dyn Memory) -> Option<Step> {
    let behind_call = caller.address.checked_add(1)?;
    let CallTarget::Address(start) = called_before(behind_call, layout, memory)? else {
        return None;
    };
    let region = layout.region(start)?;
    let function = region.module.function(start.wrapping_sub(region.bias))?;
    let is_start = function.start.wrapping_add(region.bias) == start;
    let is_stub = stub_slot(&memory.bytes(start, LONGEST), start).is_some();
    (is_start && !is_stub && !region.is_runtime(start)).then_some(Step {
        address: start,
        trust: Trust::Tail,
    })
}

/// Maximum length in bytes of a function that may be recognized as one that only ends the program
/// (`die`); a longer function is never recognized as such.
const LONGEST_FUNCTION: u64 = 1024;

/// Number of user frames, from the innermost on, in which the `abort` of a static, stripped program
/// is searched for.
const DEEPEST: usize = 5;

/// Checks whether a crash with the event `event` may have come from a function that only ends the
/// program (`die`): true for aborts, traps and exits, false for memory faults and exceeded limits.
pub(crate) fn may_give_up(event: Event) -> bool {
    match event {
        Event::Signal { number, .. } => {
            matches!(number, libc::SIGABRT | libc::SIGILL | libc::SIGTRAP)
        }
        Event::Exit(_) => true,
        Event::OutOfTime | Event::OutOfMemory => false,
    }
}

/// Marks those of the innermost user frames whose function only ends the program: `die()`,
/// `fatal()`, `usage()`. Many different bugs end in such a function, and only its caller tells them
/// apart. If the program is static and stripped (`opaque`), its `abort` and what `abort` calls are
/// marked too.
pub(crate) fn mark_giving_up(
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
        (Some(callee), Some(caller)) => is_giving_up(*callee, *caller, loops, layout, memory),
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

/// Checks whether the function of the stack frame `callee` only ends the program (`die`), and the
/// frame `caller` called it directly. The function's machine code decides, with or without symbols:
/// it cannot return and, unless `loops` is set, has no loop. The cold part of a function, which the
/// compiler split off, does not count: it is reached by a jump, not by a call.
fn is_giving_up(
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
    code.len() == length && only_ends_program(&code, start, loops)
}
