//! Where a value came from, by the executed instructions: follows the value back through registers
//! to the memory from which it was read, or to the instruction that computed it. Pure.

use std::collections::HashMap;
use std::ops::Range;

use super::instructions::{Executed, RESULT, Value, is_clobbered};
use crate::dwarf::frames::STACK_POINTER;

/// Largest number of computations, each on the result of the one before, through which a value is
/// followed back to the reads of memory.
const COMPUTED: usize = 2;

/// Where a value came from, in a list of executed instructions: read from memory that none of them
/// had written, computed by one of them, or perhaps written by the call of a library's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An instruction read the value from memory that none of the executed instructions had
    /// written.
    Read {
        /// Index of the instruction that read the value.
        at: usize,
        /// Address from which the instruction read the value.
        address: u64,
        /// Number of bytes that the instruction read.
        size: u64,
    },
    /// The instruction with this index computed the value, or is the call of a library that
    /// returned it.
    Computed(usize),
    /// The call of a library's function with this index may have written the value.
    Unsure {
        /// Index of the call among the executed instructions.
        at: usize,
        /// Address of the memory that held the value before the call, and that the call may have
        /// changed.
        address: u64,
        /// Number of bytes of the value.
        size: u64,
    },
}

/// Finds where the value in the place `value`, which the instruction `at` uses, came from; `None`
/// if the instructions before `at` do not show it. A value in memory is followed back only to the
/// start of the statement that reads it: `statement` returns, for the index of an instruction, the
/// index of the first instruction of its statement.
pub fn source(
    executed: &[Executed],
    at: usize,
    value: Value,
    statement: impl Fn(usize) -> usize,
) -> Option<Source> {
    let (mut value, mut before) = (value, at);
    loop {
        let by = match value {
            Value::Memory(address, size) => {
                let range = statement(before)..before;
                match written_in(executed, range, value) {
                    Ok(Some(by)) => by,
                    Ok(None) => {
                        return Some(Source::Read {
                            at: before,
                            address,
                            size,
                        });
                    }
                    Err(at) => return Some(Source::Unsure { at, address, size }),
                }
            }
            Value::Register(register) | Value::Part { register, .. } => {
                let by = (0..before).rev().find(|at| {
                    let it = &executed[*at];
                    it.is_write_to(value) || it.is_library_call() && is_clobbered(register)
                })?;
                if executed[by].is_library_call() {
                    return (register == RESULT).then_some(Source::Computed(by));
                }
                // What a called function has saved and restored is the value from before the call.
                if let Some(saved) = saved(executed, by, value) {
                    before = saved;
                    continue;
                }
                by
            }
        };
        before = by;
        match executed[by].copied(value) {
            Some(next) => value = next,
            None => return Some(Source::Computed(by)),
        }
    }
}

/// Finds the last of the instructions `executed[range]` that writes the place `value`, and returns
/// the reads of memory on which the written value is based, directly or through at most two further
/// computations: for each read, the index of the instruction, the address, and the size in bytes.
/// `statement` returns, for the index of an instruction, where its statement starts.
pub fn reads(
    executed: &[Executed],
    range: Range<usize>,
    value: Value,
    statement: impl Fn(usize) -> usize,
) -> Vec<(usize, u64, u64)> {
    let mut found = Vec::new();
    let Some(by) = range.rev().find(|at| executed[*at].is_write_to(value)) else {
        return found;
    };
    let mut rest: Vec<(usize, Value, usize)> = (inputs(&executed[by], value).into_iter())
        .map(|value| (by, value, 0))
        .collect();
    while let Some((at, value, depth)) = rest.pop() {
        let source = match value {
            Value::Memory(address, size) if executed[at].read() == Some((address, size)) => {
                Some(Source::Read { at, address, size })
            }
            value => source(executed, at, value, &statement),
        };
        match source {
            Some(Source::Read { at, address, size }) => found.push((at, address, size)),
            Some(Source::Computed(by)) if depth < COMPUTED && !executed[by].is_library_call() => {
                let next = executed[by].terms().into_iter();
                rest.extend(next.map(|value| (by, value, depth + 1)));
            }
            _ => {}
        }
    }
    found
}

/// Returns the places from which an instruction makes the value that it writes to `written`: if it
/// copies the value, only the place of the original; if it computes the value, all places that it
/// uses for that.
pub fn inputs(it: &Executed, written: Value) -> Vec<Value> {
    match it.copied(written) {
        Some(copied) => vec![copied],
        None if it.is_library_call() => Vec::new(),
        None => it.terms(),
    }
}

