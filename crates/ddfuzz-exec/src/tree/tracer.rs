//! Follows a process and all that descends from it, stopping it only where it forks, executes
//! another program or gets a signal.

use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use crate::Ended;
use crate::tracing::{process_of, resume, wait};

/// What was seen of a tree of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Whether one of them started a process.
    pub(super) forked: bool,
    /// The signal of the first of them that died of a crash.
    pub(super) crash: Option<i32>,
}

/// A process that was seized.
pub(super) struct Tracer {
    seen: Seen,
}

impl Tracer {
    /// Seizes a process that waits before its `execve`. From now on the calling thread must have
    /// no children and trace nothing else.
    ///
    /// # Errors
    /// The system's answer: `EPERM` where tracing is refused, `ESRCH` where the process is gone.
    pub(super) fn seize(pid: Pid) -> nix::Result<Tracer> {
        let options = Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC;
        ptrace::seize(pid, options)?;
        Ok(Tracer {
            seen: Seen::default(),
        })
    }

    /// Lets them run, with every signal delivered, until none of them is left.
    pub(super) fn follow(mut self) -> Seen {
        // Nothing left to wait for is the end; nobody but this thread takes the ends away.
        while let Ok((tid, status)) = wait() {
            if libc::WIFSTOPPED(status) {
                self.stopped(tid, status);
            } else if let Ended::Signal(signal) = Ended::from_wait_status(status)
                && Ended::Signal(signal).is_crash(None)
            {
                // Threads of one process all die of the signal of one.
                self.seen.crash.get_or_insert(signal);
            }
        }
        self.seen
    }

    fn stopped(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 => resume(libc::PTRACE_CONT, tid, signal),
            // One stopped itself: it stays so until it is continued or killed.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                resume(libc::PTRACE_LISTEN, tid, 0);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.seen.forked = true;
                resume(libc::PTRACE_CONT, tid, 0);
            }
            libc::PTRACE_EVENT_CLONE => {
                self.seen.forked |= ptrace::getevent(tid).is_ok_and(leads_a_process);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }
}

/// Whether this is a process, and not a further thread of one.
fn leads_a_process(tid: i64) -> bool {
    let tid = i32::try_from(tid).map(Pid::from_raw);
    tid.is_ok_and(|tid| process_of(tid) == Some(tid))
}
