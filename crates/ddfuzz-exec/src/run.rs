//! The result of one run: how it ended, what it used, and what it wrote about its crash.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The result of one run of a target on one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How the run ended: by an exit, a signal, or at a limit.
    pub ended: Ended,
    /// CPU time (user and system) of the run's process and its reaped children; of all its
    /// processes where the run was killed at a limit.
    pub cpu: Duration,
    /// Number of input bytes that the target read; `None` where the method of execution cannot
    /// tell, and where the target reads the input and leaves no trace of how far.
    pub read: Option<u64>,
}

impl Run {
    /// Makes the result of a run that has ended as `ended` says, with zero CPU time and an unknown
    /// number of bytes read.
    pub fn ended(ended: Ended) -> Run {
        Run {
            ended,
            cpu: Duration::ZERO,
            read: None,
        }
    }
}

/// How one run of a target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The process exited with this status (0–255).
    Exit(i32),
    /// The process died of this signal (a Linux signal number).
    Signal(i32),
    /// The run was killed at its limit of CPU time or wall time.
    Timeout,
    /// The run was killed at its memory limit.
    OutOfMemory,
}

/// The exit status of a Rust program whose main thread panicked.
pub const RUST_PANIC: i32 = 101;

/// Signals that count as a crash (docs/src/keys.md).
const CRASH_SIGNALS: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGTRAP,
];

impl Ended {
    /// Whether a run that ended in this way has crashed. `crash_exit`: the exit status that counts
    /// as a crash; `None` if none does.
    pub fn is_crash(self, crash_exit: Option<i32>) -> bool {
        match self {
            Ended::Signal(signal) => CRASH_SIGNALS.contains(&signal),
            Ended::Exit(status) => crash_exit == Some(status),
            Ended::Timeout | Ended::OutOfMemory => false,
        }
    }

    /// Whether the process exited by itself, with any status.
    pub fn is_exit(self) -> bool {
        matches!(self, Ended::Exit(_))
    }

    /// Whether the process died of a signal that is used to end processes on purpose, such as
    /// SIGKILL.
    pub fn is_killing(self) -> bool {
        let signals = [libc::SIGKILL, libc::SIGTERM, libc::SIGHUP, libc::SIGINT];
        matches!(self, Ended::Signal(signal) if signals.contains(&signal))
    }

    /// Whether a run that ended in this way may have crashed: it crashed, or it has the exit status
    /// of a Rust panic, which only the run's messages can confirm. `crash_exit`: the exit status
    /// that counts as a crash.
    pub fn is_suspect(self, crash_exit: Option<i32>) -> bool {
        self.is_crash(crash_exit) || self == Ended::Exit(RUST_PANIC)
    }

    /// Converts a process status as `wait(2)` gives it to the way the run ended.
    pub fn from_wait_status(status: i32) -> Ended {
        if libc::WIFSIGNALED(status) {
            Ended::Signal(libc::WTERMSIG(status))
        } else {
            Ended::Exit(libc::WEXITSTATUS(status))
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Ended::Exit(status) => write!(f, "exit {status}"),
            Ended::Signal(number) => match nix::sys::signal::Signal::try_from(number) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {number}"),
            },
            Ended::Timeout => write!(f, "timeout"),
            Ended::OutOfMemory => write!(f, "out of memory"),
        }
    }
}

/// What a run wrote about its crash: to stderr, and to the report file of a sanitizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashMessages {
    /// The first 4 KiB and the last 64 KiB that the run wrote to stderr, with a line between them
    /// if bytes are missing.
    pub stderr: Vec<u8>,
    /// The first 64 KiB of the sanitizer report that the run wrote to a file; empty if it wrote
    /// none.
    pub report: Vec<u8>,
}

/// Why an input is run again with other settings: to get a panic's backtrace, a report of leaks or
/// of a signal, or to learn which sanitizers the target contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RerunReason {
    /// The input is run again to get the backtrace of a Rust panic.
    Backtrace,
    /// The input is run again to look for memory leaks with LeakSanitizer.
    Leaks,
    /// The input is run again to get a sanitizer's report of a deadly signal, because the first run
    /// was not traced.
    Signals,
    /// The input is run again to learn which sanitizers the processes of the target contain: each
    /// sanitizer prints its options when it starts.
    Introductions,
}
