//! The step-out test: finds the innermost active call that does not return, and the innermost loop
//! of its function that does not end.

use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::Pid;

use crate::capture::Tracer;
use crate::hang::breakpoint::{Breakpoint, ReturnTrap};
use crate::hang::loops::{Loop, Loops};
use crate::hang::outermost;
use crate::hang::stack::{ActiveCall, Stack};
use crate::hang::threads::{ActiveTime, Scheduled, StoppedThread};
use crate::snapshot::{End, Endless, Event, Snapshot};
use ddfuzz_exec::tracing::resume;

/// Time in which a call must return when the cause of a hang is searched for; otherwise the call
/// counts as endless. Time in which the thread waits for a processor does not count.
pub(super) const RETURNS: Duration = Duration::from_millis(150);
/// A hanging thread counts as waiting, not as running, if it uses less CPU time than [`RETURNS`]
/// divided by this number while the call that does not return is searched for.
const WAITING_DIVISOR: u32 = 8;
/// Time in which a call must return when the cause of an exceeded memory limit is searched for;
/// otherwise the call counts as endless. The time is long compared to one memory allocation, and
/// short enough not to exhaust the machine's memory.
pub(super) const OOM_RETURNS: Duration = Duration::from_millis(10);
/// Maximum time of the search for the call that does not return, without time in which the thread
/// waits for a processor.
const ALL: Duration = Duration::from_secs(1);
/// Maximum number of steps outwards in the search for the call that does not return. Each step
/// waits until a call returns or the thread leaves a loop.
const HOPS: usize = 40;
/// Maximum number of times that deeper calls of the same function may hit the breakpoint at which a
/// call's return is detected; after that, the call counts as endless, because each hit takes long.
const PASSES: u32 = 500;
/// Number of times that deeper calls of the same function may leave the watched loop, at whose
/// exits breakpoints are. Then the breakpoints are removed: a function with so much recursion is
/// not identified by one of its loops.
const STRAYS: u32 = 100;
/// Maximum number of attempts to read the whole stack of a hanging thread.
const READINGS: u32 = 5;
/// Time for which the run continues between two attempts to read the whole stack of a hanging
/// thread.
const BETWEEN: Duration = Duration::from_millis(2);

/// The result of waiting until a call returns or a loop in it is left.
enum WaitResult {
    /// The call that was waited for has returned; holds its thread, stopped directly after the
    /// return.
    Call(StoppedThread),
    /// The loop was left at this address, inside the same call, and the thread is stopped there,
    /// before it has returned from the call.
    Loop(StoppedThread, u64),
    /// In the given time, neither did the call return nor was the loop left. Holds the thread,
    /// which was stopped; `None` if it could not be stopped.
    No(Option<StoppedThread>),
}

/// Parameters of the search for the innermost call of a thread that does not return (the step-out
/// test).
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// Time in which a call must return; otherwise it counts as endless. Time in which the thread
    /// waits for a processor does not count.
    pub returns: Duration,
    /// Whether the search looks not only for the call that does not return, but also for the loop
    /// in its function that does not end.
    pub loops: bool,
}

/// The innermost call of a hanging thread that does not return: the thread's stack, the index of
/// the call in the stack, and the endless loop. During the search for this call, it is the call
/// that the search has reached so far.
pub(super) struct StuckCall {
    /// Stack of the hanging thread, as it was read last.
    pub stack: Stack,
    /// Index, in the stack of the hanging thread, of the call that does not return; 0 is the
    /// innermost call.
    pub level: usize,
    /// The loop that does not end, in the function of the call that does not return; `None` if none
    /// is known.
    pub endless: Option<Loop>,
}