/// Returns the index of the last instruction in `range` that writes `memory` (a place in memory),
/// itself or by the call of a library's function that certainly does; `None` where there is none.
pub fn last_write(executed: &[Executed], range: Range<usize>, memory: Value) -> Option<usize> {
    let writes = |at: &usize| {
        let it = &executed[*at];
        it.is_write_to(memory) || it.library_writes(memory) == Some(true)
    };
    range.rev().find(writes)
}

/// Returns the index of the instruction that saved `register` on the stack, if the instruction `at`
/// restores it: pops the same value back into the register. Returns `None` for other instructions,
/// and if the saved value was overwritten meanwhile.
fn saved(executed: &[Executed], at: usize, register: Value) -> Option<usize> {
    let (address, size) = executed[at].read().filter(|_| executed[at].is_pop())?;
    let memory = Value::Memory(address, size);
    let by = (0..at).rev().find(|it| executed[*it].is_write_to(memory))?;
    let is_same = executed[by].is_push() && executed[by].operands().first() == Some(&register);
    let is_kept = match (register, executed.get(at + 1)) {
        (Value::Register(number), Some(next)) => {
            executed[by].registers[number] == next.registers[number]
        }
        _ => true,
    };
    (is_same && is_kept).then_some(by)
}

/// Returns the index of the last instruction in `range` that writes to `memory`; `Ok(None)` if
/// there is none. `Err` has the index of a later call of a library's function that may have written
/// to `memory`.
fn written_in(
    executed: &[Executed],
    range: Range<usize>,
    memory: Value,
) -> Result<Option<usize>, usize> {
    for at in range.rev() {
        let it = &executed[at];
        match it.library_writes(memory) {
            Some(true) => return Ok(Some(at)),
            Some(false) if it.is_write_to(memory) => return Ok(Some(at)),
            Some(false) => {}
            None => return Err(at),
        }
    }
    Ok(None)
}

/// Compares two recordings, and returns the jumps at which the runs part: for each jump, its index
/// in `failing` and its index in `passing`. The runs meet again at the next instruction that both
/// execute with the same stack pointer. The pairs are sorted by the number of instructions between
/// parting and meeting, the largest first.
pub fn decisions(failing: &[Executed], passing: &[Executed]) -> Vec<(usize, usize)> {
    let place = |it: &Executed| (it.pc(), it.registers[usize::from(STACK_POINTER)]);
    let mut found = Vec::new();
    let (mut one, mut other) = (0, 0);
    while one < failing.len() && other < passing.len() {
        let both = failing[one..].iter().zip(&passing[other..]);
        let same = both.take_while(|it| place(it.0) == place(it.1)).count();
        (one, other) = (one + same, other + same);
        if same == 0 || one >= failing.len() || other >= passing.len() {
            break;
        }
        let mut places: HashMap<(u64, u64), usize> = HashMap::new();
        for (index, it) in passing.iter().enumerate().skip(other) {
            places.entry(place(it)).or_insert(index);
        }
        let mut rest = failing.iter().enumerate().skip(one);
        let again = rest.find_map(|(index, it)| Some((index, *places.get(&place(it))?)));
        let next = again.unwrap_or((failing.len(), passing.len()));
        let length = (next.0 - one).max(next.1 - other);
        found.push((length, one - 1, other - 1));
        (one, other) = next;
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.0));
    found
        .into_iter()
        .map(|(_, one, other)| (one, other))
        .collect()
}

/// Returns the index of the last instruction before `at` that sets the processor's flags which
/// `at`, a conditional jump for instance, reads; `None` if it is more than 16 instructions away.
pub fn comparison(executed: &[Executed], at: usize) -> Option<usize> {
    let read = executed[at].instruction.rflags_read();
    (0..at)
        .rev()
        .take(16)
        .find(|before| executed[*before].instruction.rflags_modified() & read != 0)
}

