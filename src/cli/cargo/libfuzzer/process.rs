//! One libFuzzer that runs.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::said::Said;

/// A line of its that is longer is cut in parts, of so many bytes.
const LONGEST_LINE: u64 = 1 << 16;

/// How it is attached to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// It has no terminal, and a process group of its own, which ends with it. What it says is
    /// shown if this is true.
    Apart(bool),
    /// As if we were not there: it has our terminal, and what it says is shown.
    Through,
}

/// One libFuzzer that runs. Dropping it kills it; it dies with the thread that started it, too.
pub struct Process {
    child: Child,
    attached: Attached,
    said: Arc<Mutex<Said>>,
    reader: Option<JoinHandle<()>>,
    /// How many of the files that it wrote are told.
    told: usize,
}

/// How one ended.
pub struct End {
    /// Its status.
    pub status: ExitStatus,
    /// What it said.
    pub said: Said,
}

impl Process {
    /// Starts it, in our directory unless another one is named.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        program: &Path,
        words: &[OsString],
        env: &[(OsString, OsString)],
        cwd: Option<&Path>,
        attached: Attached,
    ) -> io::Result<Process> {
        let mut command = Command::new(program);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        command
            .args(words)
            .envs(env.iter().cloned())
            .stderr(Stdio::piped());
        if let Attached::Apart(_) = attached {
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .process_group(0);
        }
        let parent = Pid::this();
        // SAFETY: both calls are async-signal-safe, and touch the child only.
        unsafe {
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // It may have died before this was asked for.
                match Pid::parent() == parent {
                    true => Ok(()),
                    false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
                }
            });
        }
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(Said::default()));
        let echo = attached != Attached::Apart(false);
        let reader = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || listen(stderr, &said, echo))
        });
        Ok(Process {
            child,
            attached,
            said,
            reader,
            told: 0,
        })
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inputs that it has run, as far as it has told.
    pub fn runs(&self) -> u64 {
        self.said().runs
    }

    /// Files of failing inputs that it has written since this was last asked.
    pub fn written(&mut self) -> Vec<PathBuf> {
        let new = self.said().written[self.told..].to_vec();
        self.told += new.len();
        new
    }

    /// How it ended, if it has; to be asked once.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn end(&mut self) -> io::Result<Option<End>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        self.end_group();
        if let Some(reader) = self.reader.take() {
            // Its end of the pipe is closed: there is no more to hear.
            let _ = reader.join();
        }
        let said = self.said().clone();
        Ok(Some(End { status, said }))
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        let _ = nix::sys::signal::kill(self.id(), Signal::SIGINT);
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Kills what is left of its group.
    fn end_group(&self) {
        if let Attached::Apart(_) = self.attached {
            let _ = killpg(self.id(), Signal::SIGKILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.end_group();
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = self.reader.take().map(JoinHandle::join);
        }
    }
}

fn listen(stderr: impl Read, said: &Mutex<Said>, echo: bool) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = Read::take(&mut stderr, LONGEST_LINE);
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if echo {
            // Byte for byte, as it would stand there without us.
            let _ = io::stderr().write_all(&line);
        }
        let text = String::from_utf8_lossy(&line);
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.take(text.trim_end_matches(['\n', '\r']));
    }
}

/// A path as a word behind a flag, like `-artifact_prefix=DIR/`.
pub fn flag(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("-{name}="));
    word.push(value);
    word
}
