//! Finds the call that identifies a hang or a memory blow-up in a run that exceeds its limits
//! (docs/src/keys.md).
//!
//! The watchdog gives a [`CutOffRequest`] and interrupts the run. The tracing thread takes the
//! request, chooses the thread that hangs, and finds the innermost call that does not return (the
//! step-out test). A run within its limits executes none of this code.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use nix::unistd::Pid;

use crate::capture::{Trace, Tracer};
use crate::hang::stack::Stack;
use crate::hang::step_out::{EATING, StuckCall, Test};
use crate::snapshot::{Event, Snapshot};
use ddfuzz_exec::tracing::resume;
use ddfuzz_exec::{Ended, resident_memory};

mod breakpoint;
mod loops;
mod stack;
mod step_out;
mod threads;

pub(crate) use threads::sleeps;

impl Tracer<'_> {
    /// Takes the snapshot that identifies a hang or memory blow-up, makes it the result of the
    /// trace, and kills all processes of the run. The thread `interrupted` is stopped by the
    /// watchdog's signal.
    pub(super) fn cut_off(&mut self, cut: Cut, interrupted: Pid) {
        // Once resumed, its system call fails with `EINTR`, and the program runs on.
        let slept_at = match cut {
            Cut::Asleep => Stack::of(interrupted, self.cache),
            Cut::Running | Cut::Memory => None,
        };
        resume(libc::PTRACE_CONT, interrupted, 0);
        let (ended, snapshot) = match cut {
            Cut::Running => (Ended::Timeout, self.name_running_hang()),
            Cut::Asleep => {
                let slept_at = slept_at.map(|stack| (interrupted, stack));
                (Ended::Timeout, self.name_sleeping_hang(slept_at))
            }
            Cut::Memory => (Ended::OutOfMemory, self.name_blow_up()),
        };
        let snapshot = snapshot.map(Box::new);
        self.cut = Some(Trace { ended, snapshot });
        for (_, process) in self.threads.threads() {
            self.kill(process);
        }
    }

    /// Kills a traced process of an interrupted run with `SIGKILL`.
    pub(super) fn kill(&self, process: Pid) {
        // Our tracee, so its id means nobody else until we have taken its end.
        let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
    }

    /// Takes a snapshot of the first process of the run that stops itself (`SIGSTOP`), in case it
    /// is never continued and the run is killed.
    pub(super) fn note_stopped(&mut self, tid: Pid) {
        if self.stopped.is_none() {
            let stack = Stack::of(tid, self.cache);
            self.stopped = stack.map(|it| it.snapshot(0, Event::OutOfTime, tid, self.cache));
            self.request.note_stopped();
        }
    }
}

/// Why the watchdog interrupts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The run exceeded its time limit, and at least one of its threads still uses the processor.
    Running = 1,
    /// The run exceeded its time limit, and none of its threads has run for some time.
    Asleep,
    /// The run uses more memory than its limit.
    Memory,
}

/// Value carried by the watchdog's `SIGSTOP`, which distinguishes it from a `SIGSTOP` of the
/// target.
pub(crate) const COOKIE: usize = 0xddf2;

/// Bit by which the tracing thread marks a request to interrupt the run as taken.
const TAKEN: u8 = 8;

/// Request to interrupt a run that exceeds a limit: given once by the watchdog's thread, and taken
/// by the thread that traces the run.
#[derive(Debug)]
pub(crate) struct CutOffRequest {
    word: AtomicU8,
    /// Whether a process of the run has stopped itself, so that it may never react to a signal.
    stopped: AtomicBool,
    /// Limit on the resident memory of a process, in bytes. The tracer checks it too, when a
    /// process dies.
    memory: u64,
}

impl CutOffRequest {
    /// Creates an empty request for a run in which each process may use `memory` bytes.
    pub(crate) fn within(memory: u64) -> CutOffRequest {
        CutOffRequest {
            word: AtomicU8::new(0),
            stopped: AtomicBool::new(false),
            memory,
        }
    }

    /// Returns the run's limit on the resident memory of a process, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Requests to interrupt the run for the reason `cut`; only the first request counts.
    pub(crate) fn give(&self, cut: Cut) {
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = self.word.compare_exchange(0, cut as u8, set, fetch);
    }

