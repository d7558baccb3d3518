//! Finds what wrote a register, or a variable in a register, for which a watchpoint is impossible:
//! by the values of the variable and its register at the statements that its frame executes in the
//! failing run.

use ddfuzz_triage::memory::Memory;
use iced_x86::{Decoder, DecoderOptions};
use object::{Object, ObjectSection};

use super::instructions::{Executed, Value, is_clobbered};
use super::library::LibraryCall;
use super::process::{Process, by_number};
use super::returned;
use super::run::{Next, Pace, Run};
use super::state::Reading;
use super::writer::{By, Writer};
use super::{Engine, EngineError, Point, Side, Unsupported};
use crate::dwarf::frames::REGISTERS;
use crate::graph::{Origin, Place};

/// Largest number of stops of a run while the write to a register is searched among the statements
/// of its function; after that, the search ends without a result.
const MOST_STOPS: usize = 4000;
/// Largest number of a function's instructions that are executed one by one to find the one that
/// wrote a value, from the statement at which the value was last seen to change.
const MOST_STEPS: usize = 20_000;

/// A value in a register whose writer [`Engine::register_writer`] finds: the value of a variable,
/// or one that no variable describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A variable of a frame, which is in the register of this number.
    Variable(Origin, u16),
    /// A value of the innermost frame that no variable describes, in the register of this number.
    Value(u16),
}

/// One step of a run through a function in the search for the statement that wrote a register, or a
/// variable in one: the state of the function's frame at a statement, or at its first instruction.
struct Step {
    /// Number of stops of the run at statements of the function that came before this stop.
    number: usize,
    pc: u64,
    cfa: u64,
    registers: [u64; REGISTERS],
    /// Place and value of the variable or register whose writer is searched for; `None` if the
    /// variable has no place at this statement.
    known: Option<(Place, Vec<u8>)>,
    /// At the first instruction of the function, the address of the call that led to it; `None`
    /// anywhere else.
    caller: Option<u64>,
}

