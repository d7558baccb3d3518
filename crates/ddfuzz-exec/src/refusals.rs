//! Why a program cannot be run many times in one process, and why a process that makes many runs
//! refuses single runs.

use crate::system_calls;

/// Why a run was not made in the process that runs many inputs, but in a new process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The run made a system call that cannot be undone; holds the number of the call.
    Call(i32),
    /// The request to the fork server asked for a new process for this run.
    Asked,
    /// The run crashed in the process that runs many inputs, so that a new process makes it again.
    Crash,
    /// The run made a system call of another ABI, such as that of 32-bit programs.
    OtherAbi,
    /// The process that runs many inputs died while it made the run.
    Died,
    /// The input is about as long as an earlier one whose run took too much CPU time in the process
    /// that runs many inputs. So a new process makes the run at once.
    Long,
    /// An earlier run of the process that runs many inputs differed from that of a new process.
    /// Since then, a new process makes each run.
    Differs,
}

impl RefusalReason {
    /// Converts the number by which the fork server says why a run was refused
    /// (`runtime/restore.h`) to the reason.
    pub(crate) fn from_number(number: i32) -> RefusalReason {
        match number {
            0x10000 => RefusalReason::Asked,
            0x10001 => RefusalReason::Crash,
            0x10002 => RefusalReason::OtherAbi,
            0x10003 => RefusalReason::Died,
            call => RefusalReason::Call(call),
        }
    }
}

/// System calls (number, and description for users) for which runs are refused most often: what
/// these calls change cannot be undone by the process that runs many inputs.
const CALLS: &[(i64, &str)] = &[
    (libc::SYS_open, "open of a file to write"),
    (libc::SYS_openat, "open of a file to write"),
    (libc::SYS_creat, "creation of a file"),
    (libc::SYS_write, "write to a file"),
    (libc::SYS_writev, "write to a file"),
    (libc::SYS_pwrite64, "write to a file"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_unlink, "removal of a file"),
    (libc::SYS_unlinkat, "removal of a file"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_renameat, "rename"),
    (libc::SYS_renameat2, "rename"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_mkdirat, "mkdir"),
    (libc::SYS_chmod, "chmod"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_chown, "chown"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_utimensat, "change of a file's time"),
    (libc::SYS_chdir, "change of directory"),
    (libc::SYS_fchdir, "change of directory"),
    (libc::SYS_clone, "start of a process or thread"),
    (libc::SYS_clone3, "start of a process or thread"),
    (libc::SYS_fork, "start of a process"),
    (libc::SYS_vfork, "start of a process"),
    (libc::SYS_execve, "start of a program"),
    (libc::SYS_kill, "signal"),
    (libc::SYS_tkill, "signal"),
    (libc::SYS_tgkill, "signal"),
    (libc::SYS_socket, "use of the network"),
    (libc::SYS_connect, "use of the network"),
    (libc::SYS_alarm, "timer"),
    (libc::SYS_setitimer, "timer"),
    (libc::SYS_timer_create, "timer"),
    (libc::SYS_times, "CPU time"),
    (libc::SYS_getrusage, "CPU time"),
    (libc::SYS_clock_gettime, "CPU time"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_prctl, "prctl"),
    (
        libc::SYS_munmap,
        "munmap of memory that is older than the run",
    ),
    (
        libc::SYS_mprotect,
        "mprotect of memory that is older than the run",
    ),
    (
        libc::SYS_madvise,
        "madvise of memory that is older than the run",
    ),
    (
        libc::SYS_mremap,
        "mremap of memory that is older than the run",
    ),
    (libc::SYS_fcntl, "change of an open file"),
    (libc::SYS_readlink, "question about its own process"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_prlimit64, "change of a limit"),
    (libc::SYS_setrlimit, "change of a limit"),
];

/// Returns what the system call with the number `number` does, in words for users ("write to a
/// file"), or else its name ("dup2"). `None` if no system call has this number.
pub(crate) fn name_of_call(number: i32) -> Option<&'static str> {
    let known = CALLS.iter().find(|(call, _)| *call == i64::from(number));
    known
        .map(|(_, name)| *name)
        .or_else(|| system_calls::name(number))
}

impl std::fmt::Display for RefusalReason {
    /// Writes the reason why a run was refused in words for users: "write to a file", "dup2".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            RefusalReason::Call(number) => match name_of_call(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "system call {number}"),
            },
            RefusalReason::Asked => f.write_str("a check"),
            RefusalReason::Crash => f.write_str("crash"),
            RefusalReason::OtherAbi => f.write_str("system call of another ABI"),
            RefusalReason::Died => f.write_str("write into ddfuzz's memory, or a limit"),
            RefusalReason::Long => f.write_str("input as long as one that took too long"),
            RefusalReason::Differs => f.write_str("difference to a new process"),
        }
    }
}

/// Returns in words why no process can run many inputs of a program, given the number of the reason
/// (`enum unfit` of `runtime/restore.h`).
pub(crate) fn why_unfit(number: i32) -> &'static str {
    match number {
        1 => "it cannot be stopped after its start, or crashes on any input",
        2 => "the addresses that ddfuzz needs are taken (a sanitizer?)",
        3 => "it has writable memory that is shared with other processes",
        4 => "it has more writable memory than can be copied",
        5 => "it has too many files open, or one to write, before it reads its input",
        6 => "this system does not let a process filter its system calls",
        7 => "it has a shadow stack",
        8 => "memory or /proc cannot be had",
        9 => "it does not survive the setup",
        10 => "its outputs do not lead to /dev/null",
        _ => "the reason is unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_in_words() {
        let told = |number| RefusalReason::from_number(number).to_string();
        assert_eq!(told(1), "write to a file");
        assert_eq!(told(435), "start of a process or thread");
        #[cfg(target_arch = "x86_64")]
        assert_eq!(told(33), "dup2");
        assert_eq!(told(999), "system call 999");
        assert_eq!(told(0x10001), "crash");
    }
}
