//! Where a value that a statement got from a call was computed in the called functions: found by
//! single steps through the statement and the functions that it calls.

use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;

use super::instructions::{Executed, RESULT, Value};
use super::library::LibraryCall;
use super::process::{Stop, by_number};
use super::run::{Next, Pace, Run};
use super::sources::{Source, source};
use super::{Ending, Engine, EngineError, Point, Side, Unsupported};
use crate::dwarf::frames::REGISTERS;
use crate::graph::Place;

/// Largest number of instructions that are executed one by one in a statement or function, to find
/// where a returned value was computed; in longer statements or functions, it is not found.
const MOST_STEPS: usize = 8000;
/// Largest number of nested calls through which a returned value is followed.
const DEPTH: usize = 4;
/// Largest number of calls in one function whose results are replaced by those of the passing run.
const TRIED: usize = 4;

/// A variable that a statement has written: its place in the failing run, and the bytes that it has
/// in the passing and in the failing run after the statement.
pub struct Written {
    /// Where the variable is in the failing run.
    pub place: Place,
    /// The variable's bytes in the passing run.
    pub passing: Vec<u8>,
    /// The variable's bytes in the failing run.
    pub failing: Vec<u8>,
}

/// A call that a statement has made, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    /// Address of the function that was called.
    target: u64,
    /// The value of `rax`, the result register, when the function had returned.
    result: u64,
}

/// What the execution of one instruction in a stack frame has done: nothing special, a call, or the
/// return from the frame's function.
pub(super) enum Step {
    /// The step has executed an instruction that neither calls nor returns.
    Instruction,
    /// The step has called a function, which is at its first instruction; the value is the address
    /// to which this function will return.
    Called(u64),
    /// The step has returned from the frame's function.
    Left,
}

