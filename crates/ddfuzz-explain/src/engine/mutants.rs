//! Mutants of a program's code: one instruction that does something else each time it is executed, as a
//! programmer's slip would change a statement (Moon, Kim, Kim and Yoo, *Ask the Mutants*, ICST 2014). Pure.

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// What a mutant does instead, small changes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MutantKind {
    /// Two numbers are compared with the other answer where they are equal.
    Boundary,
    /// A constant is one larger or smaller.
    Constant,
    /// A number is not cut to fewer bits, or is read with a sign, or without one.
    Width,
    /// Two arguments of a call are exchanged.
    Exchanged,
    /// A sum is a difference, or the other way.
    Operator,
    /// Another variable is read, or another field.
    Operand,
    /// What a variable was copied from is used in place of the copy.
    Original,
    /// A condition is decided otherwise each time.
    Negated,
    /// A value is not stored, or a function is not called.
    LeftOut,
    /// A condition is never met, or always.
    Fixed,
    /// A stored number is one larger or smaller.
    Number,
}

impl MutantKind {
    /// Returns true for changes that few instructions allow.
    pub fn is_rare(self) -> bool {
        matches!(
            self,
            MutantKind::Width | MutantKind::Exchanged | MutantKind::Original
        )
    }

    /// Returns what the mutant does instead, as the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            MutantKind::Boundary => "with the other answer for equal numbers",
            MutantKind::Negated => "with the opposite condition",
            MutantKind::Fixed => "with a condition that is always decided alike",
            MutantKind::Constant => "with a constant that differs by one",
            MutantKind::Exchanged => "with two arguments exchanged",
            MutantKind::Width => "with a number that is not cut, or has another sign",
            MutantKind::Operator => "with a sum in place of a difference, or the other way",
            MutantKind::Operand => "with another variable",
            MutantKind::Original => "with the original in place of its copy",
            MutantKind::LeftOut => "without a write or a call",
            MutantKind::Number => "with a number that differs by one",
        }
    }
}

/// How a mutant is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Patch {
    /// These bytes replace those of the code, from an address on.
    Code(u64, Vec<u8>),
    /// Each time before the instruction at an address is executed, two registers are exchanged.
    Exchange(u64, [Register; 2]),
    /// Each time before the instruction at an address is executed, a register is changed by this much.
    Add(u64, Register, i64),
}

/// A program whose code differs in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// Address of the instruction to which the change belongs.
    pub pc: u64,
    /// What it does instead.
    pub kind: MutantKind,
    /// How it is made.
    pub patch: Patch,
}

/// Registers in which the first arguments of a call are passed.
const ARGUMENTS: [Register; 4] = [Register::RDI, Register::RSI, Register::RDX, Register::RCX];
/// Largest number of instructions before a call among which those are that set its arguments.
const SETTING: usize = 24;
/// Largest number of other variables that are read in place of one.
const VARIABLES: usize = 6;
/// Number of instructions beside one that takes an address, among which a pointer is loaded to what
/// is copied there.
const BESIDE: usize = 4;
/// Largest number of other fields that are read in place of one.
const FIELDS: usize = 3;
/// The instruction that does nothing.
const NOP: u8 = 0x90;

/// The decoded code of a function.
struct Code<'a> {
    bytes: &'a [u8],
    start: u64,
    all: Vec<(Instruction, ConstantOffsets)>,
    /// The places in memory that instructions read or write relative to a register: by whether that is the
    /// frame, and size, in the order of the code.
    places: HashMap<(bool, usize), Vec<(usize, i64)>>,
}

fn is_frame(register: Register) -> bool {
    matches!(register, Register::RBP | Register::RSP)
}

/// Returns the operand of an instruction that is memory at a register and a displacement alone.
fn simple_place(it: &Instruction) -> Option<(Register, i64)> {
    let is_memory = (0..it.op_count()).any(|at| it.op_kind(at) == OpKind::Memory);
    let is_simple = it.memory_index() == Register::None
        && it.memory_base().is_gpr64()
        && it.segment_prefix() == Register::None
        && it.mnemonic() != Mnemonic::Lea;
    (is_memory && is_simple).then(|| (it.memory_base(), it.memory_displacement64() as i64))
}

