//! The step-out test: of the calls that are under way, the innermost one that does not return.

use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::clock::ActiveTime;
use super::probe::Halted;
use super::recursion;
use super::stack::Stack;
use super::trap::{Breakpoint, Trap};
use crate::exec::tracing::resume;
use crate::triage::capture::Tracer;
use crate::triage::snapshot::{End, Event, Snapshot};

/// Active time in which a call that is not the loop returns.
pub(super) const RETURNS: Duration = Duration::from_millis(150);
/// The same where each millisecond costs memory: long against one allocation, short against what
/// a machine has.
pub(super) const EATING: Duration = Duration::from_millis(10);
/// Active time of the whole test.
const ALL: Duration = Duration::from_secs(1);
/// The most calls that are left.
const HOPS: usize = 40;
/// How often a breakpoint may be met by deeper calls before it counts as never met by the one
/// that is waited for: meeting it takes long.
const PASSES: u32 = 500;
/// How often a stack is read again that could not be read to its end.
const READINGS: u32 = 5;
/// Time between two of these readings.
const BETWEEN: Duration = Duration::from_millis(2);

/// What became of a call.
enum Left {
    /// It was left; the thread is stopped there.
    Yes(Halted),
    /// It was not.
    No,
}

/// A thread in which a call is waited for.
struct Waiting<'t> {
    tid: Pid,
    process: Pid,
    trap: &'t Trap,
    /// Other threads that have met the breakpoint.
    held: Vec<Pid>,
    /// The thread makes one step over the breakpoint.
    steps: bool,
    passes: u32,
}

