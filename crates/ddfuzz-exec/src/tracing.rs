//! What all tracers share: seizing, waiting, and letting a stopped thread go on.
//!
//! A thread that traces has no children of its own, so that a wait for "any child of this thread"
//! (`__WNOTHREAD`) gives exactly what it traces.

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

/// Seizes a process that waits before its `execve`, and all that it starts. The calling thread must
/// trace nothing else and have no children. With its end the kernel kills what it still traces.
///
/// # Errors
/// `EPERM` where tracing is refused, `ESRCH` where the process is gone.
pub(crate) fn seize_tree(pid: Pid) -> nix::Result<()> {
    let options = Options::PTRACE_O_EXITKILL
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC;
    ptrace::seize(pid, options)
}

/// Waits for the next stop or end of what this thread traces: the thread, and its status as
/// wait(2) gives it.
///
/// # Errors
/// `ECHILD` where nothing is left.
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

/// The process of a thread; `None` where that is gone.
pub fn process_of(tid: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok().map(Pid::from_raw)
}

/// The next stop or end of what this thread traces, if there is one just now.
///
/// # Errors
/// As [`wait`].
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

/// Resumes a stopped thread with `signal` (0 for none), which may be a real-time signal. A thread
/// that was killed in the meantime is not there any more, which the next wait tells.
pub fn resume(request: libc::c_uint, tid: Pid, signal: i32) {
    // SAFETY: these requests take no address and read or write no memory of ours.
    unsafe {
        libc::ptrace(request, tid.as_raw(), 0usize, signal as usize);
    }
}
