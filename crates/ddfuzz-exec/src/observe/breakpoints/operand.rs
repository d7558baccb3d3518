//! Reads the operands of a compare instruction from a stopped thread, and computes the resulting
//! flags (Intel SDM, volume 2, CMP and volume 1, 3.4.3.1), so that the instruction need not be
//! executed.

use iced_x86::{Instruction, OpKind, Register};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::{libc::user_regs_struct, unistd::Pid};
use std::io::IoSliceMut;

/// Returns the operand size of a compare instruction in bytes; `None` if its two operands are not
/// general registers, memory or constants of 1, 2, 4 or 8 bytes.
pub(super) fn width(instruction: &Instruction) -> Option<usize> {
    let sized = |operand: u32| match instruction.op_kind(operand) {
        OpKind::Register => Some(instruction.op_register(operand).size()),
        OpKind::Memory => Some(instruction.memory_size().size()),
        _ => None,
    };
    let width = sized(0).or_else(|| sized(1))?;
    let known = |operand: u32| match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).is_gpr(),
        OpKind::Memory => instruction
            .virtual_address(operand, 0, |register, _, _| {
                (register.is_gpr() || register.is_segment_register() || register.is_ip())
                    .then_some(0)
            })
            .is_some(),
        _ => instruction.try_immediate(operand).is_ok(),
    };
    (matches!(width, 1 | 2 | 4 | 8) && instruction.op_count() == 2 && known(0) && known(1))
        .then_some(width)
}

/// Returns the value of one operand, `width` bytes wide, of an instruction at which a thread has
/// stopped; `None` if the operand is in memory that cannot be read. `bias` is added to addresses
/// relative to the instruction: the program's load address minus the one for which `instruction`
/// was decoded.
pub(super) fn value(
    instruction: &Instruction,
    operand: u32,
    width: usize,
    bias: u64,
    (pid, registers): (Pid, &user_regs_struct),
) -> Option<u64> {
    let kind = instruction.op_kind(operand);
    let whole = match kind {
        OpKind::Register => register(instruction.op_register(operand), registers)?,
        OpKind::Memory => {
            let moved = match instruction.is_ip_rel_memory_operand() {
                true => bias,
                false => 0,
            };
            let at =
                instruction.virtual_address(operand, 0, |name, _, _| register(name, registers))?;
            return memory(pid, at.wrapping_add(moved), width);
        }
        _ => instruction.immediate(operand),
    };
    Some(whole & mask(width))
}

/// Returns a number whose lowest `width` bytes have all bits set, and all higher bits clear.
pub(super) fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width)
}

/// Reads a number of `width` bytes at `address` of a process; `None` if it cannot be read there.
pub(super) fn memory(pid: Pid, address: u64, width: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    let remote = [RemoteIoVec {
        base: address as usize,
        len: width,
    }];
    let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes[..width])], &remote);
    (read == Ok(width)).then(|| u64::from_le_bytes(bytes))
}

/// Returns the value of a register of a stopped thread; a part of a register is returned in the
/// lowest bits, and a segment register stands for its base address. `None` for registers that
/// addresses and integers do not use.
fn register(name: Register, registers: &user_regs_struct) -> Option<u64> {
    // In 64-bit mode only FS and GS have a base.
    let whole = match name.full_register() {
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::ES | Register::CS | Register::SS | Register::DS => 0,
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        _ => return None,
    };
    Some(match name {
        Register::AH | Register::BH | Register::CH | Register::DH => whole >> 8 & 0xff,
        // An address uses all 32 or 64 bits of its registers, or the base of a segment.
        _ if name.is_gpr() => whole & mask(name.size()),
        _ => whole,
    })
}

const CARRY: u64 = 1;
const PARITY: u64 = 1 << 2;
const ADJUST: u64 = 1 << 4;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;
const ALL: u64 = CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW;

/// Returns the processor flags after a comparison of `left` with `right`, numbers of `width` bytes;
/// `flags`: the processor flags before the comparison.
pub(super) fn after_compare(flags: u64, left: u64, right: u64, width: usize) -> u64 {
    let result = left.wrapping_sub(right) & mask(width);
    let top = 1 << (8 * width - 1);
    let set = |flag: u64, holds: bool| if holds { flag } else { 0 };
    (flags & !ALL)
        | set(CARRY, left < right)
        | set(PARITY, (result as u8).count_ones().is_multiple_of(2))
        | set(ADJUST, (left ^ right ^ result) & 0x10 != 0)
        | set(ZERO, result == 0)
        | set(SIGN, result & top != 0)
        | set(OVERFLOW, (left ^ right) & (left ^ result) & top != 0)
}

#[cfg(test)]
mod tests {
    use std::arch::asm;

    use super::*;

    /// Compares two numbers by the processor's own instruction, and returns the processor flags
    /// that it computes; a test compares them with those of [`after_compare`].
    fn compared(left: u64, right: u64, width: usize) -> u64 {
        let flags: u64;
        // SAFETY: the code changes nothing but the register it gives back, the flags, and what
        // lies below the stack pointer's red zone by pushing, which is undone by popping.
        unsafe {
            match width {
                1 => {
                    asm!("cmp {l}, {r}", "pushfq", "pop {f}", l = in(reg_byte) left as u8, r = in(reg_byte) right as u8, f = out(reg) flags)
                }
                2 => {
                    asm!("cmp {l:x}, {r:x}", "pushfq", "pop {f}", l = in(reg) left, r = in(reg) right, f = out(reg) flags)
                }
                4 => {
                    asm!("cmp {l:e}, {r:e}", "pushfq", "pop {f}", l = in(reg) left, r = in(reg) right, f = out(reg) flags)
                }
                _ => {
                    asm!("cmp {l}, {r}", "pushfq", "pop {f}", l = in(reg) left, r = in(reg) right, f = out(reg) flags)
                }
            }
        }
        flags & ALL
    }

    #[test]
    fn the_flags_are_those_of_the_processor() {
        let edges = [0, 1, 2, 0xf, 0x10, 0x7f, 0x80, 0xff];
        let mut values: Vec<u64> = edges.to_vec();
        for shift in [8, 24, 56] {
            values.extend(edges.map(|edge: u64| edge << shift));
            values.extend(edges.map(|edge: u64| (edge << shift).wrapping_sub(1)));
        }
        for width in [1, 2, 4, 8] {
            for left in values.iter().map(|value| value & mask(width)) {
                for right in values.iter().map(|value| value & mask(width)) {
                    let ours = after_compare(ALL | 1 << 9, left, right, width);
                    let theirs = compared(left, right, width) | 1 << 9;
                    assert_eq!(ours, theirs, "{left:x} and {right:x}, {width} bytes");
                }
            }
        }
    }
}