    /// Takes the request and returns why to interrupt the run; `None` where nothing was requested,
    /// or the request was taken before.
    pub(crate) fn take(&self) -> Option<Cut> {
        decode(self.word.fetch_or(TAKEN, Ordering::AcqRel))
    }

    /// Checks whether the tracing thread has taken the request.
    pub(crate) fn is_taken(&self) -> bool {
        self.word.load(Ordering::Acquire) & TAKEN != 0
    }

    /// Notes that a process of the run has stopped itself.
    fn note_stopped(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Checks whether a process of the run has stopped itself; it may have been continued since.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns why the watchdog requested to interrupt the run, also if the request was taken;
    /// `None` where nothing was requested.
    pub(crate) fn given(&self) -> Option<Cut> {
        decode(self.word.load(Ordering::Acquire) & !TAKEN)
    }
}

/// Returns the reason for an interrupt that a number encodes; `None` for 0 and for numbers with the
/// bit that marks a request as taken.
fn decode(word: u8) -> Option<Cut> {
    [Cut::Running, Cut::Asleep, Cut::Memory]
        .into_iter()
        .find(|cut| *cut as u8 == word)
}

impl Tracer<'_> {
    /// Returns the snapshot that identifies a memory blow-up, by the innermost user call that does
    /// not return; `None` where the run ended too early.
    pub(super) fn name_blow_up(&mut self) -> Option<Snapshot> {
        let tid = self.largest_running_thread().ok().flatten()?;
        let (halted, stack) = self.readable_stack(tid).ok()?;
        let first = stack.snapshot(0, Event::OutOfMemory, tid, self.cache);
        let test = Test {
            returns: EATING,
            loops: false,
        };
        let Ok(StuckCall { stack, level, .. }) = self.step_out(halted, stack, test) else {
            return Some(first);
        };
        // In which function of the runtime it happens to be says nothing.
        let own = (level..stack.levels.len()).find(|level| stack.levels[*level].is_own());
        let level = outermost(&stack, own.unwrap_or(level));
        Some(stack.snapshot(level, Event::OutOfMemory, tid, self.cache))
    }

    /// Changes the event of a crash to "out of memory" if its process exceeds the memory limit: an
    /// allocation failed and the program gave up before the watchdog looked, which is a matter of
    /// chance.
    pub(crate) fn blame_memory(&self, process: Pid, crash: &mut Snapshot) {
        if resident_memory(process) > self.request.memory() {
            crash.event = Event::OutOfMemory;
        }
    }

    /// Returns the thread that runs in the process with the most resident memory; `None` where all
    /// threads have ended.
    fn largest_running_thread(&mut self) -> nix::Result<Option<Pid>> {
        let threads = self.threads.threads();
        let processes = threads.iter().map(|(_, process)| *process);
        let Some(process) = processes.max_by_key(|process| resident_memory(*process)) else {
            return Ok(None);
        };
        if threads.iter().filter(|(_, of)| *of == process).count() == 1 {
            return Ok(Some(process));
        }
        let busiest = self.hanging_thread(false)?;
        let busiest = busiest.filter(|tid| threads.contains(&(*tid, process)));
        Ok(busiest.or(Some(process)))
    }
}

/// Returns the index of the frame that stands for the endless call at index `level` of the stack:
/// usually `level` itself. If its function also occurs in calls inside it, the recursion as a whole
/// takes so long (backtracking), and which call is under way is chance; then it is the outermost
/// call of the recursive functions.
fn outermost(stack: &Stack, level: usize) -> usize {
    let levels = &stack.levels;
    let Some(function) = levels.get(level).and_then(|level| level.function()) else {
        return level;
    };
    let inside = levels[..level].iter();
    let inside: HashSet<_> = inside.filter_map(|level| level.function()).collect();
    if !inside.contains(&function) {
        return level;
    }
    let outermost = levels.iter().rposition(|level| {
        level.is_own() && level.function().is_some_and(|it| inside.contains(&it))
    });
    outermost.map_or(level, |outermost| outermost.max(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_order_counts_and_is_taken_once() {
        let request = CutOffRequest::within(0);
        request.give(Cut::Memory);
        request.give(Cut::Running);
        assert!(!request.is_taken());
        assert_eq!(request.take(), Some(Cut::Memory));
        assert_eq!(request.take(), None);
        assert!(request.is_taken());
        assert_eq!(request.given(), Some(Cut::Memory));
    }
}
