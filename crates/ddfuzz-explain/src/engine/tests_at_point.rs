//! Tests at a point in time: a fork of the stopped run, with a changed state, that runs on.

use std::collections::HashMap;

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Ended, RunFiles};
use ddfuzz_triage::memory::Memory;
use nix::unistd::Pid;

use super::open_files::OpenFiles;
use super::process::{Process, register_mut};
use super::run::{Next, Pace, Run};
use super::state::Captured;
use super::{
    Criterion, Ending, Engine, EngineError, Point, Sameness, Side, Unsupported, if_supported,
};
use crate::engine::watchdog::TimeLimit;
use crate::graph::{Graph, Place};
use crate::plan::{Content, Plan, Spot};
use crate::unfold::Area;

/// Number of ended child processes (forks, each made for one test) that a stopped run may keep;
/// then it reaps them all.
const UNREAPED: usize = 16;

/// A run that has stopped at a point: each test at this point makes a fork of it.
pub struct Stand {
    run: Run,
    files: OpenFiles,
    /// The input and the working directory as they are when the run has stopped: each test starts
    /// from them.
    left: RunFiles,
    /// Number of bytes that the stopped run had written to stdout before it stopped.
    written: u64,
    /// Forks that have ended and are not reaped yet, by their ids as the stopped run sees them.
    ended: Vec<Pid>,
    /// Time limit of one test that is made from the stopped run.
    limit: TimeLimit,
}

impl Stand {
    /// Returns the time limit of a test.
    pub(super) fn limit(&self) -> TimeLimit {
        self.limit
    }

    /// Returns the process of the run that stands still at a point, from which tests are forked.
    pub(super) fn process(&mut self) -> &mut Process {
        &mut self.run.process
    }
}

impl Criterion {
    /// Returns the criterion that tells which runs fail, if the failure is an exit with this
    /// status: those that exit with it and with the same stack as `failing` or, if none of the
    /// program's functions is on that stack, with the same output.
    pub fn exit(engine: &Engine, status: i32, failing: &Ending) -> Criterion {
        let is_own = |pc: &u64| {
            let code = pc.wrapping_sub(engine.bias);
            engine.info.function(code).is_some()
        };
        let same = match failing.stack.iter().any(is_own) {
            true => Sameness::Stack(failing.stack.clone()),
            false => Sameness::Output(failing.output.clone()),
        };
        Criterion::Exit(status, same)
    }

    /// Returns the outcome of a run that ended as `ending` says. FAIL: it fails as the failing run
    /// does. PASS: its exit status or signal and its output are those of the passing run, which
    /// ended as `passing` says; the output does not count if that of the passing run varies from
    /// run to run. UNRESOLVED: neither.
    pub fn judge(&self, ending: &Ending, passing: &Ending) -> Outcome {
        if self.fails(ending) {
            return Outcome::Fail;
        }
        let is_like = passing.varies || ending.output == passing.output;
        match ending.ended == passing.ended && is_like {
            true => Outcome::Pass,
            false => Outcome::Unresolved,
        }
    }

    /// Returns true if a run that ended as `ending` says fails as the failing run does.
    pub fn fails(&self, ending: &Ending) -> bool {
        match self {
            Criterion::Crash(key) => ending
                .crash
                .as_ref()
                .is_some_and(|crash| crash.major == *key),
            Criterion::Exit(status, same) => {
                let is_same = match same {
                    Sameness::Stack(stack) => ending.stack == *stack,
                    Sameness::Output(output) => ending.output == *output,
                };
                ending.ended == Ended::Exit(*status) && is_same
            }
            // What has not ended may still write anything.
            Criterion::Wrong(regex) => {
                ending.ended != Ended::Timeout && regex.is_match(&ending.output)
            }
        }
    }

    /// Returns true if a run does not fail and ends by itself with the passing run's status. Its
    /// output may differ, since it has read the failing input.
    pub fn is_averted(&self, ending: &Ending, passing: &Ending) -> bool {
        self.judge(ending, passing) != Outcome::Fail && ending.ended == passing.ended
    }
}

impl Engine {
    /// Starts the passing or failing run and stops it at `point`, so that tests can fork it there.
    /// Each test may take at most `limit`.
    ///
    /// # Errors
    /// When the run does not reach the point, or cannot be forked there.
    pub fn stand(
        &mut self,
        side: Side,
        point: Point,
        limit: TimeLimit,
    ) -> Result<Stand, EngineError> {
        let mut run = self.start(side)?;
        self.run_to(&mut run, point)?;
        self.stand_in(run, limit)
    }

