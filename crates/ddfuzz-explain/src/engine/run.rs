//! One run of a program: from its `execve` to points in time, and to its end.

use std::collections::HashMap;

use ddfuzz_exec::{Ended, Traced};
use ddfuzz_triage::memory::{Maps, Memory};
use libc::user_regs_struct;

use super::process::{Process, Stop, by_number};
use super::state::{Captured, Reading, arguments};
use super::watchdog::Limit;
use super::{
    Ending, Engine, EngineError, Point, Side, Trace, Unsupported, statement_starts, symbol_in,
};
use crate::dwarf::frames::Frame;
use crate::engine::watchdog::TimeLimit;
use crate::unfold::Area;

/// Largest number of arrivals at one statement that a trace records; later arrivals, as in a long
/// loop, are ignored.
pub const MOST_HITS: u64 = 400;
/// Factor by which a run that is stopped often may exceed the target's limit on wall time.
pub(super) const STOPS: u32 = 20;
/// Number of bytes of the stack that are read at once.
const SPAN: usize = 16 << 10;
/// Largest number of points (statement executions) that a trace records.
pub const MOST_POINTS: usize = 100_000;

/// A run of the program that is under way. Dropping it kills the process.
pub struct Run {
    /// The traced process of the run, which is stopped.
    pub process: Process,
    // Dropped after the process, which must have ended before its server is asked how.
    /// The child process of the target's executor in which the run takes place, with the files of
    /// the run.
    pub traced: Traced,
    /// The input with which the run was started.
    pub input: Vec<u8>,
    _limit: Limit,
    /// Address ranges of the program's arguments: the array `argv`, and each text.
    arguments: Vec<Area>,
    stack: ShadowStack,
    pub(super) hits: HashMap<u64, u64>,
}

/// How a run has stopped after it was resumed.
#[allow(
    clippy::large_enum_variant,
    reason = "it is made and used up at each stop, mostly as the largest variant"
)]
pub enum Next {
    /// The run has stopped at a breakpoint, with these registers.
    Breakpoint(user_regs_struct),
    /// The run has stopped for another reason: one step, a watched address, a system call.
    Other(Stop),
    /// The run has ended, as the value says.
    Ended(Box<Ending>),
}

/// Why a resumed run halts: at a trap (such as a breakpoint), at a system call, shortly before it
/// dies or exits, or because it has ended.
pub(super) enum Halt {
    /// The process has stopped at a breakpoint, a watched address, or a trap instruction of the
    /// program, or after a single step.
    Trap,
    /// The process is entering or leaving a system call.
    SystemCall,
    /// The process is about to die of this signal.
    Dying(i32),
    /// The process is about to exit.
    Exiting,
    /// The process has ended, as the value says.
    Ended(Ended),
}

/// Event up to which a run is resumed: only a breakpoint, or also a system call, or a system call
/// that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The run is resumed up to the next breakpoint.
    Free,
    /// The run is resumed up to the next breakpoint, or entry to or exit from a system call.
    SystemCalls,
    /// The run is resumed up to the next breakpoint, or up to the exit from a system call at which
    /// the process's filter stops it.
    Writes,
}

/// The frames on the stack of a run at its last stop, each with a hash. At the next stop, only new
/// frames are walked to compute the stack's hash.
#[derive(Default)]
struct ShadowStack {
    /// Address of each frame, its return address, and the hash of the frames around it; outermost
    /// first.
    frames: Vec<(u64, u64, u64)>,
}

impl Engine {
    /// Starts the passing or failing run and stops it before the first instruction after its
    /// `execve`. The run is killed after 20 times the target's limit on wall time.
    ///
    /// # Errors
    /// When the program cannot be started or traced, or the time is over.
    pub fn start(&mut self, side: Side) -> Result<Run, EngineError> {
        self.start_within(side, STOPS)
    }

