//! Names of runtime functions that hold with and without symbols.

use std::sync::Arc;

use super::instruction::{CallTarget, LONGEST, stub_slot};
use super::memory::Memory;
use super::snapshot::RawFrame;
use crate::modules::Layout;
use crate::modules::Region;
use crate::unwind::Step;
use crate::unwind::called_before;

/// The exported names of the runtime frames on top, innermost first.
///
/// The outermost of them may be a variant of a function for one kind of processor (`strlen` is
/// `__strlen_avx2` here and `__strlen_evex` there), and those are not exported: it is named by
/// what its caller asked the loader for, else by the nearest exported name below it.
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

fn exact_name(step: Step, layout: &Layout) -> Option<Arc<str>> {
    let region = layout.region(step.address)?;
    let offset = step.address.wrapping_sub(region.bias);
    let module = &region.module;
    let named = module
        .exports
        .containing(offset)
        .or_else(|| module.linked.containing(offset));
    named.map(|named| named.name.clone())
}

fn nearest_name(step: Step, layout: &Layout) -> Option<Arc<str>> {
    let region = layout.region(step.address)?;
    let named = region
        .module
        .exports
        .nearest(step.address.wrapping_sub(region.bias));
    named.map(|named| named.name.clone())
}

/// The imported name that the call just before the caller's return address goes to.
fn called_name(caller: Step, layout: &Layout, memory: &mut dyn Memory) -> Option<Arc<str>> {
    let region = layout.region(caller.address)?;
    let slot = match called_before(caller.address.checked_add(1)?, layout, memory)? {
        CallTarget::Slot(slot) => slot,
        CallTarget::Address(stub) => stub_slot(&memory.bytes(stub, LONGEST), stub)?,
    };
    imported_name(slot, region)
}

fn imported_name(slot: u64, region: &Region) -> Option<Arc<str>> {
    region
        .module
        .slots
        .get(&slot.wrapping_sub(region.bias))
        .cloned()
}
