//! Mutants in which a statement is executed before or after its neighbours, as bytes of the same
//! length. Pure.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::mutants::{Code, Mutant, MutantKind, Patch};

/// Maximum number of successive statements in which a mutant executes the first one after the
/// others, or the last one before them.
const STATEMENTS: usize = 3;

/// Returns true if an instruction can be executed before or after others: it neither jumps nor
/// changes the stack pointer itself. A call is such an instruction, too.
fn is_plain(it: &Instruction) -> bool {
    let follows = matches!(
        it.flow_control(),
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall
    );
    let is_of_stack = matches!(
        it.mnemonic(),
        Mnemonic::Push | Mnemonic::Pop | Mnemonic::Leave
    ) || it.op0_kind() == OpKind::Register && it.op0_register() == Register::RSP;
    follows && !it.is_invalid() && !is_of_stack
}

impl Code {
    /// Returns the addresses in the function that execution may reach from elsewhere than the
    /// preceding instruction: targets of its jumps, and `cases`, the beginnings of the parts of its
    /// `switch` statements.
    fn targets(&self, cases: &[u64]) -> HashSet<u64> {
        let jumps = self.all.iter().map(|it| &it.0);
        let jumps = jumps.filter(|it| it.is_jcc_short_or_near() || it.is_jmp_short_or_near());
        let targets = jumps.map(Instruction::near_branch_target);
        targets.chain(cases.iter().copied()).collect()
    }

    /// Returns the statements, as ranges of instructions of one source line, that are executed as a
    /// whole: they contain no jump, and none of the addresses `targets`, to which the function
    /// jumps, except at their beginning. `lines` has the source line of each instruction, and
    /// whether it is executed.
    fn straight(&self, lines: &[Option<(u64, bool)>], targets: &HashSet<u64>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        while start < lines.len() {
            let same = lines[start..].iter().take_while(|it| **it == lines[start]);
            let range = start..start + same.count();
            start = range.end;
            let is_entered = |at: usize| targets.contains(&self.all[at].0.ip());
            let is_straight = lines[range.start].is_some_and(|it| it.1)
                && range.clone().all(|at| is_plain(&self.all[at].0))
                && !(range.start + 1..range.end).any(is_entered);
            if is_straight {
                found.push(range);
            }
        }
        found
    }

    /// Adds mutants to `found`: in each row of up to [`STATEMENTS`] statements, one is executed
    /// after or before the others. `lines` has the source line of each instruction and whether it
    /// is executed; `cases` are the addresses at which the cases of a `switch` begin.
    pub(super) fn add_orders(
        &self,
        lines: &[Option<(u64, bool)>],
        cases: &[u64],
        found: &mut Vec<Mutant>,
    ) {
        let targets = self.targets(cases);
        let statements = self.straight(lines, &targets);
        for first in 0..statements.len() {
            for count in 2..=STATEMENTS.min(statements.len() - first) {
                let row = &statements[first..first + count];
                let follows = row.windows(2).all(|it| {
                    let next = self.all[it[1].start].0.ip();
                    it[0].end == it[1].start && !targets.contains(&next)
                });
                if !follows {
                    break;
                }
                self.push_order(row, 1, row[0].start, found);
                if count > 2 {
                    self.push_order(row, count - 1, row[count - 1].start, found);
                }
            }
        }
    }

    /// Adds to `found` the mutant that executes the statements of `row` (ranges of instruction
    /// indices) in another order: first those from the index `begin` on, then the others. Reports
    /// show the address of the instruction with the index `of` for the mutant. Adds nothing if an
    /// instruction cannot be moved.
    fn push_order(&self, row: &[Range<usize>], begin: usize, of: usize, found: &mut Vec<Mutant>) {
        let start = self.all[row[0].start].0.ip();
        let mut bytes = Vec::new();
        for at in row[begin..]
            .iter()
            .chain(&row[..begin])
            .flat_map(Clone::clone)
        {
            let moved = self.moved(at, start + bytes.len() as u64);
            let Some(moved) = moved else {
                return;
            };
            bytes.extend(moved);
        }
        found.push(Mutant {
            pc: self.all[of].0.ip(),
            kind: MutantKind::Order,
            patch: Patch::Code(start, bytes),
        });
    }