    /// Starts the target under ptrace on the passing or the failing input, as `side` says, and
    /// returns the run, stopped at the program's first instruction. The run is killed after
    /// `factor` times the target's limit on wall time.
    fn start_within(&mut self, side: Side, factor: u32) -> Result<Run, EngineError> {
        self.check_time()?;
        self.truncate_output(0)?;
        let (traceable, input) = &self.sides[side as usize];
        let input = input.clone();
        self.one_cpu.leave();
        let mut traced = traceable.start(&input, false)?;
        let mut process = Process::seize(traced.pid(), &self.watchdog)?;
        let limit = process.limit(TimeLimit::of(self.limits.wall * factor));
        traced.release()?;
        loop {
            match process.wait()? {
                Stop::Event(libc::PTRACE_EVENT_EXEC) => break,
                Stop::Exited(_) | Stop::Died(_) => {
                    self.check_time()?;
                    return Err(std::io::Error::from(std::io::ErrorKind::NotFound).into());
                }
                Stop::Signal(signal) => {
                    ddfuzz_exec::tracing::resume(libc::PTRACE_CONT, process.pid, signal)
                }
                _ => ddfuzz_exec::tracing::resume(libc::PTRACE_CONT, process.pid, 0),
            }
        }
        self.one_cpu.enter(process.pid);
        process.renew_memory()?;
        if self.watches_exits {
            process.watch_exit()?;
        }
        self.input_files = traced.input_files();
        let registers = process.registers()?;
        if !std::mem::replace(&mut self.is_located, true) {
            self.learn_addresses(&process)?;
        }
        let arguments = arguments(registers.rsp, &mut process);
        self.prepare(&mut process)?;
        Ok(Run {
            process,
            traced,
            input,
            _limit: limit,
            arguments,
            stack: ShadowStack::default(),
            hits: HashMap::new(),
        })
    }

