//! Waits for a server's reply and enforces the limits that no rlimit can: CPU time of the whole
//! process tree, wall time, resident memory.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};

use super::page::Page;
use super::{Ended, Limits, proc_tree};

/// Runs shorter than this are never looked at.
const SLICE: Duration = Duration::from_millis(10);
/// How long a server may take to answer after its child was killed.
const GRACE: Duration = Duration::from_secs(10);

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// There is something to read.
    Ready,
    /// The same, after the run was killed for going over a limit.
    Killed(Ended),
    /// The server does not answer.
    Silent,
}

/// Waits until `reply` can be read, and kills the run when it goes over `limits`.
///
/// In a process that served earlier runs, `warm` takes the CPU time used before away.
pub(crate) fn wait(reply: impl AsFd, page: &Page, limits: &Limits, warm: bool) -> Waited {
    if readable(&reply, SLICE) {
        return Waited::Ready;
    }
    let started = Instant::now() - SLICE;
    let mut before = None;
    loop {
        let usage = page.running().map(proc_tree::usage).unwrap_or_default();
        let base = *before.get_or_insert(if warm { usage.cpu } else { Duration::ZERO });
        let over = if usage.memory > limits.memory {
            Some(Ended::OutOfMemory)
        } else if usage.cpu.saturating_sub(base) >= limits.cpu || started.elapsed() >= limits.wall {
            Some(Ended::Timeout)
        } else {
            None
        };
        if let Some(ended) = over {
            return kill_run(reply, page, ended);
        }
        if readable(&reply, SLICE) {
            return Waited::Ready;
        }
    }
}

fn kill_run(reply: impl AsFd, page: &Page, ended: Ended) -> Waited {
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if let Some(pid) = page.running() {
            let _ = kill(pid, Signal::SIGKILL);
        }
        if readable(&reply, SLICE) {
            return Waited::Killed(ended);
        }
    }
    Waited::Silent
}

/// Waits for at most `timeout` until there is something to read, or the other end is gone.
pub(crate) fn readable(fd: impl AsFd, timeout: Duration) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    matches!(poll(&mut fds, timeout), Ok(count) if count > 0)
}
