//! Control flow that left the code: calls and jumps to something that is no code, and returns to it
//! from a stack that was overwritten.

use crate::instruction::{goes_nowhere, is_return, pushed_return};
use crate::memory::Memory;
use crate::modules::Layout;
use crate::registers::Registers;
use crate::snapshot::Trust;
use crate::unwind::{From, is_return_address};

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

/// How far below the stack pointer the dead stack is searched, in bytes.
const DEAD_STACK: u64 = 64 << 10;

/// Whether the thread stands on a return that cannot be done.
pub(crate) fn stands_on_return(code: &[u8]) -> bool {
    is_return(code)
}

/// The first return address into the user's code just below the stack pointer. The function that
/// returned to nowhere left it there when it made its last call, so it names the victim.
pub(crate) fn victim(
    registers: &Registers,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<u64> {
    let top = registers.sp & !7;
    (1..=DEAD_STACK / 8).find_map(|words| {
        let address = memory.word(top.checked_sub(words * 8)?)?;
        let own = layout
            .region(address)
            .is_some_and(|region| !region.is_runtime(address - 1));
        (own && is_return_address(address, layout, memory)).then_some(address)
    })
}
