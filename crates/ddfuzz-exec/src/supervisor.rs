//! The launcher's supervisor processes (`runtime/keeper.c`), and how the target ends with them.
//!
//! Where both supervisors were killed, nobody is above the target's processes. They are then found by
//! what none of them can change: the environment that they were started with.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{IoSliceMut, Read};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::proc_tree;
use crate::watch::readable;

/// How long the supervisors may take to kill everything.
const PATIENCE: Duration = Duration::from_secs(10);

/// The running launcher, whose process is the outer supervisor. Dropping it kills the target with all
/// its descendants, and waits for that. If ddfuzz dies, the supervisor pipe closes, and the
/// supervisors do the same.
pub(crate) struct Supervisor {
    pid: Pid,
    /// Its other end is held by both supervisors, as long as they live, and by nobody else.
    supervisor_pipe: UnixStream,
    /// The scratch directory. The environment of all processes of the target names it.
    scratch: PathBuf,
}

impl Supervisor {
    /// The supervisor with this process id, at the other end of `supervisor_pipe`, of the target that
    /// uses this scratch directory.
    pub(crate) fn new(pid: Pid, supervisor_pipe: UnixStream, scratch: PathBuf) -> Supervisor {
        Supervisor {
            pid,
            supervisor_pipe,
            scratch,
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Takes the descriptor that the inner supervisor has sent; `None` where it has sent none.
    pub(crate) fn receive(&self) -> nix::Result<Option<OwnedFd>> {
        let mut word = [0; 1];
        let mut part = [IoSliceMut::new(&mut word)];
        let mut room = nix::cmsg_space!(std::os::fd::RawFd);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let socket = self.supervisor_pipe.as_raw_fd();
        let message = recvmsg::<()>(socket, &mut part, Some(&mut room), flags)?;
        let sent = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
            _ => None,
        });
        // SAFETY: the kernel has made it for us with this message, and nobody else knows of it.
        Ok(sent.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Waits until both supervisors are gone; false if they do not go.
    fn is_gone(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !readable(&self.supervisor_pipe, left) {
                return false;
            }
            // A supervisor says nothing; its end is an end of file, or a reset.
            match self.supervisor_pipe.read(&mut [0; 16]) {
                Ok(0) | Err(_) => return true,
                Ok(_) => {}
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.supervisor_pipe.shutdown(Shutdown::Write);
        if !self.is_gone() {
            // Somebody has stopped it. What it kept, the other one sweeps.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
        let ended = loop {
            match waitpid(self.pid, None) {
                Err(Errno::EINTR) => {}
                ended => break ended,
            }
        };
        // Who kills one of them may have killed the other before it could notice.
        if !matches!(ended, Ok(WaitStatus::Exited(..))) {
            kill_marked(&self.scratch);
        }
    }
}

/// How many passes [`kill_marked`] makes, and how far apart: a killed process takes time to die, and
/// the next pass meets what was forked meanwhile.
const PASSES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Kills all processes in whose first environment `scratch`, the scratch directory of one executor,
/// is the value of a variable (docs/decisions/0001).
fn kill_marked(scratch: &Path) {
    let mark = mark(scratch);
    for _ in 0..PASSES {
        let left = marked(&mark);
        if left.is_empty() {
            return;
        }
        // The stopped ones start no others while the rest is being killed.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &left {
                let _ = kill(*pid, signal);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// The scratch directory as the end of a variable in an environment.
fn mark(scratch: &Path) -> Vec<u8> {
    [b"=", scratch.as_os_str().as_bytes(), b"\0"].concat()
}

/// The living processes with this mark in their environment. The dead have none.
fn marked(mark: &[u8]) -> Vec<Pid> {
    let number = |name: &OsStr| name.to_str()?.parse().ok().map(Pid::from_raw);
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = number(&entry.file_name())?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let bears = environment.windows(mark.len()).any(|part| part == mark);
            (bears && proc_tree::lives(pid)).then_some(pid)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_what_was_started_with_the_whole_mark_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let start = |value: &Path| {
            let mut command = Command::new("sleep");
            command.arg("60").env("TMPDIR", value).spawn().unwrap()
        };
        let (mut ours, mut other) = (start(dir.path()), start(&dir.path().join("1")));
        // A child counts as started before it has its environment.
        for child in [&ours, &other] {
            let environment = format!("/proc/{}/environ", child.id());
            while std::fs::read(&environment).unwrap().is_empty() {
                std::thread::yield_now();
            }
        }
        kill_marked(dir.path());
        assert_eq!(ours.wait().unwrap().code(), None);
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
