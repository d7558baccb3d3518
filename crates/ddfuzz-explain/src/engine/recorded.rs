//! Instructions that a run executes one at a time, from a point on.

use std::rc::Rc;

use ddfuzz_triage::memory::Memory;

use super::instructions::{ARGUMENTS, Executed, Value};
use super::process::{Stop, by_number};
use super::run::{Next, Pace, Run};
use super::sources::{Source, source};
use super::writer::{Watched, watch};
use super::{Engine, EngineError, Point, Side};
use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

/// Largest number of instructions of a run that are recorded.
const MOST_STEPS: usize = 20_000;
/// Number of recorded instructions from which on no more are kept.
const MOST_KEPT: usize = 200_000;
/// Largest number of instructions outside of the program's own code that are recorded after the last
/// point of a run.
const BEYOND: usize = 2000;

/// Largest number of terms of an address among which a pointer is searched for.
const TERMS: usize = 16;

/// What a recording is known by: the run, statement and number of arrivals of its first and of its last point,
/// and the number of its points.
pub(super) type RecordingKey = (Side, (u64, u64), (u64, u64), usize);

/// The instructions that a run has executed one by one from a point on.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The instructions, in the order of time.
    pub executed: Vec<Executed>,
    /// The points that the run has passed, each with the index in `executed` of the first
    /// instruction after it.
    pub points: Vec<(usize, Point)>,
    /// The address that could not be accessed, where the run has crashed by a memory access.
    pub fault: Option<u64>,
}

impl Recorded {
    /// The last point that was passed when an instruction was executed.
    pub fn passed(&self, at: usize) -> Option<usize> {
        let behind = self.points.partition_point(|(index, _)| *index <= at);
        behind.checked_sub(1)
    }

    /// Returns the index of the first instruction of the statement that contains the instruction
    /// `at`.
    pub fn statement(&self, at: usize) -> usize {
        self.passed(at).map_or(0, |point| self.points[point].0)
    }

    /// Returns the numbers from which the address was computed that the instruction `at` accesses, or that it
    /// gives to a function of a library, by additions and subtractions: one of them may be the pointer.
    pub fn pointers(&self, at: usize) -> Vec<u64> {
        let executed = &self.executed;
        let registers = match executed[at].is_library_call() {
            true => ARGUMENTS[..2].to_vec(),
            false => executed[at].address_registers(),
        };
        let mut rest: Vec<(usize, usize)> = registers.into_iter().map(|it| (at, it)).collect();
        let mut found = Vec::new();
        while let Some((at, register)) = rest.pop() {
            found.push(executed[at].registers[register]);
            let source = self.source(at, Value::Register(register));
            let Some(Source::Computed(by)) = source.filter(|_| found.len() < TERMS) else {
                continue;
            };
            if executed[by].is_sum() {
                // What is added from memory is the rest of the sum.
                if let Some(next) = executed
                    .get(by + 1)
                    .filter(|_| executed[by].read().is_some())
                {
                    let sum = next.registers[register];
                    found.push(sum.wrapping_sub(executed[by].registers[register]));
                }
                let terms = executed[by].terms().into_iter();
                let registers = terms.filter_map(|it| match it {
                    Value::Register(number) => Some((by, number)),
                    Value::Memory(..) | Value::Part { .. } => None,
                });
                rest.extend(registers);
            }
        }
        found
    }

    /// Finds where a value that the instruction `at` uses came from; `None` where the recorded
    /// instructions do not say.
    pub fn source(&self, at: usize, value: Value) -> Option<Source> {
        source(&self.executed, at, value, |at| self.statement(at))
    }
}

/// Returns the number that some bytes are, the lowest one first; `None` for more than eight.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut all = [0; 8];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(all))
}

impl Engine {
    /// Runs to the first of some points, and executes the instructions up to the crash, or with
    /// `is_bounded` to the last one of them, one at a time. Functions of libraries are executed as a
    /// whole. A run that leaves the program's own code after the last point is recorded for a while only.
    /// Instructions that were recorded before are not executed again.
    pub(super) fn record(
        &mut self,
        side: Side,
        points: &[Point],
        is_bounded: bool,
    ) -> Result<Rc<Recorded>, EngineError> {
        let place = |it: &Point| (it.pc, it.nth);
        let ends = points.first().zip(points.last());
        let ends = ends
            .filter(|_| is_bounded)
            .map(|it| (place(it.0), place(it.1)));
        let key = ends.map(|(first, last)| (side, first, last, points.len()));
        if let Some(known) = key.and_then(|key| self.recorded.get(&key)) {
            return Ok(known.clone());
        }
        let recorded = Rc::new(self.record_anew(side, points, is_bounded)?);
        let kept: usize = self.recorded.values().map(|it| it.executed.len()).sum();
        if let Some(key) = key.filter(|_| kept < MOST_KEPT) {
            self.recorded.insert(key, recorded.clone());
        }
        Ok(recorded)
    }

    /// Records instructions as [`record`](Engine::record) does, in a new run.
    fn record_anew(
        &mut self,
        side: Side,
        points: &[Point],
        is_bounded: bool,
    ) -> Result<Recorded, EngineError> {
        let mut recorded = Recorded::default();
        let Some(first) = points.first() else {
            return Ok(recorded);
        };
        let mut run = self.start(side)?;
        self.run_to(&mut run, *first)?;
        let mut rest = points.iter().peekable();
        let mut own = 0;
        while recorded.executed.len() < MOST_STEPS {
            self.check_time()?;
            let registers = by_number(&run.process.registers()?);
            let pc = registers[REGISTERS - 1];
            if let Some(point) = rest.next_if(|point| point.pc == pc) {
                recorded.points.push((recorded.executed.len(), *point));
                if is_bounded && rest.peek().is_none() {
                    return Ok(recorded);
                }
            }
            if self.is_user(pc) {
                own = recorded.executed.len() + 1;
            } else if rest.peek().is_none() && recorded.executed.len() - own > BEYOND {
                return Ok(recorded);
            }
            let code = run.process.bytes(pc, 15);
            let Some(mut executed) = Executed::new(&code, registers) else {
                break;
            };
            executed.before = (executed.summed())
                .and_then(|(at, size)| number(&run.process.bytes(at, size as usize)));
            recorded.executed.push(executed);
            if self.step_once(&mut run, &mut recorded)? {
                return Ok(recorded);
            }
        }
        if !is_bounded {
            recorded.executed.clear();
        }
        Ok(recorded)
    }

