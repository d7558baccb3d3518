//! The decisions of a run: each execution of a conditional jump in the program's own code, and each
//! return of one of its functions that only return 0 and 1.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ddfuzz_triage::memory::Memory;
use iced_x86::{ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction};
use libc::user_regs_struct;

use super::relied::relied_side;
use super::run::{Next, Pace, Run};
use super::{Engine, EngineError, Point, Side};

/// Largest number of executions of one jump or statement that are recorded, from the first one.
const EXECUTIONS: u64 = 1_000;
/// Largest number of events of a run that are recorded: executions of jumps, and of statements.
const EVENTS: usize = 20_000;

/// A conditional jump in the program's own code, or a return instruction of one of its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    instruction: Instruction,
    /// Addresses of the code that is executed or skipped by the jump's decision; empty for a
    /// return.
    decides: Range<u64>,
    /// Address at which the code goes on if the jump's comparison finds equal values, if the code
    /// there relies on it that they are equal ([`relied_side`]). No run is forced to go on there.
    relied: Option<u64>,
}

/// An execution of a conditional jump, or the return of a function with 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Address of the jump, or of the instruction that returns.
    pub pc: u64,
    /// Address of the deciding statement: the jump's own statement; for a return, the last
    /// statement of the function on another line than the return.
    pub statement: u64,
    /// Number of events (executions of jumps and statements) recorded before the decision.
    pub time: usize,
    /// How often the run has executed the jump or return, including this time.
    pub nth: u64,
    /// Value of the stack pointer when the decision was made.
    pub stack: u64,
    /// Number of recorded events (executions of jumps and statements) that depend on the decision.
    pub decided: usize,
    /// How often the run comes to the failing statement after the decision.
    pub arrivals: usize,
}

/// A recorded event of a run: it executes a jump or a statement, or returns from a function.
struct Event {
    pc: u64,
    stack: u64,
    nth: u64,
    /// Whether the register `eax`, in which results are returned, is 0 or 1.
    is_truth: bool,
}

impl Jump {
    /// Returns true if this [`Jump`] is a return instruction.
    pub fn returns(&self) -> bool {
        self.instruction.flow_control() == FlowControl::Return
    }

    /// Returns `registers` changed so that the run takes the other decision: continues at the other
    /// address after a jump, or has 1 in place of a returned 0, or the other way round. Returns them
    /// unchanged if the code relies on it that the decision is not the other one.
    pub fn otherwise(&self, registers: &user_regs_struct) -> user_regs_struct {
        match self.returns() {
            false if self.relied == Some(self.ways(registers.eflags)[1]) => *registers,
            true => user_regs_struct {
                rax: registers.rax ^ 1,
                ..*registers
            },
            false => user_regs_struct {
                rip: self.ways(registers.eflags)[1],
                ..*registers
            },
        }
    }

    /// Returns the two addresses at which a run can go on after the jump: first the one that the
    /// processor's flags `flags` select, then the other one.
    pub fn ways(&self, flags: u64) -> [u64; 2] {
        let (next, target) = (
            self.instruction.next_ip(),
            self.instruction.near_branch_target(),
        );
        match is_met_by(self.instruction.condition_code(), flags) {
            true => [target, next],
            false => [next, target],
        }
    }
}

/// Returns true if the processor's flags `flags` meet the condition `code` of an instruction.
pub(super) fn is_met_by(code: ConditionCode, flags: u64) -> bool {
    let flag = |bit: u32| flags >> bit & 1 != 0;
    let (carry, parity, zero, sign, overflow) = (flag(0), flag(2), flag(6), flag(7), flag(11));
    match code {
        ConditionCode::o => overflow,
        ConditionCode::no => !overflow,
        ConditionCode::b => carry,
        ConditionCode::ae => !carry,
        ConditionCode::e => zero,
        ConditionCode::ne => !zero,
        ConditionCode::be => carry || zero,
        ConditionCode::a => !carry && !zero,
        ConditionCode::s => sign,
        ConditionCode::ns => !sign,
        ConditionCode::p => parity,
        ConditionCode::np => !parity,
        ConditionCode::l => sign != overflow,
        ConditionCode::ge => sign == overflow,
        ConditionCode::le => zero || sign != overflow,
        ConditionCode::g => !zero && sign == overflow,
        ConditionCode::None => false,
    }
}

