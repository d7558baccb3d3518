//! Instructions that a run executes one at a time, from a point on.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use ddfuzz_triage::memory::Memory;

use super::crashed::FailureSlice;
use super::instructions::{ARGUMENTS, Executed, Value};
use super::library::{LibraryCall, Texts, texts_of_format};
use super::process::{Stop, by_number};
use super::run::{Next, Pace, Run};
use super::sources::{Source, source};
use super::watchdog::Allowance;
use super::writer::{Watched, watch};
use super::{Engine, EngineError, Point, Side};
use crate::dwarf::frames::{REGISTERS, STACK_POINTER};

/// Largest number of instructions of a run that are recorded.
const MOST_STEPS: usize = 20_000;
/// Number of recorded instructions, in all recordings together, from which new recordings are not
/// kept.
const MOST_KEPT: usize = 200_000;
/// Largest number of instructions in a row outside of the program's own code that are recorded
/// after the last point of a run.
const BEYOND: usize = 2000;

/// Largest number of instructions of a recording of the whole run; if there would be more, only the
/// last ones are recorded.
const MOST_WHOLE: usize = 60_000;
/// At each multiple of this number of recorded instructions, the length of the whole run is
/// estimated from the share of its points that were passed so far. If the run would have too many
/// instructions, or its recording would take too long, the recording ends.
const ESTIMATED: usize = 4_000;
/// Largest number of attempts to record the end of a run that is too long to be recorded as a whole;
/// each begins at a later point.
const ATTEMPTS: usize = 3;
/// Divisor of the time for facts about the failing run: a recording of the whole run may take this
/// part of it.
const WHOLE_TIME: u32 = 2;
/// Largest number of points (statement executions) of a recording of the whole run; of a longer
/// run, the last ones are recorded.
const WHOLE_POINTS: usize = 5_000;
/// Code that a conditional jump skips is decoded only if it has fewer bytes than this.
const FARTHEST: u64 = 2048;
/// Number of bytes behind each pointer argument of a library's function that are compared before
/// and after the call, to find out what the call has written.
const NEAR: usize = 512;
/// DWARF numbers of the registers of all arguments: rdi, rsi, rdx, rcx, r8, r9.
pub(super) const ALL_ARGUMENTS: [usize; 6] = [5, 4, 1, 2, 8, 9];

/// Largest number of values from which an address was computed that are tried to find the pointer
/// among them.
const TERMS: usize = 16;

/// Identifies the recording of a part of a run: which run; the address of the part's first point
/// (statement) and how often the run had arrived at it; the same for its last point; and the number
/// of its points.
pub(super) type RecordingKey = (Side, (u64, u64), (u64, u64), usize);

/// A recording of a run: the instructions that it has executed, one by one, from a point on.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The instructions, in the order of time.
    pub executed: Vec<Executed>,
    /// The points that the run has passed, each with the index in `executed` of the first
    /// instruction after it.
    pub points: Vec<(usize, Point)>,
    /// The address that could not be accessed, if the run has crashed by a memory access.
    pub fault: Option<u64>,
    /// The memory that calls of libraries have changed, by the index of the call in `executed`:
    /// addresses and numbers of bytes. Recorded only for a whole run, and only for memory close to
    /// what the arguments point to.
    pub changed: HashMap<usize, Vec<(u64, u64)>>,
    /// Ends of branches that conditional jumps skip. The key is the address after the skipped code;
    /// the value is the target of the jump with which this code ends, which is the end of the other
    /// branch. Recorded only for a whole run.
    pub branches: HashMap<u64, u64>,
}

/// An instruction of a recorded run, decoded, and whether it is in the program's own code.
#[derive(Clone, Copy)]
pub(super) struct Code {
    /// The decoded instruction.
    instruction: Instruction,
    /// Whether the instruction belongs to a function with debug information.
    is_own: bool,
    /// Whether the instruction is in the program's own code, and not in a standard library.
    is_user: bool,
}

