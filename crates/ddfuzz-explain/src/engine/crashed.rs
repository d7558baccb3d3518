//! Follows back the values with which the failing run has failed (values that the crashing
//! instruction uses, or that were compared before the program ended itself), and the size of a heap
//! block that is too short.

use std::collections::HashSet;
use std::rc::Rc;

use ddfuzz_exec::Ended;
use ddfuzz_triage::runtime_modules::ends_program;
use iced_x86::{FlowControl, Mnemonic};

use super::anomalies::{Anomaly, Observed, Oddity, callers};
use super::backward::{Reached, backward};
use super::changed::Change;
use super::dependence::{Dependences, is_copy};
use super::instructions::{ARGUMENTS, Executed, Value};
use super::library::LibraryCall;
use super::origin::{FEW_POINTS, History, LONGEST, Origin, Used};
use super::overflow::{AllocationCall, Overflow};
use super::recorded::Recorded;
use super::sources::{Source, comparison, guards, last_write};
use super::watchdog::TimeLimit;
use super::writer::{By, Watched};
use super::{Ending, Engine, EngineError, Point, Side, Trace, if_supported};
use crate::dwarf::frames::STACK_POINTER;

/// Numbers of points before the failure at which the recording of single instructions may begin.
/// They are tried in order, until the recording is not empty: it is empty if too many instructions
/// are executed from the point to the failure.
const POINTS: [usize; 3] = [100, 20, 4];
/// Largest distance, in bytes, from a pointer that was passed to a library's function to the
/// faulting address, for the pointer to be taken for the cause.
const NEAR: u64 = 4096;
/// Number of bits of an address that a program can use.
const ADDRESS_BITS: u32 = 47;
/// Maximum number of calls that are reported for an instruction that does something unusual: the
/// innermost calls that led to it.
const CALLERS: usize = 3;
/// Largest number of conditions in one function of a standard library whose compared values are
/// followed back to where they were made.
const CONDITIONS: usize = 4;
/// Number of the register in which a function of the C library takes the length of what it copies
/// or fills.
const LENGTH: usize = ARGUMENTS[2];
/// Maximum number of instructions that a run may execute in libraries after the last instruction of
/// the program's own code. If there are more, this last own instruction counts as the one that
/// failed, and not the run's very last instruction.
const ENDING_STEPS: usize = 2000;

/// Returns true if the call `call` of a library's function has failed because its length was too
/// large: the faulting address `fault` is more than [`NEAR`] bytes after one of its first two
/// arguments, but not further away than its third argument (the length) says.
fn is_long(call: &Executed, fault: u64) -> bool {
    let length = call.registers[LENGTH];
    let distances = ARGUMENTS[..2]
        .iter()
        .map(|number| fault.checked_sub(call.registers[*number]));
    let mut distances = distances.flatten();
    distances.any(|distance| (NEAR..length).contains(&distance))
}

/// Returns the values (registers or memory) of which one is probably wrong, because it made the
/// instruction `last` crash: a divisor, the registers of an address, the arguments of a library's
/// function that are close to the faulting address `fault`, or an address that was called though no
/// code is there. `fault` is `None` if the processor does not report it, as for an address that no
/// memory can have.
fn suspects(last: &Executed, fault: Option<u64>) -> Vec<Value> {
    if last.is_division() {
        return last.operands();
    }
    if last.instruction.mnemonic() == Mnemonic::Ret {
        let stack = last.registers[usize::from(STACK_POINTER)];
        return vec![Value::Memory(stack, 8)];
    }
    if matches!(last.library, Some(LibraryCall::Free | LibraryCall::Report)) {
        return vec![Value::Register(ARGUMENTS[0])];
    }
    if let Some(LibraryCall::Check(count)) = last.library {
        let values = ARGUMENTS[1..].iter().take(count);
        return values.map(|it| Value::Register(*it)).collect();
    }
    let flow = last.instruction.flow_control();
    let is_indirect = matches!(
        flow,
        FlowControl::IndirectCall | FlowControl::IndirectBranch
    );
    let is_jump = |fault| is_indirect && last.target().is_none_or(|target| target == fault);
    // What is in memory is no address of code, unless the memory itself is out of reach.
    let is_cell = |cell: &Value| match *cell {
        Value::Memory(at, size) => {
            let is_fault = |it| (at..at.saturating_add(size)).contains(&it);
            at >> ADDRESS_BITS == 0 && !fault.is_some_and(is_fault)
        }
        _ => false,
    };
    if is_indirect && last.operands().iter().any(is_cell) {
        return last.operands();
    }
    let registers = match fault {
        Some(fault) if last.is_library_call() && is_long(last, fault) => vec![LENGTH],
        Some(fault) if last.is_library_call() => {
            let is_near = |number: &usize| {
                let value = last.registers[*number];
                value <= fault && fault - value < NEAR
            };
            let near: Vec<usize> = ARGUMENTS.into_iter().filter(is_near).collect();
            if last.target() == Some(fault) || near.is_empty() && is_jump(fault) {
                return last.operands();
            }
            near
        }
        None if last.is_library_call() => {
            let is_none = |number: &usize| last.registers[*number] >> ADDRESS_BITS != 0;
            ARGUMENTS.into_iter().filter(is_none).collect()
        }
        _ => address_registers(last),
    };
    registers.into_iter().map(Value::Register).collect()
}

