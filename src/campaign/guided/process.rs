//! The processes of workers: each has one above it that starts it again, and none outlives the
//! campaign.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use super::wire::{self, Request};

/// A worker that dies so often, each time soon, is not started again.
const MOST_STARTS: u32 = 5;
/// One that has lived for so long has not died soon.
const LONG: Duration = Duration::from_secs(60);
/// Between two starts.
const PAUSE: Duration = Duration::from_millis(200);

/// What the main process gives its workers on their way.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    pid: Pid,
    /// The processors that it may run on.
    processors: CpuSet,
}

impl Parent {
    /// This process.
    pub(super) fn this() -> io::Result<Parent> {
        Ok(Parent {
            pid: getpid(),
            processors: sched_getaffinity(Pid::from_raw(0))?,
        })
    }

    /// Whether this process is it, and none that it has forked.
    pub(super) fn is_this(&self) -> bool {
        getpid() == self.pid
    }
}

/// In a forked child of the main process: becomes the one above worker number `worker`, and
/// returns in the worker, as often as one has to be started. Ends where the worker has come to its
/// end.
///
/// The hub at `socket` sees by a connection of its own whether the one above lives.
pub(super) fn become_worker(parent: &Parent, socket: &Path, worker: usize) -> io::Result<()> {
    die_with(parent.pid)?;
    leave_files()?;
    // LibAFL has tied the worker to one processor, which another campaign may be using.
    sched_setaffinity(Pid::from_raw(0), &parent.processors)?;
    let above = getpid();
    let mut lifeline = UnixStream::connect(socket)?;
    wire::send(&mut lifeline, &Request::Above { worker }, &[])?;
    let mut starts = 0;
    while starts < MOST_STARTS {
        let began = Instant::now();
        // SAFETY: this process has one thread, forked as it is by one that had just that.
        match unsafe { fork() }? {
            ForkResult::Child => {
                drop(lifeline);
                return die_with(above);
            }
            ForkResult::Parent { child } => match waitpid(child, None)? {
                WaitStatus::Exited(_, 0) => exit(0),
                _ => std::thread::sleep(PAUSE),
            },
        }
        // In a long campaign workers may die often, each for a reason of its own.
        starts = if began.elapsed() < LONG {
            starts + 1
        } else {
            0
        };
    }
    exit(70)
}

/// Ends this process, and nothing that it has inherited: files and directories of the main
/// process are that one's to remove.
pub(super) fn exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Has the system kill this process when its parent dies, which may have happened already.
fn die_with(parent: Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != parent {
        exit(1);
    }
    Ok(())
}

/// Lets go of all that the main process has open: its lock, its targets' lifelines, its terminal.
fn leave_files() -> io::Result<()> {
    // SAFETY: nothing in this process uses a file of the main process from here on.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null < 0 {
            return Err(io::Error::last_os_error());
        }
        for standard in 0..3 {
            if libc::dup2(null, standard) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}