/// The recording of the whole failing run, instruction by instruction, and what was computed from
/// it.
#[derive(Default)]
pub(crate) struct Whole {
    /// The recorded instructions: all, or the last ones; `None` if the run was not recorded.
    pub run: Option<Rc<Recorded>>,
    /// Whether the run that is being recorded ends with a return from `main`.
    exits: bool,
    /// Time limit of the recording of the whole run, during which changes of memory by libraries'
    /// functions are recorded, too; `None` at other times.
    until: Option<Allowance>,
    /// Number of the run's last points of which the next recording is to consist, if the last recording
    /// was too long; else `None`.
    fits: Option<usize>,
    /// The instructions on which the failure depends; `None` until they are searched for.
    pub(super) slice: Option<Rc<FailureSlice>>,
}

/// Instructions of the program's own code that were decoded so far, by their addresses, and the
/// branches in this code.
#[derive(Default)]
pub(super) struct KnownCode {
    /// The sections with code of the program's file, each with its address in the file; read when
    /// they are first needed.
    pub(super) sections: OnceCell<Vec<(u64, Vec<u8>)>>,
    instructions: HashMap<u64, Code>,
    /// Ends of branches that conditional jumps skip, by the address after the skipped code, as in
    /// [`Recorded::branches`].
    branches: HashMap<u64, u64>,
}

impl Recorded {
    /// Returns the part of a recording from the first of `points` on, up to the last of them if
    /// `is_bounded`; `None` if the recording does not have exactly these points in a row.
    fn cut(&self, points: &[Point], is_bounded: bool) -> Option<Recorded> {
        let index = |point: &Point| {
            let is_it = |(_, it): &(usize, Point)| (it.pc, it.nth) == (point.pc, point.nth);
            self.points.iter().position(is_it)
        };
        let (first, last) = (index(points.first()?)?, index(points.last()?)?);
        let all = &self.points[first..=last];
        let is_same = all.iter().map(|it| (it.1.pc, it.1.nth));
        if !is_same.eq(points.iter().map(|it| (it.pc, it.nth))) {
            return None;
        }
        let (start, end) = (all.first()?.0, all.last()?.0);
        let end = if is_bounded { end } else { self.executed.len() };
        Some(Recorded {
            executed: self.executed[start..end].to_vec(),
            points: all.iter().map(|(at, point)| (at - start, *point)).collect(),
            fault: self.fault.filter(|_| !is_bounded),
            changed: HashMap::new(),
            branches: HashMap::new(),
        })
    }

    /// Returns the index of the last point that was passed when the instruction `at` was executed;
    /// `None` if no point was passed.
    pub fn passed(&self, at: usize) -> Option<usize> {
        let behind = self.points.partition_point(|(index, _)| *index <= at);
        behind.checked_sub(1)
    }

    /// Returns the index of the first instruction of the statement that contains the instruction
    /// `at`.
    pub fn statement(&self, at: usize) -> usize {
        self.passed(at).map_or(0, |point| self.points[point].0)
    }

    /// Returns the numbers from which an address was computed by additions and subtractions, with
    /// the sums in between. This is the address that the instruction `at` accesses or, if it calls
    /// a library's function, each of the first two arguments. One of the numbers may be the pointer
    /// to which the others were added.
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

    /// Finds where a value that the instruction `at` uses came from; `None` if the recorded
    /// instructions do not show it.
    pub fn source(&self, at: usize, value: Value) -> Option<Source> {
        source(&self.executed, at, value, |at| self.statement(at))
    }
}

/// Returns the size in bytes of the code that a conditional jump skips; `None` for other
/// instructions, for jumps back, and if the code has [`FARTHEST`] bytes or more.
fn skipped(jump: &Instruction) -> Option<usize> {
    let is_jump = jump.flow_control() == FlowControl::ConditionalBranch;
    let size = jump.near_branch_target().checked_sub(jump.next_ip());
    let size = size.filter(|size| is_jump && *size < FARTHEST)?;
    Some(size as usize)
}

