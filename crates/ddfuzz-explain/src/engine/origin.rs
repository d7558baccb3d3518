//! Where the value came from by which a run failed: the operand of the instruction that crashed, or of
//! the condition after which the runs went different ways. The last statements are executed one
//! instruction at a time; memory that they read is watched in another run.

use ddfuzz_triage::memory::Memory;

use super::instructions::{Executed, Source, Value, comparison, decisions, reads, source};
use super::overflow::AllocationCall;
use super::process::{Stop, by_number};
use super::run::{Next, Pace, Run};
use super::writer::{By, Watched, Writer};
use super::{Engine, EngineError, Point, Side};
use crate::dwarf::frames::REGISTERS;

/// Number of points before the failure from which on a run's instructions are recorded one by one.
const POINTS: usize = 100;
/// Number of points before a condition, or before a statement that writes, from which on a run's
/// instructions are recorded one by one.
const FEW_POINTS: usize = 30;
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

/// Largest number of computed values of one statement that are followed back to what they were
/// computed from.
const TERMS: usize = 16;
/// Largest size of an instruction, in bytes.
const LONGEST: u64 = 15;

/// DWARF numbers of the registers of the first arguments: rdi, rsi, rdx, rcx.
const ARGUMENTS: [usize; 4] = [5, 4, 1, 2];

/// Where a value came from: the code that wrote or computed it, and the code that read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Address of the instruction that read the value from memory; `None` where it was not in
    /// memory.
    pub read: Option<u64>,
    /// Addresses in the program's code: of the instruction that wrote or computed the value, then
    /// of the calls that led there, innermost first.
    pub written: Vec<u64>,
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
struct Recorded {
    executed: Vec<Executed>,
    /// The points that the run has passed, each with the index in `executed` of the first
    /// instruction after it.
    points: Vec<(usize, Point)>,
    /// The address that could not be accessed, where the run has crashed by a memory access.
    fault: Option<u64>,
}

impl Recorded {
    /// The last point that was passed when an instruction was executed.
    fn passed(&self, at: usize) -> Option<usize> {
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

impl Engine {
    /// Finds where the value came from by which the failing run has crashed; `None` where that is
    /// not known. `points` are the points (statement executions) of the failing run.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn crash_origin(&mut self, points: &[Point]) -> Result<Option<Origin>, EngineError> {
        let from = &points[points.len().saturating_sub(POINTS)..];
        let recorded = self.record(Side::Failing, from, false)?;
        let Some(at) = recorded.executed.len().checked_sub(1) else {
            return Ok(None);
        };
        let last = &recorded.executed[at];
        for value in suspects(last, recorded.fault) {
            let found = self.origin(&recorded, at, value)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
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
        for register in asked.sizes {
            let found = self.term_origin(&recorded, at, Value::Register(*register))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Finds where a value came from that the statement of the recorded instruction `at` has
    /// computed: the first one of its terms that another statement has written or computed.
    fn term_origin(
        &mut self,
        recorded: &Recorded,
        at: usize,
        value: Value,
    ) -> Result<Option<Origin>, EngineError> {
        let call = recorded.executed[at].pc();
        let mut terms = vec![(at, value)];
        for _ in 0..TERMS {
            let Some((at, value)) = terms.pop() else {
                break;
            };
            let Some(source) = recorded.source(at, value) else {
                continue;
            };
            let found = self.origin_of(recorded, source)?;
            let is_elsewhere = |it: &Origin| self.place(it.written[0]) != self.place(call);
            if let Some(found) = found.filter(is_elsewhere) {
                return Ok(Some(found));
            }
            if let Source::Computed(by) = source {
                let next = recorded.executed[by].terms().into_iter().rev();
                terms.extend(next.map(|value| (by, value)));
            }
        }
        Ok(None)
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
        let failing = self.record(Side::Failing, &points, true)?;
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
            let found = self.decision(&failing, at, &passing.executed, other)?;
            let pc = failing.executed[at].pc();
            let is_elsewhere = |it: &Origin| self.place(it.written[0]) != self.place(pc);
            if let Some(by) = found.filter(is_elsewhere) {
                return Ok(Some(Decided { at: pc, by }));
            }
        }
        Ok(None)
    }

    /// Finds where the value came from by which a jump went elsewhere in the failing run than in
    /// the passing one; `at` and `other` are the indices of the jump in both runs' instructions.
    /// `None` where that is not known.
    fn decision(
        &mut self,
        failing: &Recorded,
        at: usize,
        passing: &[Executed],
        other: usize,
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
            Value::Memory(..) => false,
        };
        for value in values.into_iter().filter(|value| !is_equal(value)) {
            let found = self.origin(failing, at, value)?;
            if found.is_some() {
                return Ok(found);
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
            let found = self.read_origin(&recorded, at, address, size)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Runs to the first of some points, and executes the instructions up to the crash, or with
    /// `is_bounded` to the last one of them, one at a time. Functions of libraries are executed as a
    /// whole.
    fn record(
        &mut self,
        side: Side,
        points: &[Point],
        is_bounded: bool,
    ) -> Result<Recorded, EngineError> {
        let mut recorded = Recorded {
            executed: Vec::new(),
            points: Vec::new(),
            fault: None,
        };
        let Some(first) = points.first() else {
            return Ok(recorded);
        };
        let mut run = self.start(side)?;
        self.run_to(&mut run, *first)?;
        let mut rest = points.iter().peekable();
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
    fn step_once(&mut self, run: &mut Run, recorded: &mut Recorded) -> Result<bool, EngineError> {
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

    /// Finds where the value came from that the recorded instruction with the index `at` uses;
    /// `None` where that is not known.
    fn origin(
        &mut self,
        recorded: &Recorded,
        at: usize,
        value: Value,
    ) -> Result<Option<Origin>, EngineError> {
        match recorded.source(at, value) {
            Some(source) => self.origin_of(recorded, source),
            None => Ok(None),
        }
    }

    /// Finds who wrote or computed a value of the program, by the instruction where the recorded
    /// instructions do not lead further back; `None` where that is not known.
    fn origin_of(
        &mut self,
        recorded: &Recorded,
        source: Source,
    ) -> Result<Option<Origin>, EngineError> {
        Ok(match source {
            Source::Computed(by) => Some(Origin {
                read: None,
                written: vec![recorded.executed[by].pc()],
            })
            .filter(|it| self.is_user(it.written[0])),
            Source::Read { at, address, size } => self.read_origin(recorded, at, address, size)?,
        })
    }

    /// Finds who wrote the memory that a recorded instruction reads.
    fn read_origin(
        &mut self,
        recorded: &Recorded,
        at: usize,
        address: u64,
        size: u64,
    ) -> Result<Option<Origin>, EngineError> {
        // Who has saved a register has not made its value.
        let is_restored = recorded.executed[at].is_pop();
        let written = match recorded.passed(at).filter(|_| !is_restored) {
            Some(point) => self.calls_of_writer(recorded.points[point].1, address, size)?,
            None => Vec::new(),
        };
        let read = Some(recorded.executed[at].pc());
        Ok((!written.is_empty()).then_some(Origin { read, written }))
    }

    /// The last statement of the failing run that has written some memory before a point, and the
    /// calls that led there, innermost first.
    fn calls_of_writer(
        &mut self,
        to: Point,
        address: u64,
        size: u64,
    ) -> Result<Vec<u64>, EngineError> {
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        let found = self.last_writes(Side::Failing, None, to, watched)?.any;
        let is_own = |it: &Writer| !it.is_input() && it.by != By::Kernel;
        Ok(found.filter(is_own).map_or_else(Vec::new, |it| it.calls))
    }
}
