//! Where a run stands that is cut off: the step-out test for hangs and memory blow-ups
//! (crash-keys.md, "Capture" 5).
//!
//! The watchdog of a run gives an [`Order`] and interrupts it; the thread that traces it takes the
//! order, chooses the thread that matters, and finds the innermost call that is not left any more.
//! The passing path knows nothing of all this.

mod loops;
mod stack;
mod step_out;
mod threads;
mod trap;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::unistd::Pid;

use crate::capture::{Trace, Tracer};
use crate::hang::stack::Stack;
use crate::hang::step_out::{EATING, Stuck, Test};
use crate::snapshot::{Event, Snapshot};
use ddfuzz_exec::{Ended, resident_memory};

pub(crate) use threads::sleeps;

impl Tracer<'_> {
    /// Finds out where the run is, and ends it.
    pub(super) fn cut_off(&mut self, cut: Cut) {
        let (ended, snapshot) = match cut {
            Cut::Running => (Ended::Timeout, self.name_hang(false)),
            Cut::Asleep => (Ended::Timeout, self.name_hang(true)),
            Cut::Memory => (Ended::OutOfMemory, self.name_blow_up()),
        };
        let snapshot = snapshot.map(Box::new);
        self.cut = Some(Trace { ended, snapshot });
        for (_, process) in self.family.threads() {
            self.kill(process);
        }
    }

    /// Kills a process of a run that was cut off.
    pub(super) fn kill(&self, process: Pid) {
        // Our tracee, so its id means nobody else until we have taken its end.
        let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
    }

    /// What is known of a process that has stopped itself, should it never go on.
    pub(super) fn note_stopped(&mut self, tid: Pid) {
        if self.stopped.is_none() {
            self.stopped = self.place_of(tid, Event::OutOfTime);
        }
    }

    fn place_of(&mut self, tid: Pid, event: Event) -> Option<Snapshot> {
        let stack = stack::Stack::of(tid, self.cache)?;
        Some(stack.snapshot(0, event, tid, self.cache))
    }
}

/// Why a run is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its time is up, and it runs, if only now and then.
    Running,
    /// Its time is up, and none of its threads has run for some time.
    Asleep,
    /// It uses more memory than it may.
    Memory,
}

/// What the `SIGSTOP` that interrupts a run carries, by which it is told from the target's own.
pub(crate) const COOKIE: usize = 0xddf2;

const TAKEN: u8 = 8;

/// An order to find out where a run is, given once by one thread and taken by another.
#[derive(Debug)]
pub(crate) struct Order {
    word: AtomicU8,
    /// Resident memory that a process may have, in bytes: who traces it looks as well when it
    /// dies.
    memory: u64,
}

impl Order {
    /// None yet, for a run with this memory limit, in bytes.
    pub(crate) fn within(memory: u64) -> Order {
        Order {
            word: AtomicU8::new(0),
            memory,
        }
    }

    /// The memory limit, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Gives it; only the first one counts.
    pub(crate) fn give(&self, cut: Cut) {
        let code = match cut {
            Cut::Running => 1,
            Cut::Asleep => 2,
            Cut::Memory => 3,
        };
        // If there is one already, that one stays.
        let _ = self
            .word
            .compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Takes it, once.
    pub(crate) fn take(&self) -> Option<Cut> {
        match self.word.fetch_or(TAKEN, Ordering::AcqRel) {
            1 => Some(Cut::Running),
            2 => Some(Cut::Asleep),
            3 => Some(Cut::Memory),
            _ => None,
        }
    }

    /// Whether it was taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.word.load(Ordering::Acquire) & TAKEN != 0
    }

    /// What was given.
    pub(crate) fn given(&self) -> Option<Cut> {
        match self.word.load(Ordering::Acquire) & !TAKEN {
            1 => Some(Cut::Running),
            2 => Some(Cut::Asleep),
            3 => Some(Cut::Memory),
            _ => None,
        }
    }
}

impl Tracer<'_> {
    /// What names the blow-up; `None` where the run has ended before anything could be found out.
    pub(super) fn name_blow_up(&mut self) -> Option<Snapshot> {
        let tid = self.eater().ok().flatten()?;
        let (halted, stack) = self.readable_stack(tid).ok()?;
        let first = stack.snapshot(0, Event::OutOfMemory, tid, self.cache);
        let test = Test {
            returns: EATING,
            loops: false,
        };
        let Ok(Stuck { stack, level, .. }) = self.step_out(halted, stack, test) else {
            return Some(first);
        };
        // In which function of the runtime it happens to be says nothing.
        let own = (level..stack.levels.len()).find(|level| stack.levels[*level].is_own());
        let level = outermost(&stack, own.unwrap_or(level));
        Some(stack.snapshot(level, Event::OutOfMemory, tid, self.cache))
    }

    /// Takes a crash for what it is in a process that has more memory than it may: the system has
    /// refused it more, and it gave up before anybody looked how much it has. Whether somebody
    /// looks in time is chance.
    pub(crate) fn blame_memory(&self, process: Pid, crash: &mut Snapshot) {
        if resident_memory(process) > self.order.memory() {
            crash.event = Event::OutOfMemory;
        }
    }

    /// The thread that runs, of the process that has the most memory.
    fn eater(&mut self) -> nix::Result<Option<Pid>> {
        let threads = self.family.threads();
        let processes = threads.iter().map(|(_, process)| *process);
        let Some(process) = processes.max_by_key(|process| resident_memory(*process)) else {
            return Ok(None);
        };
        if threads.iter().filter(|(_, of)| *of == process).count() == 1 {
            return Ok(Some(process));
        }
        let busiest = self.culprit(false)?;
        Ok(busiest
            .filter(|tid| threads.contains(&(*tid, process)))
            .or(Some(process)))
    }
}

/// The call that stands for the one at `level`, which is not left any more. Where a function of
/// it has come and gone in calls inside it, it is the recursion as a whole that takes so long
/// (backtracking); how deep the last call stands that is left is chance, and so is which of the
/// functions that call each other it is of. Then the outermost call of these functions stands for
/// it.
fn outermost(stack: &Stack, level: usize) -> usize {
    let levels = &stack.levels;
    let Some(function) = levels.get(level).and_then(|level| level.function()) else {
        return level;
    };
    let inside: HashSet<_> = levels[..level]
        .iter()
        .filter_map(|level| level.function())
        .collect();
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
        let order = Order::within(0);
        order.give(Cut::Memory);
        order.give(Cut::Running);
        assert!(!order.is_taken());
        assert_eq!(order.take(), Some(Cut::Memory));
        assert_eq!(order.take(), None);
        assert!(order.is_taken());
        assert_eq!(order.given(), Some(Cut::Memory));
    }
}