/// Returns true if an instruction writes to memory, as its first operand.
fn stores(it: &Instruction) -> bool {
    let writes = matches!(
        it.mnemonic(),
        Mnemonic::Mov
            | Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::Inc
            | Mnemonic::Dec
            | Mnemonic::Or
            | Mnemonic::And
            | Mnemonic::Xor
    );
    writes && it.op0_kind() == OpKind::Memory
}

/// Returns the condition with the other answer for equal numbers.
fn boundary(condition: u8) -> Option<u8> {
    match condition {
        0x2 | 0x6 => Some(condition ^ 0x4),
        0x3 | 0x7 => Some(condition ^ 0x4),
        0xc | 0xe => Some(condition ^ 0x2),
        0xd | 0xf => Some(condition ^ 0x2),
        _ => None,
    }
}

impl<'a> Code<'a> {
    fn new(bytes: &'a [u8], start: u64) -> Code<'a> {
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut all = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            all.push((instruction, decoder.get_constant_offsets(&instruction)));
        }
        let mut places: HashMap<(bool, usize), Vec<(usize, i64)>> = HashMap::new();
        for (at, (it, _)) in all.iter().enumerate() {
            if let Some((base, offset)) = simple_place(it) {
                let size = it.memory_size().size();
                places
                    .entry((is_frame(base), size))
                    .or_default()
                    .push((at, offset));
            }
        }
        Code {
            bytes,
            start,
            all,
            places,
        }
    }

    fn bytes_of(&self, it: &Instruction) -> Vec<u8> {
        let from = (it.ip() - self.start) as usize;
        self.bytes[from..from + it.len()].to_vec()
    }

    /// Adds the mutants of the instruction `at`.
    fn add(&self, at: usize, found: &mut Vec<Mutant>) {
        let (it, offsets) = &self.all[at];
        if it.is_invalid() {
            return;
        }
        let bytes = self.bytes_of(it);
        let mut push = |kind, pc, bytes: Vec<u8>| {
            let patch = Patch::Code(it.ip(), bytes);
            found.push(Mutant { pc, kind, patch });
        };
        self.add_condition(it, &bytes, &mut push);
        self.add_constant(at, (it, offsets), &bytes, &mut push);
        self.add_width(at, it, &bytes, &mut push);
        self.add_operand(at, (it, offsets), &bytes, &mut push);
        self.add_original(at, (it, offsets), &bytes, &mut push);
        if stores(it) || self.is_call(it) {
            push(MutantKind::LeftOut, it.ip(), vec![NOP; bytes.len()]);
        }
        self.add_stops(at, it, found);
    }

    fn is_call(&self, it: &Instruction) -> bool {
        matches!(
            it.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        )
    }

    /// Adds other conditions of a jump, a conditional move or `setcc`.
    fn add_condition(
        &self,
        it: &Instruction,
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        if it.condition_code() == iced_x86::ConditionCode::None {
            return;
        }
        let is_short = bytes[0] & 0xf0 == 0x70;
        let opcode = match is_short {
            true => Some(0),
            false => bytes
                .windows(2)
                .position(|it| it[0] == 0x0f && matches!(it[1] & 0xf0, 0x80 | 0x90 | 0x40)),
        };
        let Some(opcode) = opcode else {
            return;
        };
        let at = opcode + usize::from(!is_short);
        let condition = bytes[at] & 0xf;
        let with = |condition: u8| {
            let mut bytes = bytes.to_vec();
            bytes[at] = bytes[at] & 0xf0 | condition;
            bytes
        };
        if let Some(other) = boundary(condition) {
            push(MutantKind::Boundary, it.ip(), with(other));
        }
        push(MutantKind::Negated, it.ip(), with(condition ^ 1));
        if it.flow_control() == FlowControl::ConditionalBranch {
            push(MutantKind::Fixed, it.ip(), vec![NOP; bytes.len()]);
            let mut always = bytes.to_vec();
            match is_short {
                true => always[0] = 0xeb,
                false => (always[opcode], always[opcode + 1]) = (NOP, 0xe9),
            }
            push(MutantKind::Fixed, it.ip(), always);
        }
    }

