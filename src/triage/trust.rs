//! Which return addresses are believed.

use super::instruction::{LONGEST, ends_in_call, is_signal_trampoline};
use super::memory::Memory;
use super::modules::Layout;

/// Whether `address` lies in the code of a module and a call stands before it.
pub(crate) fn is_return_address(address: u64, layout: &Layout, memory: &mut dyn Memory) -> bool {
    let Some(region) = address.checked_sub(1).and_then(|call| layout.region(call)) else {
        return false;
    };
    // What lies before the region may not be readable.
    let length = (LONGEST as u64).min(address - region.range.start);
    let before = memory.bytes(address - length, length as usize);
    before.len() as u64 == length && ends_in_call(&before)
}

/// Whether a signal handler returns to `address`: no call stands before that code.
pub(crate) fn is_trampoline(address: u64, layout: &Layout, memory: &mut dyn Memory) -> bool {
    layout.region(address).is_some() && is_signal_trampoline(&memory.bytes(address, LONGEST))
}