/// The state of waiting, in one thread, until a call returns or a loop in it is left.
struct Waiting<'t> {
    tid: Pid,
    process: Pid,
    trap: &'t ReturnTrap,
    /// Breakpoints at the exits of the loop whose end is waited for; empty if only the return of a
    /// call is waited for.
    exits: Vec<Breakpoint>,
    /// Other threads of the process that hit a breakpoint and stay stopped until the wait is over.
    stopped_threads: Vec<Pid>,
    /// The breakpoint that is lifted while the thread makes a single step over its instruction,
    /// after a deeper call hit it; `None` if the thread runs freely.
    steps: Option<Breakpoint>,
    passes: u32,
    /// Number of times so far that a deeper call of the same function, and not the call that is
    /// watched, has left the watched loop.
    strays: u32,
}

/// What the hit of a watchpoint or breakpoint shows: the return of a call, or the exit of a loop.
enum TrapHit {
    /// The hit shows that the call for whose return the search waits has returned.
    Return,
    /// The hit shows that the loop for whose end the search waits was left, at this address.
    Exit(u64),
}

impl Tracer<'_> {
    /// Returns a snapshot that identifies a hang in which all threads sleep: the stack of the
    /// thread for which the others wait. `None` if the run ended too early. `slept_at`: the thread
    /// that the watchdog interrupted, and its stack at that moment, which is used if that thread is
    /// the one that the others wait for.
    pub(super) fn name_sleeping_hang(
        &mut self,
        slept_at: Option<(Pid, Stack)>,
    ) -> Option<Snapshot> {
        let tid = self.hanging_thread(true).ok().flatten()?;
        let stack = match slept_at {
            Some((interrupted, stack)) if interrupted == tid => stack,
            _ => self.readable_stack(tid).ok()?.1,
        };
        Some(stack.snapshot(0, Event::OutOfTime, tid, self.cache))
    }

    /// Finds the innermost call that does not return in a hang whose thread uses the processor, and
    /// returns a snapshot that begins at this call and so identifies the hang; `None` if the run
    /// ended too early.
    pub(super) fn name_running_hang(&mut self) -> Option<Snapshot> {
        let tid = self.hanging_thread(false).ok().flatten()?;
        let (halted, stack) = self.readable_stack(tid).ok()?;
        let first = stack.snapshot(0, Event::OutOfTime, tid, self.cache);
        let test = Test {
            returns: RETURNS,
            loops: true,
        };
        let before = Scheduled::of(tid).cpu;
        // If the thread ends during the search, the snapshot from before the search is all there
        // is.
        let Ok(stuck) = self.step_out(halted, stack, test) else {
            return Some(first);
        };
        let level = outermost(&stuck.stack, stuck.level);
        let mut snapshot = stuck
            .stack
            .snapshot(level, Event::OutOfTime, tid, self.cache);
        // No loop is recorded for a frame that stands for a recursion, nor for a thread that waits:
        // the loop around the call that waits does not hold it. On a busy machine a thread may have
        // run for a moment before it waits.
        let ran = Scheduled::of(tid).cpu.saturating_sub(before);
        let runs = ran * WAITING_DIVISOR >= RETURNS;
        let endless = stuck.endless.filter(|_| level == stuck.level && runs);
        snapshot.endless = endless
            .zip(stuck.stack.calls.get(level))
            .and_then(in_module);
        Some(snapshot)
    }

    /// Finds the innermost call of the stopped thread `halted` that does not return within
    /// `test.returns`, and, with `test.loops`, the loop in it that does not end: resumes the thread
    /// until its innermost call has returned, then the call around it, and so on. If the search
    /// takes too long or the stack cannot be read further, returns the call that it has reached.
    ///
    /// # Errors
    /// When the thread or the run has ended.
    pub(super) fn step_out(
        &mut self,
        mut halted: StoppedThread,
        stack: Stack,
        test: Test,
    ) -> nix::Result<StuckCall> {
        let tid = halted.tid;
        let mut time = ActiveTime::of(tid);
        let mut loops = self.loops_at(stack.calls.first(), tid, test);
        let mut stuck = StuckCall::at_innermost(stack);
        for _ in 0..HOPS {
            if stuck.is_at_an_unclean_end() {
                // The thread has left the frames whose stack could not be read, so more of it may
                // be readable now.
                let Some(again) = Stack::of(tid, self.cache) else {
                    break;
                };
                (stuck.stack, stuck.level) = (again, 0);
                loops = self.loops_at(stuck.stack.calls.first(), tid, test);
            }
            let Some((here, caller)) = stuck.call() else {
                break;
            };
            let endless = loops.around(here.address()).first().copied().cloned();
            let Ok(trap) = ReturnTrap::set(tid, &caller) else {
                break;
            };
            let exits = endless.iter().flat_map(|it| &it.exits);
            let exits = exits
                .filter_map(|exit| here.breakpoint(tid, *exit))
                .collect();
            match self.wait(halted, &trap, exits, &mut time, test.returns)? {
                WaitResult::Call(at) => {
                    (halted, stuck.level) = (at, stuck.level + 1);
                    loops = self.loops_at(stuck.stack.calls.get(stuck.level), tid, test);
                }
                WaitResult::Loop(at, pc) => {
                    halted = at;
                    stuck.stack.calls[stuck.level].moved_to(pc);
                }
                // The thread may have come to another loop of this call since its stack was read.
                WaitResult::No(Some(at))
                    if endless.is_none()
                        && self.look_again(&mut stuck, tid, &caller)
                        && !loops.around(stuck.address()).is_empty() =>
                {
                    halted = at;
                }
                WaitResult::No(_) => {
                    stuck.endless = endless;
                    break;
                }
            }
            if time.look() >= ALL {
                break;
            }
        }
        Ok(stuck)
    }

    /// Returns the loops in the function of the stack frame `level`; empty if there is no such
    /// frame, or if `test` asks only for calls that do not return and not for endless loops.
    fn loops_at(&mut self, level: Option<&ActiveCall>, tid: Pid, test: Test) -> Loops {
        let level = level.filter(|_| test.loops);
        level
            .map(|level| self.loops_of(tid, level))
            .unwrap_or_default()
    }

    /// Reads the stack of the stopped thread `tid` again into `stuck`, and sets the index in
    /// `stuck` to the call that the frame `caller` made. Returns false, and leaves `stuck` as it
    /// is, if that call has returned or the stack cannot be read.
    fn look_again(&mut self, stuck: &mut StuckCall, tid: Pid, caller: &ActiveCall) -> bool {
        let Some(again) = Stack::of(tid, self.cache) else {
            return false;
        };
        let at = again.calls.iter().position(|it| it.place == caller.place);
        let Some(level) = at.and_then(|at| at.checked_sub(1)) else {
            return false;
        };
        (stuck.stack, stuck.level) = (again, level);
        true
    }

    /// Stops the thread `tid` and reads its stack; returns the stopped thread and the stack. If the
    /// stack cannot be read completely, lets the thread run for a moment and tries again, up to
    /// five times; the stack of the last attempt may be incomplete.
    pub(super) fn readable_stack(&mut self, tid: Pid) -> nix::Result<(StoppedThread, Stack)> {
        let mut reading = 1;
        loop {
            let halted = self.halt(tid)?;
            let stack = Stack::of(tid, self.cache).ok_or(Errno::ESRCH)?;
            if stack.calls.len() > 1 || stack.end == End::Clean || reading == READINGS {
                return Ok((halted, stack));
            }
            reading += 1;
            halted.resume();
            self.let_run(BETWEEN)?;
        }
    }

    /// Resumes the stopped thread `halted`, and stops it again when one of three things occurs: the
    /// call returns that `trap` detects; the loop is left at one of `exits`; or the duration
    /// `returns`, measured by `time`, is over. Returns which of them it was ([`WaitResult`]), and
    /// removes all traps.
    ///
    /// # Errors
    /// When the thread or the run has ended.
    fn wait(
        &mut self,
        halted: StoppedThread,
        trap: &ReturnTrap,
        exits: Vec<Breakpoint>,
        time: &mut ActiveTime,
        returns: Duration,
    ) -> nix::Result<WaitResult> {
        let tid = halted.tid;
        let mut waiting = Waiting {
            tid,
            process: self.threads.process(tid),
            trap,
            exits,
            stopped_threads: Vec::new(),
            steps: None,
            passes: 0,
            strays: 0,
        };
        time.go_on();
        let end = time.look() + returns;
        halted.resume();
        let left = self.await_any(&mut waiting, time, end)?;
        if !matches!(left, WaitResult::No(None)) {
            waiting.clear();
        }
        Ok(left)
    }

    fn await_any(
        &mut self,
        waiting: &mut Waiting<'_>,
        time: &mut ActiveTime,
        end: Duration,
    ) -> nix::Result<WaitResult> {
        let tid = waiting.tid;
        while waiting.passes < PASSES {
            match self.next_event()? {
                None if time.look() >= end => break,
                None => {}
                Some((thread, status)) if !libc::WIFSTOPPED(status) => {
                    self.handle_event(thread, status);
                    if thread == tid {
                        return Err(Errno::ESRCH);
                    }
                }
                Some((thread, status)) => {
                    let halted = StoppedThread { tid, signal: 0 };
                    match self.meets(waiting, thread, status) {
                        Some(TrapHit::Return) => return Ok(WaitResult::Call(halted)),
                        Some(TrapHit::Exit(pc)) => return Ok(WaitResult::Loop(halted, pc)),
                        None => {}
                    }
                }
            }
        }
        Ok(WaitResult::No(self.halt(tid).ok()))
    }

    /// Handles a stop of the thread `thread` with the wait status `status`, while the return of a
    /// call or the end of a loop is awaited (`waiting`). Returns which of the two has happened, if
    /// the stop shows it; else resumes the thread and returns `None`.
    fn meets(&mut self, waiting: &mut Waiting<'_>, thread: Pid, status: i32) -> Option<TrapHit> {
        let trapped = status >> 16 == 0 && libc::WSTOPSIG(status) == libc::SIGTRAP;
        if let ReturnTrap::Watch(place) = waiting.trap
            && trapped
            && thread == waiting.tid
            && is_at_watchpoint(thread)
        {
            let left = ReturnTrap::has_left_call(thread, *place);
            if !left {
                resume(libc::PTRACE_CONT, thread, 0);
            }
            return left.then_some(TrapHit::Return);
        }
        if trapped && let Some(breakpoint) = waiting.breakpoint_met(thread) {
            return waiting.handle_hit(&breakpoint, thread, self.threads.process(thread));
        }
        let stepped = waiting.steps.filter(|_| thread == waiting.tid);
        let Some(breakpoint) = stepped else {
            self.handle_event(thread, status);
            return None;
        };
        let signal = match trapped {
            true => 0,
            false => self.pending(thread, status),
        };
        if signal == 0 {
            waiting.steps = None;
            // A thread that was killed meanwhile has no code any more.
            let _ = breakpoint.put_back(thread);
            resume(libc::PTRACE_CONT, thread, 0);
        } else {
            resume(libc::PTRACE_SINGLESTEP, thread, signal);
        }
        None
    }
}