    /// Adds other constants, and the other operator of sums and differences.
    fn add_constant(
        &self,
        at: usize,
        (it, offsets): (&Instruction, &ConstantOffsets),
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let is_of_stack = it.op0_kind() == OpKind::Register && is_frame(it.op0_register());
        let is_arithmetic = matches!(
            it.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Add | Mnemonic::Sub | Mnemonic::Mov | Mnemonic::Imul
        );
        // The number of vector registers that are passed to a function.
        let next = self.all.get(at + 1);
        let is_passed = it.op0_kind() == OpKind::Register
            && it.op0_register() == Register::EAX
            && next.is_some_and(|next| self.is_call(&next.0));
        let small = it.mnemonic() == Mnemonic::Lea
            && !is_frame(it.memory_base())
            && !it.is_ip_rel_memory_operand();
        let number = match (is_arithmetic && offsets.has_immediate(), small) {
            (true, _) => (offsets.immediate_offset(), offsets.immediate_size()),
            (_, true) if offsets.has_displacement() => {
                (offsets.displacement_offset(), offsets.displacement_size())
            }
            _ => (0, 0),
        };
        if number.1 > 0 && !is_of_stack && !is_passed {
            let is_whole = matches!(
                it.op_kind(it.op_count() - 1),
                OpKind::Immediate8 | OpKind::Immediate16
            );
            for change in [1, -1] {
                let other = changed(bytes, number, change, is_whole);
                if let Some(other) = other {
                    push(MutantKind::Constant, it.ip(), other);
                }
            }
        }
        let opcode = usize::from(bytes[0] & 0xf0 == 0x40);
        if matches!(it.mnemonic(), Mnemonic::Add | Mnemonic::Sub) && !is_of_stack {
            let mut other = bytes.to_vec();
            match other[opcode] {
                0x01 | 0x03 | 0x29 | 0x2b => other[opcode] ^= 0x28,
                0x81 | 0x83 => other[opcode + 1] ^= 0x28,
                _ => return,
            }
            push(MutantKind::Operator, it.ip(), other);
        }
    }

    /// Adds a number that is not cut, and one with or without a sign. A change belongs to the first
    /// statement that has cut it.
    fn add_width(
        &self,
        at: usize,
        it: &Instruction,
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let is_it = matches!(it.mnemonic(), Mnemonic::Movzx | Mnemonic::Movsx);
        let opcode = usize::from(bytes[0] & 0xf0 == 0x40);
        if !is_it || bytes.len() < opcode + 3 || bytes[opcode] != 0x0f {
            return;
        }
        let mut other = bytes.to_vec();
        other[opcode + 1] ^= 0x08;
        push(MutantKind::Width, it.ip(), other);
        if it.op1_kind() != OpKind::Register {
            return;
        }
        let narrow = it.op1_register();
        let before = self.all[at.saturating_sub(6)..at].iter().rev();
        let uses = before.take_while(|(it, _)| {
            it.op0_kind() != OpKind::Register
                || it.op0_register().full_register() != narrow.full_register()
        });
        let cut = uses.filter(|(it, _)| it.op_count() > 1 && it.op1_register() == narrow);
        let pc = cut.last().map_or(it.ip(), |(it, _)| it.ip());
        let is_byte = matches!(bytes[opcode + 1], 0xb6 | 0xbe);
        if is_byte && bytes[opcode + 2] & 7 < 4 {
            let mut wider = bytes.to_vec();
            wider[opcode + 1] |= 1;
            push(MutantKind::Width, pc, wider);
        }
        let mut whole = bytes.to_vec();
        whole.remove(opcode);
        whole[opcode] = 0x8b;
        whole.push(NOP);
        push(MutantKind::Width, pc, whole);
    }

    /// Adds reads of other variables of the frame, and of other fields.
    fn add_operand(
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
        let known = self.places.get(&(is_frame(base), it.memory_size().size()));
        let mut known: Vec<(usize, i64)> = known.into_iter().flatten().copied().collect();
        known.sort_by_key(|(other, _)| other.abs_diff(at));
        let most = if is_frame(base) { VARIABLES } else { FIELDS };
        let mut told = vec![offset];
        for (_, other) in known {
            let fits = size > 1 || i8::try_from(other).is_ok();
            if told.contains(&other) || !fits {
                continue;
            }
            if told.len() > most {
                break;
            }
            told.push(other);
            let place = (offsets.displacement_offset(), size);
            if let Some(other) = changed(bytes, place, other - offset, false) {
                push(MutantKind::Operand, it.ip(), other);
            }
        }
    }

