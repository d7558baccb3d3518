//! Where the value came from by which a run failed: the operand of the instruction that crashed, or of
//! the condition after which the runs went different ways. The last statements are executed one
//! instruction at a time; memory that they read is watched in another run.

use std::collections::VecDeque;
use std::rc::Rc;

use ddfuzz_triage::memory::Memory;

use super::instructions::{
    ARGUMENTS, Executed, Source, Value, comparison, copied_by, decisions, guards, inputs,
    last_write, reads, source,
};
use super::overflow::AllocationCall;
use super::process::{Stop, by_number};
use super::run::{Next, Pace, Run};
use super::writer::{By, LastWrite, Watched};
use super::{Ending, Engine, EngineError, Point, Side, Trace};
use crate::dwarf::frames::REGISTERS;

/// Number of points before the failure from which on a run's instructions are recorded one by one.
const POINTS: usize = 100;
/// Number of points before a condition, or before a statement that writes, from which on a run's
/// instructions are recorded one by one.
const FEW_POINTS: usize = 30;
/// Number of points before and after a write from which on, and up to which, a run's instructions are
/// recorded.
const SHORT: usize = 12;
/// Largest number of points of each run among which the condition is searched for by which the runs
/// went different ways.
const BETWEEN: usize = 60;
/// Largest number of conditions for which it is searched where their values came from.
const TRIED: usize = 3;
/// Largest number of instructions of a run that are recorded.
const MOST_STEPS: usize = 20_000;
/// Largest distance, in bytes, of a faulting address from the pointer passed to a function of a
/// library that is taken for its cause.
const NEAR: u64 = 4096;

/// Largest number of statements to which one value is followed back.
const STEPS: usize = 9;
/// Largest number of values that are followed back for that: those that a statement computes its own
/// from are followed one by one.
const TERMS: usize = 40;
/// Largest number of instructions outside of the program's own code that are recorded after the last
/// point of a run.
const BEYOND: usize = 2000;
/// Largest size of an instruction, in bytes.
const LONGEST: u64 = 15;

/// Functions of libraries by which a program ends itself.
const ENDING: [&str; 6] = [
    "abort",
    "__assert_fail",
    "exit",
    "_exit",
    "raise",
    "_ZSt9terminatev",
];
/// Where a value came from: the code that wrote or computed it, and the code that read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Address of the instruction that read the value from memory; `None` where it was not in
    /// memory.
    pub read: Option<u64>,
    /// Addresses in the program's code: of the instruction that wrote or computed the value, then
    /// of the calls that led there, innermost first.
    pub written: Vec<u64>,
    /// Where the values came from of which this one was made, and those of which they were made, the
    /// latest ones first.
    pub earlier: Vec<Origin>,
}

/// A value that an instruction of the failing run uses: the recorded instructions, the index of
/// that one, and the value.
type Used = (Rc<Recorded>, usize, Value);

/// What is read by an instruction: its address, the point before it, and the memory.
pub(super) type Reading = (u64, Option<Point>, u64, u64);

/// One step back from a value: where it came from.
#[derive(Clone, Default)]
pub(super) struct Back {
    /// The statement that made the value; `None` where that is not known, or not the program's own.
    origin: Option<Origin>,
    /// The recorded instruction that made the value; `None` where none was recorded.
    moment: Option<(Rc<Recorded>, usize)>,
    /// The values of which it was made.
    made_of: Vec<Used>,
}

/// The write to some memory that a recorded instruction reads.
struct MemoryWrite {
    last: LastWrite,
    address: u64,
    size: u64,
    /// The point up to which the last write is meant.
    to: Point,
}

/// A condition that was decided differently in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Address of the jump that depends on the condition.
    pub at: u64,
    /// Where the value came from, in the failing run, on which the condition depends.
    pub by: Origin,
}

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
    fn statement(&self, at: usize) -> usize {
        self.passed(at).map_or(0, |point| self.points[point].0)
    }

    /// Finds where a value that the instruction `at` uses came from; `None` where the recorded
    /// instructions do not say.
    fn source(&self, at: usize, value: Value) -> Option<Source> {
        source(&self.executed, at, value, |at| self.statement(at))
    }
}

