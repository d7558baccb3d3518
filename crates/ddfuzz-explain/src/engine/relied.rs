//! Conditions on which optimized code relies: where two values are known to be equal, the code uses
//! a compared register in place of a constant. If such a condition is forced, the register has
//! another value, and the program is in a state that no change of its source can make. Pure.

use std::collections::{HashSet, VecDeque};

use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::mutants::{ARGUMENTS, Code, Mutant, MutantKind, NOP, Patch};

/// Number of instructions before a comparison among which copies of the compared register are
/// searched for.
const COPIES: usize = 4;
/// Largest number of instructions after a jump that are searched for uses of the register.
const SEARCHED: usize = 32;
/// Registers that a called function may change, besides those in which arguments are passed.
const CHANGED: [Register; 3] = [Register::RAX, Register::R10, Register::R11];

/// Returns the whole register of which `it` writes all or a part (`rax` for `al`), as its first
/// operand; `None` if that is memory, or is only read.
fn written(it: &Instruction) -> Option<Register> {
    let is_read = matches!(
        it.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
    );
    let is_register = it.op_count() > 0 && it.op0_kind() == OpKind::Register;
    (is_register && !is_read).then(|| it.op0_register().full_register())
}

/// Returns the register of which `it` is a move, and the register or `None` (memory) to which it
/// moves; `None` for other instructions.
fn moved(it: &Instruction) -> Option<(Register, Option<Register>)> {
    let is_move = it.mnemonic() == Mnemonic::Mov && it.op1_kind() == OpKind::Register;
    is_move.then(|| (it.op1_register().full_register(), written(it)))
}

/// Returns the registers that equal a constant where the conditional jump with the index `at` finds
/// two values equal: the compared register, and its copies. Empty if the jump tests something else.
fn equal_registers(code: &[&Instruction], at: usize) -> Vec<Register> {
    let is_equality = matches!(
        code[at].condition_code(),
        ConditionCode::e | ConditionCode::ne
    );
    let Some(compares) = at.checked_sub(1).map(|it| code[it]).filter(|_| is_equality) else {
        return Vec::new();
    };
    let is_register = compares.op_count() > 1 && compares.op0_kind() == OpKind::Register;
    let is_constant = match compares.mnemonic() {
        Mnemonic::Test => is_register && compares.op0_register() == compares.op1_register(),
        Mnemonic::Cmp => is_register && compares.op1_kind() != OpKind::Register,
        _ => false,
    };
    if !is_constant || compares.op1_kind() == OpKind::Memory {
        return Vec::new();
    }
    let register = compares.op0_register().full_register();
    let mut found = vec![register];
    for it in code[at.saturating_sub(1 + COPIES)..at - 1].iter().rev() {
        match moved(it) {
            Some((from, Some(to))) if from == register => found.push(to),
            _ if it.flow_control() != FlowControl::Next => break,
            _ if written(it) == Some(register) => break,
            _ => {}
        }
    }
    found
}

/// Returns the address at which `code` goes on after the conditional jump with the index `at` if
/// both compared values are equal, if it relies on that there: before it changes the compared
/// register, it stores it, copies it or returns it in place of the constant. `None` if it does not,
/// or if the jump does not compare a register with a constant. `code` are the instructions of a
/// function, ascending.
pub(super) fn relied_side(code: &[&Instruction], at: usize) -> Option<u64> {
    let equal = equal_registers(code, at);
    let side = match code[at].condition_code() {
        ConditionCode::e => code[at].near_branch_target(),
        _ => code[at].next_ip(),
    };
    let mut known = HashSet::new();
    let mut paths = VecDeque::from([(side, equal)]);
    while let Some((ip, mut equal)) = paths.pop_front() {
        let found = code.binary_search_by_key(&ip, |it| it.ip());
        let Some(it) = found.ok().map(|at| code[at]).filter(|_| !equal.is_empty()) else {
            continue;
        };
        if known.len() >= SEARCHED || !known.insert(ip) {
            continue;
        }
        let is_used = moved(it).is_some_and(|(from, to)| {
            equal.contains(&from) && to.is_none_or(|to| !ARGUMENTS.contains(&to))
        });
        let is_returned =
            it.flow_control() == FlowControl::Return && equal.contains(&Register::RAX);
        if is_used || is_returned {
            return Some(side);
        }
        equal.retain(|register| Some(*register) != written(it));
        match it.flow_control() {
            FlowControl::Next => paths.push_back((it.next_ip(), equal)),
            FlowControl::Call | FlowControl::IndirectCall => {
                equal.retain(|it| !ARGUMENTS.contains(it) && !CHANGED.contains(it));
                paths.push_back((it.next_ip(), equal));
            }
            FlowControl::UnconditionalBranch => paths.push_back((it.near_branch_target(), equal)),
            FlowControl::ConditionalBranch => {
                paths.push_back((it.near_branch_target(), equal.clone()));
                paths.push_back((it.next_ip(), equal));
            }
            _ => {}
        }
    }
    None
}

