//! The step-out test: of the calls that are under way, the innermost one that does not return, and
//! of the loops of its function the innermost one that is not left.

use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::outermost;
use crate::capture::Tracer;
use crate::hang::loops::Loop;
use crate::hang::loops::Loops;
use crate::hang::stack::Level;
use crate::hang::stack::Stack;
use crate::hang::threads::ActiveTime;
use crate::hang::threads::Halted;
use crate::hang::threads::Scheduled;
use crate::hang::trap::Breakpoint;
use crate::hang::trap::Trap;
use crate::snapshot::{End, Endless, Event, Snapshot};
use ddfuzz_exec::tracing::resume;

/// Active time in which a call that is not the loop returns.
pub(super) const RETURNS: Duration = Duration::from_millis(150);
/// A thread that runs for less than one part in so many of that waits.
const WAITS: u32 = 8;
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
/// How often deeper calls of a function may leave their loops before these are watched no more.
const STRAYS: u32 = 100;
/// How often a stack is read again that could not be read to its end.
const READINGS: u32 = 5;
/// Time between two of these readings.
const BETWEEN: Duration = Duration::from_millis(2);

/// What became of what is waited for.
enum Left {
    /// The call was left; the thread is stopped behind it.
    Call(Halted),
    /// The loop was, while the call goes on: the thread is stopped here.
    Loop(Halted, u64),
    /// Neither was. The thread is stopped, if it can be.
    No(Option<Halted>),
}

/// How a thread is tested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// Active time that a call has to return in.
    pub returns: Duration,
    /// Whether loops are told apart.
    pub loops: bool,
}

/// Where a thread stands that does not come on.
pub(super) struct Stuck {
    /// Its calls.
    pub stack: Stack,
    /// The innermost one that is not left.
    pub level: usize,
    /// The loop in it that is not left.
    pub endless: Option<Loop>,
}

/// A thread in which a call, and a loop of its function, are waited for.
struct Waiting<'t> {
    tid: Pid,
    process: Pid,
    trap: &'t Trap,
    /// Behind the loop.
    exits: Vec<Breakpoint>,
    /// Other threads that have met a breakpoint.
    held: Vec<Pid>,
    /// The breakpoint that the thread makes one step over.
    steps: Option<Breakpoint>,
    passes: u32,
    /// Deeper calls of the function that have left their loop.
    strays: u32,
}

