//! Worker processes and their supervisors, which restart crashed workers; and shared memory that
//! does not outlast the campaign.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use libafl_bolts::Error;
use libafl_bolts::shmem::{ShMem, ShMemId, ShMemProvider, UnixShMem, UnixShMemProvider};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setpgid};

use super::messages::{self, Request};
use ddfuzz_exec::switches;

/// Number of early crashes in a row (crashes soon after the start) after which a worker process is
/// not restarted any more.
const MAX_EARLY_CRASHES: u32 = 5;
/// Time after the start of a worker process within which its crash counts as an early one.
const EARLY: Duration = Duration::from_secs(60);
/// Greatest delay with which the kernel may wake a worker (timer slack), in nanoseconds.
const TIMER_SLACK: u64 = 1_000;
/// Pause after a crash of a worker process before it is restarted.
const PAUSE: Duration = Duration::from_millis(200);

/// Least time between two choices of the processor on which a worker and its target run.
const CHOSEN_EACH: Duration = Duration::from_secs(1);
/// Time for which a worker sleeps when it chooses its processor: the kernel then wakes it on an
/// idle processor if there is one.
const NAP: Duration = Duration::from_micros(100);

/// What forked children need to know of the main process: its process id, and the processors that
/// it may run on.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    pid: Pid,
    /// The processors that the main process may run on.
    processors: CpuSet,
}

impl Parent {
    /// Returns a record of the process id of the current process, which is the main process, and of
    /// the processors that it may run on.
    pub(super) fn this() -> io::Result<Parent> {
        Ok(Parent {
            pid: getpid(),
            processors: sched_getaffinity(Pid::from_raw(0))?,
        })
    }

    /// Returns true if the current process is the main process, and false if it is a forked child.
    pub(super) fn is_this(&self) -> bool {
        getpid() == self.pid
    }
}

/// Makes this process, a forked child of the main process, the supervisor of worker number
/// `worker`: it forks the worker process, and forks it again after each crash. Returns only in the
/// worker process, with the number of earlier worker processes. The supervisor exits when the
/// worker exits with status 0, or after `MAX_EARLY_CRASHES` early crashes in a row.
///
/// The supervisor keeps a separate connection to `socket`, which shows the main process that the
/// supervisor still runs.
pub(super) fn become_worker(parent: &Parent, socket: &Path, worker: usize) -> io::Result<u32> {
    die_with(parent.pid)?;
    leave_terminal()?;
    leave_files()?;
    // LibAFL has tied the worker to one processor, which another campaign may be using.
    sched_setaffinity(Pid::from_raw(0), &parent.processors)?;
    // A worker checks its runs after fractions of a millisecond; without this it waits longer.
    let _ = nix::sys::prctl::set_timerslack(TIMER_SLACK);
    let supervisor = getpid();
    let mut connection = UnixStream::connect(socket)?;
    messages::send(&mut connection, &Request::Supervisor { worker }, &[])?;
    let mut early = 0;
    for before in 0.. {
        let began = Instant::now();
        // SAFETY: this process has one thread: it is a forked child and has started none.
        match unsafe { fork() }? {
            ForkResult::Child => {
                drop(connection);
                die_with(supervisor)?;
                return Ok(before);
            }
            ForkResult::Parent { child } => match waitpid(child, None)? {
                WaitStatus::Exited(_, 0) => exit(0),
                _ if began.elapsed() >= EARLY => early = 0,
                _ => early += 1,
            },
        }
        if early == MAX_EARLY_CRASHES {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    exit(70)
}

/// Keeps a worker and the processes of its target on one processor, which is chosen again each
/// second.
///
/// A worker that requests one run at a time and its target wait for each other, and change turns
/// several times in each run. If they were on two processors, each change would wake an idle
/// processor, which takes longer than a run of a small target.
pub(super) struct OneProcessor {
    /// The processors that the worker may choose from.
    all: CpuSet,
    /// The chosen processor, and when it was chosen; `None` before the first choice.
    chosen: Option<(usize, Instant)>,
}

impl OneProcessor {
    /// Creates a chooser that has not chosen a processor yet; it will choose among the processors
    /// that this process may run on.
    pub(super) fn new() -> io::Result<OneProcessor> {
        Ok(OneProcessor {
            all: sched_getaffinity(Pid::from_raw(0))?,
            chosen: None,
        })
    }

    /// Moves this process and its descendants to one processor, an idle one if there is one. Does
    /// nothing if the last choice was less than a second ago, or the system refuses.
    pub(super) fn choose(&mut self) {
        if matches!(self.chosen, Some((_, at)) if at.elapsed() < CHOSEN_EACH) {
            return;
        }
        let this = Pid::from_raw(0);
        if sched_setaffinity(this, &self.all).is_err() {
            return;
        }
        std::thread::sleep(NAP);
        let mut one = CpuSet::new();
        let Ok(processor) = sched_getcpu() else {
            return;
        };
        if one.set(processor).is_err() {
            return;
        }
        let threads = match self.chosen {
            // The target's processes are there already, or inherit it.
            Some((before, _)) if before == processor => vec![this],
            _ => switches(getpid()).into_keys().collect(),
        };
        for thread in threads {
            let _ = sched_setaffinity(thread, &one);
        }
        self.chosen = Some((processor, Instant::now()));
    }
}

/// Ends this process with the exit status `status` and without cleaning up, since temporary files
/// and directories belong to the main process.
pub(super) fn exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Makes the kernel kill this process when its parent process `parent` ends; exits if `parent` has
/// ended already.
fn die_with(parent: Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != parent {
        exit(1);
    }
    Ok(())
}

/// Detaches this process, a forked child, from the process group of the main process, so that
/// Ctrl-C reaches only the main process, which ends its workers itself. Makes SIGINT kill this
/// process, since LibAFL's launcher sends that signal to workers that do not end. Makes SIGTERM
/// have no effect (the inherited handler only sets a flag), since a service manager sends that
/// signal to all processes at once.
fn leave_terminal() -> io::Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // SAFETY: the default action runs no code of ours.
    unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }?;
    Ok(())
}

/// Closes all files that this process, a forked child, has inherited from the main process, such as
/// its lock and its connections to targets, and replaces stdin, stdout and stderr by `/dev/null`.
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

/// A LibAFL provider of System V shared memory segments that are marked for removal when they are
/// made. Linux lets processes attach such a segment while another holds it, and removes it with the
/// last of these processes, even if they are killed.
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

/// Returns a new flag, initially false, in memory that this process shares with all processes that
/// it forks later. The memory is never freed.
///
/// # Errors
/// When the system refuses the memory.
pub(super) fn shared_flag() -> io::Result<&'static AtomicBool> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    // SAFETY: the kernel chooses the place of new memory; nothing of ours is touched.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 1, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the memory is a page of zeros that stays mapped, and is used as this flag only.
    Ok(unsafe { &*page.cast::<AtomicBool>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

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

    #[test]
    fn a_forked_process_sees_the_flag_that_its_parent_raises_later() {
        let flag = shared_flag().unwrap();
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        // SAFETY: the child makes only a read and ends.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                drop(writer);
                let read = io::Read::read(&mut reader, &mut [0]);
                exit(i32::from(!(read.is_ok() && flag.load(Ordering::Relaxed))));
            }
            ForkResult::Parent { child } => {
                assert!(!flag.load(Ordering::Relaxed));
                flag.store(true, Ordering::Relaxed);
                io::Write::write_all(&mut writer, b"x").unwrap();
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            }
        }
    }
}