/// Decodes the code `bytes` that the conditional jump `jump` skips. If the last instruction of this
/// code jumps ahead, as before an `else` branch, returns the range of the skipped branch: the
/// address after the instruction, and the target of its jump. Else returns `None`.
fn jump_behind(jump: &Instruction, bytes: &[u8]) -> Option<(u64, u64)> {
    let decoder = Decoder::with_ip(64, bytes, jump.next_ip(), DecoderOptions::NONE);
    let last = decoder.into_iter().last()?;
    let target = last.near_branch_target();
    let is_jump = matches!(
        last.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    );
    let is_ahead = last.next_ip() == jump.near_branch_target() && target > last.next_ip();
    (is_jump && is_ahead).then_some((last.next_ip(), target))
}

/// Returns the ranges of memory (address and number of bytes) whose content differs from `before`;
/// `read` reads the current content.
fn changes(
    before: &[(u64, Vec<u8>)],
    mut read: impl FnMut(u64, usize) -> Vec<u8>,
) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (start, bytes) in before {
        let now = read(*start, bytes.len());
        let differ = bytes
            .iter()
            .zip(&now)
            .enumerate()
            .filter(|(_, it)| it.0 != it.1);
        for at in differ.map(|(offset, _)| start + offset as u64) {
            match found.last_mut() {
                Some((first, size)) if *first + *size == at => *size += 1,
                _ => found.push((at, 1)),
            }
        }
    }
    found
}

/// Estimates the length of a recording of `all` points that has come to one of the multiples of
/// [`ESTIMATED`] instructions, from the instructions for each point so far. Returns the number of
/// points of which the next recording is to consist, three quarters of those that can be recorded, if
/// those are not all; `None` if all can be, or at other times. `most`
/// is the largest number of instructions, and `used` returns the share of the
/// time that is used up, from 0 to 1.
/// More than all that is allowed by a quarter still counts as possible.
fn too_long(recorded: &Recorded, all: usize, most: usize, used: impl Fn() -> f64) -> Option<usize> {
    let (executed, passed) = (recorded.executed.len(), recorded.points.len());
    if executed == 0 || !executed.is_multiple_of(ESTIMATED) {
        return None;
    }
    let possible = (executed as f64 / used().max(1e-6)).min(most as f64);
    let needed = executed as f64 / passed.max(1) as f64;
    let fits = (possible / needed) as usize;
    (fits * 5 / 4 < all).then_some(fits * 3 / 4)
}

/// Returns which arguments the library's function called by `call` reads as texts, as bits: the
/// first argument in the lowest bit. `texts` is what is known of the function; if that is the
/// argument with a format string, reads this string from the memory of `run`, which is stopped at
/// the call.
fn texts_read(texts: Texts, call: &Executed, run: &mut Run) -> u8 {
    match texts {
        Texts::Of(arguments) => arguments,
        Texts::Format(at) => {
            let format = run.process.bytes(call.registers[ALL_ARGUMENTS[at]], NEAR);
            let end = format.iter().position(|it| *it == 0).unwrap_or(0);
            texts_of_format(&format[..end], at + 1)
        }
    }
}

/// Returns true if the last instruction of `recorded` is a return that has led the run to `pc`, an
/// address at which no code is: the return address was overwritten.
fn returned_nowhere(run: &mut Run, recorded: &Recorded, pc: u64) -> bool {
    let returns = (recorded.executed.last())
        .is_some_and(|it| it.instruction.flow_control() == FlowControl::Return);
    returns && run.process.bytes(pc, 1).is_empty()
}

/// Returns the record of the instruction that the stopped run executes next, with the run's
/// registers and, if the instruction adds to a number in memory, this number.
fn executed_next(run: &mut Run, instruction: Instruction, registers: [u64; REGISTERS]) -> Executed {
    let mut executed = Executed::again(instruction, registers);
    let summed = executed.summed();
    executed.before = summed.and_then(|(at, size)| number(&run.process.bytes(at, size as usize)));
    executed
}

/// Returns the little-endian number in `bytes`; `None` for more than eight bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut all = [0; 8];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(all))
}