    /// Starts the passing or failing run and stops it at the program's first instruction, when its
    /// libraries are loaded; `None` where that instruction is not known.
    ///
    /// # Errors
    /// When the program cannot be started or traced, or the time is over.
    pub(crate) fn at_entry(&mut self, side: Side) -> Result<Option<Run>, EngineError> {
        let Some(entry) = self.entry else {
            return Ok(None);
        };
        let entry = entry.wrapping_add(self.bias);
        let mut run = self.start(side)?;
        if run.process.registers()?.rip == entry {
            return Ok(Some(run));
        }
        run.process.set_breakpoint(entry)?;
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(_) => break,
                Next::Ended(_) => return Ok(None),
                Next::Other(_) => {}
            }
        }
        run.process.remove_breakpoints()?;
        Ok(Some(run))
    }

    /// Records where the program is loaded in `process`, and the addresses at which its statements
    /// begin. Both are the same in all runs, which have no address randomization.
    fn learn_addresses(&mut self, process: &Process) -> Result<(), EngineError> {
        self.classifier.know_target(process.pid);
        let maps = Maps::of(process.pid);
        let program = std::fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone());
        let exe = std::fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or(program);
        let first = maps.iter().find(|mapping| mapping.file_path() == exe);
        let image = std::fs::read(&exe)?;
        let base = object::File::parse(&*image).map_or(0, |file| crate::dwarf::frames::base(&file));
        let start = first.map_or(base, |mapping| mapping.start.wrapping_sub(mapping.offset));
        self.bias = start.wrapping_sub(base);
        let bias = self.bias;
        self.statements = statement_starts(&self.info)
            .into_iter()
            .map(|at| at.wrapping_add(bias))
            .collect();
        self.modules.map(&maps);
        Ok(())
    }

    /// Records the addresses of the C library's `malloc` and of an instruction that makes a system
    /// call. The process must have loaded the library already.
    pub(crate) fn learn_library(&mut self, process: &mut Process) {
        if self.system_call.is_some() {
            return;
        }
        let maps = Maps::of(process.pid);
        self.modules.map(&maps);
        let own = symbol_in(&self.program, "malloc");
        self.malloc = match self.has_asan {
            true => self.runtime_symbol(process, "malloc"),
            false => own.map(|address| address.wrapping_add(self.bias)),
        };
        for mapping in maps.iter().filter(|mapping| mapping.executable) {
            let code = process.bytes(
                mapping.start,
                (mapping.end - mapping.start).min(4 << 20) as usize,
            );
            let at = code.windows(2).position(|pair| pair == [0x0f, 0x05]);
            if let (Some(at), None) = (at, self.system_call) {
                self.system_call = Some(mapping.start + at as u64);
            }
            let path = mapping.file_path();
            if self.malloc.is_none() && mapping.is_file() && mapping.base_name().starts_with("libc")
            {
                let first = maps
                    .iter()
                    .find(|it| it.file_path() == path && it.offset == 0);
                if let (Some(first), Some(address)) = (first, symbol_in(&path, "malloc")) {
                    self.malloc = Some(first.start + address);
                }
            }
        }
    }

    /// Resumes a run up to the next breakpoint, another stop (such as a watched address) or its
    /// end, and returns which of these it is. Signals are delivered, but for one
    /// that would kill the process: the run ends there, and the process stays stopped.
    ///
    /// # Errors
    /// When the process starts threads or processes, or tracing fails.
    pub(crate) fn resume(
        &mut self,
        process: &mut Process,
        pace: Pace,
    ) -> Result<Next, EngineError> {
        let (mut signal, mut exit_stack) = (0, Vec::new());
        loop {
            match self.next_halt(process, pace, std::mem::take(&mut signal))? {
                Halt::Trap => match process.at_breakpoint()? {
                    Some(registers) => return Ok(Next::Breakpoint(registers)),
                    None if self.is_own_trap(process) => {
                        if !self.classifier.is_handled(process.pid, libc::SIGTRAP) {
                            return self.dying(process, libc::SIGTRAP);
                        }
                        signal = libc::SIGTRAP;
                    }
                    None => return Ok(Next::Other(Stop::Trap)),
                },
                Halt::SystemCall => return Ok(Next::Other(Stop::SystemCall)),
                Halt::Dying(number) => return self.dying(process, number),
                Halt::Exiting => exit_stack = self.exiting(process),
                Halt::Ended(ended @ Ended::Exit(_)) => return Ok(self.ended(ended, exit_stack)),
                Halt::Ended(ended) => return Ok(self.ended(ended, Vec::new())),
            }
        }
    }

    /// Resumes a run up to the next halt: a breakpoint, a system call if `pace` says so, a signal
    /// that kills the run, or its end. First delivers `signal` to the run, unless it is 0. Signals
    /// that do not kill the run are delivered without a halt.
    ///
    /// # Errors
    /// When the process starts threads or processes, or tracing fails.
    pub(super) fn next_halt(
        &mut self,
        process: &mut Process,
        pace: Pace,
        mut signal: i32,
    ) -> Result<Halt, EngineError> {
        let mut is_writing = false;
        loop {
            let stop = match pace == Pace::SystemCalls || is_writing {
                false => process.go(signal)?,
                true => process.go_to_system_call(signal)?,
            };
            (signal, is_writing) = (0, false);
            return Ok(match stop {
                Stop::Trap => Halt::Trap,
                Stop::SystemCall => Halt::SystemCall,
                Stop::Signal(number) => {
                    let kills = Ended::Signal(number).is_crash(None);
                    if !kills || self.classifier.is_handled(process.pid, number) {
                        signal = number;
                        continue;
                    }
                    Halt::Dying(number)
                }
                Stop::Event(libc::PTRACE_EVENT_EXIT) => Halt::Exiting,
                Stop::Event(libc::PTRACE_EVENT_SECCOMP) => {
                    is_writing = pace == Pace::Writes;
                    continue;
                }
                Stop::Event(event) => {
                    unsupported(process, event)?;
                    continue;
                }
                Stop::Exited(status) => Halt::Ended(Ended::Exit(status)),
                // A program may kill itself by this signal, too.
                Stop::Died(libc::SIGKILL) if self.watchdog.has_fired() => {
                    self.check_time()?;
                    Halt::Ended(Ended::Timeout)
                }
                Stop::Died(number) => Halt::Ended(Ended::Signal(number)),
            });
        }
    }

    /// Returns true if the trap that stopped a process comes from an instruction of the program
    /// itself.
    fn is_own_trap(&self, process: &mut Process) -> bool {
        let Ok(info) = nix::sys::ptrace::getsiginfo(process.pid) else {
            return false;
        };
        // SI_KERNEL: an `int3` that is no breakpoint of ours.
        const SI_KERNEL: i32 = 0x80;
        info.si_code == SI_KERNEL || info.si_code <= 0
    }

    fn ended(&self, ended: Ended, stack: Vec<u64>) -> Next {
        Next::Ended(Box::new(Ending {
            ended,
            crash: None,
            output: self.written(),
            varies: false,
            stack,
        }))
    }

    /// Returns the code addresses on the stack of a process that is about to exit, innermost first;
    /// empty where the stack cannot be read.
    fn exiting(&mut self, process: &mut Process) -> Vec<u64> {
        self.learn_library(process);
        match process.registers() {
            Ok(registers) => self.stack(&registers, process),
            Err(_) => Vec::new(),
        }
    }

    /// Returns the code addresses of the frames on a stopped process's stack, innermost first, at
    /// most 256.
    pub(super) fn stack(
        &mut self,
        registers: &user_regs_struct,
        process: &mut Process,
    ) -> Vec<u64> {
        let frames = self.modules.frames(registers, process);
        frames.iter().map(|frame| frame.code).take(256).collect()
    }

    /// Returns the end of a run that is about to die of `signal`, with the class and keys of its
    /// crash. Crashes with the same signal, fault address and stack are classified only once.
    /// Removes all breakpoints.
    fn dying(&mut self, process: &mut Process, signal: i32) -> Result<Next, EngineError> {
        process.remove_breakpoints()?;
        self.learn_library(process);
        let registers = process.registers()?;
        let stack = self.stack(&registers, process);
        if self.panic_end() == Some(registers.rip) {
            return Ok(self.ended(Ended::Exit(ddfuzz_exec::RUST_PANIC), stack));
        }
        let address = self.classifier.fault_address(process.pid);
        let key = (signal, address, stack.clone());
        let crash = match self.keys.get(&key) {
            Some(known) => known.clone(),
            None => {
                let crash = self.classifier.classify(process.pid, signal);
                self.keys.insert(key, crash.clone());
                crash
            }
        };
        let is_reported = self.has_asan && [libc::SIGABRT, libc::SIGILL].contains(&signal);
        let (crash, signal) = match is_reported {
            true => self.with_report(process, (crash, signal)),
            false => (crash, signal),
        };
        Ok(Next::Ended(Box::new(Ending {
            ended: Ended::Signal(signal),
            crash: Some(crash),
            output: self.written(),
            varies: false,
            stack,
        })))
    }

    /// Makes the passing or failing run without stopping it, within the target's limit on wall
    /// time, and returns how it ended.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn run_to_end(&mut self, side: Side) -> Result<Ending, EngineError> {
        self.run_past(side, &[]).map(|it| it.0)
    }

    /// Makes the passing or failing run within the target's limit on wall time. Returns how it
    /// ended, and whether it executed an instruction at one of the addresses `places`.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn run_past(&mut self, side: Side, places: &[u64]) -> Result<(Ending, bool), EngineError> {
        let mut run = self.start_within(side, 1)?;
        for place in places {
            run.process.set_breakpoint(*place)?;
        }
        let mut is_past = false;
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok((*ending, is_past)),
                Next::Breakpoint(_) => {
                    is_past = true;
                    run.process.remove_breakpoints()?;
                }
                Next::Other(_) => {}
            }
        }
    }

    /// Makes the passing or failing run up to its end, and records the points that it goes through:
    /// at most 400 arrivals at each statement and 100,000 points in total.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn trace(&mut self, side: Side) -> Result<Trace, EngineError> {
        let mut run = self.start(side)?;
        for address in self.statements.clone() {
            run.process.set_breakpoint(address)?;
        }
        let mut points = Vec::new();
        loop {
            let registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) => registers,
                Next::Other(_) => continue,
                Next::Ended(ending) => {
                    let ending = *ending;
                    return Ok(Trace { points, ending });
                }
            };
            self.check_time()?;
            let point = self.arrived(&mut run, &registers);
            points.push(point);
            run.process.step_over(registers.rip)?;
            if point.nth >= MOST_HITS {
                run.process.remove_breakpoint(point.pc)?;
            }
            if points.len() >= MOST_POINTS {
                run.process.remove_breakpoints()?;
            }
        }
    }

    /// Counts the arrival of a run at a breakpoint, and returns the point: address, number of
    /// arrivals, and stack.
    pub(crate) fn arrived(&mut self, run: &mut Run, registers: &user_regs_struct) -> Point {
        self.learn_library(&mut run.process);
        let nth = run.hits.entry(registers.rip).or_default();
        *nth += 1;
        Point {
            pc: registers.rip,
            nth: *nth,
            stack: run.stack.hash(self, registers, &mut run.process),
        }
    }

    /// Resumes a run up to a point that it went through before, and returns the registers at this
    /// point. Then removes all breakpoints.
    ///
    /// # Errors
    /// [`Unsupported::Unsteady`] when the run does not reach the point, or reaches it with another
    /// stack.
    pub fn run_to(&mut self, run: &mut Run, point: Point) -> Result<user_regs_struct, EngineError> {
        let mut left = point.nth - run.hits.get(&point.pc).copied().unwrap_or(0);
        run.process.set_breakpoint(point.pc)?;
        loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) if registers.rip == point.pc => {
                    left -= 1;
                    if left == 0 {
                        run.hits.insert(point.pc, point.nth - 1);
                        let here = self.arrived(run, &registers);
                        run.process.remove_breakpoints()?;
                        if here != point {
                            return Err(EngineError::Unsupported(Unsupported::Unsteady));
                        }
                        return Ok(registers);
                    }
                    run.process.step_over(point.pc)?;
                }
                Next::Breakpoint(registers) => drop(run.process.step_over(registers.rip)?),
                Next::Other(_) => {}
                Next::Ended(_) => {
                    return Err(EngineError::Unsupported(Unsupported::Unsteady));
                }
            }
        }
    }

    /// Reads the memory graph of a run that has stopped.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn capture(&mut self, run: &mut Run) -> Result<Captured, EngineError> {
        let arguments = std::mem::take(&mut run.arguments);
        let captured = self.capture_process(&mut run.process, &arguments);
        run.arguments = arguments;
        captured
    }

    /// Reads the memory graph of a stopped process; `arguments` are the address ranges of its
    /// program's arguments.
    pub(crate) fn capture_process(
        &mut self,
        process: &mut Process,
        arguments: &[Area],
    ) -> Result<Captured, EngineError> {
        let registers = process.registers()?;
        let frames = self.modules.frames(&registers, process);
        let mut reading = Reading {
            info: &mut self.info,
            bias: self.bias,
            is_raw: self.is_raw,
            arguments,
        };
        Ok(reading.capture(&frames, &registers, process))
    }

    /// Returns the stack frames of a stopped process, innermost first.
    pub(crate) fn frames(&mut self, process: &mut Process) -> Result<Vec<Frame>, EngineError> {
        let registers = process.registers()?;
        Ok(self.modules.frames(&registers, process))
    }
}

