//! Stopping one thread of a run while the rest goes on as before.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;

use super::clock::sleeps;
use crate::capture::Tracer;
use ddfuzz_exec::tracing::{poll, resume};

/// How long nothing happens before it is looked again whether something has.
const PAUSE: Duration = Duration::from_micros(100);
/// A thread that does not stop by then hangs in the kernel. In wall time: it is only for those.
const PATIENCE: Duration = Duration::from_secs(2);
/// One that waits for a processor has so much more time.
const SCHEDULED: Duration = Duration::from_secs(10);

/// A stopped thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halted {
    pub tid: Pid,
    /// The signal that it gets when it goes on; 0 for none.
    pub signal: i32,
}

impl Halted {
    /// Lets it go on.
    pub fn resume(self) {
        resume(libc::PTRACE_CONT, self.tid, self.signal);
    }
}

impl Tracer<'_> {
    /// The next event of the run, if there is one within a moment.
    ///
    /// # Errors
    /// `ECHILD` where the run has ended.
    pub(super) fn next_event(&mut self) -> nix::Result<Option<(Pid, i32)>> {
        let event = poll()?;
        if event.is_none() {
            std::thread::sleep(PAUSE);
        }
        Ok(event)
    }

    /// Lets the run go on for some time.
    ///
    /// # Errors
    /// `ECHILD` where it has ended.
    pub(super) fn let_run(&mut self, time: Duration) -> nix::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if let Some((tid, status)) = self.next_event()? {
                self.happened(tid, status);
            }
        }
        Ok(())
    }

    /// Stops one thread.
    ///
    /// # Errors
    /// `ESRCH` where it is gone, `ECHILD` where all are, `ETIMEDOUT` where it does not stop.
    pub(super) fn halt(&mut self, tid: Pid) -> nix::Result<Halted> {
        ptrace::interrupt(tid)?;
        let began = Instant::now();
        loop {
            let elapsed = began.elapsed();
            if elapsed >= SCHEDULED || elapsed >= PATIENCE && sleeps(tid) {
                return Err(Errno::ETIMEDOUT);
            }
            let Some((thread, status)) = self.next_event()? else {
                continue;
            };
            if thread == tid && libc::WIFSTOPPED(status) {
                let signal = self.pending(tid, status);
                return Ok(Halted { tid, signal });
            }
            self.happened(thread, status);
            if thread == tid {
                return Err(Errno::ESRCH);
            }
        }
    }

    /// The signal that a stopped thread is about to get, if it is one.
    pub(super) fn pending(&self, tid: Pid, status: i32) -> i32 {
        match status >> 16 {
            0 if !self.is_interrupt(tid, status) => libc::WSTOPSIG(status),
            _ => 0,
        }
    }
}
