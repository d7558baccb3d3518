//! What the conditions of a run compared. This tells which mutants of the conditions can make a
//! difference to the run, and with which other constants the conditions decide otherwise.

use std::collections::{HashMap, HashSet};

use ddfuzz_exec::Ended;
use ddfuzz_triage::memory::Memory;
use iced_x86::{ConditionCode, ConstantOffsets, FlowControl, Instruction, Mnemonic, OpKind};

use super::decisions::is_met_by;
use super::instructions::{Executed, Value};
use super::mutants::{Code, Mutant, MutantKind, NOP, Patch, changed, sign_extended};
use super::process::{Process, by_number};
use super::tests_at_point::Stand;
use super::{Engine, EngineError};

/// Largest number of executions of a condition that are observed in a run; its later executions are
/// not known.
const OBSERVED: usize = 16;
/// Largest number of values for which mutants of a comparison with a constant are made: 8 for a
/// comparison by order, 2 for one of equality. The last values that the run compared are taken. The
/// mutant has the nearest constant that would have decided the comparison of the value otherwise.
const VALUES: [usize; 2] = [8, 2];

/// A comparison with a constant, on which a condition depends.
#[derive(Clone, Debug)]
struct Comparison {
    instruction: Instruction,
    bytes: Vec<u8>,
    /// Offset and size of the constant in the instruction, in bytes.
    place: (usize, usize),
    constant: u64,
    /// Size of the compared value in bytes.
    size: usize,
}

/// A conditional jump, move or `setcc` of the program.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    instruction: Instruction,
    comparison: Option<Comparison>,
}

/// What was observed of a condition's executions in one run: how it was decided, and what it
/// compared.
#[derive(Clone, Debug, Default)]
struct Seen {
    executions: usize,
    /// Whether the condition was ever not met (first), and whether it was ever met (second).
    ways: [bool; 2],
    /// Whether the values that were compared before the condition were ever equal.
    is_equal: bool,
    /// The values that were compared with the constant, each once, the latest one last.
    values: Vec<u64>,
}

/// What was observed in one run: which of the given addresses it executed, how its conditions were
/// decided, and what they compared.
#[derive(Default)]
pub(super) struct Profile {
    executed: HashSet<u64>,
    conditions: HashMap<u64, (Condition, Seen)>,
    /// Address of each condition, by the address of the comparison with a constant in front of it.
    comparisons: HashMap<u64, u64>,
}

/// Returns whether the condition of a jump is met after `value` was compared with `constant`,
/// numbers of `size` bytes; `None` if the condition is not one of equal, less or greater.
fn is_met(code: ConditionCode, value: u64, constant: u64, size: usize) -> Option<bool> {
    let unused = 64 - 8 * size as u32;
    let (one, other) = (value << unused, constant << unused);
    let (signed_one, signed_other) = (sign_extended(value, size), sign_extended(constant, size));
    Some(match code {
        ConditionCode::e => one == other,
        ConditionCode::ne => one != other,
        ConditionCode::b => one < other,
        ConditionCode::ae => one >= other,
        ConditionCode::be => one <= other,
        ConditionCode::a => one > other,
        ConditionCode::l => signed_one < signed_other,
        ConditionCode::ge => signed_one >= signed_other,
        ConditionCode::le => signed_one <= signed_other,
        ConditionCode::g => signed_one > signed_other,
        _ => return None,
    })
}

impl Comparison {
    /// Returns the comparison that `it` makes with a constant; `None` for other instructions.
    fn of(code: &Code, (it, offsets): &(Instruction, ConstantOffsets)) -> Option<Comparison> {
        let size = match it.op0_kind() {
            OpKind::Register => it.op0_register().size(),
            _ => it.memory_size().size(),
        };
        let is_it = it.mnemonic() == Mnemonic::Cmp && offsets.has_immediate();
        Some(Comparison {
            bytes: code.bytes_of(it),
            place: (offsets.immediate_offset(), offsets.immediate_size()),
            constant: it.try_immediate(1).ok()?,
            size,
            instruction: *it,
        })
        .filter(|_| is_it && matches!(size, 1 | 2 | 4 | 8))
    }