impl Engine {
    /// Finds the statement that gave a register, or a variable in a register (`held`), the value
    /// `value` that it has at the point `to` of the failing run. For a parameter, it is the call of
    /// the function. `None` where that is not certain. `from` is the point at which the search
    /// begins, with the number of times that the run has reached the statement of `to` before;
    /// without it, the search begins with the run.
    ///
    /// # Errors
    /// When the run cannot be made, or does not reach the points.
    pub fn register_writer(
        &mut self,
        from: Option<(Point, u64)>,
        to: Point,
        held: Held,
        value: &[u8],
    ) -> Result<Option<Writer>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, to)?;
        let frames = self.frames(&mut run.process)?;
        drop(run);
        let (frame, register) = match held {
            Held::Variable(Origin::Local { frame, .. }, register) => (Some(frame), register),
            Held::Variable(_, register) => (None, register),
            Held::Value(register) => (frames.len().checked_sub(1), register),
        };
        let register = usize::from(register);
        let own = frame.and_then(|frame| frames.len().checked_sub(1 + frame));
        let (Some(own), Some(frame)) = (own.map(|at| &frames[at]), frame) else {
            return Ok(None);
        };
        let code = own.code.wrapping_sub(self.bias);
        let Some(function) = self.info.function(code) else {
            return Ok(None);
        };
        let ranges = function.ranges.clone();
        let entry = ranges[0].start.wrapping_add(self.bias);
        // A function whose first instruction begins its first statement has only got its parameters.
        if to.pc == entry
            && let (Held::Variable(..), [_, caller, ..]) = (held, &frames[..])
        {
            let pc = caller.code;
            return Ok((self.is_user(pc)).then(|| Writer {
                pc,
                by: By::Program,
                side: Side::Failing,
                in_both: false,
                calls: Vec::new(),
                offset: None,
            }));
        }
        let is_inside =
            |pc: &u64| (ranges.iter()).any(|range| range.contains(&pc.wrapping_sub(self.bias)));
        let mut stops: Vec<u64> = self.statements.iter().copied().filter(is_inside).collect();
        stops.push(entry);
        let at = (entry, frame, own.cfa);
        let writer = self.last_write_to((from, to), &stops, (held, register, value), at)?;
        let writer = writer.filter(|pc| {
            let code = pc.wrapping_sub(self.bias);
            self.info.function(code).is_some()
        });
        Ok(writer.map(|pc| Writer {
            pc,
            by: By::Program,
            side: Side::Failing,
            in_both: false,
            calls: Vec::new(),
            offset: None,
        }))
    }

    /// Finds what gave the variable `held` the `value` that it has in `register` when the failing
    /// run arrives at the point `to`: returns the address of the last statement that wrote it, or
    /// of the call that passed it as a parameter; `None` where that is not known. `entry`, `frame`
    /// and `cfa` tell the variable's stack frame: first address of the function, number and
    /// canonical frame address of the frame. The run stops at the addresses `stops`; it is followed
    /// from the point `from`, or from its beginning.
    fn last_write_to(
        &mut self,
        (from, to): (Option<(Point, u64)>, Point),
        stops: &[u64],
        (held, register, value): (Held, usize, &[u8]),
        (entry, frame, cfa): (u64, usize, u64),
    ) -> Result<Option<u64>, EngineError> {
        let (mut steps, mut number) = (Vec::new(), 0);
        let is_reached = self.stop_at_each(from, to, stops, |engine, run, _| {
            let step = engine.step_of(&mut run.process, entry, frame, held)?;
            steps.extend(step.map(|step| Step { number, ..step }));
            number += 1;
            Ok(true)
        })?;
        if !is_reached {
            return Ok(None);
        }
        let steps: Vec<&Step> = steps.iter().filter(|step| step.cfa == cfa).collect();
        let Some(change) = last_change(&steps, value) else {
            return Ok(None);
        };
        let since = &steps[change..];
        let executed = self.executed_since(from, to, stops, since)?;
        Ok(executed.and_then(|it| last_write(since, register, &it)))
    }

    /// Makes the failing run up to the point `to`, and calls `visit` at each stop at one of the
    /// addresses `stops`. `visit` receives the number of arrivals at the statement of `to` that are
    /// still to come, and returns false to end the run. Returns true if `visit` has ended the run
    /// or `to` is reached, and false if the program ends before, or stops too often.
    fn stop_at_each(
        &mut self,
        from: Option<(Point, u64)>,
        to: Point,
        stops: &[u64],
        mut visit: impl FnMut(&mut Engine, &mut Run, u64) -> Result<bool, EngineError>,
    ) -> Result<bool, EngineError> {
        let mut run = self.start(Side::Failing)?;
        let mut left = to.nth;
        if let Some((from, reached)) = from {
            self.run_to(&mut run, from)?;
            left = to.nth.saturating_sub(reached).max(1);
            if stops.contains(&from.pc) && !visit(self, &mut run, left)? {
                return Ok(true);
            }
        }
        for stop in stops.iter().chain([&to.pc]) {
            run.process.set_breakpoint(*stop)?;
        }
        run.process.step_over_here()?;
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => return Ok(false),
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    left -= u64::from(registers.rip == to.pc);
                    if left == 0 || !visit(self, &mut run, left)? {
                        return Ok(true);
                    }
                    run.process.step_over(registers.rip)?;
                }
            }
        }
        Ok(false)
    }

    /// Makes the failing run again, and returns for each of `steps` the instructions that the frame
    /// itself executes from this step to the next one, or to the point `to`. A called function is
    /// executed as a whole, and only its call is included. `from` and `stops` say where the run is
    /// stopped, as when the steps were found. `None` if the run does not go through the same steps
    /// again, or executes too many instructions.
    fn executed_since(
        &mut self,
        from: Option<(Point, u64)>,
        to: Point,
        stops: &[u64],
        steps: &[&Step],
    ) -> Result<Option<Vec<Vec<Executed>>>, EngineError> {
        let Some(first) = steps.first() else {
            return Ok(None);
        };
        let (mut number, mut found) = (0, None);
        self.stop_at_each(from, to, stops, |engine, run, left| {
            number += 1;
            if number <= first.number {
                return Ok(true);
            }
            run.process.remove_breakpoints()?;
            found = engine.record_frame(run, (to.pc, left), stops)?;
            Ok(false)
        })?;
        let is_same = |it: &Vec<Vec<Executed>>| {
            let starts = it.iter().map(|step| step.first().map(Executed::pc));
            starts.eq(steps.iter().map(|step| Some(step.pc)))
        };
        Ok(found.filter(is_same))
    }

    /// Executes the instructions of the innermost frame of a stopped run one by one, until an
    /// address has been reached a number of times (`until`). Returns the instructions in lists: a
    /// new list begins at each arrival at one of the addresses `stops`. `None` if the frame ends
    /// first, or if there are too many instructions.
    fn record_frame(
        &mut self,
        run: &mut Run,
        until: (u64, u64),
        stops: &[u64],
    ) -> Result<Option<Vec<Vec<Executed>>>, EngineError> {
        let (address, mut left) = until;
        let mut found: Vec<Vec<Executed>> = Vec::new();
        for count in 0..MOST_STEPS {
            let registers = by_number(&run.process.registers()?);
            let pc = registers[REGISTERS - 1];
            if pc == address && count > 0 {
                left -= 1;
                if left == 0 {
                    return Ok(Some(found));
                }
            }
            if count == 0 || stops.contains(&pc) {
                found.push(Vec::new());
            }
            let code = run.process.bytes(pc, 15);
            let Some(mut executed) = Executed::new(&code, registers) else {
                return Ok(None);
            };
            let step = self.step_in_frame(run)?;
            if let returned::Step::Called(_) = step {
                executed.library = Some(LibraryCall::Other);
            }
            found.last_mut().expect("a list was added").push(executed);
            match step {
                returned::Step::Left => return Ok(None),
                returned::Step::Instruction => {}
                returned::Step::Called(back) => {
                    if self.finish_until(run, back, (address, &mut left))? {
                        return Ok(Some(found));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Runs from the first instruction of a called function to its return to `back`, and returns
    /// false; or, if the run reaches `address` for the `left`th time first, stops there and returns
    /// true. Each arrival at `address` decrements `left`.
    fn finish_until(
        &mut self,
        run: &mut Run,
        back: u64,
        (address, left): (u64, &mut u64),
    ) -> Result<bool, EngineError> {
        let registers = run.process.registers()?;
        let stack = registers.rsp;
        if registers.rip == address {
            *left -= 1;
        }
        run.process.set_breakpoint(back)?;
        run.process.set_breakpoint(address)?;
        run.process.step_over_here()?;
        while *left > 0 {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                // An arrival in the frame itself is counted by the caller.
                Next::Breakpoint(registers) if registers.rip == back && registers.rsp > stack => {
                    run.process.remove_breakpoints()?;
                    return Ok(false);
                }
                Next::Breakpoint(registers) => {
                    *left -= u64::from(registers.rip == address);
                    run.process.step_over(registers.rip)?;
                }
                Next::Other(_) => {}
                Next::Ended(_) => return Err(EngineError::Unsupported(Unsupported::Unsteady)),
            }
        }
        Ok(true)
    }

    /// Returns true if the statement that begins at `pc` has an instruction that writes the general
    /// register `register`, or a call, which may change that register.
    pub(crate) fn has_write_to(&self, pc: u64, register: usize) -> bool {
        let start = pc.wrapping_sub(self.bias);
        let function = self.info.function(start);
        let range = function.and_then(|it| it.ranges.iter().find(|range| range.contains(&start)));
        let next = self.statements.partition_point(|it| *it <= pc);
        let next = self
            .statements
            .get(next)
            .map(|it| it.wrapping_sub(self.bias));
        let Some(end) = range.map(|range| next.map_or(range.end, |next| next.min(range.end)))
        else {
            return false;
        };
        let image = std::fs::read(&self.program).unwrap_or_default();
        let Ok(file) = object::File::parse(&*image) else {
            return false;
        };
        let mut found =
            (file.sections()).filter_map(|it| it.data_range(start, end - start).ok().flatten());
        let code = found.next().unwrap_or_default();
        let all = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).into_iter();
        let mut all = all.map(|it| Executed::again(it, [0; REGISTERS]));
        all.any(|it| match it.is_call() {
            true => is_clobbered(register),
            false => it.is_write_to(Value::Register(register)),
        })
    }

    fn step_of(
        &mut self,
        process: &mut Process,
        entry: u64,
        frame: usize,
        held: Held,
    ) -> Result<Option<Step>, EngineError> {
        let registers = process.registers()?;
        let frames = self.modules.frames(&registers, process);
        if frames.len() != frame + 1 {
            return Ok(None);
        }
        let reading = Reading {
            info: &mut self.info,
            bias: self.bias,
            is_raw: false,
            arguments: &[],
        };
        let known = match held {
            Held::Variable(variable, _) => reading.value(&frames, &registers, variable, process),
            Held::Value(number) => by_number(&registers)
                .get(usize::from(number))
                .map(|value| (Place::Register(number), value.to_le_bytes().to_vec())),
        };
        let caller = match held {
            Held::Variable(..) => frames.get(1).map(|caller| caller.code),
            // What was in the register before the call may be a value of any frame.
            Held::Value(_) => Some(0),
        };
        Ok(Some(Step {
            number: 0,
            pc: registers.rip,
            cfa: frames[0].cfa,
            registers: by_number(&registers),
            known,
            caller: caller.filter(|_| registers.rip == entry),
        }))
    }
}

/// Returns the index of the step by which a variable got `value`, the value that it has at the last
/// of `steps` of one function: the last step that changed it or, for a parameter, the function's
/// first instruction. `None` if that is not known. If the debug information does not show the
/// variable at a step, the step counts as the change only if the variable's register has another
/// value there.
fn last_change(steps: &[&Step], value: &[u8]) -> Option<usize> {
    let mut register = None;
    for (index, step) in steps.iter().enumerate().rev() {
        match (&step.known, register) {
            (Some((place, known)), _) if known.starts_with(value) => {
                register = match place {
                    Place::Register(number) => Some(usize::from(*number)),
                    Place::Memory(_) => None,
                };
                if step.caller.is_some() {
                    return Some(index);
                }
            }
            (Some(_), _) => return (step.caller.is_none()).then_some(index),
            (None, Some(number)) => {
                let content = step.registers.get(number)?.to_le_bytes();
                let is_other = !content.starts_with(value) && step.caller.is_none();
                return is_other.then_some(index);
            }
            (None, None) => return None,
        }
    }
    None
}

/// Returns the address of the last statement among `steps` that wrote a variable or, if none did,
/// of the call that passed it to the function; `None` if that is not known. `executed` has the
/// instructions of each step; `register` is the register that holds the variable after the last
/// step. An instruction that only moves the variable from its earlier place does not count as a
/// write.
fn last_write(steps: &[&Step], register: usize, executed: &[Vec<Executed>]) -> Option<u64> {
    let mut place = Value::Register(register);
    for (step, executed) in steps.iter().zip(executed).rev() {
        let before = step.known.as_ref().map(|(place, value)| match place {
            Place::Register(number) => Value::Register(usize::from(*number)),
            Place::Memory(address) => Value::Memory(*address, value.len() as u64),
        });
        if is_written(executed, place, before) {
            return (step.caller.is_none()).then_some(step.pc);
        }
        place = before.unwrap_or(place);
    }
    steps.first()?.caller
}

/// Returns true if `place` has a new value after the instructions. Returns false if they have only
/// copied into `place` the value that was in it, or in `before` (the variable's earlier place), at
/// the beginning.
fn is_written(executed: &[Executed], place: Value, before: Option<Value>) -> bool {
    let mut value = place;
    for it in executed.iter().rev() {
        let is_result = it.library.is_some()
            && matches!(value, Value::Register(number) if is_clobbered(number));
        if is_result {
            return true;
        }
        if it.is_call() || !it.is_write_to(value) {
            continue;
        }
        match it.copied(value) {
            Some(from) => value = from,
            None => return true,
        }
    }
    let is_same = |known: Value| match (known, value) {
        (
            Value::Register(one),
            Value::Register(other)
            | Value::Part {
                register: other, ..
            },
        ) => one == other,
        (Value::Memory(one, _), Value::Memory(other, _)) => one == other,
        _ => false,
    };
    !is_same(place) && !before.is_some_and(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(pc: u64, rbx: u64, known: Option<u8>, caller: Option<u64>) -> Step {
        let mut registers = [0; REGISTERS];
        registers[3] = rbx;
        Step {
            number: 0,
            pc,
            cfa: 0,
            registers,
            known: known.map(|value| (Place::Register(3), vec![value])),
            caller,
        }
    }

    /// Returns the address of the statement that gave the variable the value 5, which it has kept
    /// up to the last of `steps`, or of the call that passed it; `None` if [`last_change`] finds
    /// none.
    fn written(steps: &[Step]) -> Option<u64> {
        let steps: Vec<&Step> = steps.iter().collect();
        let found = last_change(&steps, &[5]).map(|it| steps[it]);
        found.map(|it| it.caller.unwrap_or(it.pc))
    }

    #[test]
    fn the_statement_after_which_a_value_stays_has_written_it() {
        let seen = |pc, value| step(pc, u64::from(value), Some(value), None);
        assert_eq!(
            written(&[seen(1, 5), seen(2, 4), seen(3, 5), seen(4, 5)]),
            Some(2)
        );
        // It becomes visible when its register gets the value.
        let hidden = |pc, rbx| step(pc, rbx, None, None);
        assert_eq!(written(&[hidden(1, 9), seen(2, 5)]), Some(1));
        // The register had the value before, by chance or not.
        assert_eq!(written(&[hidden(1, 5), seen(2, 5)]), None);
        // A parameter.
        let entered = step(1, 5, Some(5), Some(77));
        assert_eq!(written(&[seen(9, 5), entered, seen(2, 5)]), Some(77));
        assert_eq!(written(&[]), None);
    }

    /// Returns the decoded instructions `code`, the first one at the address `pc`; all registers
    /// but the program counter are 0.
    fn executed(pc: u64, mut code: &[u8]) -> Vec<Executed> {
        let mut registers = [0; REGISTERS];
        registers[REGISTERS - 1] = pc;
        let mut found = Vec::new();
        while let Some(it) = Executed::new(code, registers).filter(|_| !code.is_empty()) {
            code = &code[it.instruction.len()..];
            registers[REGISTERS - 1] += it.instruction.len() as u64;
            found.push(it);
        }
        found
    }

    #[test]
    fn a_statement_that_writes_an_equal_value_has_written_it() {
        let seen = |pc, value| step(pc, u64::from(value), Some(value), None);
        let steps = [seen(1, 4), seen(2, 5), seen(3, 5)];
        let steps: Vec<&Step> = steps.iter().collect();
        let set = executed(1, &[0xbb, 5, 0, 0, 0]); // mov ebx, 5
        let add = executed(2, &[0x01, 0xc3]); // add ebx, eax
        let use_it = executed(3, &[0x89, 0xde, 0xb8, 0, 0, 0, 0]); // mov esi, ebx; mov eax, 0
        let last = |all: [&Vec<Executed>; 3]| last_write(&steps, 3, &all.map(Clone::clone));
        assert_eq!(last([&set, &add, &use_it]), Some(2));
        assert_eq!(last([&set, &use_it, &use_it]), Some(1));
        // No instruction writes the register.
        assert_eq!(last([&use_it, &use_it, &use_it]), None);
        // A call that is passed its own copy: mov r12d, ebx; mov ebx, r12d.
        let saved = executed(2, &[0x41, 0x89, 0xdc, 0x44, 0x89, 0xe3]);
        assert_eq!(last([&set, &saved, &use_it]), Some(1));
        // Another variable is assigned: mov ebx, ecx.
        let copied = executed(2, &[0x89, 0xcb]);
        assert_eq!(last([&set, &copied, &use_it]), Some(2));
    }

    #[test]
    fn a_parameter_is_written_by_the_call_though_the_function_moves_it() {
        // From edi to ebx: mov ebx, edi.
        let mut entered = step(1, 0, Some(5), Some(77));
        entered.known = Some((Place::Register(5), vec![5]));
        let steps = [entered, step(3, 5, Some(5), None)];
        let steps: Vec<&Step> = steps.iter().collect();
        let moved = executed(1, &[0x89, 0xfb]);
        assert_eq!(last_write(&steps, 3, &[moved, Vec::new()]), Some(77));
    }
}
