//! Children in which something is tried that must not happen to ourselves.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// A child that sleeps until it is ended.
pub(super) struct Sleeper {
    pub(super) pid: Pid,
}

impl Sleeper {
    /// Starts one.
    pub(super) fn start() -> nix::Result<Sleeper> {
        // SAFETY: the child does nothing but system calls.
        match unsafe { fork()? } {
            ForkResult::Parent { child } => Ok(Sleeper { pid: child }),
            ForkResult::Child => {
                // SAFETY: as above; it dies with us.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                loop {
                    // SAFETY: as above.
                    unsafe { libc::pause() };
                }
            }
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It is ours, and nobody else has waited for it.
        let _ = kill(self.pid, Signal::SIGKILL);
        while let Err(nix::Error::EINTR) = waitpid(self.pid, None) {}
    }
}

/// Whether `attempt` succeeds in a child.
///
/// # Safety
/// `attempt` does nothing but system calls: other threads' locks may be held in the child.
pub(super) unsafe fn succeeds(attempt: unsafe fn() -> bool) -> nix::Result<bool> {
    // SAFETY: what the caller promises.
    match unsafe { fork()? } {
        ForkResult::Child => {
            // SAFETY: what the caller promises.
            let status = i32::from(!unsafe { attempt() });
            // SAFETY: nothing of ours is to be done at the child's end.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Err(nix::Error::EINTR) => {}
                ended => return Ok(ended? == WaitStatus::Exited(child, 0)),
            }
        },
    }
}
