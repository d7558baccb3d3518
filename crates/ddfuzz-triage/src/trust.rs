//! Which return addresses are believed.

use super::instruction::{CallTarget, LONGEST, call_target, ends_in_call, is_signal_trampoline};
use super::memory::Memory;
use super::modules::Layout;

/// Whether `address` lies in the code of a module and a call stands before it.
pub(crate) fn is_return_address(address: u64, layout: &Layout, memory: &mut dyn Memory) -> bool {
    code_before(address, layout, memory).is_some_and(|before| ends_in_call(&before))
}

/// Where the call goes that stands before the return address `address`.
pub(crate) fn called_before(
    address: u64,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<CallTarget> {
    call_target(&code_before(address, layout, memory)?, address)
}

/// The code just before `address`, as long as an instruction may be.
fn code_before(address: u64, layout: &Layout, memory: &mut dyn Memory) -> Option<Vec<u8>> {
    let region = layout.region(address.checked_sub(1)?)?;
    // What lies before the region may not be readable.
    let length = (LONGEST as u64).min(address - region.range.start);
    let before = memory.bytes(address - length, length as usize);
    (before.len() as u64 == length).then_some(before)
}

/// Whether a signal handler returns to `address`: no call stands before that code.
pub(crate) fn is_trampoline(address: u64, layout: &Layout, memory: &mut dyn Memory) -> bool {
    layout.region(address).is_some() && is_signal_trampoline(&memory.bytes(address, LONGEST))
}
