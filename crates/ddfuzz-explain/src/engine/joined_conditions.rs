//! Mutants of conditions: jumps, moves and numbers that depend on a comparison. Pure.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::mutants::{Code, MutantKind, NOP};

/// Largest distance, in instructions, between the jumps of two conditions that `&&` or `||` joins.
const JOINED: usize = 24;

/// Returns the condition code that differs from `condition` only for equal numbers, as "at most"
/// differs from "less"; `None` if there is none, as for "equal".
fn boundary(condition: u8) -> Option<u8> {
    match condition {
        0x2 | 0x6 => Some(condition ^ 0x4),
        0x3 | 0x7 => Some(condition ^ 0x4),
        0xc | 0xe => Some(condition ^ 0x2),
        0xd | 0xf => Some(condition ^ 0x2),
        _ => None,
    }
}

/// Offset, in the segment FS (the data of the thread), of the value of the stack protector. At the
/// end of a function, the code compares this value with its copy on the stack.
const GUARD: u64 = 0x28;

/// Returns true if the memory operand of the instruction `it` is the value of the stack protector:
/// the word at the offset [`GUARD`] of the segment FS.
fn reads_guard(it: &Instruction) -> bool {
    it.segment_prefix() == Register::FS && it.memory_displacement64() == GUARD
}

impl Code {
    /// Returns true if the instruction with the index `at` belongs to the check of a stack
    /// protector at the end of a function: it is the comparison of the stack protector's value, the
    /// conditional jump after the comparison, or a call that the jump leads to or that follows the
    /// jump.
    pub(super) fn checks_stack(&self, at: usize) -> bool {
        let it = &self.all[at].0;
        if it.flow_control() == FlowControl::Call {
            let mut jumps = self.all.iter().enumerate();
            return jumps.any(|(jump, (other, _))| {
                other.flow_control() == FlowControl::ConditionalBranch
                    && [other.near_branch_target(), other.next_ip()].contains(&it.ip())
                    && self.compares_guard(jump)
            });
        }
        self.compares_guard(at) || self.loads_compared(at)
    }

    /// Returns true if the instruction with the index `at` loads a register that one of the next two
    /// instructions compares in the check of a stack protector.
    fn loads_compared(&self, at: usize) -> bool {
        let it = &self.all[at].0;
        let is_load = it.mnemonic() == Mnemonic::Mov && it.op0_kind() == OpKind::Register;
        let next = self.all.iter().enumerate().skip(at + 1).take(2);
        let mut compared = next.filter(|(at, _)| is_load && self.compares_guard(*at));
        compared.any(|(_, (other, _))| {
            let operands =
                (0..other.op_count()).filter(|at| other.op_kind(*at) == OpKind::Register);
            operands
                .into_iter()
                .any(|at| other.op_register(at) == it.op0_register())
        })
    }

    /// Returns true if the instruction with the index `at` compares the value of the stack
    /// protector ([`GUARD`]) just before a conditional jump, or if it is this conditional jump.
    fn compares_guard(&self, at: usize) -> bool {
        let is_jump = |at: usize| {
            let it = self.all.get(at);
            it.is_some_and(|it| it.0.flow_control() == FlowControl::ConditionalBranch)
        };
        let compared = match (is_jump(at), is_jump(at + 1)) {
            (true, _) => at.checked_sub(1),
            (_, true) => Some(at),
            _ => None,
        };
        let Some(compared) = compared else {
            return false;
        };
        let it = &self.all[compared].0;
        if !matches!(it.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub | Mnemonic::Xor) {
            return false;
        }
        // Clang loads the value first.
        let loaded = self.all[compared.saturating_sub(2)..compared].iter();
        let mut loaded = loaded.map(|it| &it.0).filter(|it| reads_guard(it));
        let operands = (0..it.op_count()).filter(|at| it.op_kind(*at) == OpKind::Register);
        let operands: Vec<Register> = operands.map(|at| it.op_register(at)).collect();
        reads_guard(it) || loaded.any(|it| operands.contains(&it.op0_register()))
    }

