//! System calls that all tracers share: seizing a process, waiting, and resuming a stopped thread.
//!
//! A thread that traces has no children. A wait with `__WNOTHREAD` therefore returns only what the
//! thread traces.

use nix::sys::ptrace::{self, Options};
use nix::{errno::Errno, unistd::Pid};

use crate::proc_tree::proc_text;

/// Seizes a process that waits before its `execve`, and all processes that it starts later. The
/// calling thread must trace nothing else and have no children. When the thread ends, the kernel
/// kills the processes that it still traces. Errors: `EPERM` where tracing is refused, `ESRCH`
/// where the process is gone.
pub(crate) fn seize_tree(pid: Pid) -> nix::Result<()> {
    let options = Options::PTRACE_O_EXITKILL
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC;
    ptrace::seize(pid, options)
}

/// Waits for the next stop or end of a thread that the calling thread traces. Returns its id and
/// its status of wait(2). Errors: `ECHILD` where nothing is traced any more.
pub fn wait() -> nix::Result<(Pid, i32)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the status; the call has no other effect on us.
        let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        match Errno::result(tid) {
            Ok(tid) => return Ok((Pid::from_raw(tid), status)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the id of the process that the thread `tid` belongs to; `None` where the thread is gone.
pub fn process_of(tid: Pid) -> Option<Pid> {
    let status = proc_text(format!("/proc/{tid}/status").as_ref())?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok().map(Pid::from_raw)
}

/// Returns the next stop or end of a thread that the calling thread traces, without waiting: the
/// thread's id and its status of wait(2). `None` if there is none yet. Errors: `ECHILD` where
/// nothing is traced any more.
pub fn poll() -> nix::Result<Option<(Pid, i32)>> {
    let mut status = 0;
    let options = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
    // SAFETY: `status` is a valid place for the status; the call has no other effect on us.
    let tid = unsafe { libc::waitpid(-1, &mut status, options) };
    match Errno::result(tid) {
        Ok(0) | Err(Errno::EINTR) => Ok(None),
        Ok(tid) => Ok(Some((Pid::from_raw(tid), status))),
        Err(error) => Err(error),
    }
}

/// Resumes a stopped, traced thread by the ptrace request `request`, with `signal` (0 for none). A
/// thread that was killed in the meantime is ignored; the next wait reports its end.
pub fn resume(request: libc::c_uint, tid: Pid, signal: i32) {
    // SAFETY: these requests take no address and read or write no memory of ours.
    unsafe {
        libc::ptrace(request, tid.as_raw(), 0usize, signal as usize);
    }
}
