//! Numbers that instructions have computed and that are hardly meant: below zero from numbers that are
//! not, or larger than the place where they are kept. Pure.

use iced_x86::{Mnemonic, OpKind, Register};

use super::instructions::{Executed, general};

/// DWARF number of the register in which divisions return the remainder: rdx.
const REMAINDER: usize = 1;
/// Number of instructions after a computation among which a shorter copy of its result is searched for.
const SOON: usize = 12;

/// The operations on integers whose results may need more bits than they have.
const ARITHMETIC: [Mnemonic; 7] = [
    Mnemonic::Add,
    Mnemonic::Sub,
    Mnemonic::Imul,
    Mnemonic::Shl,
    Mnemonic::Lea,
    Mnemonic::Inc,
    Mnemonic::Dec,
];

/// Returns true if the instruction `by` has computed a number below zero from numbers that are not, or
/// one of which a later instruction, up to `until`, keeps the lower bits only.
pub fn is_out_of_range(executed: &[Executed], by: usize, until: usize) -> bool {
    let (Some(it), Some(next)) = (executed.get(by), executed.get(by + 1)) else {
        return false;
    };
    if it.instruction.mnemonic() == Mnemonic::Idiv {
        return signed(next.registers[REMAINDER], it.division_size()) < 0;
    }
    if let Some((_, size)) = it.summed() {
        return is_sum_out_of_range(it, size as usize);
    }
    let register = it.instruction.op0_register();
    let number = general(register).filter(|_| it.instruction.op0_kind() == OpKind::Register);
    let (Some(number), true) = (number, ARITHMETIC.contains(&it.instruction.mnemonic())) else {
        return false;
    };
    let result = next.registers[number];
    match register.size() {
        size @ (1 | 2) => carries(it, number, (result, size)),
        size => {
            is_below_zero(it, (number, size), result) || is_cut(executed, number, by + 1..=until)
        }
    }
}

/// Returns true if the instruction `by` has computed a number below zero in a register.
pub fn is_negative(executed: &[Executed], by: usize) -> bool {
    let (Some(it), Some(next)) = (executed.get(by), executed.get(by + 1)) else {
        return false;
    };
    let register = it.instruction.op0_register();
    general(register).is_some_and(|number| signed(next.registers[number], register.size()) < 0)
}

/// Returns true if a number in memory is out of range after an instruction that adds to it or subtracts
/// from it.
fn is_sum_out_of_range(it: &Executed, size: usize) -> bool {
    let (Some(before), Some(by)) = (it.before, it.summand()) else {
        return false;
    };
    let is_added = matches!(it.instruction.mnemonic(), Mnemonic::Add | Mnemonic::Inc);
    let result = match is_added {
        true => before.wrapping_add(by),
        false => before.wrapping_sub(by),
    };
    if size <= 2 {
        let mask = (1 << (8 * size)) - 1;
        let is_lowered = it.instruction.try_immediate(1).is_ok() && by as i32 > 0x7f;
        return is_added && !is_lowered && result & mask < before & mask;
    }
    let (from, by) = (signed(before, size), signed(by, size));
    from >= 0 && (by < 0) == is_added && signed(result, size) < 0
}

/// The lower bytes of a register as a signed number.
fn signed(value: u64, size: usize) -> i64 {
    match size {
        4 => i64::from(value as u32 as i32),
        _ => value as i64,
    }
}

/// Returns true if a subtraction, or an addition of a negative constant, has led below zero.
fn is_below_zero(it: &Executed, (number, size): (usize, usize), result: u64) -> bool {
    let instruction = &it.instruction;
    let result = signed(result, size);
    let is_negative = |constant: i64| constant < 0;
    let (from, is_lowered) = match instruction.mnemonic() {
        Mnemonic::Sub | Mnemonic::Dec => {
            let from = signed(it.registers[number], size);
            (from, from.checked_sub(result).is_some_and(|by| by >= 0))
        }
        Mnemonic::Add => {
            let constant = instruction.try_immediate(1).ok();
            let is_lowered = constant.is_some_and(|it| is_negative(signed(it, size)));
            (signed(it.registers[number], size), is_lowered)
        }
        Mnemonic::Lea if instruction.memory_index() == Register::None => {
            let Some(base) = general(instruction.memory_base()) else {
                return false;
            };
            let constant = instruction.memory_displacement64() as i64;
            (signed(it.registers[base], size), is_negative(constant))
        }
        _ => return false,
    };
    from >= 0 && is_lowered && result < 0
}

