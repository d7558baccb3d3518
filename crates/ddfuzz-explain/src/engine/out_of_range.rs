//! Recognizes computed numbers that are probably not intended: numbers below zero computed from
//! numbers that are not, and numbers too large for where they are stored. Pure.

use iced_x86::{Mnemonic, OpKind, Register};

use super::instructions::{Executed, Value, general};
use super::mutants::sign_extended;

/// DWARF number of the register in which divisions return the remainder: rdx.
const REMAINDER: usize = 1;
/// DWARF number of the register in which divisions return the quotient: rax.
const QUOTIENT: usize = 0;
/// Largest distance, in instructions, from a computation to an instruction that copies only the
/// lower bytes of its result, or to a shift (before or after it) that takes a number apart.
const SOON: usize = 12;

/// The operations on integers whose results may not fit into their destination.
const ARITHMETIC: [Mnemonic; 7] = [
    Mnemonic::Add,
    Mnemonic::Sub,
    Mnemonic::Imul,
    Mnemonic::Shl,
    Mnemonic::Lea,
    Mnemonic::Inc,
    Mnemonic::Dec,
];

/// Shift instructions. A program that shifts a number takes it apart, to use its bytes one by one,
/// so that it is no error if only a part of the number is kept.
const SHIFTS: [Mnemonic; 4] = [Mnemonic::Shr, Mnemonic::Sar, Mnemonic::Shrd, Mnemonic::Ror];

/// Returns true if the instruction `executed[by]` has computed a number out of range. This is so if
/// the number is below zero but those that it was computed from are not; if it is too large for its
/// bytes; or if an instruction up to the index `until` copies only its lower one or two bytes, and
/// so loses a part of it.
pub fn is_out_of_range(executed: &[Executed], by: usize, until: usize) -> bool {
    let (Some(it), Some(next)) = (executed.get(by), executed.get(by + 1)) else {
        return false;
    };
    if it.instruction.mnemonic() == Mnemonic::Idiv {
        let size = it.division_size();
        // That of one byte is in the second byte of rax.
        let remainder = match size {
            1 => next.registers[QUOTIENT] >> 8,
            _ => next.registers[REMAINDER],
        };
        return signed(remainder, size) < 0;
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
        // Numbers whose upper bits belong to others have no sign either.
        _ if !are_terms_whole(executed, by) => false,
        size => {
            is_below_zero(it, (number, size), result) || is_cut(executed, number, by + 1..=until)
        }
    }
}

/// Returns true if the number that the instruction `by` has put into a register is below zero.
pub fn is_negative(executed: &[Executed], by: usize) -> bool {
    let (Some(it), Some(next)) = (executed.get(by), executed.get(by + 1)) else {
        return false;
    };
    let register = it.instruction.op0_register();
    general(register).is_some_and(|number| signed(next.registers[number], register.size()) < 0)
}

/// Returns true if an instruction that adds to a number in memory (or subtracts from it) has made
/// it too large for its `size` bytes, or below zero.
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

/// Returns the lower `size` bytes of a register as a signed number.
fn signed(value: u64, size: usize) -> i64 {
    match size {
        1 | 2 | 4 => sign_extended(value, size),
        _ => value as i64,
    }
}

/// Returns true if a subtraction, or an addition of a negative constant, has led from a number that
/// is not below zero to one that is.
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

/// Returns true if an addition of one or two bytes has overflowed: its result is smaller than the
/// number to which something was added.
fn carries(it: &Executed, number: usize, (result, size): (u64, usize)) -> bool {
    let mask = (1 << (8 * size)) - 1;
    let is_addition = matches!(it.instruction.mnemonic(), Mnemonic::Add | Mnemonic::Inc);
    let is_lowered = (it.instruction.try_immediate(1)).is_ok_and(|it| it as i64 as i32 > 0x7f);
    is_addition && !is_lowered && result & mask < it.registers[number] & mask
}

/// Returns true if the register `number` holds a single number before the instruction `at`. Returns
/// false if only its lower one or two bytes were set last, so that its other bytes belong to
/// another number.
fn is_whole(executed: &[Executed], at: usize, number: usize) -> bool {
    let mut before = executed[..at].iter().rev();
    let last = before.find(|it| it.is_write_to(Value::Register(number)));
    last.is_none_or(|it| {
        let register = it.instruction.op0_register();
        it.is_library_call() || general(register) != Some(number) || register.size() > 2
    })
}

/// Returns true if each register from which the instruction `by` computes a number holds a single
/// number; false if in one of them only the lowest one or two bytes were set last, so that its
/// other bytes belong to another number.
fn are_terms_whole(executed: &[Executed], by: usize) -> bool {
    let terms = executed[by].terms().into_iter();
    let mut registers = terms.filter_map(|it| match it {
        Value::Register(number) => Some(number),
        Value::Memory(..) | Value::Part { .. } => None,
    });
    registers.all(|number| is_whole(executed, by, number))
}