/// Finds the first round of a counting loop: `by` is the index of an instruction that adds a
/// constant to a register, the counter. Returns the index in `executed` at which the first round
/// executes this instruction, and the values with which the loop's condition compares the counter,
/// since the final count depends on them; each comes with the index of the comparison. If `by` does
/// not count in a loop, returns `by` and no values.
pub fn rounds(executed: &[Executed], by: usize) -> (usize, Vec<(usize, Value)>) {
    let Some(counter) = executed[by].counter().map(Value::Register) else {
        return (by, Vec::new());
    };
    let (pc, mut first) = (executed[by].pc(), by);
    let mut again = executed[..by].iter().enumerate().rev();
    while let Some((before, it)) = again.find(|(_, it)| it.is_write_to(counter)) {
        if it.pc() != pc {
            break;
        }
        first = before;
    }
    if first == by {
        return (by, Vec::new());
    }
    // In the round before the last one the condition was such that another one followed.
    let mut jumps = (first..by).filter(|at| executed[*at].is_condition());
    let compared = jumps
        .next_back()
        .and_then(|jump| comparison(executed, jump));
    let values = compared.map_or_else(Vec::new, |at| executed[at].operands());
    let at = compared.unwrap_or(by);
    let other = values.into_iter().filter(|it| *it != counter);
    (first, other.map(|value| (at, value)).collect())
}