    /// Returns the value that this comparison compares with its constant, from the registers and
    /// the memory of `process`, which has stopped at `executed`, the instruction after the
    /// comparison; `None` if it cannot be read.
    fn value(&self, executed: &Executed, process: &mut Process) -> Option<u64> {
        let compared = Executed::again(self.instruction, executed.registers);
        let unused = 64 - 8 * self.size as u32;
        let value = match compared.operands().first()? {
            Value::Register(number) => executed.registers[*number],
            Value::Memory(at, _) => process.word(*at)?,
            Value::Part { .. } => return None,
        };
        Some(value << unused >> unused)
    }

    /// Returns the machine code of this comparison with `constant` in place of its own constant;
    /// `None` if the instruction has no room for it.
    fn with(&self, constant: u64) -> Option<Vec<u8>> {
        let by = sign_extended(constant, self.size)
            .checked_sub(sign_extended(self.constant, self.size))?;
        changed(&self.bytes, self.place, by, self.place.1 == self.size)
    }

    /// Returns the constant of the comparison in `bytes`, the code of a mutant that differs from
    /// this comparison in its constant only; `None` if `bytes` are too short.
    fn constant_in(&self, bytes: &[u8]) -> Option<u64> {
        let (offset, size) = self.place;
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes.get(offset..offset + size)?);
        Some(sign_extended(u64::from_le_bytes(word), size) as u64)
    }
}

impl Code {
    /// Returns all conditions (instructions that depend on the flags, such as conditional jumps) of
    /// this machine code, by their addresses.
    pub fn conditions(&self) -> impl Iterator<Item = (u64, Condition)> {
        let all = self.all.iter().enumerate();
        let all = all.filter(|(_, (it, _))| it.condition_code() != ConditionCode::None);
        all.map(|(at, (it, _))| {
            let before = at.checked_sub(1).map(|before| &self.all[before]);
            let comparison = before.and_then(|before| Comparison::of(self, before));
            let instruction = *it;
            let condition = Condition {
                instruction,
                comparison,
            };
            (it.ip(), condition)
        })
    }
}

impl Profile {
    /// Returns true if a run of the mutant may differ. False if the run never executes the changed
    /// code; if the mutant would leave the observed decisions as they are; or if the mutant negates
    /// a condition that always went one way, because another mutant, which makes the condition
    /// constant, does the same.
    pub fn matters(&self, mutant: &Mutant) -> bool {
        let at = mutant.patch.begins();
        if !self.executed.contains(&at) {
            return false;
        }
        let Patch::Code(_, bytes) = &mutant.patch else {
            return true;
        };
        let condition = self.comparisons.get(&at).unwrap_or(&at);
        let Some((condition, seen)) = self.conditions.get(condition) else {
            return true;
        };
        if seen.executions > OBSERVED {
            return true;
        }
        let is_jump = condition.instruction.flow_control() == FlowControl::ConditionalBranch;
        match mutant.kind {
            MutantKind::Boundary => seen.is_equal,
            // What always decides one way does the same.
            MutantKind::Negated => !is_jump || seen.ways == [true, true],
            MutantKind::Fixed => {
                let is_never = bytes.iter().all(|it| *it == NOP);
                seen.ways[usize::from(is_never)]
            }
            MutantKind::Constant => condition.differs(seen, bytes),
            _ => true,
        }
    }

