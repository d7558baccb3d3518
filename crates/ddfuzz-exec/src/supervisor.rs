//! The launcher's supervisor processes (`runtime/supervisor.c`), which kill a target with all its
//! descendants.
//!
//! If both supervisors were killed, the target's processes are found by their initial environment,
//! which they cannot change.

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::{errno::Errno, unistd::Pid};
use std::io::{IoSliceMut, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{ffi::OsStr, net::Shutdown, os::unix::ffi::OsStrExt, os::unix::net::UnixStream};

use crate::{proc_tree, watch::wait_until_readable};

/// How long the supervisor processes may take to kill a target with all its descendants.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The running launcher process, the outer of two processes that supervise a target. Dropping it
/// kills the target with all its descendants and waits until they are gone. If ddfuzz dies, the
/// pipe to the supervisors closes, and they do the same.
pub(crate) struct Supervisor {
    /// Process id of the launcher, the outer of the two processes that supervise a target.
    pub(crate) pid: Pid,
    /// Socket to the outer and the inner supervisor process, which hold its other end as long as
    /// they live.
    supervisor_pipe: UnixStream,
    /// The target's scratch directory, which the environment of all the target's processes
    /// contains.
    scratch: PathBuf,
}

impl Supervisor {
    /// Makes the handle of the supervisor process `pid`, at the other end of `supervisor_pipe`, for
    /// the target that uses the directory `scratch`.
    pub(crate) fn new(pid: Pid, supervisor_pipe: UnixStream, scratch: PathBuf) -> Supervisor {
        Supervisor {
            pid,
            supervisor_pipe,
            scratch,
        }
    }

    /// Returns the file descriptor that the inner supervisor process sends, such as that of the
    /// scratch directory; `None` if the process sends none.
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

    /// Waits up to 10 s until both supervisor processes have ended; returns whether they have.
    fn is_gone(&mut self) -> bool {
        let deadline = Instant::now() + KILL_TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !wait_until_readable(&self.supervisor_pipe, left) {
                return false;
            }
            // A supervisor sends nothing more; its end closes or resets the pipe.
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
            // A supervisor that has not ended in time, because somebody has stopped it, is killed;
            // the other supervisor then kills the target's processes.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
        let ended = loop {
            match waitpid(self.pid, None) {
                Err(Errno::EINTR) => {}
                ended => break ended,
            }
        };
        // If one supervisor was killed, the other may have been killed before it noticed.
        if !matches!(ended, Ok(WaitStatus::Exited(..))) {
            kill_marked(&self.scratch);
        }
    }
}

/// How often, at most, the target's remaining processes are searched for and killed: a killed
/// process takes time to die, and new forks may appear meanwhile.
const PASSES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Kills all processes that were started with the path `scratch`, the scratch directory of one
/// executor, as the value of an environment variable (docs/decisions/0001).
fn kill_marked(scratch: &Path) {
    let mark = environment_mark(scratch);
    for _ in 0..PASSES {
        let left = marked_processes(&mark);
        if left.is_empty() {
            return;
        }
        // Stopped processes cannot fork while the others are being killed.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &left {
                let _ = kill(*pid, signal);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns the bytes that the environment of a target's processes contains: the path `scratch` of
/// the target's scratch directory as the value of a variable. The processes are recognised by them.
fn environment_mark(scratch: &Path) -> Vec<u8> {
    [b"=", scratch.as_os_str().as_bytes(), b"\0"].concat()
}

/// Returns the living processes with the bytes `mark` in their environment. Zombies have no
/// environment.
fn marked_processes(mark: &[u8]) -> Vec<Pid> {
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