    /// Returns the bytes of the instruction with the index `at` as they must be at the address `to`
    /// for the same effect; `None` if the distance from `to` to what the instruction calls or
    /// accesses does not fit.
    fn moved(&self, at: usize, to: u64) -> Option<Vec<u8>> {
        let (it, offsets) = &self.all[at];
        let mut bytes = self.bytes_of(it);
        let number = if it.is_call_near() {
            bytes.len() - 4
        } else if it.is_ip_rel_memory_operand() {
            offsets.displacement_offset()
        } else {
            return Some(bytes);
        };
        let by = i32::try_from(it.ip() as i64 - to as i64).ok()?;
        let field = bytes.get_mut(number..number + 4)?;
        let old = i32::from_le_bytes(field.try_into().ok()?);
        field.copy_from_slice(&old.checked_add(by)?.to_le_bytes());
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutants::mutants;
    use super::*;

    /// Returns the mutants of some code in which a statement is executed before or after its
    /// neighbours: address and bytes of each. `lines` has the source line of each byte of the code.
    fn orders(code: &[u8], lines: &[u64]) -> Vec<(u64, Vec<u8>)> {
        let line = |pc: u64| Some((lines[(pc - 0x1000) as usize], true));
        let all = mutants(&Code::new(code.to_vec(), 0x1000), line, &[]).into_iter();
        let all = all.filter(|it| it.kind == MutantKind::Order);
        let bytes = |patch| match patch {
            Patch::Code(0x1000, bytes) => bytes,
            _ => Vec::new(),
        };
        all.map(|it| (it.pc - 0x1000, bytes(it.patch))).collect()
    }

    #[test]
    fn two_statements_are_exchanged_with_what_they_call() {
        // mov eax, [rip+16] (line 1); mov edi, eax; call +32 (line 2)
        let code = [0x8b, 0x05, 16, 0, 0, 0, 0x89, 0xc7, 0xe8, 32, 0, 0, 0];
        let lines = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2];
        // Both are where they were before, seen from where they are now.
        let expected = vec![0x89, 0xc7, 0xe8, 38, 0, 0, 0, 0x8b, 0x05, 9, 0, 0, 0];
        assert_eq!(orders(&code, &lines), [(0, expected)]);
    }

    #[test]
    fn one_of_three_statements_is_first_or_last() {
        // inc eax; inc ecx; inc edx
        let code = [0xff, 0xc0, 0xff, 0xc1, 0xff, 0xc2];
        let found = orders(&code, &[1, 1, 2, 2, 3, 3]);
        assert!(found.contains(&(0, vec![0xff, 0xc1, 0xff, 0xc2, 0xff, 0xc0])));
        assert!(found.contains(&(4, vec![0xff, 0xc2, 0xff, 0xc0, 0xff, 0xc1])));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn conditions_and_places_that_are_jumped_to_stay() {
        // inc eax; cmp eax, ecx; jne -2 (to inc ecx); inc ecx
        let code = [0xff, 0xc0, 0x39, 0xc8, 0x75, 0, 0xff, 0xc1, 0xff, 0xc2];
        assert_eq!(orders(&code, &[1, 1, 2, 2, 2, 2, 3, 3, 4, 4]).len(), 1);
        // jmp -4: the second statement is the target.
        let code = [0xff, 0xc0, 0xff, 0xc1, 0xeb, 0xfc];
        assert_eq!(orders(&code, &[1, 1, 2, 2, 3, 3]), []);
        // push rax: the stack stays.
        assert_eq!(orders(&[0x50, 0xff, 0xc1], &[1, 2, 2]), []);
    }
}