/// Limit of small negative numbers: a register whose value is negative, but not below minus this
/// limit, is taken for an index and not for a wrong address.
const NEGATIVE: i64 = 1 << 40;

/// Returns the registers, among those with which the instruction `last` addresses memory, that
/// probably made the address wrong. These are the registers whose value is neither an address that
/// a program can use nor a small negative number ([`NEGATIVE`]). If there are none, it is the base
/// register, if the base is a null pointer to which an index is added; else all registers of the
/// address, the index first.
fn address_registers(last: &Executed) -> Vec<usize> {
    let all = last.address_registers();
    let is_wild = |number: &usize| {
        let value = last.registers[*number];
        value >> ADDRESS_BITS != 0 && !(-NEGATIVE..0).contains(&(value as i64))
    };
    let wild: Vec<usize> = all.iter().copied().filter(is_wild).collect();
    if !wild.is_empty() {
        return wild;
    }
    match all[..] {
        [_, base] if last.registers[base] == 0 => vec![base],
        _ => all,
    }
}

/// An instruction of a failing run about which something is odd, and whether the run still fails
/// when the instruction is skipped or decided the other way.
pub(crate) struct Odd {
    /// What is odd about the instruction.
    pub oddity: Oddity,
    /// Address of the instruction, and those of the calls that led to it, innermost first.
    pub calls: Vec<u64>,
    /// Whether the run does not fail when the instruction is skipped or, if it is a condition,
    /// decided the other way.
    pub tested: bool,
}

/// What a recording of the whole failing run shows: instructions that do something odd, such as a
/// write to a freed block, and instructions on which the failure depends.
#[derive(Default)]
pub(crate) struct Seen {
    /// The instructions of the run about which something is odd.
    pub odd: Vec<Odd>,
    /// Addresses of instructions on which the failure depends, the nearest to the failure first: of
    /// each function, the nearest one that computes a number, and the nearest one that decides.
    pub nearest: Vec<u64>,
}

/// The instructions on which the failure depends, in a recording of the whole failing run.
pub(crate) struct FailureSlice {
    /// The recording of the failing run.
    pub recorded: Rc<Recorded>,
    /// For each instruction of the recording, the instructions on which it depends directly.
    pub dependences: Dependences,
    /// The instructions on which the failure depends, the nearest ones first.
    pub order: Vec<Reached>,
}

