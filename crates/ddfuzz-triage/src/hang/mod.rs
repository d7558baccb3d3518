//! Where a run stands that is cut off: the step-out test for hangs and memory blow-ups
//! (crash-keys.md, "Capture" 5).
//!
//! The watchdog of a run gives an [`Order`] and interrupts it; the thread that traces it takes the
//! order, chooses the thread that matters, and finds the innermost call that is not left any more.
//! The passing path knows nothing of all this.

mod blow_up;
mod clock;
mod culprit;
mod loops;
mod order;
mod probe;
mod recursion;
mod stack;
mod step_out;
mod trap;

pub(crate) use clock::sleeps;
pub(crate) use order::{COOKIE, Cut, Order};

use super::capture::{Trace, Tracer};
use super::snapshot::{Event, Snapshot};
use ddfuzz_exec::Ended;
use nix::unistd::Pid;

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