    /// Starts a run with the input `input`, stopped at its point `first`, from which tests are
    /// forked; `None` if the run does not come to that point. `limit` is the time limit of a test.
    pub(crate) fn stand_with(
        &mut self,
        input: &[u8],
        first: Point,
        limit: TimeLimit,
    ) -> Result<Option<Stand>, EngineError> {
        self.set_input(Side::Passing, input.to_vec());
        let mut run = self.start(Side::Passing)?;
        match if_supported(self.run_to(&mut run, first).map(Some))? {
            Some(_) => self.stand_in(run, limit).map(Some),
            None => Ok(None),
        }
    }

    /// Makes a stopped run, in which no breakpoints are set, a [`Stand`], from which tests are
    /// forked. `limit` is the time limit of a test. Fails if the process has sockets open, or
    /// memory that forks would share.
    pub(crate) fn stand_in(&self, run: Run, limit: TimeLimit) -> Result<Stand, EngineError> {
        let files = run.process.open_files();
        if files.sockets > 0 {
            return Err(EngineError::Unsupported(Unsupported::Sockets));
        }
        // What one test writes there, the next one would read.
        if run.process.shares_memory() {
            return Err(EngineError::Unsupported(Unsupported::SharedMemory));
        }
        Ok(Stand {
            written: self.output.metadata()?.len(),
            left: run.traced.files(),
            run,
            files,
            ended: Vec::new(),
            limit,
        })
    }

    /// Ends the tests at a point: reaps the forks that have ended, and returns the stopped run from
    /// which they were made.
    pub(crate) fn released(&mut self, mut stand: Stand) -> Result<Run, EngineError> {
        let instruction = self.system_call.ok_or_else(no_system_call)?;
        for child in std::mem::take(&mut stand.ended) {
            stand.run.process.reap(instruction, child)?;
        }
        Ok(stand.run)
    }

    /// Returns the memory graph of the stopped run from which tests are forked.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn capture_at(&mut self, stand: &mut Stand) -> Result<Captured, EngineError> {
        self.capture(&mut stand.run)
    }

    /// Forks the stopped run, applies the plan (changes) of a test to the fork, and lets it run on
    /// to its end. Returns this end; `None` if the changes could not be applied, or the fork did
    /// something that ddfuzz cannot follow.
    ///
    /// # Errors
    /// When forking or tracing fails.
    pub fn go_on(&mut self, stand: &mut Stand, plan: &Plan) -> Result<Option<Ending>, EngineError> {
        self.go_past(stand, plan, &[], &mut Vec::new())
    }

    /// Makes a test like [`go_on`](Engine::go_on), and adds the states in which the fork passes the
    /// statements `stops` to `read`, each with the index of its stop. A stop is the address of a
    /// statement, with the number of arrivals at it, counted from the fork on.
    ///
    /// # Errors
    /// When forking or tracing fails.
    pub fn go_past(
        &mut self,
        stand: &mut Stand,
        plan: &Plan,
        stops: &[(u64, u64)],
        read: &mut Vec<(usize, Graph)>,
    ) -> Result<Option<Ending>, EngineError> {
        let arguments = stand.run.arguments().to_vec();
        self.in_new_fork(stand, |engine, child| {
            if engine.apply(plan, child).is_none() {
                return Ok(None);
            }
            let ending = engine.past(child, &arguments, stops, read)?;
            Ok(Some(ending))
        })
    }

    /// Sets a breakpoint at `address` in the stopped run of `stand`; forks that are made later have
    /// it, too.
    pub(crate) fn stop_at(&self, stand: &mut Stand, address: u64) -> Result<(), EngineError> {
        Ok(stand.run.process.set_breakpoint(address)?)
    }

    /// Forks the run, lets `act` work with the fork, kills the fork, and returns the result of
    /// `act`; `None` (not an error) if the fork did something that ddfuzz cannot follow, such as
    /// starting a thread, or if its time was over before it was resumed, as on a busy machine.
    pub(crate) fn in_new_fork<T>(
        &mut self,
        stand: &mut Stand,
        act: impl FnOnce(&mut Engine, &mut Process) -> Result<Option<T>, EngineError>,
    ) -> Result<Option<T>, EngineError> {
        self.check_time()?;
        self.tests += 1;
        let instruction = self.system_call.ok_or_else(no_system_call)?;
        let mut child = stand.run.process.fork(instruction)?;
        let limit = child.limit(stand.limit);
        let done = match act(self, &mut child) {
            // What was killed while it was stopped can be neither read nor written.
            Err(EngineError::System(_)) if self.watchdog.has_fired() => Ok(None),
            done => done,
        };
        child.kill();
        drop(limit);
        stand.run.process.count_cpu();
        stand.files.seek_back();
        self.truncate_output(stand.written)?;
        stand
            .run
            .traced
            .restore(&mut stand.left, &stand.run.input)?;
        stand.ended.push(child.own_id);
        if stand.ended.len() >= UNREAPED {
            for child in stand.ended.drain(..) {
                stand.run.process.reap(instruction, child)?;
            }
        }
        if_supported(done)
    }

    fn past(
        &mut self,
        child: &mut Process,
        arguments: &[Area],
        stops: &[(u64, u64)],
        read: &mut Vec<(usize, Graph)>,
    ) -> Result<Ending, EngineError> {
        let mut arrivals: HashMap<u64, u64> = HashMap::new();
        for (pc, _) in stops {
            child.set_breakpoint(*pc)?;
        }
        if !stops.is_empty() {
            child.step_over_here()?;
        }
        loop {
            match self.resume(child, Pace::Free)? {
                Next::Ended(ending) => return Ok(*ending),
                Next::Breakpoint(registers) => {
                    let pc = registers.rip;
                    let nth = arrivals.entry(pc).or_default();
                    *nth += 1;
                    if let Some(index) = stops.iter().position(|it| *it == (pc, *nth)) {
                        read.push((index, self.capture_process(child, arguments)?.graph));
                    }
                    match stops.iter().any(|it| it.0 == pc && it.1 > *nth) {
                        true => drop(child.step_over(pc)?),
                        false => child.remove_breakpoint(pc)?,
                    }
                }
                Next::Other(_) => {}
            }
        }
    }

    /// Sets variables in the stopped `process` to other values: makes the allocations of heap
    /// blocks that `plan` lists, and then its writes to memory. `None` if a block cannot be
    /// allocated or a place cannot be written.
    fn apply(&mut self, plan: &Plan, process: &mut Process) -> Option<()> {
        let mut new = Vec::new();
        for size in &plan.allocations {
            let address = process.call(self.malloc?, (*size).max(1)).ok()??;
            if address == 0 {
                return None;
            }
            new.push(address);
        }
        let address = |spot: Spot| match spot {
            Spot::At(Place::Memory(address), offset) => Some(address + offset),
            Spot::New(index, offset) => Some(new.get(index)? + offset),
            Spot::At(Place::Register(_), _) => None,
        };
        for write in &plan.writes {
            let bytes = match &write.content {
                Content::Bytes(bytes) | Content::Masked(bytes, _) => bytes.clone(),
                Content::Address(spot) => address(*spot)?.to_le_bytes().to_vec(),
            };
            let mask = match &write.content {
                Content::Masked(_, mask) => Some(mask.as_slice()),
                _ => None,
            };
            match write.to {
                Spot::At(Place::Register(number), offset) => {
                    write_register(process, number, offset as usize, &bytes, mask)?;
                }
                spot => {
                    let to = address(spot)?;
                    let bytes = merged(process.bytes(to, bytes.len()), &bytes, mask);
                    process.write(to, &bytes).ok()?;
                }
            }
        }
        Some(())
    }
}