/// What a thread has met.
enum Met {
    /// The return of the call.
    Return,
    /// This place behind the loop.
    Exit(u64),
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
        let test = Test {
            returns: RETURNS,
            loops: true,
        };
        let before = Scheduled::of(tid).cpu;
        // It may be about to end by itself: where it stood first is all there is then.
        let Ok(stuck) = self.step_out(halted, stack, test) else {
            return Some(first);
        };
        let level = outermost(&stuck.stack, stuck.level);
        let mut snapshot = stuck
            .stack
            .snapshot(level, Event::OutOfTime, tid, self.cache);
        // What stands for a recursion has no loop of its own; and who waits is not held by the loop
        // around the call that waits: on a busy machine such a thread may have run just before.
        let ran = Scheduled::of(tid).cpu.saturating_sub(before);
        let runs = ran * WAITS >= RETURNS;
        let endless = stuck.endless.filter(|_| level == stuck.level && runs);
        snapshot.endless = endless
            .zip(stuck.stack.levels.get(level))
            .and_then(in_module);
        Some(snapshot)
    }

    /// The innermost call of a stopped thread that is not left in the time that calls are given to
    /// return, and the stack that it is counted in.
    ///
    /// # Errors
    /// When the thread or the run has ended.
    pub(super) fn step_out(
        &mut self,
        mut halted: Halted,
        stack: Stack,
        test: Test,
    ) -> nix::Result<Stuck> {
        let tid = halted.tid;
        let mut time = ActiveTime::of(tid);
        let mut loops = self.loops_at(stack.levels.first(), tid, test);
        let mut stuck = Stuck::at_the_innermost_call(stack);
        for _ in 0..HOPS {
            if stuck.is_at_an_unclean_end() {
                // From outside the frames whose stack could not be read it may look better.
                let Some(again) = Stack::of(tid, self.cache) else {
                    break;
                };
                (stuck.stack, stuck.level) = (again, 0);
                loops = self.loops_at(stuck.stack.levels.first(), tid, test);
            }
            let Some((here, caller)) = stuck.call() else {
                break;
            };
            let endless = loops.around(here.address()).first().copied().cloned();
            let Ok(trap) = Trap::set(tid, &caller) else {
                break;
            };
            let exits = endless.iter().flat_map(|it| &it.exits);
            let exits = exits
                .filter_map(|exit| here.breakpoint(tid, *exit))
                .collect();
            match self.wait(halted, &trap, exits, &mut time, test.returns)? {
                Left::Call(at) => {
                    (halted, stuck.level) = (at, stuck.level + 1);
                    loops = self.loops_at(stuck.stack.levels.get(stuck.level), tid, test);
                }
                Left::Loop(at, pc) => {
                    halted = at;
                    stuck.stack.levels[stuck.level].moved_to(pc);
                }
                // It may have come to another loop of this call since it was looked at.
                Left::No(Some(at))
                    if endless.is_none()
                        && self.look_again(&mut stuck, tid, &caller)
                        && !loops.around(stuck.address()).is_empty() =>
                {
                    halted = at;
                }
                Left::No(_) => {
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

    /// The loops around where a call stands; none where a test asks for none.
    fn loops_at(&mut self, level: Option<&Level>, tid: Pid, test: Test) -> Loops {
        let level = level.filter(|_| test.loops);
        level
            .map(|level| self.loops_of(tid, level))
            .unwrap_or_default()
    }

    /// Reads the stack of a stopped thread again, up to the call below `caller`; gives whether that
    /// is still there.
    fn look_again(&mut self, stuck: &mut Stuck, tid: Pid, caller: &Level) -> bool {
        let Some(again) = Stack::of(tid, self.cache) else {
            return false;
        };
        let at = again.levels.iter().position(|it| it.place == caller.place);
        let Some(level) = at.and_then(|at| at.checked_sub(1)) else {
            return false;
        };
        (stuck.stack, stuck.level) = (again, level);
        true
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

    /// Lets a thread go on until a call, or a loop in it, is left, or has had its time.
    ///
    /// # Errors
    /// When the thread or the run has ended.
    fn wait(
        &mut self,
        halted: Halted,
        trap: &Trap,
        exits: Vec<Breakpoint>,
        time: &mut ActiveTime,
        returns: Duration,
    ) -> nix::Result<Left> {
        let tid = halted.tid;
        let mut waiting = Waiting {
            tid,
            process: self.family.process(tid),
            trap,
            exits,
            held: Vec::new(),
            steps: None,
            passes: 0,
            strays: 0,
        };
        time.go_on();
        let end = time.look() + returns;
        halted.resume();
        let left = self.await_any(&mut waiting, time, end)?;
        if !matches!(left, Left::No(None)) {
            waiting.clear();
        }
        Ok(left)
    }

    fn await_any(
        &mut self,
        waiting: &mut Waiting<'_>,
        time: &mut ActiveTime,
        end: Duration,
    ) -> nix::Result<Left> {
        let tid = waiting.tid;
        while waiting.passes < PASSES {
            match self.next_event()? {
                None if time.look() >= end => break,
                None => {}
                Some((thread, status)) if !libc::WIFSTOPPED(status) => {
                    self.happened(thread, status);
                    if thread == tid {
                        return Err(Errno::ESRCH);
                    }
                }
                Some((thread, status)) => {
                    let halted = Halted { tid, signal: 0 };
                    match self.meets(waiting, thread, status) {
                        Some(Met::Return) => return Ok(Left::Call(halted)),
                        Some(Met::Exit(pc)) => return Ok(Left::Loop(halted, pc)),
                        None => {}
                    }
                }
            }
        }
        Ok(Left::No(self.halt(tid).ok()))
    }

    /// Takes a stop of any thread: gives what the one that is waited for has met, else lets it go
    /// on.
    fn meets(&mut self, waiting: &mut Waiting<'_>, thread: Pid, status: i32) -> Option<Met> {
        let trapped = status >> 16 == 0 && libc::WSTOPSIG(status) == libc::SIGTRAP;
        if let Trap::Watch(place) = waiting.trap
            && trapped
            && thread == waiting.tid
            && by_watch(thread)
        {
            let left = Trap::is_left(thread, *place);
            if !left {
                resume(libc::PTRACE_CONT, thread, 0);
            }
            return left.then_some(Met::Return);
        }
        if trapped && let Some(breakpoint) = waiting.breakpoint_met(thread) {
            return waiting.met(&breakpoint, thread, self.family.process(thread));
        }
        let stepped = waiting.steps.filter(|_| thread == waiting.tid);
        let Some(breakpoint) = stepped else {
            self.happened(thread, status);
            return None;
        };
        let signal = if trapped {
            0
        } else {
            self.pending(thread, status)
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

impl Stuck {
    fn at_the_innermost_call(stack: Stack) -> Stuck {
        Stuck {
            stack,
            level: 0,
            endless: None,
        }
    }

    /// Whether the stack was read up to the frame of this call, and there was more of it.
    fn is_at_an_unclean_end(&self) -> bool {
        self.level > 0 && self.level + 1 >= self.stack.levels.len() && self.stack.end != End::Clean
    }

    /// The call that is waited for, and its caller.
    fn call(&self) -> Option<(Level, Level)> {
        let level = |at: usize| self.stack.levels.get(at).cloned();
        level(self.level).zip(level(self.level + 1))
    }

    fn address(&self) -> u64 {
        let level = self.stack.levels.get(self.level);
        level.map_or(0, Level::address)
    }
}

impl Waiting<'_> {
    /// Takes all traps away from the stopped thread.
    fn clear(&mut self) {
        self.trap.remove(self.tid);
        self.lift_exits();
        for held in self.held.drain(..) {
            resume(libc::PTRACE_CONT, held, 0);
        }
    }

    fn lift_exits(&mut self) {
        for exit in self.exits.drain(..) {
            exit.lift(self.tid);
        }
    }

    /// The breakpoint that a stopped thread has met.
    fn breakpoint_met(&self, thread: Pid) -> Option<Breakpoint> {
        let of_the_call = match self.trap {
            Trap::Breakpoint(breakpoint) => Some(breakpoint),
            Trap::Watch(_) => None,
        };
        let mut all = of_the_call.into_iter().chain(&self.exits);
        all.find(|it| it.was_met(thread)).copied()
    }

    /// A thread has met the breakpoint, and stands before it.
    fn met(&mut self, breakpoint: &Breakpoint, thread: Pid, process: Pid) -> Option<Met> {
        let is_exit = self.exits.iter().any(|it| it.place == breakpoint.place);
        if thread == self.tid {
            if breakpoint.is_left(thread) {
                return Some(match is_exit {
                    true => Met::Exit(breakpoint.place.pc),
                    false => Met::Return,
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
                // What calls itself so often is not told by a loop.
                self.lift_exits();
                resume(libc::PTRACE_CONT, thread, 0);
            }
        } else if process == self.process {
            // It would have to run where the other one is waited for.
            self.held.push(thread);
        } else {
            // A copy of the process has got copies of the breakpoints.
            breakpoint.lift(thread);
            resume(libc::PTRACE_CONT, thread, 0);
        }
        None
    }
}

/// The loop by offsets in the module of its call.
fn in_module((endless, level): (Loop, &Level)) -> Option<Endless> {
    let bias = level.address().wrapping_sub(level.frame.as_ref()?.offset);
    let offset = |address: &u64| address.wrapping_sub(bias);
    Some(Endless {
        head: offset(&endless.head),
        pieces: endless.pieces.iter().map(offset).collect(),
    })
}

/// Whether a thread was stopped by the watch on its memory.
fn by_watch(tid: Pid) -> bool {
    const TRAP_HWBKPT: i32 = 4;
    nix::sys::ptrace::getsiginfo(tid).is_ok_and(|info| info.si_code == TRAP_HWBKPT)
}