/// Returns true if the instruction `executed[by]` stores the lower one or two bytes of a register,
/// and the register's number does not fit into them; or it fits only as an unsigned number, but the
/// program reads the stored bytes as signed (`reading` are the instructions from that read on).
/// Returns false if shifts nearby show that the program takes the number apart.
pub fn is_stored_short(executed: &[Executed], by: usize, reading: &[Executed]) -> bool {
    let instruction = &executed[by].instruction;
    let source = instruction.op1_register();
    let is_store = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register;
    let is_high = [Register::AH, Register::BH, Register::CH, Register::DH].contains(&source);
    let Some(number) = general(source).filter(|_| is_store && source.size() <= 2 && !is_high)
    else {
        return false;
    };
    let near = &executed[by.saturating_sub(SOON)..executed.len().min(by + SOON)];
    let is_shift = |it: &Executed| SHIFTS.contains(&it.instruction.mnemonic());
    if near.iter().any(is_shift) || !is_whole(executed, by, number) {
        return false;
    }
    let value = executed[by].registers[number] as u32 as i32;
    let bits = 8 * source.size() as u32;
    let half = 1 << (bits - 1);
    let fits = -half..2 * half;
    !fits.contains(&value) || value >= half && is_read_signed(reading, source.size())
}

/// Returns true if the first of the instructions `reading` reads a number of `size` bytes from
/// memory, and the program uses it as signed: that instruction extends the sign, or the next one
/// that copies the number does.
fn is_read_signed(reading: &[Executed], size: usize) -> bool {
    let Some(first) = reading.first() else {
        return false;
    };
    let is_sign = |it: &Executed| it.instruction.mnemonic() == Mnemonic::Movsx;
    let read = first.instruction.op0_register();
    let is_of_it = |it: &&Executed| {
        let source = it.instruction.op1_register();
        source.size() == size && general(source).is_some() && general(source) == general(read)
    };
    let is_copied = |it: &&Executed| it.instruction.op1_kind() == OpKind::Register && is_of_it(it);
    is_sign(first)
        || reading[1..]
            .iter()
            .take(SOON)
            .find(is_copied)
            .is_some_and(is_sign)
}

/// Returns true if the lower one or two bytes of the register `number` are copied and a part of its
/// number is lost by that. Considers only the first such copy in `range`, and only if it comes
/// before any other write to the register.
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
        if it.is_write_to(Value::Register(number)) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dwarf::frames::REGISTERS;

    /// Decodes the instructions of `code` one after the other from address 0x100, and returns them
    /// as executed ones. Each comes with the value that `rax` (DWARF number 0) has before it.
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
    fn numbers_with_upper_bits_of_others_are_not_out_of_range() {
        let subtract: &[u8] = &[0x29, 0xf0]; // sub eax, esi
        let narrow: &[u8] = &[0x66, 0xc1, 0xf8, 0x09]; // sar ax, 9
        let wide: &[u8] = &[0xc1, 0xf8, 0x09]; // sar eax, 9
        let found = |before| {
            let all = executed(&[(before, 3), (subtract, 3), (NOP, 0xffff_fffe)]);
            is_out_of_range(&all, 1, 2)
        };
        assert!(found(wide));
        assert!(!found(narrow));
    }

    #[test]
    fn stores_of_lower_bits_lose_the_rest() {
        let set: &[u8] = &[0x89, 0xf0]; // mov eax, esi
        let store: &[u8] = &[0x66, 0x89, 0x07]; // mov word ptr [rdi], ax
        let unsigned: &[u8] = &[0x0f, 0xb7, 0x07]; // movzx eax, word ptr [rdi]
        let signed: &[u8] = &[0x0f, 0xbf, 0x07]; // movsx eax, word ptr [rdi]
        let later: &[u8] = &[0x0f, 0xbf, 0xd0]; // movsx edx, ax
        let shift: &[u8] = &[0xc1, 0xe8, 0x10]; // shr eax, 16
        let partial: &[u8] = &[0x66, 0xb8, 0x01, 0x00]; // mov ax, 1
        let found = |before, value, after: &[&[u8]], reading: &[&[u8]]| {
            let mut code = vec![(before, value), (store, value)];
            code.extend(after.iter().map(|it| (*it, value)));
            let reading: Vec<_> = reading.iter().map(|it| (*it, 0)).collect();
            is_stored_short(&executed(&code), 1, &executed(&reading))
        };
        assert!(found(set, 0x1_2345, &[NOP], &[unsigned]));
        assert!(!found(set, 0x2345, &[NOP], &[signed]));
        assert!(!found(set, 0xffff_fff0, &[NOP], &[signed]));
        // The highest bit is the sign for those only who read it so.
        assert!(!found(set, 0x891c, &[NOP], &[unsigned, NOP]));
        assert!(found(set, 0x891c, &[NOP], &[signed]));
        assert!(found(set, 0x891c, &[NOP], &[unsigned, later]));
        // Taken apart; or the upper bits are of another number.
        assert!(!found(set, 0x1_2345, &[shift], &[unsigned]));
        assert!(!found(partial, 0x1_2345, &[NOP], &[unsigned]));
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
        let of_a_byte: &[u8] = &[0x28, 0xd8]; // sub al, bl
        let of_two: &[u8] = &[0x66, 0x29, 0xd8]; // sub ax, bx
        assert!(is_negative(&executed(&[(of_a_byte, 3), (NOP, 0xfe)]), 0));
        assert!(!is_negative(&executed(&[(of_a_byte, 3), (NOP, 0x8001)]), 0));
        assert!(is_negative(&executed(&[(of_two, 3), (NOP, 0xfffe)]), 0));
        let divide: &[u8] = &[0xf6, 0xfb]; // idiv bl: -7 / 2 is -3, -1 remains
        assert!(found(&[(divide, 0xfff9), (NOP, 0xfffd)]));
        assert!(!found(&[(divide, 7), (NOP, 0x0103)]));
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