fn no_system_call() -> EngineError {
    let why = "no instruction was found by which the program could be forked";
    EngineError::System(std::io::Error::new(std::io::ErrorKind::Unsupported, why))
}

/// Returns the bytes that a write puts over `before`: without a mask `bytes`; with a mask the bits
/// of `bytes` where the mask has ones, and those of `before` where it has zeros.
fn merged(before: Vec<u8>, bytes: &[u8], mask: Option<&[u8]>) -> Vec<u8> {
    let Some(mask) = mask else {
        return bytes.to_vec();
    };
    let all = before.iter().zip(bytes).zip(mask);
    all.map(|((before, byte), mask)| before & !mask | byte & mask)
        .collect()
}

fn write_register(
    process: &mut Process,
    number: u16,
    offset: usize,
    bytes: &[u8],
    mask: Option<&[u8]>,
) -> Option<()> {
    let mut registers = process.registers().ok()?;
    let is_vector = (17..=32).contains(&number);
    let before = match is_vector {
        true => process.vector(number - 17)?,
        false => *register_mut(&mut registers, number)?,
    };
    let mut word = before.to_le_bytes();
    let place = word.get_mut(offset..offset + bytes.len())?;
    let new = merged(place.to_vec(), bytes, mask);
    place.copy_from_slice(&new);
    let value = u64::from_le_bytes(word);
    match is_vector {
        true => process.set_vector(number - 17, value).ok(),
        false => {
            *register_mut(&mut registers, number)? = value;
            process.set_registers(registers).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_hangs_does_not_fail_by_a_pattern() {
        let mut ending = Ending {
            ended: Ended::Exit(0),
            crash: None,
            output: b"wrong\n".to_vec(),
            varies: false,
            stack: Vec::new(),
        };
        let wrong = Criterion::Wrong(regex::bytes::Regex::new("wrong").unwrap());
        assert!(wrong.fails(&ending));
        ending.ended = Ended::Timeout;
        assert!(!wrong.fails(&ending));
    }
}
