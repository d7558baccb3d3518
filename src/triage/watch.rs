//! Keeps a traced run within its limits.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::time::ClockId;
use nix::unistd::Pid;

use crate::exec::{Limits, Starved, tree_cpu};

/// A process held by a descriptor: unlike its id it never comes to mean another one.
pub(crate) struct Held {
    pid: Pid,
    descriptor: OwnedFd,
}

impl Held {
    /// Takes hold of a live process.
    ///
    /// # Errors
    /// The system's answer, when the process is gone or no descriptor is left.
    pub(crate) fn new(pid: Pid) -> std::io::Result<Held> {
        // SAFETY: the call takes two numbers and gives a new descriptor or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by nobody else.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        Ok(Held { pid, descriptor })
    }

    /// Kills it; nothing happens if it has ended.
    pub(crate) fn kill(&self) {
        // SAFETY: the call takes numbers and a null pointer, which stands for no details.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }

    /// CPU time that it has used; 0 once it has ended.
    fn cpu(&self) -> Duration {
        ClockId::pid_cpu_clock_id(self.pid)
            .and_then(|clock| clock.now())
            .map(Duration::from)
            .unwrap_or_default()
    }
}

/// The longest and shortest time between two looks at the CPU clock.
const LOOKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));

/// Waits for the end that `done` announces; a process over its limits is killed. Gives the
/// message and whether it was killed, or `None` when its tracer is gone.
pub(crate) fn await_end<T>(
    done: &Receiver<T>,
    process: &Held,
    limits: Limits,
) -> (Option<T>, bool) {
    let began = Instant::now();
    let mut killed = false;
    let mut starved = Starved::new(process.pid, began);
    loop {
        let wall_left = limits.wall.saturating_sub(began.elapsed());
        // A quick end, which is the rule, is not looked at.
        let looked_at = began.elapsed() > LOOKS.1;
        let wall_is_over = looked_at && starved.wall_is_over(limits.wall);
        let tree = if looked_at {
            tree_cpu(process.pid)
        } else {
            Duration::ZERO
        };
        let cpu_left = limits.cpu.saturating_sub(process.cpu().max(tree));
        if !killed && (wall_is_over || cpu_left.is_zero()) {
            process.kill();
            killed = true;
        }
        // Threads use CPU time faster than the wall clock runs, so look before it can be over.
        let pause = (cpu_left / 4).min(wall_left).clamp(LOOKS.0, LOOKS.1);
        match done.recv_timeout(pause) {
            Ok(message) => return (Some(message), killed),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return (None, killed),
        }
    }
}