/// Returns true if an addition of one or two bytes has a result that is smaller than what was added to.
fn carries(it: &Executed, number: usize, (result, size): (u64, usize)) -> bool {
    let mask = (1 << (8 * size)) - 1;
    let is_addition = matches!(it.instruction.mnemonic(), Mnemonic::Add | Mnemonic::Inc);
    let is_lowered = (it.instruction.try_immediate(1)).is_ok_and(|it| it as i64 as i32 > 0x7f);
    is_addition && !is_lowered && result & mask < it.registers[number] & mask
}

/// Returns true if one of some instructions copies only the lower one or two bytes of a register whose
/// number needs more.
fn is_cut(executed: &[Executed], number: usize, range: std::ops::RangeInclusive<usize>) -> bool {
    for at in range.take(SOON) {
        let Some(it) = executed.get(at) else {
            return false;
        };
        let instruction = &it.instruction;
        let is_copy = matches!(
            instruction.mnemonic(),
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx
        );
        let source = instruction.op1_register();
        let is_of_it = instruction.op_count() == 2
            && instruction.op1_kind() == OpKind::Register
            && general(source) == Some(number);
        if is_copy && is_of_it && source.size() <= 2 {
            let value = it.registers[number] as u32 as i32;
            let bits = 8 * source.size() as u32;
            let fits = -(1 << (bits - 1))..1 << bits;
            return !fits.contains(&value);
        }
        if it.is_write_to(super::instructions::Value::Register(number)) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dwarf::frames::REGISTERS;

    /// Decodes instructions at address 0x100, each with a value of `rax` (DWARF number 0) before it.
    fn executed(code: &[(&[u8], u64)]) -> Vec<Executed> {
        let mut pc = 0x100;
        let one = |(code, rax): &(&[u8], u64)| {
            let mut registers = [0; REGISTERS];
            (registers[0], registers[REGISTERS - 1]) = (*rax, pc);
            pc += code.len() as u64;
            Executed::new(code, registers).unwrap()
        };
        code.iter().map(one).collect()
    }

    const NOP: &[u8] = &[0x90];

    fn found(code: &[(&[u8], u64)]) -> bool {
        let all = executed(code);
        is_out_of_range(&all, 0, all.len() - 1)
    }

    #[test]
    fn numbers_below_zero_come_from_others() {
        let subtract: &[u8] = &[0x29, 0xf0]; // sub eax, esi
        assert!(found(&[(subtract, 3), (NOP, 0xffff_fffe)]));
        assert!(!found(&[(subtract, 3), (NOP, 1)]));
        // From a negative number, or by a negative one.
        assert!(!found(&[(subtract, 0xffff_fffe), (NOP, 0xffff_fffc)]));
        let lower: &[u8] = &[0x83, 0xc0, 0xff]; // add eax, -1
        assert!(found(&[(lower, 0), (NOP, 0xffff_ffff)]));
        assert!(!found(&[(lower, 1), (NOP, 0)]));
        let address: &[u8] = &[0x48, 0x8d, 0x40, 0xff]; // lea rax, [rax-1]
        assert!(found(&[(address, 0), (NOP, u64::MAX)]));
        assert!(!found(&[(address, 9), (NOP, 8)]));
    }

    #[test]
    fn results_below_zero_are_negative() {
        let subtract: &[u8] = &[0x29, 0xf0]; // sub eax, esi
        assert!(is_negative(
            &executed(&[(subtract, 3), (NOP, 0xffff_fffe)]),
            0
        ));
        assert!(!is_negative(&executed(&[(subtract, 3), (NOP, 1)]), 0));
        assert!(!is_negative(&executed(&[(subtract, 3)]), 0));
    }

    #[test]
    fn bytes_carry_and_are_cut() {
        let add: &[u8] = &[0x00, 0xd8]; // add al, bl
        assert!(found(&[(add, 200), (NOP, 44)]));
        assert!(!found(&[(add, 100), (NOP, 200)]));
        let wide: &[u8] = &[0x01, 0xd8]; // add eax, ebx
        let store: &[u8] = &[0x88, 0x03]; // mov [rbx], al
        assert!(found(&[(wide, 200), (store, 300)]));
        assert!(!found(&[(wide, 200), (store, 255)]));
        // -1 in one byte.
        assert!(!found(&[(wide, 0), (store, 0xffff_ffff)]));
        let mut sum = executed(&[(&[0x00, 0x03], 200), (NOP, 200)]); // add [rbx], al
        assert!(!is_out_of_range(&sum, 0, 0));
        sum[0].before = Some(90);
        assert!(is_out_of_range(&sum, 0, 0));
        sum[0].before = Some(50);
        assert!(!is_out_of_range(&sum, 0, 0));
        let set: &[u8] = &[0xb8, 0, 0, 0, 0]; // mov eax, 0
        assert!(!found(&[(wide, 200), (set, 300), (store, 300)]));
    }
}
