//! Starts programs for triage with the standard library alone.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ddfuzz::exec::{CrashMessages, Ended, ExecError, Limits, Way};
use ddfuzz::triage::{Start, Tracee, Untraced};
use nix::unistd::Pid;

/// Starts one program.
pub struct Starter {
    pub program: PathBuf,
    pub limits: Limits,
    pub crash_exit: Option<i32>,
    /// Pretends to be a process that cannot be traced.
    pub refuse: bool,
    /// Randomizes addresses whatever is asked for.
    pub always_random: bool,
}

impl Starter {
    pub fn new(program: &Path) -> Starter {
        Starter {
            program: program.to_owned(),
            limits: Limits::with_cpu(Duration::from_secs(10)),
            crash_exit: None,
            refuse: false,
            always_random: false,
        }
    }

    fn command(&self, input: &[u8], aslr: bool) -> (Command, File) {
        let mut stdin = tempfile::tempfile().expect("a temporary file");
        stdin
            .write_all(input)
            .and_then(|()| stdin.rewind())
            .expect("the input is written");
        let stderr = tempfile::tempfile().expect("a temporary file");
        let mut command = Command::new(&self.program);
        command
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(stderr.try_clone().expect("a copy"));
        let random = aslr || self.always_random;
        let child = move || {
            if !random {
                // SAFETY: takes a number; affects the calling process only.
                unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
            }
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: the limit is valid for the time of the call.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
            Ok(())
        };
        // SAFETY: only async-signal-safe calls are made between fork and exec.
        unsafe { command.pre_exec(child) };
        (command, stderr)
    }
}

/// A process that waits for a byte on a pipe before its `execve`.
struct Waiting {
    pid: Pid,
    release: std::io::PipeWriter,
    released: bool,
    untraceable: bool,
    stderr: File,
    spawner: Option<std::thread::JoinHandle<()>>,
}

impl Tracee for Waiting {
    fn pid(&self) -> Pid {
        if self.untraceable {
            Pid::this()
        } else {
            self.pid
        }
    }

    fn release(&mut self) -> Result<(), ExecError> {
        self.released = true;
        self.release
            .write_all(b"!")
            .map_err(|source| ExecError::System {
                what: "releasing".to_owned(),
                source,
            })
    }

    fn stderr_tail(&mut self) -> Vec<u8> {
        tail(&mut self.stderr)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.released {
            let _ = nix::sys::signal::kill(self.pid, nix::sys::signal::Signal::SIGKILL);
        }
        if let Some(spawner) = self.spawner.take() {
            let _ = spawner.join();
        }
    }
}

/// Goes on in a child; the process itself becomes its keeper, which reaps it and ends. What is
/// traced is not our own child then, as in a campaign.
fn become_kept() {
    // SAFETY: the raw call runs no handlers; the keeper does nothing but wait and end.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
        if child > 0 {
            libc::waitpid(child as i32, std::ptr::null_mut(), 0);
            libc::_exit(0);
        }
    }
}

fn tail(stderr: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    stderr
        .rewind()
        .and_then(|()| stderr.read_to_end(&mut bytes))
        .expect("stderr can be read");
    bytes.split_off(bytes.len().saturating_sub(4096))
}

impl Start for Starter {
    fn start(&mut self, input: &[u8], aslr: bool) -> Result<Box<dyn Tracee>, ExecError> {
        let (mut command, stderr) = self.command(input, aslr);
        let (mut pids, mut announce) = std::io::pipe().expect("a pipe");
        let (mut wait, release) = std::io::pipe().expect("a pipe");
        // SAFETY: only async-signal-safe calls are made between fork and exec.
        unsafe {
            command.pre_exec(move || {
                become_kept();
                announce.write_all(&std::process::id().to_le_bytes())?;
                wait.read_exact(&mut [0])
            });
        }
        // `spawn` returns only when the keeper has ended, so it needs a thread of its own.
        let spawner = std::thread::spawn(move || {
            let _ = command.spawn().and_then(|mut keeper| keeper.wait());
        });
        let mut pid = [0; 4];
        pids.read_exact(&mut pid).expect("the child says its id");
        Ok(Box::new(Waiting {
            pid: Pid::from_raw(i32::from_le_bytes(pid)),
            release,
            released: false,
            untraceable: self.refuse,
            stderr,
            spawner: Some(spawner),
        }))
    }

    fn run_untraced(&mut self, input: &[u8], aslr: bool) -> Result<Untraced, ExecError> {
        use std::os::unix::process::ExitStatusExt;
        let (mut command, mut stderr) = self.command(input, aslr);
        let mut child = command.spawn().expect("the program runs");
        let began = Instant::now();
        let mut is_over = false;
        let status = loop {
            match child.try_wait().expect("it is our child") {
                Some(status) => break status,
                None if !is_over && began.elapsed() >= self.limits.wall => {
                    is_over = true;
                    child.kill().expect("it is our child");
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let ended = match is_over {
            true => Ended::Timeout,
            false => Ended::from_wait_status(status.into_raw()),
        };
        Ok(Untraced {
            read: None,
            ended,
            copies: None,
            messages: CrashMessages {
                stderr: tail(&mut stderr),
                report: Vec::new(),
            },
        })
    }

    fn way(&self) -> Way {
        Way::Command
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn crash_exit(&self) -> Option<i32> {
        self.crash_exit
    }
}
