//! Mutants that read another variable in place of one: another place in memory, or another
//! register. The changed instruction is as long as before. Pure.

use std::collections::HashSet;

use iced_x86::{ConstantOffsets, Instruction, Mnemonic, OpKind, Register};

use super::mutants::{Code, Mutant, MutantKind, NEARBY, Patch, changed, simple_place};

/// Largest number of mutants of one instruction that read another local variable instead of the one
/// that the instruction reads.
const VARIABLES: usize = 8;
/// A local variable counts as a copy of an original elsewhere if a pointer is loaded at most this
/// many instructions away from the first one that takes the variable's address, because code that
/// makes a copy needs both addresses.
const BESIDE: usize = 4;
/// Largest number of other fields that mutants of one instruction read in place of its own field.
const FIELDS: usize = 6;
/// Largest number of mutants that are made for one register that an instruction reads: in each, the
/// instruction reads another register in its place.
const REGISTERS: usize = 3;
/// If a source line reads one field several times, mutants change all of these reads that are fewer
/// than this number of instructions apart.
const LINE: usize = 40;

/// The part of an instruction in which it names a register that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The first or second operand (0 or 1).
    Operand(u32),
    /// The base register of an address.
    Base,
    /// The index register of an address.
    Index,
}

/// Returns where an instruction has its byte ModRM and its prefix REX (`None` without one), and
/// whether the bits `reg` of ModRM name the first operand. `None` for opcodes other than the usual
/// moves, arithmetic, comparisons and address computations.
fn layout(bytes: &[u8]) -> Option<(usize, Option<usize>, bool)> {
    let is_prefix = |it: &&u8| matches!(it, 0x66 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26);
    let prefixes = bytes.iter().take_while(is_prefix).count();
    let rex = (bytes.get(prefixes)? & 0xf0 == 0x40).then_some(prefixes);
    let at = prefixes + usize::from(rex.is_some());
    let (opcode, next) = (*bytes.get(at)?, *bytes.get(at + 1)?);
    match opcode {
        0x0f if matches!(next, 0xaf | 0xb6 | 0xb7 | 0xbe | 0xbf | 0x40..=0x4f) => {
            Some((at + 2, rex, true))
        }
        0x63 | 0x69 | 0x6b | 0x8d => Some((at + 1, rex, true)),
        0x80 | 0x81 | 0x83..=0x85 | 0xc6 | 0xc7 => Some((at + 1, rex, false)),
        0x00..=0x3b | 0x88..=0x8b if opcode & 7 < 4 => Some((at + 1, rex, opcode & 2 != 0)),
        _ => None,
    }
}

/// Returns the bytes of an instruction with another register in the place `role` (an operand, or
/// the base or index of an address): the register with the number `number` in machine code (0 to
/// 15). `None` if that cannot be encoded in the same length.
pub(super) fn with_register(bytes: &[u8], role: Role, number: usize) -> Option<Vec<u8>> {
    let (modrm, rex, first_is_reg) = layout(bytes)?;
    let (mode, rm) = (bytes.get(modrm)? >> 6, bytes[modrm] & 7);
    let has_sib = mode != 3 && rm == 4;
    let (low, is_high) = ((number & 7) as u8, number > 7);
    // The byte with the three lower bits of the number, how far they are from its end, and the bit
    // of the prefix with the highest one.
    let (at, shift, bit) = match role {
        Role::Operand(operand) if (operand == 0) == first_is_reg => (modrm, 3, 2),
        Role::Operand(_) if mode == 3 => (modrm, 0, 0),
        Role::Base if has_sib && (mode != 0 || low != 5) => (modrm + 1, 0, 0),
        Role::Base if !has_sib && low != 4 && (mode != 0 || low != 5) => (modrm, 0, 0),
        Role::Index if number != 4 => (modrm + 1, 3, 1),
        _ => return None,
    };
    let mut other = bytes.to_vec();
    match rex {
        Some(rex) => other[rex] = other[rex] & !(1 << bit) | u8::from(is_high) << bit,
        None if is_high => return None,
        None => {}
    }
    let byte = other.get_mut(at)?;
    *byte = *byte & !(7 << shift) | low << shift;
    Some(other)
}