    /// Returns mutants in which a comparison has another constant. For each of the last values that
    /// the run compared, the constant is the nearest one to the program's own with which the
    /// condition would have been decided the other way. Constants that differ by one are left out:
    /// mutants of another kind cover them.
    pub fn bounds(&self) -> Vec<Mutant> {
        let mut found = Vec::new();
        let mut all: Vec<&(Condition, Seen)> = self.conditions.values().collect();
        all.sort_by_key(|it| it.0.instruction.ip());
        for (condition, seen) in all {
            let Some(comparison) = &condition.comparison else {
                continue;
            };
            let code = condition.instruction.condition_code();
            let is_equality = matches!(code, ConditionCode::e | ConditionCode::ne);
            let most = VALUES[usize::from(is_equality)];
            let mut known = HashSet::new();
            for value in seen.values.iter().rev().take(most) {
                let constant = comparison.constant;
                let met = |constant| is_met(code, *value, constant, comparison.size);
                let near = [*value, value.wrapping_add(1), value.wrapping_sub(1)];
                let others = near.into_iter().filter(|it| met(*it) != met(constant));
                let nearest = others.min_by_key(|it| (*it as i64).abs_diff(constant as i64));
                let other = nearest.filter(|it| (*it as i64).abs_diff(constant as i64) > 1);
                let bytes = other.and_then(|it| comparison.with(it));
                if let Some(bytes) = bytes.filter(|it| known.insert(it.clone())) {
                    let pc = comparison.instruction.ip();
                    let (kind, patch) = (MutantKind::Bound, Patch::Code(pc, bytes));
                    found.push(Mutant { pc, kind, patch });
                }
            }
        }
        found
    }
}

impl Condition {
    /// Returns true if a mutant of the comparison before the condition, with the constant in its
    /// code `bytes`, decides the condition in another way for at least one of the values that the
    /// run compared. Also true where that is unknown: no values, no comparison, or no constant.
    fn differs(&self, seen: &Seen, bytes: &[u8]) -> bool {
        let Some(comparison) = &self.comparison else {
            return true;
        };
        let Some(other) = comparison.constant_in(bytes) else {
            return true;
        };
        let (code, size) = (self.instruction.condition_code(), comparison.size);
        let differs = |value: &u64| {
            let met = |constant| is_met(code, *value, constant, size);
            met(other).is_none() || met(other) != met(comparison.constant)
        };
        seen.values.is_empty() || seen.values.iter().any(differs)
    }
}

impl Engine {
    /// Observes a fork of the stopped run. Returns which of the addresses `places` it executes, and
    /// what the `conditions` at these addresses compare; `None` if the fork exceeded its time
    /// limit, or did something that ddfuzz cannot trace, such as starting a thread.
    pub(super) fn profile(
        &mut self,
        stand: &mut Stand,
        places: HashSet<u64>,
        conditions: impl Iterator<Item = (u64, Condition)>,
    ) -> Result<Option<Profile>, EngineError> {
        let mut profile = Profile::default();
        for (at, condition) in conditions.filter(|it| places.contains(&it.0)) {
            let comparison = condition.comparison.as_ref();
            let comparison = comparison.map(|it| (it.instruction.ip(), at));
            profile.comparisons.extend(comparison);
            profile.conditions.insert(at, (condition, Seen::default()));
        }
        let end = self.stopped_at(stand, &places, |process, registers| {
            profile.add(process, registers)
        })?;
        Ok(end.filter(|it| it.ended != Ended::Timeout).map(|_| profile))
    }
}

