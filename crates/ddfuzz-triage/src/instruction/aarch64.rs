//! Decodes the AArch64 instructions that unwinding needs. Memory accesses are not decoded.

use super::{Branch, CallTarget, MainArgument, MemoryAccess};
use crate::memory::Memory;
use crate::registers::Registers;

/// Machine code to which the kernel makes a signal handler return: `mov x8, #139; svc #0`.
const SIGRETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4];
/// Offset of the saved register `x0` in the frame that the kernel pushes for a signal, in bytes.
const SIGNAL_FRAME_X0: u64 = 128 + 176 + 8;

fn word(code: &[u8]) -> Option<u32> {
    code.get(..4)?.try_into().ok().map(u32::from_le_bytes)
}

/// Checks whether `before`, the bytes of machine code before a return address, end in a call
/// instruction.
pub(crate) fn ends_in_call(before: &[u8]) -> bool {
    let last = before.len().checked_sub(4);
    let code = last.and_then(|start| word(&before[start..]));
    code.is_some_and(|code| code >> 26 == 0b10_0101 || code & 0xfeff_f000 == 0xd63f_0000)
}

/// Checks whether `code` begins with the machine code to which the kernel makes a signal handler
/// return.
pub(crate) fn is_signal_trampoline(code: &[u8]) -> bool {
    code.starts_with(&SIGRETURN)
}

/// Returns program counter, stack pointer and frame pointer of the code that a signal interrupted,
/// from the frame that the kernel pushed for the signal at the stack pointer `sp`; `None` where
/// that frame cannot be read.
pub(crate) fn interrupted(sp: u64, memory: &mut dyn Memory) -> Option<(u64, u64, u64)> {
    let mut register = |index: u64| memory.word(sp.checked_add(SIGNAL_FRAME_X0 + index * 8)?);
    Some((register(32)?, register(31)?, register(29)?))
}

/// Returns the return address and the caller's stack pointer of the call that the thread with these
/// registers has just made. Never `None` on AArch64: the link register holds the return address.
pub(crate) fn pushed_return(registers: &Registers, _memory: &mut dyn Memory) -> Option<(u64, u64)> {
    Some((registers.lr, registers.sp))
}

/// Returns the address to which a return instruction of the stopped thread has just gone; always
/// `None`, because on AArch64 the link register may have changed since.
pub(crate) fn popped_return(_: &Registers, _: &mut dyn Memory) -> Option<u64> {
    None
}

/// Checks whether the machine code `code` begins with a return instruction.
pub(crate) fn is_return(code: &[u8]) -> bool {
    word(code).is_some_and(|code| code & 0xffff_fc1f == 0xd65f_0000)
}

/// Checks whether machine code begins with a branch to an invalid address that faults on the branch
/// itself; always false, because on AArch64 such a branch faults at its target.
pub(crate) fn goes_nowhere(_: &[u8], _: &Registers, _: &mut dyn Memory) -> bool {
    false
}

/// Returns the memory accesses of an instruction; always empty, because they are not decoded on
/// AArch64.
pub(crate) fn accesses(_code: &[u8], _registers: &Registers) -> Vec<MemoryAccess> {
    Vec::new()
}

/// Returns the target of the direct call at the end of the machine code `before`; `end` is the
/// address after the call. `None` for an indirect call.
pub(crate) fn call_target(before: &[u8], end: u64) -> Option<CallTarget> {
    let code = word(&before[before.len().checked_sub(4)?..])?;
    let distance = i64::from((code << 6) as i32 >> 6) * 4;
    (code >> 26 == 0b10_0101)
        .then(|| CallTarget::Address(end.wrapping_sub(4).wrapping_add_signed(distance)))
}

/// Returns the memory slot with the address to which a linkage stub (PLT entry) jumps; always
/// `None`, because stubs are not decoded on AArch64.
pub(crate) fn stub_slot(_code: &[u8], _address: u64) -> Option<u64> {
    None
}

/// Returns the `main` that a program's start-up code passes to the C library; always `None`,
/// because on AArch64 `main` is found by its symbol only.
pub(crate) fn main_argument(_code: &[u8], _entry: u64) -> Option<MainArgument> {
    None
}

/// Checks whether a function can only end the program (`die`); always false, because machine code
/// is not decoded for that on AArch64.
pub(crate) fn only_ends_program(_code: &[u8], _address: u64, _loops: bool) -> bool {
    false
}

/// Returns the branch instructions of a function; always empty on AArch64, so that no loops are
/// found.
pub(crate) fn branches(_code: &[u8], _address: u64) -> Vec<Branch> {
    Vec::new()
}

/// Checks whether machine code begins with a jump through a pointer that faults on the jump itself;
/// always false, because on AArch64 a branch to an invalid address faults at its target.
pub(crate) fn jumps_by_pointer(_code: &[u8]) -> bool {
    false
}