/// Returns the registers of four or eight bytes that an instruction names and reads, each with its
/// role: base or index of a memory address, or operand. Empty for kinds of instructions that no
/// mutant changes in this way.
pub(super) fn read_registers(it: &Instruction) -> Vec<(Role, Register)> {
    use Mnemonic::*;
    let compares = matches!(it.mnemonic(), Cmp | Test);
    let moves = matches!(it.mnemonic(), Mov | Add | Sub | Imul | Lea | Movsxd);
    if !compares && !moves && !matches!(it.mnemonic(), Movzx | Movsx) {
        return Vec::new();
    }
    let operand = |at: u32| match it.op_count() > at && it.op_kind(at) == OpKind::Register {
        true => it.op_register(at),
        false => Register::None,
    };
    let (first, second) = (operand(0), operand(1));
    let mut found = vec![
        (Role::Base, it.memory_base()),
        (Role::Index, it.memory_index()),
    ];
    // A comparison of a register with itself is one with 0.
    if first != second {
        found.push((Role::Operand(1), second));
        found.extend(compares.then_some((Role::Operand(0), first)));
    }
    found.retain(|(_, it)| it.is_gpr32() || it.is_gpr64());
    found
}

impl Code {
    /// Passes to `push` mutants of `it`, the instruction with the index `at`: if it reads a local
    /// variable or a field, they read another one of the same size.
    pub(super) fn add_operand(
        &self,
        at: usize,
        (it, offsets): (&Instruction, &ConstantOffsets),
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let Some((base, offset)) = simple_place(it) else {
            return;
        };
        let reads = it.op0_kind() != OpKind::Memory || it.mnemonic() == Mnemonic::Cmp;
        if !reads || !offsets.has_displacement() {
            return;
        }
        let size = offsets.displacement_size();
        let known = match self.is_frame(base) {
            true => self.other_variables(at, it.memory_size().size(), offset),
            false => self.other_fields(it.memory_size().size(), offset),
        };
        for other in known {
            let place = (offsets.displacement_offset(), size);
            if let Some(other) = changed(bytes, place, other - offset, false) {
                push(MutantKind::Operand, it.ip(), other);
            }
        }
    }

    /// Passes mutants of the instruction `it`, which has the index `at` and the code `bytes`, to
    /// `push`: in place of a register that it reads, they read another one of the same size, which
    /// instructions nearby use in the same way.
    pub(super) fn add_registers(
        &self,
        at: usize,
        it: &Instruction,
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let (first, last) = (
            at.saturating_sub(NEARBY),
            (at + NEARBY).min(self.all.len() - 1),
        );
        let mut near: Vec<usize> = (first..=last).filter(|it| *it != at).collect();
        near.sort_by_key(|other| other.abs_diff(at));
        for (role, register) in read_registers(it) {
            if self.is_frame(register.full_register()) {
                continue;
            }
            let mut told = vec![register];
            for (other, _) in near.iter().map(|it| &self.all[*it]) {
                let used = match role {
                    Role::Base => [other.memory_base(), Register::None],
                    _ => [other.op0_register(), other.op1_register()],
                };
                for used in used {
                    let is_alike = match role {
                        Role::Index => used.is_gpr32() || used.is_gpr64(),
                        _ => used.is_gpr() && used.size() == register.size(),
                    };
                    if !is_alike || told.contains(&used) || self.is_frame(used.full_register()) {
                        continue;
                    }
                    told.push(used);
                    if told.len() <= REGISTERS + 1
                        && let Some(other) = with_register(bytes, role, used.number())
                    {
                        push(MutantKind::Operand, it.ip(), other);
                    }
                }
            }
        }
    }