impl Engine {
    /// Finds the origin of the value with which the failing run has failed: a value that the
    /// crashing instruction uses, or one that was compared before the program ended itself. `None`
    /// if nothing was recorded.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn crash_history(
        &mut self,
        failing: &Trace,
    ) -> Result<Option<History>, EngineError> {
        let points = &failing.points;
        let mut recorded = Rc::new(Recorded::default());
        for before in POINTS {
            if recorded.executed.is_empty() {
                let from = &points[points.len().saturating_sub(before)..];
                recorded = self.recorded_to_end(from)?;
            }
        }
        let late = match recorded.executed.is_empty() {
            true => self.late_points(failing)?,
            false => Vec::new(),
        };
        for from in 0..late.len() {
            if recorded.executed.is_empty() {
                recorded = self.recorded_to_end(&late[from..])?;
            }
        }
        let Some((used, of, own)) = self.failing_values(&recorded, &failing.ending) else {
            return Ok(None);
        };
        let mut found = self.history(&[points, &*late].concat(), of, used)?;
        found.moments.insert(0, (recorded, own));
        Ok(Some(found))
    }

    /// Records the failing run from the first of `points` to its end. The recording is empty if the
    /// end is too far away, or if the run does something that ddfuzz cannot follow.
    fn recorded_to_end(&mut self, points: &[Point]) -> Result<Rc<Recorded>, EngineError> {
        let recorded = self.record(Side::Failing, points, false);
        Ok(if_supported(recorded.map(Some))?.unwrap_or_default())
    }

    /// Returns the values with which a recorded run has failed, the address of the instruction that
    /// uses them, and the index of the last instruction in the program's own code; `None` if
    /// nothing was recorded.
    fn failing_values(
        &self,
        recorded: &Rc<Recorded>,
        ending: &Ending,
    ) -> Option<(Vec<Used>, u64, usize)> {
        let end = recorded.executed.len().checked_sub(1)?;
        let executed = &recorded.executed;
        let own = executed.iter().rposition(|it| self.is_user(it.pc()));
        let left = own.filter(|own| end - own > ENDING_STEPS);
        let last = left.unwrap_or(end);
        let crashed = &executed[last];
        let ends_itself = self.ends_itself(ending);
        let is_segv = [libc::SIGSEGV, libc::SIGBUS].map(Ended::Signal);
        let is_fault = recorded.fault.is_some() || is_segv.contains(&ending.ended);
        let is_fault = !ends_itself && (is_fault || crashed.is_division());
        let mut used: Vec<Used> = Vec::new();
        let mut of = crashed.pc();
        let is_check = matches!(crashed.library, Some(LibraryCall::Check(1..)));
        if is_fault || is_check || crashed.is_library_call() && !ends_itself {
            let values = suspects(crashed, recorded.fault).into_iter();
            used.extend(values.map(|value| (recorded.clone(), last, value)));
        } else {
            let compared = self.compared_before(executed, own.unwrap_or(last), end);
            // The message of a panic is of no interest.
            if let Some(own) = own {
                of = executed[own].pc();
            }
            for at in compared {
                let values = executed[at].operands().into_iter();
                used.extend(values.map(|value| (recorded.clone(), at, value)));
            }
        }
        Some((used, of, own.unwrap_or(last)))
    }

    /// Returns what the recording of the whole failing run shows: instructions that do something
    /// unusual (such as a write to freed memory) and, in each function, the instructions nearest to
    /// the failure among those on which it depends. Each unusual instruction is also tested: a run,
    /// which may take `limit`, leaves it out or decides it the other way, and `averts` tells from
    /// the run's end whether it did not fail. Empty if the run was not recorded.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn observed(
        &mut self,
        failing: &Trace,
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Seen, EngineError> {
        let Some(slice) = self.failure_slice(&failing.ending) else {
            return Ok(Seen::default());
        };
        let (whole, dependences, order) = (&slice.recorded, &slice.dependences, &slice.order);
        let is_user = |pc: u64| self.is_user(pc);
        let found = Observed::new(whole, dependences, &is_user).anomalies(order);
        let last = failing.points.last().map_or(0, |it| it.pc);
        let mut odd = Vec::new();
        for Anomaly { at, oddity } in found {
            let change = match oddity {
                Oddity::ChangesKey | Oddity::WritesFreed => Some(Change::LeftOut),
                Oddity::ChoosesPlace if whole.executed[at].is_condition() => {
                    Some(Change::OtherDecision)
                }
                Oddity::ChoosesPlace => None,
            };
            let run = match change {
                Some(change) => self.changed_run(whole, (at, change), (limit, last))?,
                None => None,
            };
            let tested = run.map(|it| averts(&it.ending));
            // A condition that chooses nothing by which the run fails.
            if oddity == Oddity::ChoosesPlace && tested == Some(false) {
                continue;
            }
            let pcs = callers(whole, at, CALLERS).into_iter();
            let pcs = pcs.map(|at| whole.executed[at].pc());
            let own = pcs.filter(|pc| self.is_user(*pc));
            odd.push(Odd {
                oddity,
                calls: std::iter::once(whole.executed[at].pc())
                    .chain(own)
                    .collect(),
                tested: tested == Some(true),
            });
        }
        let nearest = self.nearest(whole, order);
        Ok(Seen { odd, nearest })
    }

    /// Returns the instructions on which the failure depends, in the recording of the whole failing
    /// run; `None` where the run was not recorded.
    pub(super) fn failure_slice(&mut self, ending: &Ending) -> Option<Rc<FailureSlice>> {
        if self.whole.slice.is_none() {
            let recorded = self.whole.run.clone()?;
            let dependences = Dependences::of(&recorded);
            let seeds = self.failing_values(&recorded, ending);
            let mut seeds: Vec<usize> =
                seeds.map_or_else(Vec::new, |(used, ..)| used.iter().map(|it| it.1).collect());
            seeds.dedup();
            let order = backward(&recorded, &dependences, &seeds);
            self.whole.slice = Some(Rc::new(FailureSlice {
                recorded,
                dependences,
                order,
            }));
        }
        self.whole.slice.clone()
    }

    /// Chooses from `order`, the instructions on which the failure depends, nearest first, at most
    /// two of each function of the program: the first that computes a number, and the first
    /// conditional jump; if there is neither, the function's first instruction in `order`. Returns
    /// their addresses, nearest first.
    fn nearest(&self, whole: &Recorded, order: &[Reached]) -> Vec<u64> {
        let (mut known, mut functions) = (HashSet::new(), HashSet::new());
        let mut nearest = Vec::new();
        for is_computed in [true, false] {
            for it in order {
                let executed = &whole.executed[it.at];
                let pc = executed.pc();
                let function = self.info.function(pc.wrapping_sub(self.bias));
                let is_shown = self.is_of_statement(pc) && !executed.keeps_frame();
                let function = function.filter(|_| is_shown);
                let Some(function) = function.map(std::ptr::from_ref) else {
                    continue;
                };
                let is_new = match is_computed {
                    true if is_copy(executed) => false,
                    true => known.insert((function, executed.is_condition())),
                    false => !functions.contains(&function),
                };
                if is_new {
                    functions.insert(function);
                    nearest.push((it.cost, pc));
                }
            }
        }
        nearest.sort_by_key(|it| it.0);
        nearest.into_iter().map(|it| it.1).collect()
    }

    /// Returns the indices, in the recorded instructions `executed`, of the comparisons with which
    /// a program decided to end itself: the last comparison of the program's own code before `own`,
    /// and the last comparisons in the called function before `end`. `own` is the instruction of
    /// the program's own code that called a function of a standard library, such as a check of an
    /// index, and `end` is the last instruction of the run.
    fn compared_before(&self, executed: &[Executed], own: usize, end: usize) -> Vec<usize> {
        let function = |at: &usize| {
            let pc = executed[*at].pc().wrapping_sub(self.bias);
            self.info.function(pc)
        };
        let inner = guards(executed, end, |_| true).into_iter().rev();
        // What only makes the message compares nothing that is wrong.
        let inner: Vec<usize> = inner
            .filter(|at| *at > own)
            .take_while(|at| function(at).is_some_and(|it| !it.name.contains("panic")))
            .collect();
        let outermost = inner.first().and_then(function).map(std::ptr::from_ref);
        let of_outermost = inner
            .iter()
            .filter(|at| function(at).map(std::ptr::from_ref) == outermost);
        let last = guards(executed, own, |pc| self.is_user(pc))
            .into_iter()
            .next();
        let conditions = of_outermost.rev().take(CONDITIONS).copied().chain(last);
        let mut found: Vec<usize> = Vec::new();
        for at in conditions.filter_map(|at| comparison(executed, at)) {
            if !found.contains(&at) {
                found.push(at);
            }
        }
        found
    }

    /// Returns the recorded instruction of the failing run, with its recording, that has written
    /// past the end of the heap block `block`; if a function of a library has, its call. `None` if
    /// the run, made again, does not make that write. `points` are the points (statement
    /// executions) of the failing run.
    fn writes_behind(
        &mut self,
        points: &[Point],
        block: &Overflow,
    ) -> Result<Option<(Rc<Recorded>, usize)>, EngineError> {
        let watched = Watched {
            address: block.word,
            size: 8,
            frame: None,
        };
        let Some(by) = self.statement_of(watched, &block.write)? else {
            return Ok(None);
        };
        let is_it = |it: &Point| (it.pc, it.nth) == (by.pc, by.nth);
        let Some(index) = points.iter().position(is_it) else {
            return Ok(None);
        };
        let start = index.saturating_sub(FEW_POINTS);
        let window = &points[start..points.len().min(index + 2)];
        let recorded = self.record(Side::Failing, window, true)?;
        let Some((first, _)) = recorded.points.get(index - start).copied() else {
            return Ok(None);
        };
        let executed = &recorded.executed;
        let pc = block.write.writer.pc;
        let is_call = |at: &usize| {
            let it = &executed[*at];
            it.is_library_call() && (it.pc()..it.pc() + LONGEST).contains(&pc)
        };
        let at = match block.write.writer.by {
            By::Library(_) => (first..executed.len()).rev().find(is_call),
            _ => last_write(
                executed,
                first..executed.len(),
                Value::Memory(block.word, 8),
            ),
        };
        Ok(at.map(|at| (recorded.clone(), at)))
    }

    /// Finds the origin of the value that decided how much the failing run wrote past the end of a
    /// heap block: the length passed to a library's function, a value compared by the condition of
    /// the writing loop, or an index of the write. `None` where that is not known. `points` are the
    /// points (statement executions) of the failing run.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn extent_origin(
        &mut self,
        points: &[Point],
        block: &Overflow,
    ) -> Result<Option<Origin>, EngineError> {
        let Some((recorded, at)) = self.writes_behind(points, block)? else {
            return Ok(None);
        };
        let executed = &recorded.executed;
        let mut used: Vec<Used> = Vec::new();
        if executed[at].library_writes_counted() && executed[at].registers[ARGUMENTS[2]] > 0 {
            let length = Value::Register(ARGUMENTS[2]);
            used.push((recorded.clone(), at, length));
        }
        if used.is_empty() {
            // A function of a library stops where a string ends. A condition that is met once decides
            // whether it is written, and not how much.
            let is_loop = |guard: &usize| {
                let pc = executed[*guard].pc();
                executed[..at].iter().filter(|it| it.pc() == pc).count() > 1
            };
            let guard = guards(executed, at, |pc| self.is_user(pc)).first().copied();
            let guard = guard.filter(|it| !executed[at].is_library_call() && is_loop(it));
            if let Some(compared) = guard.and_then(|at| comparison(executed, at)) {
                let values = executed[compared].operands().into_iter();
                used.extend(values.map(|value| (recorded.clone(), compared, value)));
            }
            let registers = executed[at].address_registers().into_iter();
            used.extend(registers.map(|it| (recorded.clone(), at, Value::Register(it))));
        }
        let of = executed[at].pc();
        Ok(self.history(points, of, used)?.origin)
    }

    /// Returns true if the program ended itself: by calling a function that ends programs, by a
    /// thrown exception, or by a Rust panic.
    fn ends_itself(&self, ending: &Ending) -> bool {
        let own = ending.stack.iter().position(|pc| self.is_own_code(*pc));
        let called = own.and_then(|own| own.checked_sub(1));
        let is_panic = self.ends_at_panics && ending.crash.is_none();
        // Parts of the functions that throw have no names.
        let inner = &ending.stack[..own.unwrap_or_default()];
        let throws = |pc: &u64| self.library_function(*pc).contains("throw");
        is_panic
            || inner.iter().any(throws)
            || called
                .is_some_and(|called| ends_program(&self.library_function(ending.stack[called])))
    }

    /// Finds the origin of the size with which the failing run allocated a heap block by the call
    /// `asked`. Returns the origin of the value from which the calling statement computed the size,
    /// and whether the statement passes the value on unchanged. `None` where that is not known.
    /// `points` are the points (statement executions) of the failing run.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn size_origin(
        &mut self,
        points: &[Point],
        asked: AllocationCall,
    ) -> Result<Option<(Origin, bool)>, EngineError> {
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
            it.is_library_call() && (1..=LONGEST).contains(&asked.back.saturating_sub(it.pc()))
        };
        let Some(at) = recorded.executed.iter().rposition(is_call) else {
            return Ok(None);
        };
        let sizes = asked.sizes.iter().map(|it| Value::Register(*it));
        let used = sizes.map(|value| (recorded.clone(), at, value));
        let of = recorded.executed[at].pc();
        let is_passed = asked.sizes.len() == 1
            && recorded
                .source(at, Value::Register(asked.sizes[0]))
                .is_some_and(|it| matches!(it, Source::Read { .. }));
        let found = self.history(points, of, used.collect())?;
        Ok(found.origin.map(|origin| (origin, is_passed)))
    }
}