/// Returns the conditional jumps and the return instructions in a function's code, which begins at
/// the address `start`.
fn jumps_in(code: &[u8], start: u64) -> Vec<Jump> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let all: Vec<Instruction> = decoder.into_iter().collect();
    let before: HashMap<u64, &Instruction> = all.iter().map(|it| (it.next_ip(), it)).collect();
    let code: Vec<&Instruction> = all.iter().collect();
    let conditional = all.iter().enumerate().filter(|(_, it)| {
        it.flow_control() == FlowControl::Return
            || it.flow_control() == FlowControl::ConditionalBranch
                && it.condition_code() != ConditionCode::None
    });
    let jump = |(at, it): (usize, &Instruction)| {
        if it.flow_control() == FlowControl::Return {
            return Jump {
                instruction: *it,
                decides: it.ip()..it.ip(),
                relied: None,
            };
        }
        let target = it.near_branch_target();
        // Of `if` and `else` the first part ends with a jump behind the second one.
        let last = before.get(&target);
        let last = last.filter(|last| last.flow_control() == FlowControl::UnconditionalBranch);
        let end = last.map(|last| last.near_branch_target());
        let decides = match target > it.ip() {
            true => it.next_ip()..end.filter(|end| *end > target).unwrap_or(target),
            false => target..it.next_ip(),
        };
        Jump {
            instruction: *it,
            decides,
            relied: relied_side(&code, at),
        }
    };
    conditional.map(jump).collect()
}

/// Returns, for each of `events` (address and stack pointer), how many later events depend on it:
/// for an execution of one of `jumps`, the events after it, up to the first one in a calling
/// function, or in the same function call but outside of the code on whose execution the jump
/// decides. 0 for all other events.
fn decided(events: &[(u64, u64)], jumps: &HashMap<u64, Jump>) -> Vec<usize> {
    let mut found = vec![0; events.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, (pc, stack)) in events.iter().enumerate() {
        let is_left = |by: usize| {
            let (jump, level) = events[by];
            let decides = jumps.get(&jump).map(|it| &it.decides);
            *stack > level || *stack == level && !decides.is_some_and(|it| it.contains(pc))
        };
        while let Some(by) = open.pop_if(|by| is_left(*by)) {
            found[by] = at - by - 1;
        }
        if jumps.contains_key(pc) {
            open.push(at);
        }
    }
    for by in open {
        found[by] = events.len() - by - 1;
    }
    found
}

impl Engine {
    /// Finds the conditional jumps and returns in those functions of the program itself that are
    /// executed at the points `points` of a run. Returns them by their addresses.
    pub(super) fn jumps(&self, run: &mut Run, points: &[Point]) -> HashMap<u64, Jump> {
        let mut functions: Vec<&Range<u64>> = Vec::new();
        for point in points {
            let code = point.pc.wrapping_sub(self.bias);
            let function = self.info.function(code);
            let ranges = function.map_or(&[][..], |it| &it.ranges);
            if !ranges.iter().any(|it| functions.contains(&it)) {
                functions.extend(ranges);
            }
        }
        let mut found = HashMap::new();
        for range in functions {
            let start = range.start.wrapping_add(self.bias);
            let code = run.process.bytes(start, (range.end - range.start) as usize);
            let all = jumps_in(&code, start).into_iter();
            let all = all.map(|it| (it.instruction.ip(), it));
            found.extend(all.filter(|it| self.is_of_statement(it.0)));
        }
        found
    }

