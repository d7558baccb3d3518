//! The running launcher, and its end.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::watch::readable;

/// How long the keepers may take to end everything.
const PATIENCE: Duration = Duration::from_secs(10);

/// The running launcher, whose process is the outer keeper. Dropping it kills the target with all
/// its descendants, and waits for that; if we die instead, the end of the lifeline tells the
/// keepers to do the same.
pub(crate) struct Keeper {
    pid: Pid,
    /// Its other end is held by both keepers, as long as they live, and by nobody else.
    lifeline: UnixStream,
}

impl Keeper {
    /// The keeper of this id, at the other end of `lifeline`.
    pub(crate) fn new(pid: Pid, lifeline: UnixStream) -> Keeper {
        Keeper { pid, lifeline }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until both keepers are gone; false if they do not go.
    fn is_gone(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !readable(&self.lifeline, left) {
                return false;
            }
            // A keeper says nothing; its end is an end of file, or a reset.
            match self.lifeline.read(&mut [0; 16]) {
                Ok(0) | Err(_) => return true,
                Ok(_) => {}
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.lifeline.shutdown(Shutdown::Write);
        if !self.is_gone() {
            // Somebody has stopped it. What it kept, the other one sweeps.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}
