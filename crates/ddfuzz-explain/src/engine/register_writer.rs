//! Finds what wrote a register, or a variable that is in one, where no watchpoint helps: the values
//! of the variable and of its register at the statements that its frame executes in the failing
//! run.

use super::process::{Process, by_number};
use super::run::{Next, Pace};
use super::state::Reading;
use super::writer::{By, Writer};
use super::{Engine, EngineError, Point, Side};
use crate::dwarf::frames::REGISTERS;
use crate::graph::{Origin, Place};

/// Largest number of stops of a run in the function whose statements are searched for the write to
/// a register.
const MOST_STOPS: usize = 4000;

/// What [`Engine::register_writer`] finds the writer of: a variable that is kept in a register, or
/// the value of a register that no variable describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A variable of a frame, which is in a register.
    Variable(Origin),
    /// A value of the innermost frame that no variable describes, in the register of this number.
    Value(u16),
}

/// The state of a frame at a statement, or at the first instruction of its function.
struct Step {
    pc: u64,
    cfa: u64,
    registers: [u64; REGISTERS],
    /// Place and value of the variable or register whose writer is searched for; `None` where it
    /// has none at this statement.
    known: Option<(Place, Vec<u8>)>,
    /// At the first instruction of the function, the address of the call that led there; else
    /// `None`.
    caller: Option<u64>,
}

impl Engine {
    /// Finds the statement that gave a register, or a variable in one, the value that it has at the
    /// point `to` of the failing run; `None` where that is not certain. A parameter is written by
    /// the call. The search begins at `from`, a point with the number of times that the statement
    /// of `to` was reached up to it; `None` is the beginning of the run.
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
        let frame = match held {
            Held::Variable(Origin::Local { frame, .. }) => Some(frame),
            Held::Variable(_) => None,
            Held::Value(_) => frames.len().checked_sub(1),
        };
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
            && let (Held::Variable(_), [_, caller, ..]) = (held, &frames[..])
        {
            let pc = caller.code;
            return Ok((self.is_user(pc)).then(|| Writer {
                pc,
                by: By::Program,
                side: Side::Failing,
                calls: Vec::new(),
            }));
        }
        let is_inside =
            |pc: &u64| (ranges.iter()).any(|range| range.contains(&pc.wrapping_sub(self.bias)));
        let mut stops: Vec<u64> = self.statements.iter().copied().filter(is_inside).collect();
        stops.push(entry);
        let Some(steps) = self.steps(from, to, &stops, |engine, process| {
            engine.step_of(process, entry, frame, held)
        })?
        else {
            return Ok(None);
        };
        let steps: Vec<&Step> = steps.iter().filter(|step| step.cfa == own.cfa).collect();
        let writer = last_change(&steps, value).filter(|pc| {
            let code = pc.wrapping_sub(self.bias);
            self.info.function(code).is_some()
        });
        Ok(writer.map(|pc| Writer {
            pc,
            by: By::Program,
            side: Side::Failing,
            calls: Vec::new(),
        }))
    }

    /// Makes the failing run up to the point `to`, and returns what `step_of` records when it stops
    /// at one of the addresses `stops`; `None` where there are too many stops.
    fn steps(
        &mut self,
        from: Option<(Point, u64)>,
        to: Point,
        stops: &[u64],
        step_of: impl Fn(&mut Engine, &mut Process) -> Result<Option<Step>, EngineError>,
    ) -> Result<Option<Vec<Step>>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        let (mut left, mut steps) = (to.nth, Vec::new());
        if let Some((from, reached)) = from {
            self.run_to(&mut run, from)?;
            left = to.nth.saturating_sub(reached).max(1);
            if stops.contains(&from.pc) {
                steps.extend(step_of(self, &mut run.process)?);
            }
        }
        for stop in stops.iter().chain([&to.pc]) {
            run.process.set_breakpoint(*stop)?;
        }
        run.process.step_over_here()?;
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => return Ok(None),
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    if registers.rip == to.pc {
                        left -= 1;
                    }
                    if left == 0 {
                        return Ok(Some(steps));
                    }
                    steps.extend(step_of(self, &mut run.process)?);
                    run.process.step_over(registers.rip)?;
                }
            }
        }
        Ok(None)
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
            Held::Variable(variable) => reading.value(&frames, &registers, variable, process),
            Held::Value(number) => by_number(&registers)
                .get(usize::from(number))
                .map(|value| (Place::Register(number), value.to_le_bytes().to_vec())),
        };
        let caller = match held {
            Held::Variable(_) => frames.get(1).map(|caller| caller.code),
            // What was in the register before the call may be a value of any frame.
            Held::Value(_) => Some(0),
        };
        Ok(Some(Step {
            pc: registers.rip,
            cfa: frames[0].cfa,
            registers: by_number(&registers),
            known,
            caller: caller.filter(|_| registers.rip == entry),
        }))
    }
}

/// Returns the address of the statement after which a variable has kept `value`, or of the call
/// that has passed it; `None` where that is not known. Where the variable is not visible, a
/// register that has the value already proves nothing.
fn last_change(steps: &[&Step], value: &[u8]) -> Option<u64> {
    let mut register = None;
    for step in steps.iter().rev() {
        match (&step.known, register) {
            (Some((place, known)), _) if known.starts_with(value) => {
                register = match place {
                    Place::Register(number) => Some(usize::from(*number)),
                    Place::Memory(_) => None,
                };
                if step.caller.is_some() {
                    return step.caller;
                }
            }
            (Some(_), _) => return (step.caller.is_none()).then_some(step.pc),
            (None, Some(number)) => {
                let content = step.registers.get(number)?.to_le_bytes();
                let is_other = !content.starts_with(value) && step.caller.is_none();
                return is_other.then_some(step.pc);
            }
            (None, None) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(pc: u64, rbx: u64, known: Option<u8>, caller: Option<u64>) -> Step {
        let mut registers = [0; REGISTERS];
        registers[3] = rbx;
        Step {
            pc,
            cfa: 0,
            registers,
            known: known.map(|value| (Place::Register(3), vec![value])),
            caller,
        }
    }

    fn written(steps: &[Step]) -> Option<u64> {
        last_change(&steps.iter().collect::<Vec<_>>(), &[5])
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
}