    /// Adds the use of what a variable of the frame was copied from, in place of that of its
    /// address. The change belongs to the statement that copies: the first one that takes the
    /// address, beside a pointer to the original.
    fn add_original(
        &self,
        at: usize,
        (it, offsets): (&Instruction, &ConstantOffsets),
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let address = |it: &Instruction| {
            let is_it = it.mnemonic() == Mnemonic::Lea
                && is_frame(it.memory_base())
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
            let from = simple_place(load).filter(|it| is_pointer && is_frame(it.0));
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

    /// Adds calls with exchanged arguments, and stored numbers that are one larger or smaller.
    fn add_stops(&self, at: usize, it: &Instruction, found: &mut Vec<Mutant>) {
        let pc = it.ip();
        if self.is_call(it) {
            let before = self.all[at.saturating_sub(SETTING)..at].iter().rev();
            let before = before.take_while(|(it, _)| it.flow_control() == FlowControl::Next);
            let set: Vec<Register> = before
                .filter(|(it, _)| it.op_count() > 0 && it.op0_kind() == OpKind::Register)
                .map(|(it, _)| it.op0_register().full_register())
                .collect();
            for pair in ARGUMENTS.windows(2) {
                if pair.iter().all(|it| set.contains(it)) {
                    let patch = Patch::Exchange(pc, [pair[0], pair[1]]);
                    let kind = MutantKind::Exchanged;
                    found.push(Mutant { pc, kind, patch });
                }
            }
        }
        let is_number = it.mnemonic() == Mnemonic::Mov
            && it.op0_kind() == OpKind::Memory
            && it.op1_kind() == OpKind::Register
            && (it.op1_register().is_gpr32() || it.op1_register().is_gpr64());
        if is_number {
            for change in [1, -1] {
                let patch = Patch::Add(pc, it.op1_register().full_register(), change);
                let kind = MutantKind::Number;
                found.push(Mutant { pc, kind, patch });
            }
        }
    }
}

/// Returns the bytes of an instruction in which the number at an offset, with a size, is changed by
/// `change`; `None` where it has no room for that. A number that fills its operand (`is_whole`) may
/// have a sign or none: it must be changed by that much in both cases.
fn changed(
    bytes: &[u8],
    (offset, size): (usize, usize),
    change: i64,
    is_whole: bool,
) -> Option<Vec<u8>> {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[offset..offset + size]);
    let unused = 64 - 8 * size as u32;
    let unsigned = u64::from_le_bytes(word);
    let signed = (unsigned << unused) as i64 >> unused;
    let new = signed.checked_add(change)?;
    let fits_unsigned =
        (unsigned.checked_add_signed(change)).is_some_and(|it| it <= u64::MAX >> unused);
    let is_exact = (new << unused) >> unused == new && (!is_whole || fits_unsigned);
    let mut bytes = bytes.to_vec();
    bytes[offset..offset + size].copy_from_slice(&new.to_le_bytes()[..size]);
    is_exact.then_some(bytes)
}

/// Returns the mutants of a function's code, which begins at the address `start`, in the statements
/// for which `is_executed` is true.
pub(super) fn mutants(bytes: &[u8], start: u64, is_executed: impl Fn(u64) -> bool) -> Vec<Mutant> {
    let code = Code::new(bytes, start);
    let mut found = Vec::new();
    for (at, (it, _)) in code.all.iter().enumerate() {
        if is_executed(it.ip()) {
            code.add(at, &mut found);
        }
    }
    found
}

/// Returns the ranges of addresses, without repetition.
pub(super) fn distinct(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        if !found.contains(&range) {
            found.push(range);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds and bytes of the mutants of some code.
    fn patches(code: &[u8]) -> Vec<(MutantKind, Vec<u8>)> {
        let all = mutants(code, 0x1000, |_| true).into_iter();
        let bytes = |patch| match patch {
            Patch::Code(_, bytes) => bytes,
            Patch::Exchange(..) | Patch::Add(..) => Vec::new(),
        };
        all.map(|it| (it.kind, bytes(it.patch))).collect()
    }

    #[test]
    fn a_jump_is_decided_otherwise_in_four_ways() {
        // jl +2
        let expected = [
            (MutantKind::Boundary, vec![0x7e, 2]),
            (MutantKind::Negated, vec![0x7d, 2]),
            (MutantKind::Fixed, vec![NOP, NOP]),
            (MutantKind::Fixed, vec![0xeb, 2]),
        ];
        assert_eq!(patches(&[0x7c, 2]), expected);
        // je, in its long form: equal numbers decide nothing else.
        let expected = [
            (MutantKind::Negated, vec![0x0f, 0x85, 2, 0, 0, 0]),
            (MutantKind::Fixed, vec![NOP; 6]),
            (MutantKind::Fixed, vec![NOP, 0xe9, 2, 0, 0, 0]),
        ];
        assert_eq!(patches(&[0x0f, 0x84, 2, 0, 0, 0]), expected);
    }

    #[test]
    fn constants_differ_by_one_and_numbers_are_not_cut() {
        // cmp eax, 4
        let expected = [5, 3].map(|it| (MutantKind::Constant, vec![0x83, 0xf8, it]));
        assert_eq!(patches(&[0x83, 0xf8, 4]), expected);
        // cmp eax, 127, -128; cmp al, 127, -1: one of the changes has no room.
        for (code, other) in [
            (vec![0x83, 0xf8, 0x7f], 0x7e),
            (vec![0x83, 0xf8, 0x80], 0x81),
            (vec![0x3c, 0x7f], 0x7e),
            (vec![0x3c, 0xff], 0xfe),
        ] {
            let mut expected = code.clone();
            *expected.last_mut().unwrap() = other;
            assert_eq!(patches(&code), [(MutantKind::Constant, expected)]);
        }
        // cmp eax, -1
        assert_eq!(patches(&[0x83, 0xf8, 0xff]).len(), 2);
        // sub rsp, 8 makes room on the stack.
        assert_eq!(patches(&[0x48, 0x83, 0xec, 8]), []);
        // movzx eax, al: with a sign, of 16 bits, and as a whole
        let expected = [[0x0f, 0xbe, 0xc0], [0x0f, 0xb7, 0xc0], [0x8b, 0xc0, NOP]];
        let expected = expected.map(|it| (MutantKind::Width, it.to_vec()));
        assert_eq!(patches(&[0x0f, 0xb6, 0xc0]), expected);
    }

    #[test]
    fn another_variable_of_the_same_size_is_read() {
        // mov eax, [rbp-4]; mov ecx, [rbp-8]; mov rdx, [rbp-16]
        let code = [0x8b, 0x45, 0xfc, 0x8b, 0x4d, 0xf8, 0x48, 0x8b, 0x55, 0xf0];
        let expected = [[0x8b, 0x45, 0xf8], [0x8b, 0x4d, 0xfc]];
        let expected = expected.map(|it| (MutantKind::Operand, it.to_vec()));
        assert_eq!(patches(&code), expected);
    }

    #[test]
    fn the_original_is_used_in_place_of_its_copy() {
        // mov rdx, [rbp-0x28]; lea rax, [rbp-0x50]; call +0; lea rsi, [rbp-0x50]
        let code = [
            0x48, 0x8b, 0x55, 0xd8, 0x48, 0x8d, 0x45, 0xb0, 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x75,
            0xb0,
        ];
        let all = mutants(&code, 0x1000, |_| true);
        let original = all.iter().filter(|it| it.kind == MutantKind::Original);
        let original: Vec<_> = original.map(|it| (it.pc, it.patch.clone())).collect();
        let patch = Patch::Code(0x100d, vec![0x48, 0x8b, 0x75, 0xd8]);
        assert_eq!(original, [(0x1004, patch)]);
    }

    #[test]
    fn arguments_are_exchanged_that_are_set_before_the_call() {
        // mov edi, eax; mov esi, ecx; call +0
        let code = [0x89, 0xc7, 0x89, 0xce, 0xe8, 0, 0, 0, 0];
        let all = mutants(&code, 0x1000, |_| true);
        let exchanged = all.iter().find(|it| it.kind == MutantKind::Exchanged);
        let patch = Patch::Exchange(0x1004, [Register::RDI, Register::RSI]);
        assert_eq!(exchanged.map(|it| &it.patch), Some(&patch));
    }
}
