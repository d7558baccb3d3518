//! The messages between ddfuzz and its servers. The C side is `runtime/protocol.h`.

use crate::refusals;

/// Numbers of the file descriptors that a fork server inherits.
pub(crate) mod fd {
    /// Descriptor number of the memory file with the program's code and its breakpoints
    /// (`runtime/blocks.h`).
    pub(crate) const CODE: i32 = 181;
    /// Numbers of the descriptors by which a runner (a process that makes many runs,
    /// `runtime/restore.h`) writes each input to where the program reads it: to the first file or,
    /// if an input is divided into two files, to both.
    pub(crate) const WRITERS: [i32; 2] = [182, 180];
    /// Descriptor number of the memory file with the inputs of one request to a runner (a process
    /// that makes many runs).
    pub(crate) const BATCH: i32 = 183;
    /// Descriptor numbers of the pipes that capture what runs write to stdout and stderr, if one
    /// process (the runner) makes many runs.
    pub(crate) const CAPTURES: [i32; 2] = [184, 185];
    /// Descriptor number of the file with the system call filters (seccomp) of a sandboxed target.
    pub(crate) const FILTERS: i32 = 186;
    /// Descriptor number of the Landlock ruleset of a sandboxed target.
    pub(crate) const RULES: i32 = 187;
    pub(crate) const REQUEST: i32 = 190;
    pub(crate) const REPLY: i32 = 191;
    pub(crate) const INPUT: i32 = 192;
    pub(crate) const PAGE: i32 = 193;
    pub(crate) const SUPERVISOR_PIPE: i32 = 194;
    /// Descriptor number of the memory file to which a run writes its comparisons
    /// (`runtime/observe.h`).
    pub(crate) const OBSERVED: i32 = 195;
    // 196 and 197 belong to a spare child (`runtime/spare.h`).
    /// Descriptor number of the memory file to which a crashing process writes snapshots of itself
    /// (`runtime/snapshot.h`).
    pub(crate) const COPY: i32 = 189;
    /// Descriptor number of the target's terminal (`runtime/terminal.h`).
    pub(crate) const TERMINAL: i32 = 188;
    /// Lowest number to which ddfuzz moves its own descriptors first, so that none has a number
    /// that the fork server uses.
    pub(crate) const ABOVE: i32 = 256;
}

pub(crate) const MAGIC: u32 = 0x4444_6675;
const VERSION: u32 = 10;

/// Why a fork server cannot serve, as its first message (hello) reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The fork server could not execute the program; holds the errno.
    Exec(i32),
    /// The program had several threads before its `main`, so that runs cannot be forked from it
    /// there.
    Threads,
    /// The launcher could not set limits, identity or directory; holds the errno.
    Setup(i32),
    /// The program had child processes before its `main`, so that runs cannot be forked from it
    /// there.
    Children,
    /// Before its `main`, the program closed file descriptors that the fork server needs.
    Descriptors,
    /// The program cannot be run by a runner, a process that makes many runs; holds the number of
    /// the reason (`enum unfit` of `runtime/restore.h`).
    Unfit(i32),
    /// The bytes are not a first message (hello) of this protocol and version.
    ProtocolBroken,
}

pub(crate) const HELLO_SIZE: usize = 24;

/// The point in a program at which an injected fork server forks each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForkPoint {
    /// Runs are forked before the program's `main`. Fork servers that do not run `main` themselves,
    /// because they execute the program or call its entry function, report this fork point, too.
    Main,
    /// Runs are forked before the program makes the system call with this number.
    Call(i32),
    /// Runs are forked before the program first reads the time by an instruction, without a system
    /// call.
    Clock,
    /// Runs are forked before an instruction of the program that faults (raises a signal) whatever
    /// the input is.
    Fault,
    /// Runs are forked where the program is after half a second of CPU time, because it has reached
    /// no other fork point by then.
    Timer,
}

impl ForkPoint {
    /// Decodes the fork point in a fork server's first message (hello); the numbers are those of
    /// `runtime/defer.h`.
    fn from_detail(detail: i32) -> ForkPoint {
        match detail {
            0xffff => ForkPoint::Clock,
            0xfffe => ForkPoint::Fault,
            0xfffd => ForkPoint::Timer,
            call if call >= 0 => ForkPoint::Call(call),
            _ => ForkPoint::Main,
        }
    }

    /// Returns true if runs would be forked at a later point of the program with `--freeze-start`
    /// (with it, they share the random numbers, times and process id that the program reads at its
    /// start): this fork point is before such a read. Else returns false.
    pub(crate) fn is_later_if_frozen(self) -> bool {
        match self {
            ForkPoint::Clock => true,
            ForkPoint::Call(number) => matches!(
                i64::from(number),
                libc::SYS_getrandom | libc::SYS_gettimeofday | libc::SYS_getpid | libc::SYS_gettid
            ),
            ForkPoint::Main | ForkPoint::Fault | ForkPoint::Timer => false,
        }
    }
}