impl Tracer<'_> {
    /// What names the hang; `None` where the run has ended before anything could be found out.
    pub(super) fn name_hang(&mut self, asleep: bool) -> Option<Snapshot> {
        let tid = self.culprit(asleep).ok().flatten()?;
        let (halted, stack) = self.readable_stack(tid).ok()?;
        let first = stack.snapshot(0, Event::OutOfTime, tid, self.cache);
        if asleep {
            // It has not run for as long as a call is given to return.
            return Some(first);
        }
        // It may be about to end by itself: where it stood first is all there is then.
        let Ok((stack, level)) = self.step_out(halted, stack, RETURNS) else {
            return Some(first);
        };
        let level = recursion::outermost(&stack, level);
        Some(stack.snapshot(level, Event::OutOfTime, tid, self.cache))
    }

    /// The innermost call of a stopped thread that is not left in the time that calls are given to
    /// `return`, and the stack that it is counted in.
    ///
    /// # Errors
    /// When the thread or the run has ended.
    pub(super) fn step_out(
        &mut self,
        mut halted: Halted,
        mut stack: Stack,
        returns: Duration,
    ) -> nix::Result<(Stack, usize)> {
        let tid = halted.tid;
        let mut level = 0;
        let mut time = ActiveTime::of(tid);
        for _ in 0..HOPS {
            if level + 1 >= stack.levels.len() && stack.end != End::Clean && level > 0 {
                // From outside the frames whose stack could not be read it may look better.
                match Stack::of(tid, self.cache) {
                    Some(again) => (stack, level) = (again, 0),
                    None => break,
                }
            }
            let Some(caller) = stack.levels.get(level + 1).cloned() else {
                break;
            };
            let Ok(trap) = Trap::set(tid, &caller) else {
                break;
            };
            match self.wait_for_return(halted, &trap, &mut time, returns)? {
                Left::Yes(at) => (halted, level) = (at, level + 1),
                Left::No => break,
            }
            if time.look() >= ALL {
                break;
            }
        }
        Ok((stack, level))
    }

    /// Stops the thread where more can be read of its stack than where it stands, if possible.
    pub(super) fn readable_stack(&mut self, tid: Pid) -> nix::Result<(Halted, Stack)> {
        let mut reading = 1;
        loop {
            let halted = self.halt(tid)?;
            let stack = Stack::of(tid, self.cache).ok_or(Errno::ESRCH)?;
            if stack.levels.len() > 1 || stack.end == End::Clean || reading == READINGS {
                return Ok((halted, stack));
            }
            reading += 1;
            halted.resume();
            self.let_run(BETWEEN)?;
        }
    }

    /// Lets a thread go on until a call is left, or has had its time.
    ///
    /// # Errors
    /// When the thread or the run has ended.
    fn wait_for_return(
        &mut self,
        halted: Halted,
        trap: &Trap,
        time: &mut ActiveTime,
        returns: Duration,
    ) -> nix::Result<Left> {
        let tid = halted.tid;
        let mut waiting = Waiting {
            tid,
            process: self.family.process(tid),
            trap,
            held: Vec::new(),
            steps: false,
            passes: 0,
        };
        time.go_on();
        let end = time.look() + returns;
        halted.resume();
        while waiting.passes < PASSES {
            match self.next_event()? {
                None if time.look() >= end => return Ok(Left::No),
                None => {}
                Some((thread, status)) if !libc::WIFSTOPPED(status) => {
                    self.happened(thread, status);
                    if thread == tid {
                        return Err(Errno::ESRCH);
                    }
                }
                Some((thread, status)) if self.leaves(&mut waiting, thread, status) => {
                    trap.remove(tid);
                    for held in waiting.held {
                        resume(libc::PTRACE_CONT, held, 0);
                    }
                    return Ok(Left::Yes(Halted { tid, signal: 0 }));
                }
                Some(_) => {}
            }
        }
        Ok(Left::No)
    }

    /// Takes a stop of any thread: gives true where it is the one waited for, else lets it go on.
    fn leaves(&mut self, waiting: &mut Waiting<'_>, thread: Pid, status: i32) -> bool {
        let trapped = status >> 16 == 0 && libc::WSTOPSIG(status) == libc::SIGTRAP;
        match waiting.trap {
            Trap::Watch(place) if trapped && thread == waiting.tid && by_watch(thread) => {
                let left = Trap::is_left(thread, *place);
                if !left {
                    resume(libc::PTRACE_CONT, thread, 0);
                }
                left
            }
            Trap::Breakpoint(breakpoint) if trapped && breakpoint.was_met(thread) => {
                met(waiting, breakpoint, thread, self.family.process(thread))
            }
            Trap::Breakpoint(breakpoint) if waiting.steps && thread == waiting.tid => {
                let signal = if trapped {
                    0
                } else {
                    self.pending(thread, status)
                };
                if signal == 0 {
                    waiting.steps = false;
                    // A thread that was killed meanwhile has no code any more.
                    let _ = breakpoint.put_back(thread);
                    resume(libc::PTRACE_CONT, thread, 0);
                } else {
                    resume(libc::PTRACE_SINGLESTEP, thread, signal);
                }
                false
            }
            _ => {
                self.happened(thread, status);
                false
            }
        }
    }
}

/// Whether a thread was stopped by the watch on its memory.
fn by_watch(tid: Pid) -> bool {
    const TRAP_HWBKPT: i32 = 4;
    nix::sys::ptrace::getsiginfo(tid).is_ok_and(|info| info.si_code == TRAP_HWBKPT)
}

/// A thread has met the breakpoint, and stands before it.
fn met(waiting: &mut Waiting<'_>, breakpoint: &Breakpoint, thread: Pid, process: Pid) -> bool {
    if thread == waiting.tid {
        if breakpoint.is_left(thread) {
            return true;
        }
        // A deeper call of the same function.
        waiting.passes += 1;
        waiting.steps = true;
        breakpoint.lift(thread);
        resume(libc::PTRACE_SINGLESTEP, thread, 0);
    } else if process == waiting.process {
        // It would have to run where the other one is waited for.
        waiting.held.push(thread);
    } else {
        // A copy of the process has got a copy of the breakpoint.
        breakpoint.lift(thread);
        resume(libc::PTRACE_CONT, thread, 0);
    }
    false
}
