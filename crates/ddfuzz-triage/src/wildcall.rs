//! Calls and jumps to something that is no code.

use super::instruction::{goes_nowhere, pushed_return};
use super::memory::Memory;
use super::modules::Layout;
use super::registers::Registers;
use super::snapshot::Trust;
use super::trust::is_return_address;
use super::unwind::From;

/// Where to walk from when the thread stands on something that is no code: in the caller, if the
/// return address that a call leaves is one.
pub(crate) fn caller(
    registers: &Registers,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<From> {
    let (address, sp) = pushed_return(registers, memory)?;
    is_return_address(address, layout, memory).then_some(From {
        address,
        trust: Trust::Call,
        sp,
        fp: registers.fp,
        lr: 0,
    })
}

/// Whether the thread stands on a call or jump whose target is no address at all: the processor
/// faults on the instruction itself then.
pub(crate) fn stands_on_call(registers: &Registers, code: &[u8], memory: &mut dyn Memory) -> bool {
    goes_nowhere(code, registers, memory)
}
