//! The launcher's supervisor processes (`runtime/supervisor.c`), which kill a target with all its
//! descendants; and control groups, which limit the number of processes.
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{
    ffi::OsStr, fs, net::Shutdown, os::unix::ffi::OsStrExt, os::unix::net::UnixStream, sync::Once,
};

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

    /// Receives a file descriptor from the inner supervisor process, such as that of the scratch
    /// directory; `None` if the process sends none.
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
            // A supervisor that somebody has stopped is killed; the other one kills its processes.
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
    let mark = mark(scratch);
    for _ in 0..PASSES {
        let left = marked(&mark);
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

/// Returns the bytes by which a process's environment is recognised as that of a target of the
/// scratch directory: the directory's path as the value of a variable.
fn mark(scratch: &Path) -> Vec<u8> {
    [b"=", scratch.as_os_str().as_bytes(), b"\0"].concat()
}

/// Returns the living processes with the bytes `mark` in their environment. Zombies have no
/// environment.
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

/// Directories in which control groups of the pids controller can be created: version 1, then
/// version 2.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
const PREFIX: &str = "ddfuzz-";

/// A control group that limits the number of a target's processes; dropping it kills its processes
/// and removes it. Where none can be created, `RLIMIT_NPROC` limits the user that the target runs
/// as.
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates a control group of at most `processes` processes and threads; `None` where that is
    /// not permitted. The first call also removes the control groups of dead ddfuzz processes.
    pub(crate) fn create(processes: u32) -> Option<Cgroup> {
        static STALE: Once = Once::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let roots = || ROOTS.iter().map(Path::new);
        STALE.call_once(|| roots().for_each(remove_stale));
        roots().find_map(|root| {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("{PREFIX}{}-{count}", std::process::id()));
            fs::create_dir(&path).ok()?;
            let group = Cgroup { path };
            fs::write(group.path.join("pids.max"), processes.to_string()).ok()?;
            Some(group)
        })
    }

    /// Returns the path of the file to which a process writes `0` to join the control group.
    pub(crate) fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        empty_and_remove(&self.path);
    }
}

fn empty_and_remove(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(5);
    // Without new processes, killing ends even a fork bomb.
    let _ = fs::write(path.join("pids.max"), "0");
    while fs::remove_dir(path).is_err() && path.exists() && Instant::now() < deadline {
        let listed = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in members(&listed) {
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Parses the process ids that a control group lists. A process outside ddfuzz's PID namespace is
/// listed as 0, which `kill` would take for ddfuzz's own process group; it is skipped.
fn members(listed: &str) -> impl Iterator<Item = Pid> {
    let pids = listed.split_whitespace().flat_map(str::parse);
    pids.filter(|pid| *pid > 0).map(Pid::from_raw)
}

/// Removes the control groups of dead ddfuzz processes, unless they contain processes: an owner in
/// another namespace only looks dead, and a dead owner has left no processes.
fn remove_stale(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
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

    #[test]
    fn a_member_without_an_id_here_is_not_taken_for_our_group() {
        let found: Vec<Pid> = members("0\n12\n-1\n0\n7\n").collect();
        assert_eq!(found, [Pid::from_raw(12), Pid::from_raw(7)]);
    }
}