    /// Returns the writes that the program's own code makes from the first of some points of the failing
    /// run to the last one, but for those to local variables of the writing function: address of the
    /// instruction, address and number of the written bytes. Calls of libraries are left out.
    pub(crate) fn writes_between(
        &mut self,
        points: &[Point],
    ) -> Result<Vec<(u64, u64, u64)>, EngineError> {
        let recorded = self.record(Side::Failing, points, true)?;
        let own = (recorded.executed.iter()).filter(|it| self.is_user(it.pc()));
        let written = own.filter_map(|it| it.written_elsewhere().map(|at| (it.pc(), at.0, at.1)));
        Ok(written.collect())
    }

    /// Executes one instruction, or one call of a library as a whole; returns true if the run has
    /// crashed by it.
    pub(super) fn step_once(
        &mut self,
        run: &mut Run,
        recorded: &mut Recorded,
    ) -> Result<bool, EngineError> {
        match run.process.step()? {
            Stop::Trap => {}
            Stop::Signal(_) => {
                recorded.fault = self.classifier.fault_address(run.process.pid);
                return Ok(true);
            }
            _ => return Err(EngineError::Unsupported(super::Unsupported::Unsteady)),
        }
        let now = run.process.registers()?;
        if self.is_own_code(now.rip) {
            return Ok(false);
        }
        if let Some(last) = recorded.executed.last_mut() {
            let (called, parameters) =
                self.imports
                    .called(last, now.rip, &mut run.process, self.bias);
            last.library = Some(called);
            last.parameters = parameters;
        }
        let Some(back) = run.process.word(now.rsp).filter(|it| self.is_own_code(*it)) else {
            return Err(EngineError::Unsupported(super::Unsupported::Unsteady));
        };
        run.process.set_breakpoint(back)?;
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) if registers.rsp > now.rsp => break,
                Next::Breakpoint(registers) => drop(run.process.step_over(registers.rip)?),
                Next::Other(_) => {}
                Next::Ended(_) => {
                    recorded.fault = self.classifier.fault_address(run.process.pid);
                    return Ok(true);
                }
            }
        }
        run.process.remove_breakpoint(back)?;
        Ok(false)
    }

    /// Returns whether the library's function that the recorded instruction `at` of the failing run calls
    /// writes to some memory; `None` where another run does not come there.
    pub(super) fn call_writes(
        &mut self,
        recorded: &Recorded,
        at: usize,
        (address, size): (u64, u64),
    ) -> Result<Option<bool>, EngineError> {
        let Some((first, point)) = recorded.passed(at).map(|it| recorded.points[it]) else {
            return Ok(None);
        };
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, point)?;
        if !self.go_to(&mut run, &recorded.executed[first..=at])? {
            return Ok(None);
        }
        let before = run.process.registers()?;
        let place = |it: &[u64; REGISTERS]| (it[REGISTERS - 1], it[usize::from(STACK_POINTER)]);
        if place(&by_number(&before)) != place(&recorded.executed[at].registers) {
            return Ok(None);
        }
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        let back = before.rip + recorded.executed[at].instruction.len() as u64;
        run.process.set_breakpoint(back)?;
        watch(&run.process, watched)?;
        let value = run.process.bytes(address, size as usize);
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) if registers.rsp >= before.rsp => {
                    // The kernel's writes are not seen.
                    let is_changed = run.process.bytes(address, size as usize) != value;
                    return Ok(Some(is_changed));
                }
                Next::Breakpoint(registers) => drop(run.process.step_over(registers.rip)?),
                Next::Other(_) => return Ok(Some(true)),
                Next::Ended(_) => return Ok(None),
            }
        }
    }

    /// Lets a run that has executed the first of some recorded instructions next go on to the last one; returns
    /// false where it ends before that.
    fn go_to(&mut self, run: &mut Run, executed: &[Executed]) -> Result<bool, EngineError> {
        let stack = usize::from(STACK_POINTER);
        let place = |it: &Executed| (it.pc(), it.registers[stack]);
        let Some((end, before)) = executed.split_last().filter(|it| !it.1.is_empty()) else {
            return Ok(true);
        };
        // What a library's function calls may execute the instruction as well, with another stack.
        let mut left = before.iter().filter(|it| place(it) == place(end)).count();
        run.process.set_breakpoint(end.pc())?;
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(it) if (it.rip, it.rsp) == place(end) && left == 0 => break,
                Next::Breakpoint(it) => {
                    left -= usize::from((it.rip, it.rsp) == place(end));
                    run.process.step_over(it.rip)?;
                }
                Next::Other(_) => {}
                Next::Ended(_) => return Ok(false),
            }
        }
        run.process.remove_breakpoint(end.pc())?;
        Ok(true)
    }

    /// Returns true if an address belongs to a function with debug information.
    pub(super) fn is_own_code(&self, pc: u64) -> bool {
        self.info.function(pc.wrapping_sub(self.bias)).is_some()
    }
}
