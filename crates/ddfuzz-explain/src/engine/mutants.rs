//! Mutants of a program's code: one instruction does something else each time it is executed, as if
//! a programmer had made a mistake in a statement (Moon, Kim, Kim and Yoo, *Ask the Mutants*, ICST
//! 2014). Pure.

use std::collections::HashMap;

use super::added::{Added, When};
use super::wide::Wide;
use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// A kind of mutant: what its changed instruction does in place of its usual effect. Kinds of small
/// changes come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MutantKind {
    /// A comparison of two numbers has the other result if they are equal (`<=` for `<`).
    Boundary,
    /// The mutant has a constant that is larger or smaller by one.
    Constant,
    /// A number is not truncated to fewer bits, or is read as signed instead of unsigned, or the
    /// other way.
    Width,
    /// The mutant exchanges two arguments of a call.
    Exchanged,
    /// The mutant subtracts instead of adding, or the other way; or it combines bits with another
    /// operator.
    Operator,
    /// Two conditions are joined by `&&` instead of `||`, or the other way.
    Connective,
    /// The mutant reads another variable, or another field, than the program.
    Operand,
    /// The mutant uses the original from which a local variable was copied, in place of the copy.
    Original,
    /// The mutant reads another field at each place where a source line reads one field.
    Fields,
    /// After one case of a `switch`, the program leaves the `switch` instead of falling through to
    /// the next case.
    Break,
    /// The mutant executes a statement before or after its neighbours.
    Order,
    /// The mutant negates a condition.
    Negated,
    /// The mutant leaves an instruction out: a value is not stored, or a function is not called.
    LeftOut,
    /// The mutant makes a condition always true, or always false.
    Fixed,
    /// The mutant stores a number that is larger or smaller by one.
    Number,
    /// A comparison is made with another constant, so that it is decided otherwise for a number
    /// that the failing run has compared.
    Bound,
    /// The mutant sets a field or a global variable in addition, when a function is called or
    /// returns, or before one of its statements.
    Added,
}

impl MutantKind {
    /// Returns true if a mutant of this kind changes only how a condition is decided.
    pub fn decides(self) -> bool {
        matches!(
            self,
            MutantKind::Boundary
                | MutantKind::Connective
                | MutantKind::Negated
                | MutantKind::Fixed
                | MutantKind::Bound
        )
    }

    /// Returns true for a kind of mutant that few instructions have.
    pub fn is_rare(self) -> bool {
        matches!(
            self,
            MutantKind::Width | MutantKind::Exchanged | MutantKind::Original | MutantKind::Break
        )
    }
}

/// How a mutant is made from the running program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Patch {
    /// New bytes of the code (second value), from the given address on.
    Code(u64, Vec<u8>),
    /// Two registers are exchanged each time before the instruction at this address is executed.
    Exchange(u64, [Register; 2]),
    /// The number is added to the register each time before the instruction at this address is
    /// executed.
    Add(u64, Register, i64),
    /// Each time after the instruction at the first address is executed, the program goes on at the
    /// second address.
    Leave(u64, u64),
    /// A function sets a place in memory in addition, each time it is called.
    Addition(Box<Added>),
    /// A place in memory keeps numbers that do not fit into it.
    Wide(Box<Wide>),
}

impl Patch {
    /// Returns the address of the code at which the mutant begins to differ from the program: the
    /// address of the changed instruction, of the instruction before or after which something else
    /// is done, of the function that sets something in addition, or of the statement before which
    /// it does.
    pub fn begins(&self) -> u64 {
        match self {
            Patch::Code(at, _) | Patch::Exchange(at, _) | Patch::Add(at, ..) => *at,
            Patch::Leave(at, _) => *at,
            Patch::Addition(added) => match added.when {
                When::Before(statement) => statement,
                When::Begins | When::Returns => added.entry,
            },
            Patch::Wide(place) => place.first(),
        }
    }

    /// Returns the assignment that a function makes in addition; `None` for other patches.
    pub(super) fn added(&self) -> Option<&Added> {
        match self {
            Patch::Addition(added) => Some(added),
            _ => None,
        }
    }
}