impl Profile {
    /// Records that the run executes the instruction at which it has stopped and, if that is a
    /// condition, how it is decided. Removes the breakpoint there once no more needs to be known.
    fn add(
        &mut self,
        process: &mut Process,
        registers: &libc::user_regs_struct,
    ) -> Result<(), EngineError> {
        let at = registers.rip;
        self.executed.insert(at);
        let Some((condition, seen)) = self.conditions.get_mut(&at) else {
            return Ok(process.remove_breakpoint(at)?);
        };
        seen.executions += 1;
        if seen.executions > OBSERVED {
            return Ok(process.remove_breakpoint(at)?);
        }
        let executed = Executed::again(condition.instruction, by_number(registers));
        let is_met = is_met_by(condition.instruction.condition_code(), registers.eflags);
        seen.ways[usize::from(is_met)] = true;
        seen.is_equal |= is_met_by(ConditionCode::e, registers.eflags);
        let comparison = condition.comparison.as_ref();
        if let Some(value) = comparison.and_then(|it| it.value(&executed, process)) {
            seen.values.retain(|it| *it != value);
            seen.values.push(value);
        }
        process.step_over(at)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the profile of a run of `code` at 0x1000, in which each condition has compared
    /// `values`.
    fn profile(code: &[u8], values: &[u64]) -> Profile {
        let code = Code::new(code.to_vec(), 0x1000);
        let mut profile = Profile {
            executed: code.all.iter().map(|it| it.0.ip()).collect(),
            ..Profile::default()
        };
        for (at, condition) in code.conditions() {
            let comparison = condition.comparison.clone().expect("a comparison");
            profile.comparisons.insert(comparison.instruction.ip(), at);
            let mut seen = Seen::default();
            for value in values {
                let code = condition.instruction.condition_code();
                let constant = comparison.constant;
                let met = is_met(code, *value, constant, comparison.size).expect("an order");
                seen.executions += 1;
                seen.ways[usize::from(met)] = true;
                seen.is_equal |= *value == constant;
                seen.values.push(*value);
            }
            profile.conditions.insert(at, (condition, seen));
        }
        profile
    }

    fn kinds(code: &[u8], values: &[u64]) -> Vec<MutantKind> {
        let profile = profile(code, values);
        let code = Code::new(code.to_vec(), 0x1000);
        let mut all = super::super::mutants::mutants(&code, |_| Some((1, true)), &[]);
        all.retain(|it| profile.matters(it));
        all.iter().map(|it| it.kind).collect()
    }

    #[test]
    fn mutants_of_conditions_that_decide_as_before_are_left_out() {
        use MutantKind::*;
        // cmp eax, 10; jl +2
        let code = [0x83, 0xf8, 10, 0x7c, 2];
        assert_eq!(kinds(&code, &[3]), [Fixed]);
        assert_eq!(kinds(&code, &[3, 12]), [Negated, Fixed, Fixed]);
        assert_eq!(kinds(&code, &[10]), [Constant, Boundary, Fixed]);
        assert_eq!(kinds(&code, &[9, 3]), [Constant, Fixed]);
        // A condition that was not observed to the end may have compared anything.
        let many: Vec<u64> = vec![3; OBSERVED + 1];
        assert_eq!(kinds(&code, &many).len(), 6);
    }

    #[test]
    fn a_bound_is_moved_to_the_nearest_one_that_decides_otherwise() {
        let constants = |code: &[u8], values: &[u64]| -> Vec<u8> {
            let all = profile(code, values).bounds().into_iter();
            let constant = |patch| match patch {
                Patch::Code(0x1000, bytes) => bytes[2],
                _ => 0,
            };
            all.map(|it| constant(it.patch)).collect()
        };
        // cmp eax, 100; jbe +2
        let code = [0x83, 0xf8, 100, 0x76, 2];
        assert_eq!(constants(&code, &[60]), [59]);
        assert_eq!(constants(&code, &[110, 60, 60]), [59, 110]);
        // One less is a mutant of another kind.
        assert!(constants(&code, &[100]).is_empty());
        // No room for 200 in a signed byte.
        assert!(constants(&code, &[200]).is_empty());
        // cmp eax, 100; je +2
        assert_eq!(constants(&[0x83, 0xf8, 100, 0x74, 2], &[7]), [7]);
        // cmp eax, -1; jg +2: signed numbers.
        assert_eq!(constants(&[0x83, 0xf8, 0xff, 0x7f, 2], &[5]), [5]);
    }

    #[test]
    fn conditions_are_met_by_flags_as_by_numbers() {
        // Zero and carry flags after comparisons of 1 with 1, and of 1 with 2.
        assert!(is_met_by(ConditionCode::e, 1 << 6) && is_met_by(ConditionCode::be, 1 << 6));
        assert!(is_met_by(ConditionCode::b, 1) && !is_met_by(ConditionCode::a, 1));
        assert!(is_met_by(ConditionCode::l, 1 << 7) && !is_met_by(ConditionCode::ge, 1 << 7));
        assert_eq!(is_met(ConditionCode::l, 0xff, 1, 1), Some(true));
        assert_eq!(is_met(ConditionCode::b, 0xff, 1, 1), Some(false));
        assert_eq!(is_met(ConditionCode::p, 1, 1, 4), None);
    }
}
