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
use crate::hang::step_out::{OOM_RETURNS, StuckCall, Test};
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
    /// Handles the watchdog's interrupt of a run: takes the snapshot that identifies the hang or
    /// memory blow-up, makes it the result of the trace, and kills all processes of the run. The
    /// thread `interrupted` is stopped by the watchdog's signal; `reason` is the limit that the run
    /// exceeded.
    pub(super) fn cut_off(&mut self, reason: InterruptReason, interrupted: Pid) {
        // Once resumed, its system call fails with `EINTR`, and the program runs on.
        let slept_at = match reason {
            InterruptReason::Asleep => Stack::of(interrupted, self.cache),
            InterruptReason::Running | InterruptReason::Delayed | InterruptReason::Memory => None,
        };
        resume(libc::PTRACE_CONT, interrupted, 0);
        let (ended, snapshot) = match reason {
            InterruptReason::Running | InterruptReason::Delayed => {
                (Ended::Timeout, self.name_running_hang())
            }
            InterruptReason::Asleep => {
                let slept_at = slept_at.map(|stack| (interrupted, stack));
                (Ended::Timeout, self.name_sleeping_hang(slept_at))
            }
            InterruptReason::Memory => (Ended::OutOfMemory, self.name_blow_up()),
        };
        let snapshot = snapshot.map(Box::new);
        self.interrupted = Some(Trace {
            ended,
            snapshot,
            wrapper: None,
        });
        for (_, process) in self.threads.threads() {
            self.kill(process);
        }
    }

    /// Kills the traced process `process` with `SIGKILL`, after the run exceeded a limit.
    pub(super) fn kill(&self, process: Pid) {
        // Our tracee, so its id means nobody else until we have taken its end.
        let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
    }

    /// Takes a snapshot of the thread `tid` if its process is the first of the run to stop itself
    /// (`SIGSTOP`). The snapshot is used if the process is never continued and has to be killed.
    pub(super) fn note_stopped(&mut self, tid: Pid) {
        if self.stopped.is_none() {
            let stack = Stack::of(tid, self.cache);
            self.stopped = stack.map(|it| it.snapshot(0, Event::OutOfTime, tid, self.cache));
            self.request.note_stopped();
        }
    }
}

/// Why the watchdog interrupts a run: which limit it exceeded, and whether it was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptReason {
    /// The run exceeded its limit on CPU time.
    Running = 1,
    /// The run exceeded its limit on elapsed time, and none of its threads has run for some time.
    Asleep,
    /// The run uses more memory than its memory limit allows.
    Memory,
    /// The run exceeded its limit on elapsed time but not that on CPU time, and its threads have
    /// run meanwhile: it may be slow only because it is traced or the machine is busy.
    Delayed,
}

/// Value carried by the `SIGSTOP` with which the watchdog interrupts a run; it distinguishes the
/// signal from a `SIGSTOP` that the target sends.
pub(crate) const COOKIE: usize = 0xddf2;

/// Bit in the encoded request to interrupt a run; the tracing thread sets it when it takes the
/// request.
const TAKEN: u8 = 8;

/// A request to interrupt a run that exceeds a limit: made once by the watchdog's thread, and taken
/// by the thread that traces the run.
#[derive(Debug)]
pub(crate) struct CutOffRequest {
    word: AtomicU8,
    /// Whether a process of the run has stopped itself, so that it may never react to the
    /// watchdog's signal.
    stopped: AtomicBool,
    /// Limit on the resident memory of each process of the run, in bytes. The tracing thread checks
    /// it too, when a process crashes.
    memory: u64,
}

impl CutOffRequest {
    /// Creates a request to interrupt a run, which the watchdog may make later. `memory`: limit on
    /// the resident memory of each process of the run, in bytes.
    pub(crate) fn within(memory: u64) -> CutOffRequest {
        CutOffRequest {
            word: AtomicU8::new(0),
            stopped: AtomicBool::new(false),
            memory,
        }
    }

    /// Returns the limit on the resident memory of each process of the run, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Makes the request to interrupt the run for the reason `reason`; only the first request
    /// counts.
    pub(crate) fn give(&self, reason: InterruptReason) {
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = self.word.compare_exchange(0, reason as u8, set, fetch);
    }