impl Engine {
    /// Finds the instruction, in a called function, that computed the value which a statement
    /// wrote; `points` are the statement's executions in the passing and in the failing run. To
    /// find the call, the failing run is repeated with the result that the call has in the passing
    /// run: if the statement then writes the passing run's value, the value came from this call.
    /// `None` if there is no such call.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn returned(
        &mut self,
        points: [Point; 2],
        written: &Written,
    ) -> Result<Option<u64>, EngineError> {
        let [passing, failing] = points;
        let mut path = Vec::new();
        'deeper: while path.len() < DEPTH {
            let (_, of_passing) = self.through(Side::Passing, passing, &path, None)?;
            let (mut run, of_failing) = self.through(Side::Failing, failing, &path, None)?;
            // The variable may be elsewhere after this statement.
            if path.is_empty() && !has_value(&mut run, written.place, &written.failing)? {
                break;
            }
            drop(run);
            let pairs = of_passing.iter().zip(&of_failing).enumerate();
            let differing = pairs.filter(|(_, (one, other))| {
                one.target == other.target && one.result != other.result
            });
            let differing: Vec<(usize, u64)> = differing
                .map(|(index, (one, _))| (index, one.result))
                .collect();
            for (index, result) in differing.into_iter().rev().take(TRIED) {
                path.push(index);
                let (mut run, _) = self.through(Side::Failing, failing, &path, Some(result))?;
                if has_value(&mut run, written.place, &written.passing)? {
                    continue 'deeper;
                }
                path.pop();
            }
            break;
        }
        while !path.is_empty() {
            let found = self.computed(failing, &path)?;
            if found.is_some() {
                return Ok(found);
            }
            path.pop();
        }
        Ok(None)
    }

    /// Runs the run `side` to the statement at `point` and steps through it. `path` selects nested
    /// calls: the index of a call in the statement, of a call in the called function, and so on.
    /// With `replaced`, the result of the selected call is replaced by that number. Returns the
    /// run, stopped after the statement, and the calls made by the selected function; for an empty
    /// path those made by the statement.
    fn through(
        &mut self,
        side: Side,
        point: Point,
        path: &[usize],
        replaced: Option<u64>,
    ) -> Result<(Run, Vec<Call>), EngineError> {
        let mut run = self.start(side)?;
        self.run_to(&mut run, point)?;
        let mut calls = Vec::new();
        self.walk(&mut run, path, replaced, true, &mut calls)?;
        Ok((run, calls))
    }

    /// Steps through a function up to its return, or through one statement of it if `is_statement`.
    /// `path` selects a nested call: the index of a call in the function, of a call in the called
    /// one, and so on. With `replaced`, the result of this call becomes that number. Appends the
    /// calls that the selected function makes to `calls`.
    fn walk(
        &mut self,
        run: &mut Run,
        path: &[usize],
        replaced: Option<u64>,
        is_statement: bool,
        calls: &mut Vec<Call>,
    ) -> Result<(), EngineError> {
        let mut seen = 0;
        for _ in 0..MOST_STEPS {
            match self.step_in_frame(run)? {
                Step::Left => return Ok(()),
                Step::Instruction => {}
                Step::Called(back) => {
                    let target = run.process.registers()?.rip;
                    let is_on_path = path.first() == Some(&seen);
                    seen += 1;
                    if is_on_path && (path.len() > 1 || replaced.is_none()) {
                        self.walk(run, &path[1..], replaced, false, calls)?;
                    } else {
                        let registers = self.finish(run, back)?;
                        if path.is_empty() {
                            let result = registers.rax;
                            calls.push(Call { target, result });
                        }
                        if let Some(rax) = replaced.filter(|_| is_on_path) {
                            run.process
                                .set_registers(user_regs_struct { rax, ..registers })?;
                        }
                    }
                }
            }
            let at = run.process.registers()?.rip;
            if is_statement && self.statements.binary_search(&at).is_ok() {
                return Ok(());
            }
        }
        Err(EngineError::Unsupported(Unsupported::Unsteady))
    }

    /// Executes one instruction of the innermost frame, and returns whether it called a function or
    /// returned.
    pub(super) fn step_in_frame(&mut self, run: &mut Run) -> Result<Step, EngineError> {
        self.check_time()?;
        let before = run.process.registers()?;
        match run.process.step()? {
            Stop::Trap => {}
            _ => return Err(EngineError::Unsupported(Unsupported::Unsteady)),
        }
        let after = run.process.registers()?;
        let top = |run: &mut Run, at: u64| run.process.word(at);
        if after.rsp == before.rsp.wrapping_sub(8)
            && let Some(back) = top(run, after.rsp)
            && (before.rip + 2..=before.rip + 7).contains(&back)
            && after.rip != back
        {
            return Ok(Step::Called(back));
        }
        let has_returned =
            after.rsp == before.rsp.wrapping_add(8) && top(run, before.rsp) == Some(after.rip);
        Ok(if has_returned {
            Step::Left
        } else {
            Step::Instruction
        })
    }

    /// Runs from the first instruction of a called function to its return to `back`, and returns
    /// the registers after the return; returns an error if the run ends first.
    fn finish(&mut self, run: &mut Run, back: u64) -> Result<user_regs_struct, EngineError> {
        let left = self.leave_call(run, back)?;
        left.map_err(|_| EngineError::Unsupported(Unsupported::Unsteady))
    }

    /// Runs from the first instruction of a called function to its return to `back`, and returns
    /// the registers after the return or, if the run ends first, how it ended.
    pub(super) fn leave_call(
        &mut self,
        run: &mut Run,
        back: u64,
    ) -> Result<Result<user_regs_struct, Box<Ending>>, EngineError> {
        let stack = run.process.registers()?.rsp;
        run.process.set_breakpoint(back)?;
        loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) if registers.rsp > stack => {
                    run.process.remove_breakpoint(back)?;
                    return Ok(Ok(registers));
                }
                Next::Breakpoint(registers) => drop(run.process.step_over(registers.rip)?),
                Next::Other(_) => {}
                Next::Ended(ending) => return Ok(Err(ending)),
            }
        }
    }

    /// Returns the address of the instruction, in a called function, that computed the result of a
    /// call. The call is found from the statement of the failing run at `point`: `path` has the
    /// index of a call in the statement, then of a call in this called function, and so on. `None`
    /// if the called function is not in the program's own code.
    fn computed(&mut self, point: Point, path: &[usize]) -> Result<Option<u64>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, point)?;
        for call in path {
            self.enter(&mut run, *call)?;
        }
        let entry = run.process.registers()?.rip;
        match self.info.function(entry.wrapping_sub(self.bias)) {
            Some(_) => Ok(self.last_result(&mut run)?.filter(|pc| self.is_user(*pc))),
            None => Ok(None),
        }
    }

    /// Steps a run to the call with the index `call` in the current function, and into the called
    /// function.
    fn enter(&mut self, run: &mut Run, call: usize) -> Result<(), EngineError> {
        let mut seen = 0;
        for _ in 0..MOST_STEPS {
            match self.step_in_frame(run)? {
                Step::Called(_) if seen == call => return Ok(()),
                Step::Called(back) => {
                    self.finish(run, back)?;
                    seen += 1;
                }
                Step::Instruction => {}
                Step::Left => break,
            }
        }
        Err(EngineError::Unsupported(Unsupported::Unsteady))
    }

    /// Steps a run to the return of the current function, and returns the address of the
    /// instruction that computed its result, or that read it from memory which the function has not
    /// written; `None` if there is no such instruction.
    fn last_result(&mut self, run: &mut Run) -> Result<Option<u64>, EngineError> {
        let mut executed: Vec<Executed> = Vec::new();
        for _ in 0..MOST_STEPS {
            let registers = by_number(&run.process.registers()?);
            let code = run.process.bytes(registers[REGISTERS - 1], 15);
            executed.extend(Executed::new(&code, registers));
            match self.step_in_frame(run)? {
                Step::Left => {
                    let found = source(&executed, executed.len(), Value::Register(RESULT), |_| 0);
                    return Ok(found.map(|it| match it {
                        Source::Computed(at)
                        | Source::Read { at, .. }
                        | Source::Unsure { at, .. } => executed[at].pc(),
                    }));
                }
                Step::Called(back) => {
                    if let Some(call) = executed.last_mut() {
                        call.library = Some(LibraryCall::Other);
                    }
                    self.finish(run, back)?;
                }
                Step::Instruction => {}
            }
        }
        Ok(None)
    }
}

/// Returns true if the memory or register `place` of a stopped run begins with the bytes `value`.
fn has_value(run: &mut Run, place: Place, value: &[u8]) -> Result<bool, EngineError> {
    let bytes = match place {
        Place::Memory(address) => run.process.bytes(address, value.len()),
        Place::Register(number @ 0..=16) => by_number(&run.process.registers()?)
            [usize::from(number)]
        .to_le_bytes()
        .to_vec(),
        Place::Register(_) => return Ok(false),
    };
    Ok(!value.is_empty() && bytes.starts_with(value))
}