    /// Makes the failing run, and returns its decisions in the order of time, with the conditional
    /// jumps by address. Of each jump, only the first [`EXECUTIONS`] executions are recorded.
    /// `points` are the points (statement executions) of that run.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(super) fn decisions(
        &mut self,
        points: &[Point],
    ) -> Result<(Vec<Decision>, HashMap<u64, Jump>), EngineError> {
        let failing = points.last().map_or(0, |it| it.pc);
        let mut run = self.start(Side::Failing)?;
        let jumps = self.jumps(&mut run, points);
        for pc in jumps.keys().chain(&self.statements.clone()) {
            run.process.set_breakpoint(*pc)?;
        }
        let mut executions: HashMap<u64, u64> = HashMap::new();
        let mut events: Vec<Event> = Vec::new();
        while events.len() < EVENTS {
            let registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) => registers,
                Next::Other(_) => continue,
                Next::Ended(_) => break,
            };
            self.check_time()?;
            let nth = executions.entry(registers.rip).or_default();
            *nth += 1;
            events.push(Event {
                pc: registers.rip,
                stack: registers.rsp,
                nth: *nth,
                is_truth: registers.rax as u32 <= 1,
            });
            if *nth >= EXECUTIONS {
                run.process.remove_breakpoint(registers.rip)?;
            }
            self.pass(&mut run, &registers, &jumps)?;
        }
        let numbers = events.iter().filter(|it| !it.is_truth);
        let numbers: HashSet<u64> = numbers.map(|it| it.pc).collect();
        let places: Vec<(u64, u64)> = events.iter().map(|it| (it.pc, it.stack)).collect();
        let decided = decided(&places, &jumps);
        let mut arrivals = 0;
        let mut found = Vec::new();
        for (at, it) in events.iter().enumerate().rev() {
            let jump = jumps.get(&it.pc);
            if jump.is_some_and(|jump| !jump.returns() || !numbers.contains(&it.pc)) {
                let statement = match jump.is_some_and(Jump::returns) {
                    true => self.returning(&events[..=at]),
                    false => it.pc,
                };
                found.push(Decision {
                    pc: it.pc,
                    statement,
                    time: at,
                    nth: it.nth,
                    stack: it.stack,
                    decided: decided[at],
                    arrivals,
                });
            }
            arrivals += usize::from(it.pc == failing);
        }
        found.reverse();
        Ok((found, jumps))
    }

    /// Returns the address of the statement after which a function call returned: the last
    /// statement of this call on another source line than the return; if there is none, the return
    /// itself. The last of `events` is that return, 0 is returned if there are no events.
    fn returning(&self, events: &[Event]) -> u64 {
        let Some((end, before)) = events.split_last() else {
            return 0;
        };
        let own = self.line(end.pc);
        let inner = before.iter().rev().take_while(|it| it.stack < end.stack);
        let function = self.info.function(end.pc.wrapping_sub(self.bias));
        let ranges = function.map_or(&[][..], |it| &it.ranges);
        let is_own = |it: &&Event| {
            let code = it.pc.wrapping_sub(self.bias);
            ranges.iter().any(|range| range.contains(&code))
        };
        let inner: Vec<&Event> = inner.filter(is_own).collect();
        // Calls of the function by itself have less of the stack left.
        let level = inner.iter().map(|it| it.stack).max();
        let mut same = inner.iter().filter(|it| Some(it.stack) == level);
        same.find(|it| self.line(it.pc) != own)
            .map_or(end.pc, |it| it.pc)
    }

    /// Lets a run that has stopped at a breakpoint execute the instruction there. Of a conditional
    /// jump, computes the target from the flags and sets the program counter to it, so that the
    /// breakpoint need not be removed for a step.
    pub(super) fn pass(
        &self,
        run: &mut Run,
        registers: &user_regs_struct,
        jumps: &HashMap<u64, Jump>,
    ) -> Result<(), EngineError> {
        match jumps.get(&registers.rip) {
            Some(jump) if !jump.returns() => {
                let [rip, _] = jump.ways(registers.eflags);
                run.process
                    .set_registers(user_regs_struct { rip, ..*registers })?;
            }
            _ => drop(run.process.step_over(registers.rip)?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_processor() {
        let (carry, zero, sign, overflow) = (1, 1 << 6, 1 << 7, 1 << 11);
        assert!(is_met_by(ConditionCode::l, sign) && is_met_by(ConditionCode::l, overflow));
        assert!(!is_met_by(ConditionCode::l, sign | overflow));
        assert!(is_met_by(ConditionCode::ge, 0) && is_met_by(ConditionCode::g, 0));
        assert!(is_met_by(ConditionCode::le, zero) && !is_met_by(ConditionCode::g, zero));
        assert!(is_met_by(ConditionCode::be, carry) && !is_met_by(ConditionCode::a, carry));
        assert!(is_met_by(ConditionCode::e, zero) && !is_met_by(ConditionCode::ne, zero));
    }

    #[test]
    fn a_jump_decides_on_what_it_leaves_out_and_on_what_is_called_there() {
        // 0x100: je 0x106; 0x102: nop; nop; 0x104: jmp 0x108; 0x106: nop; nop; 0x108: jne 0x108
        let code = [0x74, 4, 0x90, 0x90, 0xeb, 2, 0x90, 0x90, 0x75, 0xfe];
        let jumps = jumps_in(&code, 0x100);
        assert_eq!(jumps[0].decides, 0x102..0x108);
        assert_eq!(jumps[0].ways(1 << 6), [0x106, 0x102]);
        assert_eq!(jumps[1].decides, 0x108..0x10a);
        let all = jumps.into_iter().map(|it| (it.instruction.ip(), it));
        let all: HashMap<u64, Jump> = all.collect();
        // A call from one of both parts, then the loop behind them.
        let events = [
            (0x100, 80),
            (0x200, 60),
            (0x108, 80),
            (0x108, 80),
            (0x300, 90),
        ];
        assert_eq!(decided(&events, &all), [1, 0, 1, 0, 0]);
        // ret: with the other one of both results
        let end = &jumps_in(&[0xc3], 0x100)[0];
        // SAFETY: all registers are numbers.
        let registers: user_regs_struct = unsafe { std::mem::zeroed() };
        assert!(end.returns() && end.decides.is_empty());
        assert_eq!(end.otherwise(&registers).rax, 1);
        assert_eq!(end.otherwise(&end.otherwise(&registers)).rax, 0);
    }
}