/// Returns the conditional jumps that may have decided that the instruction `last` was executed,
/// the latest first: jumps in its function and in the calling ones, at addresses for which
/// `is_user` is true.
pub fn guards(executed: &[Executed], last: usize, is_user: impl Fn(u64) -> bool) -> Vec<usize> {
    let stack = |at: usize| executed[at].registers[usize::from(STACK_POINTER)];
    let (mut level, mut highest) = (stack(last), stack(last));
    let mut found = Vec::new();
    for at in (0..last).rev() {
        let it = &executed[at];
        // The call that has led here: what was called before has ended.
        if stack(at) > highest && it.is_call() {
            level = stack(at);
        }
        highest = highest.max(stack(at));
        if stack(at) >= level && it.is_condition() && is_user(it.pc()) {
            found.push(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::library::LibraryCall;
    use super::*;
    use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

    /// Returns the decoded instructions `code`, which follow one another from the address 0x100 on
    /// and are executed with the same values in all other registers.
    fn executed(code: &[&[u8]]) -> Vec<Executed> {
        let mut pc = 0x100;
        let one = |code: &&[u8]| {
            let mut registers = [0x5000; REGISTERS];
            registers[REGISTERS - 1] = pc;
            pc += code.len() as u64;
            Executed::new(code, registers).unwrap()
        };
        code.iter().map(one).collect()
    }

    fn found(code: &[&[u8]], value: Value) -> Option<Source> {
        let all = executed(code);
        source(&all, all.len(), value, |_| 0)
    }

    #[test]
    fn restored_registers_have_their_values_from_before_the_call() {
        let load: &[u8] = &[0x48, 0x8b, 0x1b]; // mov rbx, [rbx]
        let push: &[u8] = &[0x53]; // push rbx
        let zero: &[u8] = &[0x31, 0xdb]; // xor ebx, ebx
        let pop: &[u8] = &[0x5b]; // pop rbx
        let of = |code: &[&[u8]]| {
            let mut all = executed(code);
            let last = all.len() - 1;
            // The push was at 8 bytes more.
            all[last].registers[usize::from(STACK_POINTER)] -= 8;
            source(&all, all.len(), Value::Register(3), |_| last)
        };
        let loaded = Source::Read {
            at: 0,
            address: 0x5000,
            size: 8,
        };
        assert_eq!(of(&[load, push, zero, pop]), Some(loaded));
        // Another register was pushed, or none is known.
        let other: &[u8] = &[0x57]; // push rdi
        let stack = |at| Source::Read {
            at,
            address: 0x4ff8,
            size: 8,
        };
        assert_eq!(of(&[load, other, zero, pop]), Some(stack(3)));
        assert_eq!(of(&[load, zero, pop]), Some(stack(2)));
    }

    #[test]
    fn values_are_followed_through_copies() {
        let load: &[u8] = &[0x48, 0x8b, 0x43, 0x08]; // mov rax, [rbx+8]
        let copy: &[u8] = &[0x48, 0x89, 0xc7]; // mov rdi, rax
        let other: &[u8] = &[0x48, 0x31, 0xf6]; // xor rsi, rsi
        let from = Source::Read {
            at: 0,
            address: 0x5008,
            size: 8,
        };
        assert_eq!(found(&[load, copy, other], Value::Register(5)), Some(from));
        let zero = Some(Source::Computed(2));
        assert_eq!(found(&[load, copy, other], Value::Register(4)), zero);
        assert_eq!(found(&[load, copy, other], Value::Register(12)), None);
        // mov [rbx+8], rsi
        let store: &[u8] = &[0x48, 0x89, 0x73, 0x08];
        assert_eq!(
            found(&[other, store, load], Value::Register(0)),
            Some(Source::Computed(0))
        );
    }

    #[test]
    fn of_a_conditional_move_the_selected_value_counts() {
        let select: &[u8] = &[0x0f, 0x42, 0xc6]; // cmovb eax, esi
        let mut all = executed(&[select, &[0x90]]);
        all[0].registers[4] = 7;
        let both = [Value::Register(0), Value::Register(4)];
        assert_eq!(all[0].selected_terms(None), both);
        assert_eq!(all[0].selected_terms(Some(&all[1])), [both[0]]);
        all[1].registers[0] = 7;
        assert_eq!(all[0].selected_terms(Some(&all[1])), [both[1]]);
        assert!(all[0].computes() && !all[1].computes());
    }

    #[test]
    fn what_is_counted_depends_on_where_the_loop_ends() {
        let zero: &[u8] = &[0x31, 0xc0]; // xor eax, eax
        let count: &[u8] = &[0xff, 0xc0]; // inc eax
        let compare: &[u8] = &[0x39, 0xd8]; // cmp eax, ebx
        let jump: &[u8] = &[0x75, 0xfa]; // jne
        let mut all = executed(&[zero, count, compare, jump, count, compare, jump]);
        for (at, pc) in [(4, 0x102), (5, 0x104), (6, 0x106)] {
            all[at].registers[REGISTERS - 1] = pc;
        }
        assert_eq!(rounds(&all, 4), (1, vec![(2, Value::Register(3))]));
        assert_eq!(rounds(&all, 1), (1, Vec::new()));
        assert_eq!(rounds(&all, 0), (0, Vec::new()));
    }

    #[test]
    fn a_library_may_have_written_anything() {
        let load: &[u8] = &[0x48, 0x8b, 0x43, 0x08];
        let mut all = executed(&[&[0xe8, 0, 0, 0, 0], load, &[0x48, 0x89, 0xc7]]);
        all[0].library = Some(LibraryCall::Other);
        let unsure = Some(Source::Unsure {
            at: 0,
            address: 0x5008,
            size: 8,
        });
        assert_eq!(source(&all, 3, Value::Register(5), |_| 0), unsure);
        assert_eq!(source(&all, 1, Value::Register(5), |_| 0), None);
        let result = source(&all, 1, Value::Register(0), |_| 0);
        assert_eq!(result, Some(Source::Computed(0)));
    }

    #[test]
    fn what_was_computed_is_followed_to_the_memory_that_was_read() {
        let load: &[u8] = &[0x8b, 0x43, 0x08]; // mov eax, [rbx+8]
        let subtract: &[u8] = &[0x29, 0xf0]; // sub eax, esi
        let store: &[u8] = &[0x89, 0x43, 0x10]; // mov [rbx+16], eax
        let all = executed(&[load, subtract, store]);
        let written = Value::Memory(0x5010, 4);
        assert_eq!(reads(&all, 0..3, written, |_| 0), [(0, 0x5008, 4)]);
        assert_eq!(reads(&all, 0..3, Value::Memory(0x6000, 4), |_| 0), []);
    }

    #[test]
    fn the_jump_that_leads_farthest_comes_first() {
        let at = |pc: u64| {
            let mut registers = [0; REGISTERS];
            registers[REGISTERS - 1] = pc;
            Executed::new(&[0x74, 0x02], registers).unwrap()
        };
        let run = |pcs: &[u64]| pcs.iter().copied().map(at).collect::<Vec<_>>();
        // They part at 1 for one instruction, and at 5 for three.
        let (failing, passing) = (run(&[1, 2, 5, 7, 8, 9, 10]), run(&[1, 3, 5, 10]));
        assert_eq!(decisions(&failing, &passing), [(2, 2), (0, 0)]);
        assert_eq!(decisions(&passing, &passing), []);
        assert_eq!(decisions(&run(&[1]), &run(&[2])), []);
    }

    #[test]
    fn conditions_have_the_operands_that_were_compared() {
        // cmp eax, [rbx+8]; mov rdi, rax; jl
        let all = executed(&[&[0x3b, 0x43, 0x08], &[0x48, 0x89, 0xc7], &[0x7c, 0x02]]);
        assert!(all[2].is_condition());
        let compared = comparison(&all, 2);
        assert_eq!(compared, Some(0));
        let operands = [Value::Register(0), Value::Memory(0x5008, 4)];
        assert_eq!(all[0].operands(), operands);
    }
}