/// A mutant of the program: the program with one place of its code changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// Address of the instruction that stands for the change in reports.
    pub pc: u64,
    /// What the mutant does in place of what the program does.
    pub kind: MutantKind,
    /// How the mutant is made from the running program.
    pub patch: Patch,
}

impl Mutant {
    /// Returns the address of the changed instruction and, if the mutant acts only in calls from
    /// one place, the address of the calling instruction.
    pub fn calls(&self) -> Vec<u64> {
        let caller = self.patch.added().and_then(|it| it.caller);
        // The call ends where it returns to.
        std::iter::once(self.pc)
            .chain(caller.map(|it| it - 1))
            .collect()
    }

    /// Returns in words what this mutant does, as far as its kind tells, as the end of a sentence:
    /// `with another variable`.
    pub fn words(&self) -> String {
        if let Patch::Wide(place) = &self.patch {
            return place.words();
        }
        let words = match self.kind {
            MutantKind::Boundary => "with the other decision where both sides are equal",
            MutantKind::Negated => "with the opposite condition",
            MutantKind::Fixed => "with a condition that is always decided alike",
            MutantKind::Constant => "with a number in its code that differs by one",
            MutantKind::Bound => "with another number to compare with",
            MutantKind::Exchanged => "with two arguments exchanged",
            MutantKind::Width => "with a number that is not cut, or has another sign",
            MutantKind::Operator => "with another operator in its code",
            MutantKind::Connective => "with `&&` in place of `||`, or the other way",
            MutantKind::Operand => "with another variable",
            MutantKind::Original => "with the original in place of its copy",
            MutantKind::Fields => "with another field",
            MutantKind::Break => "with a break behind it",
            MutantKind::Order => "with another order of statements",
            MutantKind::LeftOut => "without a write or a call",
            MutantKind::Number => "with a number that differs by one",
            MutantKind::Added => return self.patch.added().map_or_else(String::new, Added::words),
        };
        words.to_owned()
    }
}

/// Registers in which the first arguments of a call are passed, in this order.
pub(super) const ARGUMENTS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];
/// Number of instructions before a call among which the instructions that set its arguments are
/// searched for.
const SETTING: usize = 24;
/// How many instructions before and after an instruction are searched for a register that it may
/// use instead of its own, and before an indirect jump for the address of its jump table.
pub(super) const NEARBY: usize = 10;
/// Machine code of the instruction that does nothing (`nop`).
pub(super) const NOP: u8 = 0x90;

/// The decoded machine code of a function.
pub(super) struct Code {
    pub bytes: Vec<u8>,
    pub start: u64,
    pub all: Vec<(Instruction, ConstantOffsets)>,
    /// Whether the register RBP points to the function's frame.
    has_frame_pointer: bool,
    /// The places in memory that instructions access by a register and a displacement. The key says
    /// whether the register points to the frame, and has the size in bytes. Each value is the index
    /// of an instruction and the displacement, in the order of the code.
    pub places: HashMap<(bool, usize), Vec<(usize, i64)>>,
}

/// Returns the register and the displacement with which an instruction accesses memory; `None` if
/// it uses anything else, or accesses no memory.
pub(super) fn simple_place(it: &Instruction) -> Option<(Register, i64)> {
    let is_memory = (0..it.op_count()).any(|at| it.op_kind(at) == OpKind::Memory);
    let is_simple = it.memory_index() == Register::None
        && it.memory_base().is_gpr64()
        && it.segment_prefix() == Register::None
        && it.mnemonic() != Mnemonic::Lea;
    (is_memory && is_simple).then(|| (it.memory_base(), it.memory_displacement64() as i64))
}

/// Returns true if an instruction writes to memory: a move, an addition, a subtraction, or a bit
/// operation whose first operand is in memory.
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