impl Code {
    /// Returns true if `mutant` makes a conditional jump go on where the code relies on it that both
    /// compared values are equal ([`relied_side`]): the code there uses a register in place of a
    /// constant, which it does not equal if they differ.
    pub fn breaks_equality(&self, mutant: &Mutant) -> bool {
        let Patch::Code(at, bytes) = &mutant.patch else {
            return false;
        };
        let found = self.all.binary_search_by_key(at, |it| it.0.ip());
        let Ok(index) = found else {
            return false;
        };
        let jump = &self.all[index].0;
        let is_never = bytes.iter().all(|it| *it == NOP);
        let forced = match mutant.kind {
            MutantKind::Fixed if is_never => [Some(jump.next_ip()), None],
            MutantKind::Fixed => [Some(jump.near_branch_target()), None],
            MutantKind::Negated => [jump.next_ip(), jump.near_branch_target()].map(Some),
            _ => return false,
        };
        if jump.flow_control() != FlowControl::ConditionalBranch {
            return false;
        }
        let all: Vec<&Instruction> = self.all.iter().map(|it| &it.0).collect();
        let relied = relied_side(&all, index);
        relied.is_some() && forced.contains(&relied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Decodes `code` as at the address 0x1000, and returns where its first conditional jump goes on
    /// if both compared values are equal, if the code there relies on that.
    fn side(code: &[u8]) -> Option<u64> {
        let all: Vec<Instruction> = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE)
            .iter()
            .collect();
        let all: Vec<&Instruction> = all.iter().collect();
        let is_jump = |it: &&Instruction| it.flow_control() == FlowControl::ConditionalBranch;
        relied_side(&all, all.iter().position(is_jump)?)
    }

    #[test]
    fn a_compared_register_that_is_returned_as_a_constant_is_relied_on() {
        // test r12, r12; je A; xor eax, eax; ret; A: mov rax, r12; ret
        let returned = [
            0x4d, 0x85, 0xe4, 0x74, 3, 0x31, 0xc0, 0xc3, 0x4c, 0x89, 0xe0, 0xc3,
        ];
        assert_eq!(side(&returned), Some(0x1008));
        // test eax, eax; jne A; ret; A: ret
        assert_eq!(side(&[0x85, 0xc0, 0x75, 1, 0xc3, 0xc3]), Some(0x1004));
        // test eax, eax; jne A; xor eax, eax; ret; A: ret
        assert_eq!(side(&[0x85, 0xc0, 0x75, 3, 0x31, 0xc0, 0xc3, 0xc3]), None);
    }

    #[test]
    fn a_copy_that_is_stored_is_relied_on_and_an_argument_is_not() {
        // mov ebx, eax; test eax, eax; jne A; mov [rsp+4], ebx; A: ret
        let stored = [
            0x89, 0xc3, 0x85, 0xc0, 0x75, 4, 0x89, 0x5c, 0x24, 0x04, 0xc3,
        ];
        assert_eq!(side(&stored), Some(0x1006));
        // test rbx, rbx; jne A; mov rdi, rbx; A: ret
        let passed = [0x48, 0x85, 0xdb, 0x75, 3, 0x48, 0x89, 0xdf, 0xc3];
        assert_eq!(side(&passed), None);
        // test rbx, rbx; jl A: nothing is known to be equal.
        let ordered = [0x48, 0x85, 0xdb, 0x7c, 3, 0x48, 0x89, 0xd8, 0xc3];
        assert_eq!(side(&ordered), None);
    }
}
