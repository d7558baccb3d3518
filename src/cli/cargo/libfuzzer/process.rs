//! One libFuzzer that runs.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::said::Said;

/// A line of its that is longer is cut, in bytes.
const LONGEST_LINE: u64 = 1 << 16;

/// One libFuzzer that runs, in a process group of its own. Dropping it ends the group; it dies with
/// the thread that started it, too.
pub struct Process {
    child: Child,
    said: Arc<Mutex<Said>>,
    reader: Option<JoinHandle<()>>,
}

/// How one ended.
pub struct End {
    /// Its status.
    pub status: ExitStatus,
    /// What it said.
    pub said: Said,
}

impl Process {
    /// Starts it; `echo` shows all that it says.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        program: &Path,
        words: &[OsString],
        env: &[(OsString, OsString)],
        echo: bool,
    ) -> io::Result<Process> {
        let mut command = Command::new(program);
        command
            .args(words)
            .envs(env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        let parent = Pid::this();
        // SAFETY: both calls are async-signal-safe, and touch the child only.
        unsafe {
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // It may have died before this was asked for.
                match Pid::parent() == parent {
                    true => Ok(()),
                    false => Err(io::Error::other("ddfuzz has ended")),
                }
            });
        }
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(Said::default()));
        let reader = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || listen(stderr, &said, echo))
        });
        Ok(Process {
            child,
            said,
            reader,
        })
    }

    /// Inputs that it has run, as far as it has told.
    pub fn runs(&self) -> u64 {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).runs
    }

    /// How it ended, if it has.
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
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(End {
            status,
            said: std::mem::take(&mut said),
        }))
    }

    /// Kills what is left of its group.
    fn end_group(&self) {
        let group = Pid::from_raw(self.child.id().cast_signed());
        let _ = killpg(group, Signal::SIGKILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.end_group();
            let _ = self.child.wait();
            let _ = self.reader.take().map(JoinHandle::join);
        }
    }
}

fn listen(stderr: impl io::Read, said: &Mutex<Said>, echo: bool) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = io::Read::take(&mut stderr, LONGEST_LINE);
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        said.lock().unwrap_or_else(PoisonError::into_inner).take(text);
        if echo {
            crate::cli::output::tell(&crate::report::text::printable(text));
        }
    }
}

/// A path as a word behind a flag, like `-artifact_prefix=DIR/`.
pub fn flag(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("-{name}="));
    word.push(value);
    word
}

/// A folder as libFuzzer takes it for a prefix of files.
pub fn prefix(folder: &Path) -> PathBuf {
    folder.join("")
}