impl Code {
    /// Decodes the code `bytes` of a function that begins at the address `start`.
    pub fn new(bytes: Vec<u8>, start: u64) -> Code {
        let mut decoder = Decoder::with_ip(64, &bytes, start, DecoderOptions::NONE);
        let mut all = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            all.push((instruction, decoder.get_constant_offsets(&instruction)));
        }
        let has_frame_pointer = all.iter().any(|(it, _)| {
            let is_move = it.mnemonic() == Mnemonic::Mov && it.op0_register() == Register::RBP;
            is_move && it.op1_register() == Register::RSP
        });
        let mut code = Code {
            bytes,
            start,
            all,
            has_frame_pointer,
            places: HashMap::new(),
        };
        let mut places: HashMap<(bool, usize), Vec<(usize, i64)>> = HashMap::new();
        for (at, (it, _)) in code.all.iter().enumerate() {
            if let Some((base, offset)) = simple_place(it) {
                let kind = (code.is_frame(base), it.memory_size().size());
                places.entry(kind).or_default().push((at, offset));
            }
        }
        code.places = places;
        code
    }

    /// Returns the addresses of the `count` instructions that follow the one at `pc`.
    pub fn following(&self, pc: u64, count: usize) -> Vec<u64> {
        let all = self.all.iter().map(|it| it.0.ip());
        all.skip_while(|it| *it <= pc).take(count).collect()
    }

    /// Returns true for a register that points to the function's frame, in which its variables are.
    pub fn is_frame(&self, register: Register) -> bool {
        register == Register::RSP || register == Register::RBP && self.has_frame_pointer
    }

    pub fn bytes_of(&self, it: &Instruction) -> Vec<u8> {
        let from = (it.ip() - self.start) as usize;
        self.bytes[from..from + it.len()].to_vec()
    }

    /// Adds the mutants of the instruction with the index `at` to `found`.
    fn add(&self, at: usize, found: &mut Vec<Mutant>) {
        let (it, offsets) = &self.all[at];
        // Without the check of a stack protector, the program only goes on with a damaged stack.
        if it.is_invalid() || self.checks_stack(at) {
            return;
        }
        let bytes = self.bytes_of(it);
        let mut push = |kind, pc, bytes: Vec<u8>| {
            let patch = Patch::Code(it.ip(), bytes);
            found.push(Mutant { pc, kind, patch });
        };
        self.add_condition(it, &bytes, &mut push);
        self.add_connective(at, &mut push);
        self.add_constant(at, (it, offsets), &bytes, &mut push);
        self.add_operator(it, &bytes, &mut push);
        self.add_width(at, it, &bytes, &mut push);
        self.add_operand(at, (it, offsets), &bytes, &mut push);
        self.add_original(at, (it, offsets), &bytes, &mut push);
        self.add_registers(at, it, &bytes, &mut push);
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

    /// Passes to `push` the mutants of `it` in which its constant is larger or smaller by one: for
    /// each, the kind, the address for reports, and the new bytes.
    fn add_constant(
        &self,
        at: usize,
        (it, offsets): (&Instruction, &ConstantOffsets),
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let is_of_stack = it.op0_kind() == OpKind::Register && self.is_frame(it.op0_register());
        let is_arithmetic = matches!(
            it.mnemonic(),
            Mnemonic::Cmp
                | Mnemonic::Add
                | Mnemonic::Sub
                | Mnemonic::Mov
                | Mnemonic::Imul
                | Mnemonic::Shl
                | Mnemonic::Shr
                | Mnemonic::Sar
        );
        // The number of vector registers that are passed to a function.
        let next = self.all.get(at + 1);
        let is_passed = it.op0_kind() == OpKind::Register
            && it.op0_register() == Register::EAX
            && next.is_some_and(|next| self.is_call(&next.0));
        let small = it.mnemonic() == Mnemonic::Lea
            && !self.is_frame(it.memory_base())
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
    }

    /// Passes to `push` the mutants of `it` with another operator (subtraction for addition or the
    /// other way, other bit operators): for each, the kind, the address for reports, and the new
    /// bytes.
    fn add_operator(
        &self,
        it: &Instruction,
        bytes: &[u8],
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        const OR: u8 = 0x08;
        const AND: u8 = 0x20;
        const SUB: u8 = 0x28;
        const XOR: u8 = 0x30;
        let others: &[u8] = match it.mnemonic() {
            Mnemonic::Add => &[SUB],
            Mnemonic::Sub => &[0],
            Mnemonic::Or => &[AND, XOR],
            Mnemonic::And => &[OR, XOR],
            Mnemonic::Xor => &[OR, AND],
            _ => return,
        };
        let is_register = it.op0_kind() == OpKind::Register;
        let is_of_stack = is_register && self.is_frame(it.op0_register());
        let clears = it.op1_kind() == OpKind::Register && it.op0_register() == it.op1_register();
        let opcode = usize::from(bytes[0] & 0xf0 == 0x40);
        let at = match bytes[opcode] {
            0x80 | 0x81 | 0x83 => opcode + 1,
            first if first < 0x40 && first & 7 < 6 => opcode,
            _ => return,
        };
        if is_of_stack || is_register && clears {
            return;
        }
        for operator in others {
            let mut other = bytes.to_vec();
            // Of eight operators, by three bits.
            other[at] = other[at] & !0x38 | operator;
            push(MutantKind::Operator, it.ip(), other);
        }
    }

    /// If the instruction `it`, with the index `at` and the code `bytes`, extends a number to more
    /// bytes, passes mutants of it to `push`. One mutant extends the number with its sign instead
    /// of without, or the other way. In the others, the instruction takes more of the number's
    /// bytes, or all of them; for these, reports show the address of the first instruction that
    /// uses the number.
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

    /// Adds to `found` a mutant that leaves a `switch` after one of its cases, if the instruction
    /// with the index `at` is the last one of a case and the next case begins after it. `cases` are
    /// the addresses at which cases begin.
    fn add_break(&self, at: usize, cases: &[u64], found: &mut Vec<Mutant>) {
        let it = &self.all[at].0;
        let next = it.next_ip();
        let goes_on = matches!(it.flow_control(), FlowControl::Next | FlowControl::Call);
        if !goes_on || !cases.contains(&next) {
            return;
        }
        let is_end = |it: &&Instruction| {
            it.flow_control() == FlowControl::UnconditionalBranch && it.near_branch_target() > next
        };
        let all = self.all.iter().map(|it| &it.0);
        let before = all.clone().take(at).rev().find(is_end);
        if let Some(end) = before.or_else(|| all.skip(at).find(is_end)) {
            let pc = it.ip();
            let patch = Patch::Leave(pc, end.near_branch_target());
            let kind = MutantKind::Break;
            found.push(Mutant { pc, kind, patch });
        }
    }

    /// Adds to `found` the mutants of the instruction `it` in which registers are changed, at a
    /// breakpoint, each time it is executed: a call with two arguments exchanged, a stored number
    /// larger or smaller by one.
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

/// Returns the lower `size` bytes of `value` (1 to 8) as a signed number.
pub(super) fn sign_extended(value: u64, size: usize) -> i64 {
    let unused = 64 - 8 * size as u32;
    (value << unused) as i64 >> unused
}

/// Returns an instruction's bytes after adding `change` to the number of `size` bytes at `offset`;
/// `None` if the result does not fit. If the number is as wide as the operand (`is_whole`), the
/// result must fit as a signed and as an unsigned number.
pub(super) fn changed(
    bytes: &[u8],
    (offset, size): (usize, usize),
    change: i64,
    is_whole: bool,
) -> Option<Vec<u8>> {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[offset..offset + size]);
    let unused = 64 - 8 * size as u32;
    let unsigned = u64::from_le_bytes(word);
    let new = sign_extended(unsigned, size).checked_add(change)?;
    let fits_unsigned =
        (unsigned.checked_add_signed(change)).is_some_and(|it| it <= u64::MAX >> unused);
    let is_exact = sign_extended(new as u64, size) == new && (!is_whole || fits_unsigned);
    let mut bytes = bytes.to_vec();
    bytes[offset..offset + size].copy_from_slice(&new.to_le_bytes()[..size]);
    is_exact.then_some(bytes)
}

