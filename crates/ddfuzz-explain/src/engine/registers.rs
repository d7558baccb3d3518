//! The general registers of a process, by their DWARF numbers.

use libc::user_regs_struct;

use crate::dwarf::frames::REGISTERS;

/// Returns the values of the registers by their DWARF numbers, the program counter last.
pub fn by_number(registers: &user_regs_struct) -> [u64; REGISTERS] {
    let it = registers;
    [
        it.rax, it.rdx, it.rcx, it.rbx, it.rsi, it.rdi, it.rbp, it.rsp, it.r8, it.r9, it.r10,
        it.r11, it.r12, it.r13, it.r14, it.r15, it.rip,
    ]
}

/// Returns the register with a DWARF number, to change it; `None` where no general register has
/// that number.
pub fn register_mut(registers: &mut user_regs_struct, number: u16) -> Option<&mut u64> {
    let it = registers;
    Some(match number {
        0 => &mut it.rax,
        1 => &mut it.rdx,
        2 => &mut it.rcx,
        3 => &mut it.rbx,
        4 => &mut it.rsi,
        5 => &mut it.rdi,
        6 => &mut it.rbp,
        7 => &mut it.rsp,
        8 => &mut it.r8,
        9 => &mut it.r9,
        10 => &mut it.r10,
        11 => &mut it.r11,
        12 => &mut it.r12,
        13 => &mut it.r13,
        14 => &mut it.r14,
        15 => &mut it.r15,
        _ => return None,
    })
}
