//! Functions that a call in the place of their return has taken off the stack.
//!
//! A function whose last deed is `free(p)` or `hook()` jumps there, and leaves no frame: the bug
//! would be named by its callers, once for each of them. But the call that stands before the
//! return address still says whom they have called.

use super::instruction::{CallTarget, LONGEST, stub_slot};
use super::memory::Memory;
use super::snapshot::{Control, RawFrame, Trust};
use crate::modules::Layout;
use crate::reading::frame;
use crate::unwind::Step;
use crate::unwind::called_before;

/// Puts the function back that has jumped into the runtime, or to no code at all, by a call in the
/// place of its return. Only the start of the function is known of it.
pub(crate) fn recover(
    frames: &mut Vec<RawFrame>,
    steps: &mut Vec<Step>,
    control: Control,
    layout: &Layout,
    memory: &mut dyn Memory,
) {
    let Some(first) = frames.iter().position(|frame| !frame.runtime) else {
        return;
    };
    // Another function of the user's is on the stack itself.
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

/// The start of the user's function that is called just before the return address of `caller`.
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
