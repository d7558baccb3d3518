//! The result of a call, after what cargo-fuzz prints when the program has failed: where the
//! failing input is, how to reproduce it, and how to minimize it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, getppid};

use crate::cli::Exit;
use crate::cli::output::tell;

/// The option by which the runner calls itself: wait for a process, then print what stdin holds.
pub const AFTER: &str = "--print-after";
/// Longest wait, in milliseconds: cargo-fuzz runs the program once more for each failing input.
const LONGEST_MS: u16 = 60_000;
/// Processes above this one that are looked at.
const ABOVE: usize = 4;

/// Prints a text on stderr, below what cargo-fuzz prints about a failure, if it has called this
/// process and `failed` says that there is one.
pub fn print(text: &str, failed: bool) {
    let cargo_fuzz = if failed { cargo_fuzz() } else { None };
    if cargo_fuzz.is_none_or(|pid| print_after(pid, text).is_err()) {
        tell(text);
    }
}

/// Starts a process that outlives this one and prints the text when `pid` has ended.
fn print_after(pid: Pid, text: &str) -> std::io::Result<()> {
    let mut printer = Command::new(std::env::current_exe()?)
        .arg(AFTER)
        .arg(pid.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // Ctrl-C ends what is above, and not the result.
        .process_group(0)
        .spawn()?;
    match printer.stdin.take() {
        Some(mut stdin) => stdin.write_all(text.as_bytes()),
        None => Ok(()),
    }
}

/// What the process started above does; `words` come after [`AFTER`].
pub fn main(words: &[OsString]) -> ExitCode {
    let mut text = String::new();
    // What is left of a text that is cut off is printed.
    let _ = std::io::stdin().lock().read_to_string(&mut text);
    let pid = words.first().and_then(|word| word.to_str()?.parse().ok());
    if let Some(handle) = pid.and_then(handle) {
        let mut ended = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
        // Whatever keeps it from waiting: the text is printed.
        let _ = poll(&mut ended, PollTimeout::from(LONGEST_MS));
    }
    tell(text.trim_end());
    Exit::Done.into()
}

/// A handle on a process, which can be waited for; `None` where it is gone.
fn handle(pid: i32) -> Option<OwnedFd> {
    // SAFETY: the call takes two numbers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = RawFd::try_from(descriptor).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The cargo-fuzz that has called this process, perhaps through cargo.
fn cargo_fuzz() -> Option<Pid> {
    let mut pid = getppid();
    for _ in 0..ABOVE {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // PID (NAME) STATE PPID …: the name may have blanks and parentheses in it.
        let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
        if &stat[begin + 1..end] == "cargo-fuzz" {
            return Some(pid);
        }
        let parent = stat[end + 1..].split_whitespace().nth(1)?;
        pid = Pid::from_raw(parent.parse().ok()?);
    }
    None
}