impl std::fmt::Display for ForkPoint {
    /// Writes the fork point in words for users: "at main", "before its first read".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match *self {
            ForkPoint::Main => return f.write_str("at main"),
            ForkPoint::Clock => return f.write_str("where it first reads the time"),
            ForkPoint::Fault => return f.write_str("where it crashes on any input"),
            ForkPoint::Timer => return f.write_str("after 0.5 s of CPU time"),
            ForkPoint::Call(number) => match i64::from(number) {
                libc::SYS_read => "read",
                libc::SYS_write => "write",
                libc::SYS_openat => "open of a file that may change",
                libc::SYS_newfstatat | libc::SYS_fstat | libc::SYS_statx => {
                    "stat of a file that may change"
                }
                libc::SYS_lseek | libc::SYS_fadvise64 | libc::SYS_mmap => {
                    "use of a file that may change"
                }
                libc::SYS_socket | libc::SYS_connect => "use of the network",
                libc::SYS_chdir => "change of directory",
                libc::SYS_getrandom => "random number",
                libc::SYS_ioctl => "question to a terminal",
                libc::SYS_getpid | libc::SYS_gettid | libc::SYS_getppid => "use of its process id",
                libc::SYS_clone | libc::SYS_clone3 | libc::SYS_execve => "start of a process",
                libc::SYS_exit_group => "exit",
                _ => match refusals::name_of_call(number) {
                    Some(name) => name,
                    None => return write!(f, "before its system call {number}"),
                },
            },
        };
        write!(f, "before its first {name}")
    }
}

/// Parses a fork server's first message (hello): returns the server's process id and where it
/// forks, or why it cannot serve.
pub(crate) fn read_hello(bytes: &[u8; HELLO_SIZE]) -> Result<(i32, ForkPoint), Trouble> {
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let detail = word(16).cast_signed();
    match (word(0), word(4), word(12)) {
        (MAGIC, VERSION, 0) => Ok((word(8).cast_signed(), ForkPoint::from_detail(detail))),
        (MAGIC, VERSION, 1) => Err(Trouble::Exec(detail)),
        (MAGIC, VERSION, 2) => Err(Trouble::Threads),
        (MAGIC, VERSION, 3) => Err(Trouble::Setup(detail)),
        (MAGIC, VERSION, 4) => Err(Trouble::Children),
        (MAGIC, VERSION, 5) => Err(Trouble::Descriptors),
        (MAGIC, VERSION, 6) => Err(Trouble::Unfit(detail)),
        _ => Err(Trouble::ProtocolBroken),
    }
}

/// A request to a fork server for one run or, if the server runs many inputs in one process, for
/// one or more runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Number of the first run of this request; a fork server's runs are numbered from 1.
    pub(crate) seq: u64,
    /// Length of the input in bytes; for a fork server that runs many inputs in one process, the
    /// number of inputs, whose offsets and lengths are in the shared memory.
    pub(crate) count: u64,
    /// Flags of the request, which say what is observed and how the run is made: bits of [`flag`].
    pub(crate) flags: u64,
}

/// The flags of a request for runs, which say what is observed and how runs are made (`enum
/// request_flags` of `runtime/protocol.h`).
pub(crate) mod flag {
    pub(crate) const RANDOM_ADDRESSES: u64 = 1;
    pub(crate) const COUNTERS: u64 = 2;
    pub(crate) const NOVEL: u64 = 4;
    pub(crate) const COMPARISONS: u64 = 8;
    pub(crate) const TRACED: u64 = 16;
    pub(crate) const LAST: u64 = 32;
    pub(crate) const FORKED: u64 = 64;
    pub(crate) const IN_PLACE: u64 = 128;
    pub(crate) const CAPTURED: u64 = 256;
    pub(crate) const QUIET: u64 = 512;
    pub(crate) const EACH: u64 = 1024;
    pub(crate) const TWO_FILES: u64 = 2048;
}

impl Request {
    pub(crate) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.count.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.flags.to_ne_bytes());
        bytes
    }
}

pub(crate) const REPLY_SIZE: usize = 24;

/// A fork server's reply to one request: how the run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// Number of the last run that this reply of the fork server covers: the run whose end it
    /// describes.
    pub(crate) seq: u64,
    /// How the run ended, as a status of `wait(2)`; if `ready` returns true, the process id of the
    /// run instead.
    pub(crate) status: i32,
    /// The errno with which the program could not be executed; 0 if it was executed.
    pub(crate) exec_errno: i32,
    pub(crate) cpu_us: u64,
}

impl Reply {
    pub(crate) fn from_bytes(bytes: &[u8; REPLY_SIZE]) -> Reply {
        let half = |at: usize| {
            i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let whole = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        Reply {
            seq: whole(0),
            status: half(8),
            exec_errno: half(12),
            cpu_us: whole(16),
        }
    }

    /// Whether the reply says that a child process is ready to be traced and waits for the message
    /// to continue.
    pub(crate) fn ready(&self) -> bool {
        self.cpu_us == u64::MAX
    }
}
