//! Runs in which only some of the statement executions take place. Each of these is executed alone,
//! from its first instruction to the next statement of its frame; the program counter skips the
//! others. No condition decides what is executed next.

use std::collections::{BTreeSet, HashSet};

use libc::user_regs_struct;
use regex::bytes::Regex;

use super::process::{Process, by_number};
use super::run::{Next, Pace};
use super::tests_at_point::Stand;
use super::{Criterion, Ending, Engine, EngineError, Side};
use crate::dwarf::frames::Frame;
use crate::engine::watchdog::TimeLimit;
use crate::slice::{CallTree, Slice, Stopped, find_slice};

/// Largest number of events (executions of statements) of a run for which a critical slice is
/// searched; for more, there is no search.
pub const MOST_EVENTS: usize = 2000;
/// Largest number of stops of a run, at statements and function entries, that are recorded; after
/// them, the run goes on to its end without a stop.
const COUNTED: usize = 100_000;

/// What the statements that a critical slice keeps have to reproduce: all output of the run,
/// certain lines of it, or the failure.
#[derive(Clone, Debug)]
pub enum Goal {
    /// The slice has to reproduce the whole output of the run.
    Output,
    /// The slice has to reproduce those lines of the output that match this pattern.
    Lines(Regex),
    /// The slice has to reproduce the failure of the run, as judged by this criterion.
    Failure(Criterion),
}

/// The result of a search for a critical slice: the executions of statements that alone reproduce a
/// failure or output.
pub enum Sliced {
    /// A slice was found; the call tree has the events (statement executions) of the run.
    Found(CallTree, Slice),
    /// No search was made: this is the number of the run's statement executions, which are too
    /// many.
    TooMany(usize),
    /// No slice: executing all statements one by one does not reproduce the failure or output.
    NotReproduced,
}

/// How a part of a slice ended: the process has ended, or it has stopped at the next statement or
/// outside of the stack frame.
enum Left {
    /// The process has ended.
    Ended(Box<Ending>),
    /// The process has stopped outside of the frame, or at the next statement.
    Stopped(Box<user_regs_struct>),
}

impl Goal {
    fn holds(&self, ending: &Ending, whole: &Ending) -> bool {
        match self {
            Goal::Output => ending.output == whole.output,
            Goal::Lines(regex) => {
                let lines = |ending: &Ending| -> Vec<Vec<u8>> {
                    let all = ending.output.split(|byte| *byte == b'\n');
                    all.filter(|line| regex.is_match(line))
                        .map(<[u8]>::to_vec)
                        .collect()
                };
                lines(ending) == lines(whole)
            }
            Goal::Failure(criterion) => {
                criterion.judge(ending, whole) == ddfuzz_delta::Outcome::Fail
            }
        }
    }
}