    /// Passes to `push` mutants of `it`, an instruction that takes the address of a local variable,
    /// if the variable is a copy. A mutant loads the pointer to the original instead. The variable
    /// counts as a copy if a pointer is loaded near the first instruction that takes its address;
    /// reports show the address of this first instruction for the mutant.
    pub(super) fn add_original(
        &self,
        at: usize,
        (it, offsets): (&Instruction, &ConstantOffsets),
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let address = |it: &Instruction| {
            let is_it = it.mnemonic() == Mnemonic::Lea
                && self.is_frame(it.memory_base())
                && it.memory_index() == Register::None
                && it.op0_register().is_gpr64();
            is_it.then(|| it.memory_displacement64() as i64)
        };
        let Some(own) = address(it) else {
            return;
        };
        let first = self.all[..at]
            .iter()
            .position(|it| address(&it.0) == Some(own));
        let opcode = bytes.iter().position(|it| *it == 0x8d);
        let (Some(first), Some(opcode)) = (first, opcode) else {
            return;
        };
        let near = first.saturating_sub(BESIDE)..(first + BESIDE).min(at);
        for (load, _) in &self.all[near] {
            let is_pointer = load.mnemonic() == Mnemonic::Mov && load.op0_register().is_gpr64();
            let from = simple_place(load).filter(|it| is_pointer && self.is_frame(it.0));
            let size = offsets.displacement_size();
            let Some((_, from)) = from.filter(|it| size > 1 || i8::try_from(it.1).is_ok()) else {
                continue;
            };
            let place = (offsets.displacement_offset(), size);
            if let Some(mut other) = changed(bytes, place, from - own, false) {
                other[opcode] = 0x8b;
                push(MutantKind::Original, self.all[first].0.ip(), other);
            }
        }
    }

    /// Adds mutants that read another field in place of the one that the instruction `at` reads, at
    /// all places where the same source line reads that field. `lines` has the line of each
    /// instruction.
    pub(super) fn add_fields(
        &self,
        at: usize,
        lines: &[Option<(u64, bool)>],
        found: &mut Vec<Mutant>,
    ) {
        let line = |at: usize| lines[at].map(|it| it.0);
        let field = |at: usize| {
            let (it, offsets) = &self.all[at];
            let (base, offset) = simple_place(it).filter(|it| !self.is_frame(it.0))?;
            let reads = it.op0_kind() != OpKind::Memory && base != Register::RIP;
            (reads && offsets.displacement_size() > 0).then_some((it.memory_size().size(), offset))
        };
        let Some((size, offset)) = field(at) else {
            return;
        };
        let is_same = |other: &usize| line(*other) == line(at) && field(*other) == field(at);
        let first = (0..at).rev().take(LINE).any(|other| is_same(&other));
        let same: Vec<usize> = (at..self.all.len().min(at + LINE))
            .filter(is_same)
            .collect();
        let (Some(last), false) = (same.last().filter(|last| **last > at), first) else {
            return;
        };
        let (from, last) = (self.all[at].0.ip(), &self.all[*last].0);
        let place = (from - self.start) as usize;
        let all = &self.bytes[place..(last.next_ip() - self.start) as usize];
        for other in self.other_fields(size, offset) {
            let mut bytes = all.to_vec();
            let changed = same.iter().all(|it| {
                let (it, offsets) = &self.all[*it];
                let at = (it.ip() - from) as usize + offsets.displacement_offset();
                let place = (at, offsets.displacement_size());
                let other = changed(&bytes, place, other - offset, false);
                other.map(|it| bytes = it).is_some()
            });
            if changed {
                let patch = Patch::Code(from, bytes);
                let (pc, kind) = (from, MutantKind::Fields);
                found.push(Mutant { pc, kind, patch });
            }
        }
    }

