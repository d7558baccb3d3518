//! One libFuzzer process, and what it prints.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

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
    said: Arc<Mutex<FuzzerOutput>>,
    reader: Option<JoinHandle<()>>,
    /// How many of its files [`Process::written`] has returned.
    told: usize,
}

/// How one ended.
pub struct End {
    /// Its status.
    pub status: ExitStatus,
    /// What it said.
    pub said: FuzzerOutput,
}

impl Process {
    /// Starts it, in our directory unless another one is named.
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
        let said = Arc::new(Mutex::new(FuzzerOutput::default()));
        let echo = attached != Attached::Apart(false);
        let reader = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || read_stderr(stderr, &said, echo))
        });
        Ok(Process {
            child,
            attached,
            said,
            reader,
            told: 0,
        })
    }

    fn said(&self) -> MutexGuard<'_, FuzzerOutput> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inputs that it has run, by the last number that it printed.
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

fn read_stderr(stderr: impl Read, said: &Mutex<FuzzerOutput>, echo: bool) {
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

/// A flag whose value is a path, like `-artifact_prefix=DIR/`.
pub fn flag(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("-{name}="));
    word.push(value);
    word
}

/// Lines that are kept, for an error message.
const KEPT_LINES: usize = 20;

/// What one process has said so far.
#[derive(Clone, Debug, Default)]
pub struct FuzzerOutput {
    /// Inputs that it has run, by the last number that it printed.
    pub runs: u64,
    /// It has run its whole corpus, and now generates inputs.
    pub is_initialized: bool,
    /// What its corpus reaches, by the last status: `cov` (places) and `ft` (features).
    pub coverage: Option<(u64, u64)>,
    /// A merge has ended early, and went on after the file that ended it.
    pub is_restarted: bool,
    /// Where it wrote inputs that fail.
    pub written: Vec<PathBuf>,
    last: VecDeque<String>,
}

impl FuzzerOutput {
    /// Takes in a line of its standard error.
    pub fn take(&mut self, line: &str) {
        if let Some(status) = line.strip_prefix('#') {
            let mut words = status.split_whitespace();
            if let Some(Ok(runs)) = words.next().map(str::parse::<u64>) {
                self.runs = runs.max(self.runs);
                self.is_initialized |= words.next().is_some_and(|word| word != "READ");
                let mut numbers = words.skip_while(|word| *word != "cov:").skip(1);
                let cov = numbers.next().and_then(|word| word.parse().ok());
                let mut numbers = numbers.skip_while(|word| *word != "ft:").skip(1);
                let ft = numbers.next().and_then(|word| word.parse().ok());
                self.coverage = cov.zip(ft).or(self.coverage);
            }
        } else if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.runs = count.trim().parse().unwrap_or(self.runs);
        } else if let Some(attempt) = line.strip_prefix("MERGE-OUTER: attempt ") {
            self.is_restarted |= attempt.trim() != "1";
        } else if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.written.push(PathBuf::from(path.trim_end()));
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    /// The last line that says why it could not go on, else the last one.
    pub fn why(&self) -> &str {
        let mut lines = self.last.iter().rev().filter(|line| !line.is_empty());
        let error = lines.clone().find(|line| line.contains("ERROR"));
        error.or_else(|| lines.next()).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> FuzzerOutput {
        let mut said = FuzzerOutput::default();
        lines.iter().for_each(|line| said.take(line));
        said
    }

    #[test]
    fn runs_are_counted_by_the_last_status() {
        let said = after(&[
            "INFO: seed corpus: files: 3 min: 1b max: 4b total: 9b rss: 30Mb",
            "#4\tINITED cov: 12 ft: 13 corp: 3/9b exec/s: 0 rss: 31Mb",
            "#4096\tpulse  cov: 12 ft: 13 corp: 3/9b lim: 4 exec/s: 2048 rss: 40Mb",
        ]);
        assert_eq!((said.runs, said.is_initialized), (4096, true));
        assert_eq!(said.coverage, Some((12, 13)));
        let said = after(&["#2\tREAD   units: 3", "stat::number_of_executed_units: 77"]);
        assert_eq!((said.runs, said.is_initialized), (77, false));
        assert_eq!(said.coverage, None);
    }

    #[test]
    fn a_merge_that_was_restarted_is_known() {
        let first = [
            "MERGE-OUTER: attempt 1",
            "#4\tDONE   cov: 12 ft: 13 exec/s: 0 rss: 31Mb",
        ];
        let said = after(&first);
        assert_eq!((said.is_restarted, said.coverage), (false, Some((12, 13))));
        let said = after(&["MERGE-OUTER: attempt 1", "MERGE-OUTER: attempt 2"]);
        assert!(said.is_restarted);
    }

    #[test]
    fn the_file_of_the_failing_input_is_named() {
        let said = after(&[
            "==7== ERROR: libFuzzer: deadly signal",
            "artifact_prefix='a b/'; Test unit written to a b/crash-00",
            "Base64: YQ==",
        ]);
        assert_eq!(said.written, [PathBuf::from("a b/crash-00")]);
        assert_eq!(said.why(), "==7== ERROR: libFuzzer: deadly signal");
    }
}