    /// Takes the watchdog's request to interrupt the run, so that it is obeyed only once, and
    /// returns its reason; `None` if there is none, or it was taken before.
    pub(crate) fn take(&self) -> Option<InterruptReason> {
        decode(self.word.fetch_or(TAKEN, Ordering::AcqRel))
    }

    /// Returns true if the tracing thread has already taken up the watchdog's request to interrupt
    /// the run.
    pub(crate) fn is_taken(&self) -> bool {
        self.word.load(Ordering::Acquire) & TAKEN != 0
    }

    /// Notes that a process of the run has stopped itself (by a signal such as SIGSTOP), so that it
    /// may not react to the signal by which the watchdog interrupts it.
    fn note_stopped(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Checks whether a process of the run has stopped itself; it may have been continued since.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns the reason for which the watchdog asked to interrupt the run, even if the tracing
    /// thread has taken the request already; `None` if the watchdog has not asked.
    pub(crate) fn given(&self) -> Option<InterruptReason> {
        decode(self.word.load(Ordering::Acquire) & !TAKEN)
    }
}

/// Decodes the number `word`, which encodes a request to interrupt a run, to the reason for the
/// request; `None` for 0 (no request) and for numbers with the bit that marks the request as taken.
fn decode(word: u8) -> Option<InterruptReason> {
    [
        InterruptReason::Running,
        InterruptReason::Asleep,
        InterruptReason::Memory,
        InterruptReason::Delayed,
    ]
    .into_iter()
    .find(|reason| *reason as u8 == word)
}

impl Tracer<'_> {
    /// Finds the innermost call of user code that does not return, in a run that exceeds its memory
    /// limit. Returns a snapshot that begins at this call, by which the memory blow-up is
    /// identified; `None` if the run ended too early.
    pub(super) fn name_blow_up(&mut self) -> Option<Snapshot> {
        let tid = self.largest_running_thread().ok().flatten()?;
        let (halted, stack) = self.readable_stack(tid).ok()?;
        let first = stack.snapshot(0, Event::OutOfMemory, tid, self.cache);
        let test = Test {
            returns: OOM_RETURNS,
            loops: false,
        };
        let Ok(StuckCall { stack, level, .. }) = self.step_out(halted, stack, test) else {
            return Some(first);
        };
        // In which function of the runtime it happens to be says nothing.
        let own = (level..stack.calls.len()).find(|level| stack.calls[*level].is_own());
        let level = outermost(&stack, own.unwrap_or(level));
        Some(stack.snapshot(level, Event::OutOfMemory, tid, self.cache))
    }

    /// Changes the event in `crash`, the snapshot of a crash of the process `process`, to "out of
    /// memory" if that process uses more memory than its limit: an allocation has then failed, and
    /// the program has given up. Whether the watchdog interrupts such a run before it crashes is
    /// chance, and must not change the event.
    pub(crate) fn blame_memory(&self, process: Pid, crash: &mut Snapshot) {
        if resident_memory(process) > self.request.memory() {
            crash.event = Event::OutOfMemory;
        }
    }

    /// Returns a thread of the process with the most resident memory in the run: the thread that
    /// uses the processor, else the first one. `None` if all threads of the run have ended.
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

/// Returns the index of the stack frame that identifies a hang. `level` is the index of the
/// innermost call that does not return, and mostly the result. If the function of that call is also
/// called inside of it, the whole recursion takes long (backtracking), and which of its calls does
/// not return is chance. Then the result is the index of the outermost call of any function in the
/// recursion.
fn outermost(stack: &Stack, level: usize) -> usize {
    let calls = &stack.calls;
    let Some(function) = calls.get(level).and_then(|level| level.function()) else {
        return level;
    };
    let inside = calls[..level].iter();
    let inside: HashSet<_> = inside.filter_map(|level| level.function()).collect();
    if !inside.contains(&function) {
        return level;
    }
    let outermost = calls.iter().rposition(|level| {
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
        request.give(InterruptReason::Memory);
        request.give(InterruptReason::Running);
        assert!(!request.is_taken());
        assert_eq!(request.take(), Some(InterruptReason::Memory));
        assert_eq!(request.take(), None);
        assert!(request.is_taken());
        assert_eq!(request.given(), Some(InterruptReason::Memory));
    }
}