    /// Returns the frame offsets of local variables of `size` bytes, without the one at `offset`;
    /// those that are used nearest to the instruction `at` come first.
    fn other_variables(&self, at: usize, size: usize, offset: i64) -> Vec<i64> {
        let known = self.places.get(&(true, size)).into_iter().flatten();
        let mut known: Vec<&(usize, i64)> = known.filter(|it| it.1 != offset).collect();
        known.sort_by_key(|it| it.0.abs_diff(at));
        let mut told = HashSet::new();
        let known = known
            .into_iter()
            .map(|it| it.1)
            .filter(|it| told.insert(*it));
        known.take(VARIABLES).collect()
    }

    /// Returns the offsets of fields of `size` bytes, without the one at `offset`: its two
    /// neighbours, and those that the function reads or writes; the nearest to `offset` come first.
    fn other_fields(&self, size: usize, offset: i64) -> Vec<i64> {
        let known = self.places.get(&(false, size)).into_iter().flatten();
        let mut known: Vec<i64> = known.map(|it| it.1).filter(|it| *it != offset).collect();
        let next = [offset - size as i64, offset + size as i64];
        known.extend(next.into_iter().filter(|it| *it >= 0));
        known.sort_by_key(|it| (it.abs_diff(offset), *it));
        known.dedup();
        known.truncate(FIELDS);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode()
    }

    #[test]
    fn another_register_is_read_and_nothing_else_changes() {
        let codes: [&[u8]; 12] = [
            &[0x89, 0xc7],                            // mov edi, eax
            &[0x8b, 0xf8],                            // the same
            &[0x48, 0x8b, 0x45, 0x20],                // mov rax, [rbp+32]
            &[0x48, 0xc7, 0x45, 0x20, 0, 0, 0, 0],    // mov qword [rbp+32], 0
            &[0x49, 0x89, 0x84, 0xc4, 0x80, 0, 0, 0], // mov [r12+rax*8+128], rax
            &[0x4c, 0x39, 0xf0],                      // cmp rax, r14
            &[0x3b, 0x47, 0x10],                      // cmp eax, [rdi+16]
            &[0x48, 0x8d, 0x14, 0x08],                // lea rdx, [rax+rcx]
            &[0x48, 0x63, 0xd0],                      // movsxd rdx, eax
            &[0x0f, 0xaf, 0xc1],                      // imul eax, ecx
            &[0x48, 0x29, 0xc2],                      // sub rdx, rax
            &[0x66, 0x41, 0x0f, 0x6f, 0x04, 0x24],    // movdqa xmm0, [r12]
        ];
        let mut changed = 0;
        for code in codes {
            let plain = decoded(code);
            for (role, register) in read_registers(&plain) {
                for number in (0..16).filter(|it| *it != register.number()) {
                    let Some(other) = with_register(code, role, number) else {
                        continue;
                    };
                    changed += 1;
                    let other = decoded(&other);
                    assert_eq!((other.len(), other.code()), (plain.len(), plain.code()));
                    let places = |it: &Instruction| {
                        let operand = |at| match it.op_kind(at) {
                            OpKind::Register => it.op_register(at).number(),
                            _ => 99,
                        };
                        let of = |it: Register| (it != Register::None).then(|| it.number());
                        let base = of(it.memory_base());
                        vec![
                            Some(operand(0)),
                            Some(operand(1)),
                            base,
                            of(it.memory_index()),
                        ]
                    };
                    let (now, before) = (places(&other), places(&plain));
                    let differ = (0..4).filter(|at| now[*at] != before[*at]);
                    let at = match role {
                        Role::Operand(at) => at as usize,
                        Role::Base => 2,
                        Role::Index => 3,
                    };
                    assert_eq!(differ.collect::<Vec<_>>(), [at], "{code:x?} {number}");
                    assert_eq!(now[at], Some(number));
                }
            }
        }
        assert!(changed > 150, "{changed}");
    }
}
