//! The processes that work at a terminal, and whether they wait for a key.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};

use crate::proc_tree;

/// A session: the process that leads it, and all that descends from its server.
pub(super) struct Session {
    /// Unlike its id this never comes to mean another process.
    leader: OwnedFd,
    pid: Pid,
    server: Pid,
}

/// What processes do at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// One of them runs, waits for a processor or a disk, or ends.
    Work,
    /// All sleep, but for some that are stopped, as by ^Z.
    Stopped,
    /// The same where a tracer has stopped one: for a moment, or as long as it is stopped.
    Traced,
    /// All sleep.
    Sleep,
}

impl Session {
    /// The session that this process leads.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn of(pid: Pid) -> io::Result<Session> {
        // SAFETY: the call takes two numbers and gives a new descriptor or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by nobody else.
        let leader = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        let server = proc_tree::parent(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Session {
            leader,
            pid,
            server,
        })
    }

    /// Can be read once its leader has ended: with that the run is over.
    pub(super) fn end(&self) -> &OwnedFd {
        &self.leader
    }

    /// What its processes do.
    pub(super) fn doing(&self) -> Doing {
        let (doing, threads) = self.seen();
        if doing != Doing::Sleep || threads < 2 {
            return doing;
        }
        // One after the other may have woken the next: they all sleep where none has run since
        // before the first of them was seen asleep.
        let before = proc_tree::switches(self.server);
        let (doing, _) = self.seen();
        match doing {
            Doing::Sleep if proc_tree::switches(self.server) != before => Doing::Work,
            doing => doing,
        }
    }

    /// What they do, seen one after the other; and how many threads they have.
    fn seen(&self) -> (Doing, u64) {
        let (mut doing, mut threads) = (Doing::Sleep, 0);
        for (state, count) in proc_tree::states_below(self.server) {
            threads += count;
            doing = match state {
                b'S' | b'I' | b'Z' | b'X' => doing,
                b'T' if doing == Doing::Sleep => Doing::Stopped,
                b'T' => doing,
                b't' => Doing::Traced,
                _ => return (Doing::Work, threads),
            };
        }
        (doing, threads)
    }

    /// CPU time of all its processes.
    pub(super) fn cpu(&self) -> Duration {
        proc_tree::usage_below(self.server).cpu
    }

    /// Lets go on what is stopped.
    pub(super) fn go_on(&self) {
        for pid in proc_tree::descendants(self.server) {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// Tells it that its terminal is gone, as the system does: its leader, and the group in the
    /// foreground.
    pub(super) fn hang_up(&self, foreground: Option<Pid>) {
        for pid in proc_tree::descendants(self.server) {
            if pid != self.pid && getpgid(Some(pid)).ok() == foreground {
                let _ = kill(pid, Signal::SIGHUP);
                let _ = kill(pid, Signal::SIGCONT);
            }
        }
        self.signal(libc::SIGHUP);
        self.signal(libc::SIGCONT);
    }

    /// Ends it: what is left without its leader, the server ends.
    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    fn signal(&self, number: i32) {
        // SAFETY: the call takes numbers and a null pointer, which stands for no details.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.leader.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }
}