impl Engine {
    /// Searches for a minimal part of the failing run's statement executions that reproduces
    /// `goal`. Each test may take at most `limit`. Returns the part, or why there is none: there
    /// are too many executions, or even all of them together do not reproduce `goal`.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn slice(&mut self, goal: &Goal, limit: TimeLimit) -> Result<Sliced, EngineError> {
        let entries = self.entries();
        let (stops, whole) = self.stops(&entries)?;
        let events = stops.iter().filter(|stop| !stop.is_entry).count();
        if events > MOST_EVENTS {
            return Ok(Sliced::TooMany(events));
        }
        let returns: HashSet<u64> = self
            .statements
            .iter()
            .copied()
            .filter(|pc| self.is_return(*pc))
            .collect();
        let tree = CallTree::new(&stops, |pc| returns.contains(&pc));
        let Some(first) = tree.frames.first().and_then(|frame| frame.events.first()) else {
            return Ok(Sliced::NotReproduced);
        };
        let start = tree.events[*first].pc;
        let mut stand = self.stand_at_first(start, limit)?;
        let all: BTreeSet<u64> = self
            .statements
            .iter()
            .copied()
            .chain(entries.iter().copied())
            .collect();
        for address in &all {
            self.stop_at(&mut stand, *address)?;
        }
        let found = find_slice(&tree, |kept| {
            let ending = self.run_kept(&mut stand, &tree, kept, &entries)?;
            Ok::<bool, EngineError>(ending.is_some_and(|ending| goal.holds(&ending, &whole)))
        })?;
        Ok(match found {
            Some(slice) => Sliced::Found(tree, slice),
            None => Sliced::NotReproduced,
        })
    }

    /// Returns the entry addresses of all functions with debug information, without those at which
    /// a statement begins.
    fn entries(&self) -> BTreeSet<u64> {
        let statements: HashSet<u64> = self.statements.iter().copied().collect();
        let starts = self
            .info
            .functions
            .iter()
            .map(|function| function.ranges[0].start.wrapping_add(self.bias));
        starts.filter(|start| !statements.contains(start)).collect()
    }

    /// Returns true if the statement at an address is a `return`.
    fn is_return(&self, pc: u64) -> bool {
        let place = self.place(pc).map(|(file, line)| (file.to_owned(), line));
        let text = place.and_then(|(file, line)| crate::places::source_line(&file, line));
        text.is_some_and(|text| text == "return" || text.starts_with("return "))
    }

    /// Makes the failing run, and stops it at each statement and at the function entries `entries`.
    /// Returns these stops in order, and how the run ended.
    fn stops(&mut self, entries: &BTreeSet<u64>) -> Result<(Vec<Stopped>, Ending), EngineError> {
        let mut run = self.start(Side::Failing)?;
        let all: Vec<u64> = self.statements.iter().chain(entries).copied().collect();
        for address in all {
            run.process.set_breakpoint(address)?;
        }
        let mut stops = Vec::new();
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok((stops, *ending)),
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    let stop = Stopped {
                        pc: registers.rip,
                        cfa: self.cfa(&registers, &mut run.process),
                        is_entry: entries.contains(&registers.rip),
                    };
                    let is_rest = stops.last().is_some_and(|last| self.is_rest(last, &stop));
                    if !is_rest {
                        stops.push(stop);
                    }
                    run.process.step_over(registers.rip)?;
                    if stops.len() == COUNTED {
                        run.process.remove_breakpoints()?;
                    }
                }
            }
        }
    }

    /// Returns true if the stop `stop` belongs to the same statement as the stop `last` before it:
    /// it is in the same frame and on the same line, at another address, such as the condition of a
    /// loop after the jump to it.
    fn is_rest(&self, last: &Stopped, stop: &Stopped) -> bool {
        let same_frame = !last.is_entry && !stop.is_entry && last.cfa == stop.cfa;
        same_frame && last.pc != stop.pc && self.same_line(last.pc, stop.pc)
    }

    fn same_line(&self, one: u64, other: u64) -> bool {
        let line = |pc: u64| {
            self.info
                .lines
                .at(pc.wrapping_sub(self.bias))
                .map(|row| (row.file, row.line))
        };
        line(one) == line(other)
    }

    fn stand_at_first(&mut self, pc: u64, limit: TimeLimit) -> Result<Stand, EngineError> {
        let mut run = self.start(Side::Failing)?;
        run.process.set_breakpoint(pc)?;
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(_) => break,
                Next::Other(_) => {}
                Next::Ended(_) => {
                    return Err(EngineError::Unsupported(super::Unsupported::Unsteady));
                }
            }
        }
        self.learn_library(&mut run.process);
        run.process.remove_breakpoints()?;
        self.stand_in(run, limit)
    }

    fn cfa(&mut self, registers: &user_regs_struct, process: &mut Process) -> u64 {
        let mut frame = Frame::innermost(&by_number(registers));
        let _ = self.modules.caller(&mut frame, process);
        frame.cfa
    }

    /// Runs a fork of the stopped program that executes only the statement executions of the call
    /// tree `tree` for which `kept` is true, and returns how the fork ended. `None` if it stops
    /// without an end, or does something that ddfuzz cannot follow, such as starting a thread. The
    /// fork is stopped at `entries`, the addresses at which functions begin, to notice calls.
    fn run_kept(
        &mut self,
        stand: &mut Stand,
        tree: &CallTree,
        kept: &[bool],
        entries: &BTreeSet<u64>,
    ) -> Result<Option<Ending>, EngineError> {
        self.in_new_fork(stand, |engine, child| {
            let registers = child.registers()?;
            let cfa = engine.cfa(&registers, child);
            match engine.frame(child, tree, kept, entries, 0, cfa)? {
                Left::Ended(ending) => Ok(Some(*ending)),
                Left::Stopped(_) => {
                    // Back in the code that called `main`.
                    child.remove_breakpoints()?;
                    match engine.resume(child, Pace::Free)? {
                        Next::Ended(ending) => Ok(Some(*ending)),
                        _ => Ok(None),
                    }
                }
            }
        })
    }

    /// Executes, in the process `child`, the events (statement executions) of one frame of the call
    /// tree (its index is `frame`) that the slice keeps (`kept`) or must always keep, and skips the
    /// others. Called functions are executed in the same way. `cfa` is the canonical frame address
    /// of the frame, which tells its statements from those of inner calls. `entries` are the
    /// addresses at which functions begin, to notice calls. Returns how the run ended, or the
    /// registers after the last statement of the frame.
    fn frame(
        &mut self,
        child: &mut Process,
        tree: &CallTree,
        kept: &[bool],
        entries: &BTreeSet<u64>,
        frame: usize,
        cfa: u64,
    ) -> Result<Left, EngineError> {
        let mut last = Box::new(child.registers()?);
        for event in &tree.frames[frame].events {
            if !kept[*event] && !tree.events[*event].stays {
                continue;
            }
            let pc = tree.events[*event].pc;
            child.set_registers(user_regs_struct {
                rip: pc,
                orig_rax: u64::MAX,
                ..*last
            })?;
            child.step_over(pc)?;
            match self.event(child, tree, kept, entries, *event, cfa)? {
                Left::Ended(ending) => return Ok(Left::Ended(ending)),
                Left::Stopped(registers) => {
                    if self.cfa(&registers, child) > cfa {
                        return Ok(Left::Stopped(registers));
                    }
                    last = registers;
                }
            }
        }
        Ok(Left::Stopped(last))
    }

    /// Executes the event (a statement with its calls) with the index `event` of the call tree
    /// `tree` in the process `child`; returns how it ended. In the called functions, only events
    /// for which `kept` is true are executed. `cfa` is the canonical frame address of the event's
    /// frame, `entries` are the addresses of function entries.
    fn event(
        &mut self,
        child: &mut Process,
        tree: &CallTree,
        kept: &[bool],
        entries: &BTreeSet<u64>,
        event: usize,
        cfa: u64,
    ) -> Result<Left, EngineError> {
        let calls: Vec<usize> = tree.calls(event).collect();
        let mut calls = calls.into_iter();
        let mut callee: Option<(usize, u64)> = None;
        loop {
            let registers = match self.resume(child, Pace::Free)? {
                Next::Ended(ending) => return Ok(Left::Ended(ending)),
                Next::Other(_) => continue,
                Next::Breakpoint(registers) => registers,
            };
            let mut here = self.cfa(&registers, child);
            let own = tree.events[event].pc;
            if here == cfa && registers.rip != own && self.same_line(registers.rip, own) {
                child.step_over(registers.rip)?;
                continue;
            }
            if here >= cfa {
                return Ok(Left::Stopped(Box::new(registers)));
            }
            let mut at = registers.rip;
            if entries.contains(&at) {
                // A direct call of this event, and none from deeper down.
                if callee.is_none_or(|(_, inner)| here >= inner) {
                    let next = calls.next().filter(|frame| !tree.is_whole(*frame, kept));
                    callee = Some((next.unwrap_or(usize::MAX), here));
                }
            } else if let Some((frame, inner)) = callee
                && frame != usize::MAX
                && inner == here
            {
                callee = Some((usize::MAX, inner));
                match self.frame(child, tree, kept, entries, frame, here)? {
                    Left::Ended(ending) => return Ok(Left::Ended(ending)),
                    Left::Stopped(registers) => {
                        here = self.cfa(&registers, child);
                        if here >= cfa {
                            return Ok(Left::Stopped(registers));
                        }
                        at = registers.rip;
                        if entries.contains(&at) {
                            let next = calls.next().filter(|frame| !tree.is_whole(*frame, kept));
                            callee = Some((next.unwrap_or(usize::MAX), here));
                        }
                    }
                }
            }
            child.step_over(at)?;
        }
    }
}
