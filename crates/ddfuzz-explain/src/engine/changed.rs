//! Runs of the failing input in which one instruction is skipped, or one conditional jump goes the
//! other way.

use std::collections::HashMap;

use ddfuzz_exec::Ended;
use iced_x86::Instruction;
use libc::user_regs_struct;

use super::decisions::{Decision, Jump};
use super::process::Process;
use super::recorded::Recorded;
use super::relied::relied_side;
use super::run::{Next, Pace, Run};
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Side};
use crate::accessed::integers_in;

/// Largest number of arrivals at the failing statement that are counted in a changed run.
const ARRIVALS: usize = 2_000;

/// What the changed instruction of a recorded run does in place of its usual effect: a jump goes
/// the other way, or the instruction does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The conditional jump goes the other way.
    OtherDecision,
    /// The instruction is not executed.
    LeftOut,
}

/// How a run of the failing input has gone on after one instruction was skipped or decided the
/// other way.
pub(crate) struct ChangedRun {
    /// How the changed run ends.
    pub ending: Ending,
    /// How often the run has reached the failing statement after the changed instruction.
    pub arrivals: usize,
}

impl Engine {
    /// Makes the failing run again up to the recorded instruction with the index `at`, applies
    /// `change` there (the instruction is skipped, or its condition decided the other way), and
    /// lets the run go on within `limit`. Returns how it ends, and how often it comes to the
    /// failing statement, whose address is `failing`; `None` if it does not reach that instruction.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(super) fn changed_run(
        &mut self,
        recorded: &Recorded,
        (at, change): (usize, Change),
        (limit, failing): (TimeLimit, u64),
    ) -> Result<Option<ChangedRun>, EngineError> {
        let (Some(point), Some(next)) = (recorded.passed(at), recorded.executed.get(at + 1)) else {
            return Ok(None);
        };
        let (first, point) = recorded.points[point];
        let executed = &recorded.executed[at];
        self.changed_runs += 1;
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, point)?;
        if !self.go_to(&mut run, &recorded.executed[first..=at])? {
            return Ok(None);
        }
        let mut registers = run.process.registers()?;
        if registers.rip != executed.pc() {
            return Ok(None);
        }
        match change {
            Change::OtherDecision => {
                let to = executed.other_way(next.pc());
                if self.relies_on(executed.instruction.ip(), to) {
                    return Ok(None);
                }
                registers.rip = to;
            }
            Change::LeftOut => registers.rip = executed.instruction.next_ip(),
        }
        run.process.set_registers(registers)?;
        self.rest_of(&mut run.process, (limit, failing)).map(Some)
    }

    /// Returns true if the code after the conditional jump at the address `pc` in the process, where
    /// it goes on at `to`, relies on the jump's condition ([`relied_side`]).
    fn relies_on(&self, pc: u64, to: u64) -> bool {
        let all = self.instructions_around(pc);
        let all: Vec<&Instruction> = all.iter().collect();
        let at = all.binary_search_by_key(&pc, |it| it.ip());
        at.is_ok_and(|at| relied_side(&all, at) == Some(to))
    }

    /// Makes the failing run once, with a fork of it at each of `decisions` (in the order of time)
    /// that is decided the other way. `jumps` has the conditional jumps by address, `failing` is
    /// the address of the failing statement, `limit` the time limit of a fork. `tell` is called
    /// with the end of each fork; when it returns false, no more forks are made.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(super) fn other_decisions(
        &mut self,
        decisions: &[Decision],
        jumps: &HashMap<u64, Jump>,
        (limit, failing): (TimeLimit, u64),
        mut tell: impl FnMut(&Engine, &Decision, ChangedRun) -> bool,
    ) -> Result<(), EngineError> {
        let mut run = self.start(Side::Failing)?;
        for decision in decisions {
            run.process.set_breakpoint(decision.pc)?;
        }
        let mut executions: HashMap<u64, u64> = HashMap::new();
        let mut rest = decisions.iter().peekable();
        while rest.peek().is_some() && !self.facts_until.is_over() {
            let registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) => registers,
                Next::Other(_) => continue,
                Next::Ended(_) => break,
            };
            let nth = executions.entry(registers.rip).or_default();
            *nth += 1;
            let here = (registers.rip, *nth, registers.rsp);
            let next = rest.next_if(|it| (it.pc, it.nth, it.stack) == here);
            if let (Some(decision), Some(jump)) = (next, jumps.get(&registers.rip)) {
                self.learn_library(&mut run.process);
                let mut stand = self.stand_in(run, limit)?;
                let tests = self.tests;
                let changed = self.in_new_fork(&mut stand, |engine, child| {
                    child.remove_breakpoints()?;
                    child.set_registers(jump.otherwise(&registers))?;
                    engine.rest_of(child, (limit, failing)).map(Some)
                })?;
                self.tests = tests;
                self.changed_runs += 1;
                run = self.released(stand)?;
                if let Some(changed) = changed
                    && !tell(self, decision, changed)
                {
                    break;
                }
            }
            self.pass(&mut run, &registers, jumps)?;
        }
        Ok(())
    }

    /// Makes the failing run up to `decision`. Returns the addresses, in the program's own code, of
    /// the statement that decides and of the calls that led to it, innermost first; and the values
    /// that the integer variables named in the source text `text` have at the decision, such as `n
    /// is 30`. If the run does not come to the decision, returns the address of the statement only,
    /// and no values. `jumps` has the conditional jumps by address.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(super) fn calls_at(
        &mut self,
        decision: &Decision,
        jumps: &HashMap<u64, Jump>,
        text: &str,
    ) -> Result<(Vec<u64>, Vec<String>), EngineError> {
        let mut values = Vec::new();
        let mut calls = match self.run_to_decision(decision, jumps)? {
            Some((mut run, registers)) => {
                let stack = self.stack(&registers, &mut run.process);
                if !text.is_empty() {
                    let graph = self.capture(&mut run)?.graph;
                    values = integers_in(&graph, &self.info.types, text);
                }
                stack
            }
            None => vec![decision.pc],
        };
        calls.retain(|pc| self.is_own_code(*pc));
        if let Some(first) = calls.first_mut() {
            *first = decision.statement;
        }
        Ok((calls, values))
    }

    /// Starts the failing run, and stops it at `decision`, which is one execution of a conditional
    /// jump, or one return of a function with 0 or 1. Returns the stopped run and its registers;
    /// `None` if the run does not come to the same decision again, with the same stack pointer.
    /// `jumps` has the conditional jumps by address.
    fn run_to_decision(
        &mut self,
        decision: &Decision,
        jumps: &HashMap<u64, Jump>,
    ) -> Result<Option<(Run, user_regs_struct)>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        run.process.set_breakpoint(decision.pc)?;
        let mut left = decision.nth;
        let registers = loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) if left == 1 => break registers,
                Next::Breakpoint(registers) => {
                    left -= 1;
                    self.pass(&mut run, &registers, jumps)?;
                }
                Next::Other(_) => {}
                Next::Ended(_) => return Ok(None),
            }
        };
        run.process.remove_breakpoint(decision.pc)?;
        Ok(Some((run, registers)).filter(|it| it.1.rsp == decision.stack))
    }

    /// Lets a changed run go on to its end, or until `limit` is over, and returns how it ended, and
    /// how often it reached the statement at the address `failing`.
    fn rest_of(
        &mut self,
        process: &mut Process,
        (limit, failing): (TimeLimit, u64),
    ) -> Result<ChangedRun, EngineError> {
        process.set_breakpoint(failing)?;
        let _limit = process.limit(limit);
        let mut arrivals = 0;
        match self.finish_counted(process, failing, &mut arrivals) {
            Ok(ending) => Ok(ChangedRun { ending, arrivals }),
            // It was killed while it was stopped.
            Err(EngineError::System(_)) if self.watchdog.has_fired() => {
                self.check_time()?;
                let ending = Ending {
                    ended: Ended::Timeout,
                    crash: None,
                    output: Vec::new(),
                    varies: false,
                    stack: Vec::new(),
                };
                Ok(ChangedRun { ending, arrivals })
            }
            Err(error) => Err(error),
        }
    }

    /// Lets a run go on to its end and returns how it ended. Counts in `arrivals`, up to
    /// [`ARRIVALS`], how often the run reaches the statement at the address `failing`.
    fn finish_counted(
        &mut self,
        process: &mut Process,
        failing: u64,
        arrivals: &mut usize,
    ) -> Result<Ending, EngineError> {
        loop {
            match self.resume(process, Pace::Free)? {
                Next::Ended(ending) => return Ok(*ending),
                Next::Breakpoint(_) => {
                    *arrivals += 1;
                    process.step_over_here()?;
                    if *arrivals >= ARRIVALS {
                        process.remove_breakpoint(failing)?;
                    }
                }
                Next::Other(_) => {}
            }
        }
    }
}