    /// If `it` is a conditional jump, a conditional move or `setcc`, passes to `push` its mutants
    /// with another condition: for each, the kind, the address for reports, and the new bytes.
    pub(super) fn add_condition(
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

    /// Passes to `push` the mutant in which the condition of the jump with the index `at` is joined
    /// with the next one by `&&` instead of `||`, or the other way: kind, address for reports, and
    /// new bytes of the jump.
    ///
    /// The next condition is that of the next jump, to which no other jump leads on the way. In
    /// `a || b`, the first jump goes to what follows the second one; in `a && b`, both go to the
    /// same place. In the mutant, the first jump has the opposite condition and goes to the other
    /// of these two places.
    pub(super) fn add_connective(
        &self,
        at: usize,
        push: &mut impl FnMut(MutantKind, u64, Vec<u8>),
    ) {
        let it = &self.all[at].0;
        if it.flow_control() != FlowControl::ConditionalBranch || !it.is_jcc_short_or_near() {
            return;
        }
        let mut after = self.all[at + 1..].iter().take(JOINED).map(|it| &it.0);
        let goes_on = |it: &&Instruction| {
            matches!(
                it.flow_control(),
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall
            )
        };
        let Some(next) = after.find(|it| !goes_on(it)) else {
            return;
        };
        if next.flow_control() != FlowControl::ConditionalBranch {
            return;
        }
        let (follows, goes) = (next.next_ip(), next.near_branch_target());
        let other = match it.near_branch_target() {
            target if target == follows => goes,
            target if target == goes => follows,
            _ => return,
        };
        if let Some(bytes) = opposite_jump(self.bytes_of(it), it.next_ip(), other) {
            push(MutantKind::Connective, it.ip(), bytes);
        }
    }
}

/// Returns the bytes of the conditional jump `bytes` with the opposite condition and the target
/// address `target`; `next` is the address after the jump. `None` if the distance to `target` does
/// not fit into the jump.
fn opposite_jump(mut bytes: Vec<u8>, next: u64, target: u64) -> Option<Vec<u8>> {
    let distance = target.wrapping_sub(next) as i64;
    if bytes.len() == 2 {
        bytes[0] ^= 1;
        bytes[1] = i8::try_from(distance).ok()? as u8;
        return Some(bytes);
    }
    let opcode = bytes.len().checked_sub(6)?;
    bytes[opcode + 1] ^= 1;
    let distance = i32::try_from(distance).ok()?;
    bytes[opcode + 2..].copy_from_slice(&distance.to_le_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::mutants::tests::patches;
    use super::*;

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
    fn the_check_of_a_stack_protector_has_no_mutants() {
        // sub rdx, fs:[0x28]; jne +0
        let gcc = [0x64, 0x48, 0x2b, 0x14, 0x25, 0x28, 0, 0, 0, 0x75, 0];
        assert_eq!(patches(&gcc), []);
        // mov rax, fs:[0x28]; mov rcx, [rbp-8]; cmp rax, rcx; jne +0
        let mut clang = vec![0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0];
        clang.extend([0x48, 0x8b, 0x4d, 0xf8, 0x48, 0x39, 0xc8, 0x75, 0]);
        assert_eq!(patches(&clang), []);
        // The same loads, and a comparison of something else.
        clang[15] = 0xd9;
        clang[16] = 0x90;
        assert_ne!(patches(&clang[..13]), patches(&clang));
    }

    fn connectives(code: &[u8]) -> Vec<Vec<u8>> {
        let all = patches(code).into_iter();
        let all = all.filter(|(kind, _)| *kind == MutantKind::Connective);
        all.map(|(_, bytes)| bytes).collect()
    }

    #[test]
    fn two_conditions_are_joined_the_other_way() {
        // test edi, edi; jne A; test esi, esi; je B; A: nop; B: nop (a || b)
        let either = [0x85, 0xff, 0x75, 4, 0x85, 0xf6, 0x74, 1, NOP, NOP];
        // test edi, edi; je B; test esi, esi; je B; A: nop; B: nop (a && b)
        let both = [0x85, 0xff, 0x74, 5, 0x85, 0xf6, 0x74, 1, NOP, NOP];
        assert_eq!(connectives(&either), [[0x74, 5]]);
        assert_eq!(connectives(&both), [[0x75, 4]]);
        // jne A, in its long form; test esi, esi; je B; A: nop; B: nop
        let long = [0x0f, 0x85, 4, 0, 0, 0, 0x85, 0xf6, 0x74, 1, NOP, NOP];
        assert_eq!(connectives(&long), [[0x0f, 0x84, 5, 0, 0, 0]]);
        // je B; jmp A; je B; A: nop; B: nop
        assert!(connectives(&[0x74, 5, 0xeb, 2, 0x74, 1, NOP, NOP]).is_empty());
        // je to neither of both places; test esi, esi; je B; A: nop; B: nop
        assert!(connectives(&[0x74, 6, 0x85, 0xf6, 0x74, 1, NOP, NOP, NOP]).is_empty());
    }
}