impl StuckCall {
    /// Returns the beginning of a search for the call that does not return: at the innermost call
    /// of `stack`, without a known loop.
    fn at_innermost(stack: Stack) -> StuckCall {
        StuckCall {
            stack,
            level: 0,
            endless: None,
        }
    }

    /// Returns true if the search for the call that does not return has come to the outermost frame
    /// that could be read, although the stack has further frames.
    fn is_at_an_unclean_end(&self) -> bool {
        self.level > 0 && self.level + 1 >= self.stack.calls.len() && self.stack.end != End::Clean
    }

    /// Returns two stack frames: that of the call which the search for the endless call has
    /// reached, and that of its caller; `None` if there is no known caller.
    fn call(&self) -> Option<(ActiveCall, ActiveCall)> {
        let level = |at: usize| self.stack.calls.get(at).cloned();
        level(self.level).zip(level(self.level + 1))
    }

    fn address(&self) -> u64 {
        let level = self.stack.calls.get(self.level);
        level.map_or(0, ActiveCall::address)
    }
}

impl Waiting<'_> {
    /// Ends the wait for the return of a call: removes all watchpoints and breakpoints from the
    /// thread, which must be stopped, and resumes the other threads that were kept stopped.
    fn clear(&mut self) {
        self.trap.remove(self.tid);
        self.lift_exits();
        for held in self.stopped_threads.drain(..) {
            resume(libc::PTRACE_CONT, held, 0);
        }
    }

    fn lift_exits(&mut self) {
        for exit in self.exits.drain(..) {
            exit.lift(self.tid);
        }
    }

    /// Returns the breakpoint by which the thread `thread` has stopped, among those that were set
    /// to see the awaited call return or the loop end; `None` if it stopped for another reason.
    fn breakpoint_met(&self, thread: Pid) -> Option<Breakpoint> {
        let of_the_call = match self.trap {
            ReturnTrap::Breakpoint(breakpoint) => Some(breakpoint),
            ReturnTrap::Watch(_) => None,
        };
        let mut all = of_the_call.into_iter().chain(&self.exits);
        all.find(|it| it.was_met(thread)).copied()
    }

    /// Handles a hit of `breakpoint` by the thread `thread` of the process `process`. Returns
    /// [`TrapHit`] if the hit shows that the awaited call has returned, or that its loop was left.
    /// Otherwise resumes the thread and returns `None`. A thread of the same process that does not
    /// make the awaited call stays stopped: to run on, it would need the breakpoint removed.
    fn handle_hit(
        &mut self,
        breakpoint: &Breakpoint,
        thread: Pid,
        process: Pid,
    ) -> Option<TrapHit> {
        let is_exit = self.exits.iter().any(|it| it.place == breakpoint.place);
        if thread == self.tid {
            if breakpoint.has_left_call(thread) {
                return Some(match is_exit {
                    true => TrapHit::Exit(breakpoint.place.pc),
                    false => TrapHit::Return,
                });
            }
            // A deeper call of the same function.
            match is_exit {
                true => self.strays += 1,
                false => self.passes += 1,
            }
            if self.strays < STRAYS {
                self.steps = Some(*breakpoint);
                breakpoint.lift(thread);
                resume(libc::PTRACE_SINGLESTEP, thread, 0);
            } else {
                // A function that calls itself so often is not identified by one of its loops.
                self.lift_exits();
                resume(libc::PTRACE_CONT, thread, 0);
            }
        } else if process == self.process {
            // To run on, this thread would need the breakpoint removed that the other thread has
            // yet to hit.
            self.stopped_threads.push(thread);
        } else {
            // A copy of the process has got copies of the breakpoints.
            breakpoint.lift(thread);
            resume(libc::PTRACE_CONT, thread, 0);
        }
        None
    }
}

/// Converts the addresses of a loop to offsets in the module of its function; `level` is the stack
/// frame of the function. `None` if the module of that frame is not known.
fn in_module((endless, level): (Loop, &ActiveCall)) -> Option<Endless> {
    let bias = level.address().wrapping_sub(level.frame.as_ref()?.offset);
    let offset = |address: &u64| address.wrapping_sub(bias);
    Some(Endless {
        head: offset(&endless.head),
        pieces: endless.blocks.iter().map(offset).collect(),
    })
}

/// Checks whether the stopped thread `tid` was stopped by a hardware watchpoint.
fn is_at_watchpoint(tid: Pid) -> bool {
    const TRAP_HWBKPT: i32 = 4;
    nix::sys::ptrace::getsiginfo(tid).is_ok_and(|info| info.si_code == TRAP_HWBKPT)
}