/// The values of which one may have made an instruction crash: divisors, the registers of an address,
/// the arguments of a library's function that are close to the faulting address.
fn suspects(last: &Executed, fault: Option<u64>) -> Vec<Value> {
    if last.is_division() {
        return last.operands();
    }
    let registers = match fault {
        Some(fault) if last.is_library_call => {
            let is_near = |number: &usize| {
                let value = last.registers[*number];
                value <= fault && fault - value < NEAR
            };
            ARGUMENTS.into_iter().filter(is_near).collect()
        }
        Some(_) => last.address_registers(),
        None => Vec::new(),
    };
    registers.into_iter().map(Value::Register).collect()
}

/// A value that is followed back in the failing run.
pub(crate) struct History {
    /// Where the value came from; `None` where that is not known.
    pub origin: Option<Origin>,
    /// The recorded instructions that have used or written the value, and those of which it was made,
    /// the latest ones first.
    pub(super) moments: Vec<(Rc<Recorded>, usize)>,
}

impl Engine {
    /// Follows the value back by which the failing run has failed: that of the instruction that
    /// crashed, or of the condition after which the program has ended itself.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn crash_history(
        &mut self,
        failing: &Trace,
    ) -> Result<Option<History>, EngineError> {
        let points = &failing.points;
        let from = &points[points.len().saturating_sub(POINTS)..];
        let recorded = self.record(Side::Failing, from, false)?;
        let Some(last) = recorded.executed.len().checked_sub(1) else {
            return Ok(None);
        };
        let recorded = Rc::new(recorded);
        let crashed = &recorded.executed[last];
        let mut values = suspects(crashed, recorded.fault);
        let mut at = last;
        let is_fault = recorded.fault.is_some() || crashed.is_division();
        if !is_fault && (!crashed.is_library_call || self.ends_itself(&failing.ending)) {
            let guards = guards(&recorded.executed, last, |pc| self.is_user(pc));
            let compared = guards
                .first()
                .and_then(|at| comparison(&recorded.executed, *at));
            if let Some(compared) = compared {
                (at, values) = (compared, recorded.executed[compared].operands());
            }
        }
        let mut found = self.history(points, &recorded, at, values)?;
        found.moments.insert(0, (recorded, last));
        Ok(Some(found))
    }

    /// Returns true if the program has called a function that ends it, and not one that has failed.
    fn ends_itself(&self, ending: &Ending) -> bool {
        let own = ending.stack.iter().position(|pc| self.is_own_code(*pc));
        let called = own.and_then(|own| own.checked_sub(1));
        called.is_some_and(|called| {
            let name = self.library_function(ending.stack[called]);
            ENDING.contains(&&*name) || name.contains("throw")
        })
    }

    /// Finds where the size came from with which the failing run has asked for a heap block: the
    /// value from which the statement with the call computed it. `None` where that is not known.
    /// `points` are the points (statement executions) of the failing run.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn size_origin(
        &mut self,
        points: &[Point],
        asked: AllocationCall,
    ) -> Result<Option<Origin>, EngineError> {
        let function = |pc: u64| {
            let found = self.info.function(pc.wrapping_sub(self.bias));
            found.map(std::ptr::from_ref)
        };
        let own = function(asked.back - 1);
        let before = points.iter().map(|point| point.pc);
        let before = before.filter(|pc| *pc < asked.back && function(*pc) == own);
        let (Some(_), Some(pc)) = (own, before.max()) else {
            return Ok(None);
        };
        let is_it = |point: &Point| (point.pc, point.nth) == (pc, asked.nth);
        let Some(index) = points.iter().position(is_it) else {
            return Ok(None);
        };
        // Functions that the statement calls first have points of their own.
        let is_after = |it: &Point| it.stack == points[index].stack && it.pc >= asked.back;
        let after = points[index + 1..].iter().position(is_after);
        let end = points.len().min(index + 2 + after.unwrap_or_default());
        let window = &points[index.saturating_sub(FEW_POINTS)..end];
        let recorded = self.record(Side::Failing, window, true)?;
        let is_call = |it: &Executed| {
            it.is_library_call && (1..=LONGEST).contains(&asked.back.saturating_sub(it.pc()))
        };
        let Some(at) = recorded.executed.iter().rposition(is_call) else {
            return Ok(None);
        };
        let sizes = asked.sizes.iter().map(|it| Value::Register(*it)).collect();
        let found = self.history(points, &Rc::new(recorded), at, sizes)?;
        Ok(found.origin)
    }

    /// Follows values back that the recorded instruction `at` uses: to the statements that have written
    /// them, and to those that have written what these made them of. Statements on the line of the
    /// instruction are passed over. `points` are the points of the failing run.
    pub(super) fn history(
        &mut self,
        points: &[Point],
        recorded: &Rc<Recorded>,
        at: usize,
        values: Vec<Value>,
    ) -> Result<History, EngineError> {
        let mut told = vec![self.line(recorded.executed[at].pc())];
        let mut moments = Vec::new();
        let mut found: Vec<Origin> = Vec::new();
        let used = values
            .into_iter()
            .map(|value| (recorded.clone(), at, value));
        let mut rest: VecDeque<Used> = used.collect();
        for _ in 0..TERMS {
            let Some((recorded, at, value)) = rest.pop_front() else {
                break;
            };
            let Some(source) = recorded.source(at, value) else {
                continue;
            };
            let back = self.step_back(points, &recorded, source)?;
            moments.extend(back.moment);
            rest.extend(back.made_of);
            if let Some(origin) = back.origin {
                let place = self.line(origin.written[0]);
                if !told.contains(&place) {
                    told.push(place);
                    found.push(origin);
                }
            }
            if found.len() >= STEPS {
                break;
            }
        }
        let mut found = found.into_iter();
        let origin = found.next().map(|it| Origin {
            earlier: found.collect(),
            ..it
        });
        Ok(History { origin, moments })
    }

    /// Follows a value one step back: to the instruction that computed it, or to the write that
    /// left it in memory, and to the values from which that made it.
    fn step_back(
        &mut self,
        points: &[Point],
        recorded: &Rc<Recorded>,
        source: Source,
    ) -> Result<Back, EngineError> {
        match source {
            Source::Computed(by) => {
                let executed = &recorded.executed;
                let mut made_of: Vec<Used> = Vec::new();
                if !executed[by].is_library_call {
                    let terms = executed[by].terms().into_iter();
                    made_of.extend(terms.map(|value| (recorded.clone(), by, value)));
                    // What is computed by flags (`setl`, `cmovl`) depends on what was compared.
                    if let Some(at) = comparison(executed, by) {
                        let compared = executed[at].operands().into_iter();
                        made_of.extend(compared.map(|value| (recorded.clone(), at, value)));
                    }
                }
                let origin = Origin {
                    read: None,
                    written: vec![executed[by].pc()],
                    earlier: Vec::new(),
                };
                Ok(Back {
                    origin: Some(origin).filter(|it| self.is_user(it.written[0])),
                    moment: Some((recorded.clone(), by)),
                    made_of,
                })
            }
            Source::Read { at, address, size } => {
                let point = recorded.passed(at).map(|point| recorded.points[point].1);
                let key = (recorded.executed[at].pc(), point, address, size);
                if let Some(known) = self.followed.get(&key) {
                    return Ok(known.clone());
                }
                let mut back = Back::default();
                if let Some(write) = self.last_write_before(recorded, at, address, size)? {
                    back = self.made_of(points, &write)?;
                    back.origin = Some(write.origin(key.0));
                }
                self.followed.insert(key, back.clone());
                Ok(back)
            }
        }
    }

    /// Finds the condition after which the runs differ most between two points that they share, and
    /// where its value came from in the failing run; `None` where that is not known. `before` are
    /// the points of the failing run up to the first of the two, `between` those of the passing and
    /// of the failing run from the first to the second.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn condition_origin(
        &mut self,
        before: &[Point],
        between: [&[Point]; 2],
    ) -> Result<Option<Decided>, EngineError> {
        let [passing, failing] = between;
        let start = before.len().saturating_sub(FEW_POINTS);
        let points = [&before[start..], &failing[..failing.len().min(BETWEEN)]].concat();
        let known = points.len() - failing.len().min(BETWEEN);
        let points_of_run = &[before, failing].concat();
        let failing = Rc::new(self.record(Side::Failing, &points, true)?);
        let passing = &passing[..passing.len().min(BETWEEN)];
        let passing = self.record(Side::Passing, passing, true)?;
        let Some((start, _)) = failing.points.get(known) else {
            return Ok(None);
        };
        let pairs = decisions(&failing.executed[*start..], &passing.executed);
        let pairs = pairs.into_iter().map(|(at, other)| (at + start, other));
        let is_user = |at: usize| self.is_user(failing.executed[at].pc());
        let pairs: Vec<_> = pairs.filter(|(at, _)| is_user(*at)).take(TRIED).collect();
        for (at, other) in pairs {
            let found = self.decision(points_of_run, &failing, at, (&passing.executed, other))?;
            if let Some(by) = found {
                let at = failing.executed[at].pc();
                return Ok(Some(Decided { at, by }));
            }
        }
        Ok(None)
    }

    /// Finds where the value came from by which a jump went elsewhere in the failing run than in
    /// the passing one; `at` and `other` are the indices of the jump in both runs' instructions.
    /// `None` where that is not known.
    fn decision(
        &mut self,
        points: &[Point],
        failing: &Rc<Recorded>,
        at: usize,
        (passing, other): (&[Executed], usize),
    ) -> Result<Option<Origin>, EngineError> {
        let one = &failing.executed[at];
        let (at, other, values) = if one.is_condition() {
            let compared = comparison(&failing.executed, at).zip(comparison(passing, other));
            let Some((at, other)) = compared else {
                return Ok(None);
            };
            (at, other, failing.executed[at].operands())
        } else {
            let registers = one.address_registers().into_iter().map(Value::Register);
            (at, other, registers.chain(one.operands()).collect())
        };
        let is_equal = |value: &Value| match value {
            Value::Register(number) => {
                failing.executed[at].registers[*number] == passing[other].registers[*number]
            }
            Value::Memory(..) | Value::Part { .. } => false,
        };
        for value in values.into_iter().filter(|value| !is_equal(value)) {
            let found = self.history(points, failing, at, vec![value])?;
            if found.origin.is_some() {
                return Ok(found.origin);
            }
        }
        Ok(None)
    }

    /// Finds where a value came from that a statement of the failing run read from another place than
    /// the same statement of the passing run did, to compute what it wrote to `value`. `before` are
    /// points of the failing run up to the statement, `between` those of the passing and the failing run
    /// from the statement on to the next one. `None` where that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn selected_origin(
        &mut self,
        before: &[Point],
        between: [&[Point]; 2],
        value: Value,
    ) -> Result<Option<Origin>, EngineError> {
        let [passing, failing] = between;
        let start = before.len().saturating_sub(FEW_POINTS);
        let points = [&before[start..], failing].concat();
        let recorded = self.record(Side::Failing, &points, true)?;
        let passing = self.record(Side::Passing, passing, true)?;
        let Some((first, _)) = recorded.points.get(points.len() - failing.len()).copied() else {
            return Ok(None);
        };
        let executed = &recorded.executed;
        let statement = |at| recorded.statement(at);
        let read = reads(executed, first..executed.len(), value, statement);
        for (at, address, size) in read {
            let pc = executed[at].pc();
            let mut same = passing.executed.iter().filter(|it| it.pc() == pc);
            let is_elsewhere = same.next().and_then(Executed::read);
            if is_elsewhere.is_none_or(|it| it == (address, size)) {
                continue;
            }
            let found = self.last_write_before(&recorded, at, address, size)?;
            if let Some(write) = found {
                return Ok(Some(write.origin(pc)));
            }
        }
        Ok(None)
    }

    /// Runs to the first of some points, and executes the instructions up to the crash, or with
    /// `is_bounded` to the last one of them, one at a time. Functions of libraries are executed as a
    /// whole. A run that leaves the program's own code after the last point is recorded up to there.
    pub(super) fn record(
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
                recorded.executed.truncate(own);
                return Ok(recorded);
            }
            let code = run.process.bytes(pc, 15);
            let Some(executed) = Executed::new(&code, registers) else {
                break;
            };
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
            last.is_library_call = true;
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

    /// Returns true if an address belongs to a function with debug information.
    fn is_own_code(&self, pc: u64) -> bool {
        self.info.function(pc.wrapping_sub(self.bias)).is_some()
    }

    /// Finds who wrote the memory that a recorded instruction reads; `None` where that is not known.
    fn last_write_before(
        &mut self,
        recorded: &Recorded,
        at: usize,
        address: u64,
        size: u64,
    ) -> Result<Option<MemoryWrite>, EngineError> {
        // Who has saved a register has not made its value.
        let is_restored = recorded.executed[at].is_pop();
        let Some(point) = recorded.passed(at).filter(|_| !is_restored) else {
            return Ok(None);
        };
        let to = recorded.points[point].1;
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        let found = self.last_writes(Side::Failing, None, to, watched)?.any;
        let is_own = |it: &LastWrite| {
            let writer = &it.writer;
            !writer.is_input() && writer.by != By::Kernel && !writer.calls.is_empty()
        };
        Ok(found.filter(is_own).map(|last| MemoryWrite {
            last,
            address,
            size,
            to,
        }))
    }

    /// Returns the values from which the value stored by a write was computed; none where that is
    /// not known.
    fn made_of(&mut self, points: &[Point], write: &MemoryWrite) -> Result<Back, EngineError> {
        let (address, size) = (write.address, write.size);
        let written = Value::Memory(address, size);
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        let index = |point: Point| {
            let is_it = |it: &Point| (it.pc, it.nth) == (point.pc, point.nth);
            points.iter().position(is_it)
        };
        let Some(by) = self.statement_of(watched, &write.last)? else {
            return Ok(Back::default());
        };
        let Some((from, to)) = index(by)
            .zip(index(write.to))
            .filter(|(from, to)| from < to)
        else {
            return Ok(Back::default());
        };
        let start = from.saturating_sub(SHORT);
        let end = to.min(from + SHORT);
        let recorded = Rc::new(self.record(Side::Failing, &points[start..=end], true)?);
        let Some((first, _)) = recorded.points.get(from - start).copied() else {
            return Ok(Back::default());
        };
        let executed = &recorded.executed;
        let after = first..executed.len();
        if let By::Library(name) = &write.last.writer.by {
            let pc = write.last.writer.pc;
            let is_call = |at: &usize| {
                let it = &executed[*at];
                it.is_library_call && (it.pc()..it.pc() + LONGEST).contains(&pc)
            };
            let call = after.rev().find(is_call);
            let made_of = call.and_then(|at| Some((at, copied_by(name, &executed[at], written)?)));
            let used = made_of.map(|(at, value)| (recorded.clone(), at, value));
            return Ok(Back {
                origin: None,
                moment: call.map(|at| (recorded.clone(), at)),
                made_of: used.into_iter().collect(),
            });
        }
        let Some(at) = last_write(executed, after, written) else {
            return Ok(Back::default());
        };
        let values = inputs(&executed[at], written).into_iter();
        Ok(Back {
            origin: None,
            moment: Some((recorded.clone(), at)),
            made_of: values.map(|value| (recorded.clone(), at, value)).collect(),
        })
    }
}

impl MemoryWrite {
    /// Returns where the value came from that an instruction has read: from this write.
    fn origin(&self, read: u64) -> Origin {
        Origin {
            read: Some(read),
            written: self.last.writer.calls.clone(),
            earlier: Vec::new(),
        }
    }
}