impl Run {
    /// Returns the address ranges of the program's arguments in memory. They are the same in all
    /// forks of the run.
    pub(crate) fn arguments(&self) -> &[Area] {
        &self.arguments
    }
}

/// Returns an error for a ptrace event after which a program cannot be explained: new threads and
/// processes, and `execve`. Does nothing for other events.
pub(crate) fn unsupported(process: &mut Process, event: i32) -> Result<(), EngineError> {
    let what = match event {
        libc::PTRACE_EVENT_EXEC => Unsupported::Executes,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            let new = nix::sys::ptrace::getevent(process.pid).unwrap_or(0) as i32;
            let new = nix::unistd::Pid::from_raw(new);
            match ddfuzz_exec::tracing::process_of(new) == Some(process.pid) {
                true => Unsupported::Threads,
                false => {
                    // It is traced, but nobody waits for it.
                    let _ = nix::sys::signal::kill(new, nix::sys::signal::Signal::SIGKILL);
                    Unsupported::Children
                }
            }
        }
        _ => return Ok(()),
    };
    Err(EngineError::Unsupported(what))
}

impl ShadowStack {
    /// Returns true if the first `count` frames still have their return addresses. They may differ
    /// if the run has left these frames since, and called the functions anew from elsewhere.
    fn is_unchanged(&self, count: usize, memory: &mut dyn Memory) -> bool {
        let frames = &self.frames[..count];
        let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
            return true;
        };
        let start = last.0.wrapping_sub(8);
        let size = (first.0.wrapping_sub(start) as usize).min(SPAN);
        let near = memory.bytes(start, size);
        frames.iter().all(|(cfa, pc, _)| {
            let at = cfa.wrapping_sub(8);
            let offset = at.wrapping_sub(start) as usize;
            let word = near.get(offset..offset.saturating_add(8));
            let word = word.and_then(|it| Some(u64::from_le_bytes(it.try_into().ok()?)));
            word.or_else(|| memory.word(at)) == Some(*pc)
        })
    }

    /// Returns a hash of the return addresses on the stack of a stopped run with these `registers`.
    fn hash(
        &mut self,
        engine: &mut Engine,
        registers: &user_regs_struct,
        memory: &mut dyn Memory,
    ) -> u64 {
        let mut frame = Frame::innermost(&by_number(registers));
        let mut new: Vec<(u64, u64)> = Vec::new();
        let mut hash = 0;
        let mut is_known = false;
        while new.len() < crate::dwarf::frames::MOST_FRAMES {
            let Some(caller) = engine.modules.caller(&mut frame, memory) else {
                break;
            };
            let below = self.frames.partition_point(|(cfa, ..)| *cfa > frame.cfa);
            let known = self.frames.get(below).copied();
            if let Some((_, _, known)) = known.filter(|it| (it.0, it.1) == (frame.cfa, caller.pc))
                && self.is_unchanged(below, memory)
            {
                (hash, is_known) = (known, true);
                self.frames.truncate(below + 1);
                break;
            }
            if new.last().is_some_and(|(cfa, _)| frame.cfa <= *cfa) {
                break;
            }
            new.push((frame.cfa, caller.pc));
            frame = caller;
        }
        if !is_known {
            self.frames.clear();
        }
        for (cfa, pc) in new.into_iter().rev() {
            hash = mix(hash ^ pc);
            self.frames.push((cfa, pc, hash));
        }
        hash
    }
}

/// Returns `value` with its bits mixed for hashing, by the finalizer of splitmix64.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