/// Returns the mutants of a function's code. `line` returns, for an address, the source line and
/// whether the failing run executes its statement; `cases` are the addresses at which the cases of
/// a `switch` begin.
pub(super) fn mutants(
    code: &Code,
    line: impl Fn(u64) -> Option<(u64, bool)>,
    cases: &[u64],
) -> Vec<Mutant> {
    let lines: Vec<Option<(u64, bool)>> = code.all.iter().map(|it| line(it.0.ip())).collect();
    let mut found = Vec::new();
    for at in (0..lines.len()).filter(|at| lines[*at].is_some_and(|it| it.1)) {
        code.add(at, &mut found);
        code.add_fields(at, &lines, &mut found);
        code.add_break(at, cases, &mut found);
    }
    code.add_orders(&lines, cases, &mut found);
    found
}

/// Returns the addresses of the jump tables (of `switch` statements) in a function's code.
pub(super) fn jump_tables(code: &Code) -> Vec<u64> {
    let jumps = code.all.iter().enumerate();
    let jumps = jumps.filter(|(_, (it, _))| it.flow_control() == FlowControl::IndirectBranch);
    let before = jumps.flat_map(|(at, _)| &code.all[at.saturating_sub(NEARBY)..at]);
    let tables = before.filter(|(it, _)| it.mnemonic() == Mnemonic::Lea);
    let tables = tables.filter(|(it, _)| it.is_ip_rel_memory_operand());
    tables.map(|(it, _)| it.ip_rel_memory_address()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the mutants of some code that replace its bytes: the kind and the new bytes of each.
    pub(in crate::engine) fn patches(code: &[u8]) -> Vec<(MutantKind, Vec<u8>)> {
        let all = mutants(&Code::new(code.to_vec(), 0x1000), |_| Some((1, true)), &[]).into_iter();
        let bytes = |patch| match patch {
            Patch::Code(_, bytes) => bytes,
            _ => Vec::new(),
        };
        all.map(|it| (it.kind, bytes(it.patch))).collect()
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
    fn sums_and_bits_have_other_operators() {
        let others = |code: &[u8]| -> Vec<Vec<u8>> {
            let all = patches(code).into_iter();
            let all = all.filter(|(kind, _)| *kind == MutantKind::Operator);
            all.map(|(_, bytes)| bytes).collect()
        };
        // or r14d, r13d; xor [rdi+0xe10], eax; and dword [rdi], 4; and eax, 0x100
        assert_eq!(
            others(&[0x45, 0x09, 0xee]),
            [[0x45, 0x21, 0xee], [0x45, 0x31, 0xee]]
        );
        let code = [0x31, 0x87, 0x10, 0x0e, 0, 0];
        let expected = [0x09, 0x21].map(|it| [it, 0x87, 0x10, 0x0e, 0, 0]);
        assert_eq!(others(&code), expected);
        assert_eq!(others(&[0x83, 0x27, 4]), [[0x83, 0x0f, 4], [0x83, 0x37, 4]]);
        let expected = [0x0d, 0x35].map(|it| [it, 0, 1, 0, 0]);
        assert_eq!(others(&[0x25, 0, 1, 0, 0]), expected);
        // add eax, ecx; sub al, 3
        assert_eq!(others(&[0x01, 0xc8]), [[0x29, 0xc8]]);
        assert_eq!(others(&[0x2c, 3]), [[0x04, 3]]);
        // xor eax, eax makes a zero; and rsp, -16 aligns the stack.
        assert!(others(&[0x31, 0xc0]).is_empty());
        assert!(others(&[0x48, 0x83, 0xe4, 0xf0]).is_empty());
    }

    #[test]
    fn another_variable_of_the_same_size_is_read() {
        // mov rbp, rsp; mov eax, [rbp-4]; mov ecx, [rbp-8]; mov rdx, [rbp-16]
        let code = [
            0x48, 0x89, 0xe5, 0x8b, 0x45, 0xfc, 0x8b, 0x4d, 0xf8, 0x48, 0x8b, 0x55, 0xf0,
        ];
        let expected = [[0x8b, 0x45, 0xf8], [0x8b, 0x4d, 0xfc]];
        let expected = expected.map(|it| (MutantKind::Operand, it.to_vec()));
        assert_eq!(patches(&code), expected);
    }

    #[test]
    fn another_field_is_read_wherever_the_line_reads_it() {
        // mov rbx, [rdi+8]; mov rbx, [rbx+8]; mov rax, [rbx+16]
        let code = [
            0x48, 0x8b, 0x5f, 8, 0x48, 0x8b, 0x5b, 8, 0x48, 0x8b, 0x43, 16,
        ];
        let line = |pc| Some((u64::from(pc < 0x1008), pc < 0x1008));
        let all = mutants(&Code::new(code.to_vec(), 0x1000), line, &[]);
        let both = [0x48, 0x8b, 0x5f, 16, 0x48, 0x8b, 0x5b, 16];
        let patch = Patch::Code(0x1000, both.to_vec());
        assert_eq!(all.iter().filter(|it| it.patch == patch).count(), 1);
    }

    #[test]
    fn a_part_of_a_switch_does_not_go_on_in_the_next_one() {
        // jmp 0x1007; mov [rax], ecx; add eax, ecx (the next part); nop
        let code = [0xeb, 5, 0x89, 0x08, 0x01, 0xc8, 0x90, 0x90];
        let all = mutants(
            &Code::new(code.to_vec(), 0x1000),
            |_| Some((1, true)),
            &[0x1004],
        );
        let breaks: Vec<&Patch> = (all.iter())
            .filter(|it| it.kind == MutantKind::Break)
            .map(|it| &it.patch)
            .collect();
        assert_eq!(breaks, [&Patch::Leave(0x1002, 0x1007)]);
    }

    #[test]
    fn the_original_is_used_in_place_of_its_copy() {
        // mov rbp, rsp; mov rdx, [rbp-0x28]; lea rax, [rbp-0x50]; call +0; lea rsi, [rbp-0x50]
        let code = [
            0x48, 0x89, 0xe5, 0x48, 0x8b, 0x55, 0xd8, 0x48, 0x8d, 0x45, 0xb0, 0xe8, 0, 0, 0, 0,
            0x48, 0x8d, 0x75, 0xb0,
        ];
        let all = mutants(&Code::new(code.to_vec(), 0x1000), |_| Some((1, true)), &[]);
        let original = all.iter().filter(|it| it.kind == MutantKind::Original);
        let original: Vec<_> = original.map(|it| (it.pc, it.patch.clone())).collect();
        let patch = Patch::Code(0x1010, vec![0x48, 0x8b, 0x75, 0xd8]);
        assert_eq!(original, [(0x1007, patch)]);
    }

    #[test]
    fn arguments_are_exchanged_that_are_set_before_the_call() {
        // mov edi, eax; mov esi, ecx; call +0
        let code = [0x89, 0xc7, 0x89, 0xce, 0xe8, 0, 0, 0, 0];
        // mov ecx, eax; mov r8d, ebx; call +0: the fourth and the fifth one.
        let more = [0x89, 0xc1, 0x41, 0x89, 0xd8, 0xe8, 0, 0, 0, 0];
        for (code, call, pair) in [
            (&code[..], 0x1004, [Register::RDI, Register::RSI]),
            (&more[..], 0x1005, [Register::RCX, Register::R8]),
        ] {
            let all = mutants(&Code::new(code.to_vec(), 0x1000), |_| Some((1, true)), &[]);
            let exchanged = all.iter().find(|it| it.kind == MutantKind::Exchanged);
            let patch = Patch::Exchange(call, pair);
            assert_eq!(exchanged.map(|it| &it.patch), Some(&patch));
        }
    }
}