impl Engine {
    /// Records the instructions that a run executes from the first of `points` on, one at a time,
    /// and returns the recording; a library's function counts as one instruction. Ends at the crash
    /// or, if `is_bounded`, at the last of `points`. After the last point, ends after [`BEYOND`]
    /// instructions in a row outside of the program's own code. A part that was recorded before is
    /// not executed again.
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
        let whole = self.whole.run.as_ref().filter(|_| side == Side::Failing);
        let recorded = match whole.and_then(|it| it.cut(points, is_bounded)) {
            Some(part) => part,
            None => self.record_anew(side, points, (is_bounded, MOST_STEPS))?,
        };
        let recorded = Rc::new(recorded);
        let kept: usize = self.recorded.values().map(|it| it.executed.len()).sum();
        if let Some(key) = key.filter(|_| kept < MOST_KEPT) {
            self.recorded.insert(key, recorded.clone());
        }
        Ok(recorded)
    }

    /// Records all instructions of the failing run from its first point in `main` on. A library's
    /// function counts as one instruction, with the memory that it changes. Of a run of more than
    /// [`WHOLE_POINTS`] points, or more than [`MOST_WHOLE`] instructions, or whose recording takes too
    /// long, only the last points are recorded.
    pub(crate) fn record_whole(&mut self, points: &[Point]) -> Result<(), EngineError> {
        // What runs before `main` is called by the C library.
        let is_main = |it: &Point| self.function(it.pc) == Some("main");
        let main = points.iter().position(is_main).unwrap_or(0);
        let mut points = &points[points.len().saturating_sub(WHOLE_POINTS).max(main)..];
        let mut recorded = Recorded::default();
        for _ in 0..ATTEMPTS {
            self.whole.until = Some(self.facts_until.part(WHOLE_TIME));
            let attempt = self.record_anew(Side::Failing, points, (false, MOST_WHOLE));
            self.whole.until = None;
            recorded = attempt?;
            let fits = self.whole.fits.take().unwrap_or_default();
            if !recorded.executed.is_empty() || fits == 0 {
                break;
            }
            points = &points[points.len().saturating_sub(fits)..];
        }
        recorded.branches = std::mem::take(&mut self.code.branches);
        if !recorded.executed.is_empty() {
            self.whole.run = Some(Rc::new(recorded));
        }
        Ok(())
    }

    /// Returns the recording of the whole failing run, which has the points `points`. If there is
    /// none, because the run ends with a return from `main`, records the run up to this return; the
    /// recording is empty if that takes more than [`MOST_STEPS`] instructions.
    pub(super) fn whole_run(&mut self, points: &[Point]) -> Result<Rc<Recorded>, EngineError> {
        if let Some(known) = &self.whole.run {
            return Ok(known.clone());
        }
        let is_main = |it: &Point| self.function(it.pc) == Some("main");
        let main = points.iter().position(is_main).unwrap_or(0);
        self.whole.until = Some(self.facts_until.part(WHOLE_TIME));
        self.whole.exits = true;
        let recorded = self.record_anew(Side::Failing, &points[main..], (false, MOST_STEPS));
        (self.whole.until, self.whole.exits) = (None, false);
        recorded.map(Rc::new)
    }

    /// Returns the instruction at the address `pc`, and whether it belongs to the program itself or
    /// to a library; `None` if no instruction is there.
    fn code_at(&mut self, run: &mut Run, pc: u64) -> Option<Code> {
        if let Some(known) = self.code.instructions.get(&pc) {
            return Some(*known);
        }
        let bytes = run.process.bytes(pc, 15);
        let executed = Executed::new(&bytes, [pc; REGISTERS])?;
        let code = Code {
            instruction: executed.instruction,
            is_own: self.is_own_code(pc),
            is_user: self.is_user(pc),
        };
        // Only code of the program itself stays as it is.
        if code.is_own {
            self.code.instructions.insert(pc, code);
            let skipped = skipped(&code.instruction);
            let bytes = skipped.map(|size| run.process.bytes(code.instruction.next_ip(), size));
            let behind = bytes.and_then(|bytes| jump_behind(&code.instruction, &bytes));
            self.code.branches.extend(behind);
        }
        Some(code)
    }

    /// Records instructions as [`record`](Engine::record) does, but always in a new run of the side
    /// `side`. The recording begins at the first of `points`. Without `is_bounded` it extends to
    /// the crash, and is empty if it would have `most` instructions or more.
    fn record_anew(
        &mut self,
        side: Side,
        points: &[Point],
        (is_bounded, most): (bool, usize),
    ) -> Result<Recorded, EngineError> {
        let mut recorded = Recorded::default();
        let Some(first) = points.first() else {
            return Ok(recorded);
        };
        let mut run = self.start(side)?;
        let mut registers = by_number(&self.run_to(&mut run, *first)?);
        let mut rest = points.iter().peekable();
        let mut own = 0;
        let is_late = |it: &Engine| it.whole.until.is_some_and(|until| until.is_over());
        let given = self.whole.until.map(|until| until.left());
        while recorded.executed.len() < most && !is_late(self) {
            self.check_time()?;
            let used = || given.map_or(0.0, |given| self.used_of(given));
            if !is_bounded && let Some(fits) = too_long(&recorded, points.len(), most, used) {
                self.whole.fits = Some(fits);
                break;
            }
            let pc = registers[REGISTERS - 1];
            if let Some(point) = rest.next_if(|point| point.pc == pc) {
                recorded.points.push((recorded.executed.len(), *point));
                if is_bounded && rest.peek().is_none() {
                    return Ok(recorded);
                }
            }
            let Some(code) = self.code_at(&mut run, pc) else {
                break;
            };
            if code.is_user {
                own = recorded.executed.len() + 1;
            } else if rest.peek().is_none() && recorded.executed.len() - own > BEYOND {
                return Ok(recorded);
            }
            recorded
                .executed
                .push(executed_next(&mut run, code.instruction, registers));
            let next = match self.step_once(&mut run, &mut recorded) {
                Err(EngineError::Unsupported(_)) if self.whole.exits && rest.peek().is_none() => {
                    return Ok(recorded);
                }
                next => next?,
            };
            match next {
                Some(next) => registers = next,
                None => return Ok(recorded),
            }
        }
        if !is_bounded {
            // Of a long loop only the first rounds have points: what is behind it may be short.
            let behind = points.len() - recorded.points.len();
            self.whole.fits = self.whole.fits.or(Some(behind));
            recorded.executed.clear();
        }
        Ok(recorded)
    }

    /// Returns the share, from 0 to 1, that is used up of the CPU time or the wall time of a recording
    /// (whichever share is larger), which had the times `given` when it began.
    fn used_of(&self, given: (Duration, Duration)) -> f64 {
        let left = self.whole.until.map_or(given, |until| until.left());
        let used = |given: Duration, left: Duration| {
            1.0 - left.as_secs_f64() / given.as_secs_f64().max(1e-6)
        };
        used(given.0, left.0).max(used(given.1, left.1))
    }

    /// Returns the writes that the program's own code makes between the first and the last of
    /// `points` in the failing run: for each, the address of the instruction, and the address and
    /// size in bytes of the written memory. Writes to local variables of the writing function, and
    /// writes by libraries, are left out.
    pub(crate) fn writes_between(
        &mut self,
        points: &[Point],
    ) -> Result<Vec<(u64, u64, u64)>, EngineError> {
        let recorded = self.record(Side::Failing, points, true)?;
        let own = (recorded.executed.iter()).filter(|it| self.is_user(it.pc()));
        let written = own.filter_map(|it| it.written_elsewhere().map(|at| (it.pc(), at.0, at.1)));
        Ok(written.collect())
    }

    /// Executes one instruction of a run, or a call of a library's function as a whole, which is
    /// then noted in the last instruction of `recorded`. Returns the registers afterwards; `None`
    /// if the run crashed.
    pub(super) fn step_once(
        &mut self,
        run: &mut Run,
        recorded: &mut Recorded,
    ) -> Result<Option<[u64; REGISTERS]>, EngineError> {
        let stop = run.process.step()?;
        match stop {
            Stop::Trap => {}
            Stop::Signal(_) => {
                recorded.fault = self.classifier.fault_address(run.process.pid);
                return Ok(None);
            }
            _ => return Err(EngineError::Unsupported(super::Unsupported::Unsteady)),
        }
        let now = run.process.registers()?;
        let is_known = self
            .code
            .instructions
            .get(&now.rip)
            .is_some_and(|it| it.is_own);
        if is_known || self.is_own_code(now.rip) {
            return Ok(Some(by_number(&now)));
        }
        if returned_nowhere(run, recorded, now.rip) {
            recorded.fault = Some(now.rip);
            return Ok(None);
        }
        if let Some(last) = recorded.executed.last_mut() {
            let called = self
                .imports
                .called(last, now.rip, &mut run.process, self.bias);
            last.library = Some(called.call);
            last.parameters = called.parameters;
            last.texts = texts_read(called.texts, last, run);
        }
        let Some(back) = run.process.word(now.rsp).filter(|it| self.is_own_code(*it)) else {
            return Err(EngineError::Unsupported(super::Unsupported::Unsteady));
        };
        let before = self.pointed_to(run, recorded);
        run.process.set_breakpoint(back)?;
        let after = loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) if registers.rsp > now.rsp => break registers,
                Next::Breakpoint(registers) => drop(run.process.step_over(registers.rip)?),
                Next::Other(_) => {}
                Next::Ended(ending) => {
                    recorded.fault = ending.crash.and_then(|it| it.address);
                    return Ok(None);
                }
            }
        };
        run.process.remove_breakpoint(back)?;
        let changed = changes(&before, |at, size| run.process.bytes(at, size));
        if !changed.is_empty() {
            recorded
                .changed
                .insert(recorded.executed.len() - 1, changed);
        }
        Ok(Some(by_number(&after)))
    }

    /// Returns the memory near the addresses that the last recorded instruction passes as
    /// arguments, each address with its bytes, if the instruction calls a library's function that
    /// may write anywhere and a whole run is recorded. Otherwise returns nothing.
    fn pointed_to(&self, run: &mut Run, recorded: &Recorded) -> Vec<(u64, Vec<u8>)> {
        let last = recorded
            .executed
            .last()
            .filter(|_| self.whole.until.is_some());
        let is_such =
            |it: &&Executed| matches!(it.library, Some(LibraryCall::Other | LibraryCall::CopyText));
        let Some(call) = last.filter(is_such) else {
            return Vec::new();
        };
        let arguments = ALL_ARGUMENTS.map(|number| call.registers[number]);
        let read = |at: u64| (at, run.process.bytes(at, NEAR));
        let all = arguments
            .into_iter()
            .filter(|it| *it >= NEAR as u64)
            .map(read);
        all.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }

    /// Returns whether a call of a library's function changes the memory given by address and size.
    /// The call is the recorded instruction `at` of the failing run, which is made again to see
    /// this; `None` if the new run does not come to the call.
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

    /// Lets a run go on from the first of the recorded instructions `executed`, which it executes
    /// next, to the last of them; returns false if the run ends before.
    pub(super) fn go_to(
        &mut self,
        run: &mut Run,
        executed: &[Executed],
    ) -> Result<bool, EngineError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_would_be_too_long_begins_later() {
        let code = Executed::new(&[0x90], [0; REGISTERS]).unwrap();
        let (pc, nth, stack) = (1, 1, 0);
        let of = |executed, points, all, used: f64| {
            let recorded = Recorded {
                executed: vec![code; executed],
                points: vec![(0, Point { pc, nth, stack }); points],
                ..Recorded::default()
            };
            too_long(&recorded, all, MOST_WHOLE, || used)
        };
        // Five instructions for each point: 60,000 are enough for 12,000 points.
        assert_eq!(of(ESTIMATED, 800, 5_000, 0.0), None);
        assert_eq!(of(ESTIMATED, 800, 20_000, 0.0), Some(9_000));
        // A tenth of the time is used up: it is enough for 8,000 points.
        assert_eq!(of(ESTIMATED, 800, 8_000, 0.1), None);
        assert_eq!(of(ESTIMATED, 800, 12_000, 0.1), Some(6_000));
        assert_eq!(of(ESTIMATED - 1, 800, 20_000, 0.9), None);
    }
}
