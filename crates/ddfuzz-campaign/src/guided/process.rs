//! The processes of workers: each has a supervisor that starts it again, and none outlives the
//! campaign, nor does its shared memory.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use libafl_bolts::Error;
use libafl_bolts::shmem::{ShMem, ShMemId, ShMemProvider, UnixShMem, UnixShMemProvider};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setpgid};

use super::wire::{self, Request};

/// A worker that dies young so often in a row is not started again.
const MOST_STARTS: u32 = 5;
/// A worker that lives longer did not die young: a campaign of a week may lose one each day.
const YOUNG: Duration = Duration::from_secs(60);
/// How late a worker may be woken, in nanoseconds.
const SLACK: u64 = 1_000;
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

/// In a forked child of the main process: becomes the supervisor of worker number `worker`,
/// and returns in the worker, each time one has to be started: gives how many were before it. Ends
/// when the worker ends in order.
///
/// The hub at `socket` sees by a separate connection whether the supervisor lives.
pub(super) fn become_worker(parent: &Parent, socket: &Path, worker: usize) -> io::Result<u32> {
    die_with(parent.pid)?;
    leave_terminal()?;
    leave_files()?;
    // LibAFL has tied the worker to one processor, which another campaign may be using.
    sched_setaffinity(Pid::from_raw(0), &parent.processors)?;
    // It looks at runs after fractions of a millisecond. A worker that does not get it waits a
    // little longer.
    let _ = nix::sys::prctl::set_timerslack(SLACK);
    let supervisor = getpid();
    let mut connection = UnixStream::connect(socket)?;
    wire::send(&mut connection, &Request::Supervisor { worker }, &[])?;
    let mut young = 0;
    for before in 0.. {
        let began = Instant::now();
        // SAFETY: this process has one thread: a forked child has no other, and it began none.
        match unsafe { fork() }? {
            ForkResult::Child => {
                drop(connection);
                die_with(supervisor)?;
                return Ok(before);
            }
            ForkResult::Parent { child } => match waitpid(child, None)? {
                WaitStatus::Exited(_, 0) => exit(0),
                _ if began.elapsed() >= YOUNG => young = 0,
                _ => young += 1,
            },
        }
        if young == MOST_STARTS {
            break;
        }
        std::thread::sleep(PAUSE);
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

/// Leaves the process group of the main process, which alone receives Ctrl-C and has its workers
/// end in order. What then sends SIGINT is LibAFL's launcher, to those who do not end: it is to
/// kill them. SIGTERM stays with the handler of the main process, which does nothing here: a
/// service manager sends it to all processes at once.
fn leave_terminal() -> io::Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // SAFETY: the default action runs no code of ours.
    unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }?;
    Ok(())
}

/// Lets go of all that the main process has open: its lock, its targets' connections, its terminal.
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

/// Gives System V segments that are marked for removal from their first moment: Linux lets others
/// attach them as long as somebody has them, and they are gone with the last of those, however
/// they end.
#[derive(Clone, Debug, Default)]
pub(super) struct UnlinkedShMem {
    segments: UnixShMemProvider,
}

impl ShMemProvider for UnlinkedShMem {
    type ShMem = UnixShMem;

    fn new() -> Result<UnlinkedShMem, Error> {
        Ok(UnlinkedShMem {
            segments: UnixShMemProvider::new()?,
        })
    }

    fn new_shmem(&mut self, size: usize) -> Result<UnixShMem, Error> {
        let segment = self.segments.new_shmem(size)?;
        // SAFETY: takes a number; the last argument is not used by this command.
        unsafe { libc::shmctl(segment.id().into(), libc::IPC_RMID, std::ptr::null_mut()) };
        Ok(segment)
    }

    fn shmem_from_id_and_size(&mut self, id: ShMemId, size: usize) -> Result<UnixShMem, Error> {
        self.segments.shmem_from_id_and_size(id, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_can_be_attached_while_it_is_held_and_is_gone_with_it() {
        let mut provider = UnlinkedShMem::new().unwrap();
        let mut segment = provider.new_shmem(4096).unwrap();
        segment[7] = 42;
        let id = segment.id();
        let again = provider.shmem_from_id_and_size(id, 4096).unwrap();
        assert_eq!(again[7], 42);
        drop((segment, again));
        assert!(provider.shmem_from_id_and_size(id, 4096).is_err());
    }
}
