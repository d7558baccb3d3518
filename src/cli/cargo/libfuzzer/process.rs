//! One libFuzzer process ([`Process`]): starts it, and parses what it prints.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Maximum length of a line of libFuzzer's output, in bytes; longer lines are split.
const LONGEST_LINE: u64 = 1 << 16;

/// Maximum wall time for reading the remaining output of a libFuzzer process after its end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Second words of the lines in which libFuzzer, after it has read its corpus, prints how many
/// inputs it has run.
const STATUS: [&str; 6] = ["INITED", "NEW", "REDUCE", "pulse", "RELOAD", "DONE"];

/// Whether a libFuzzer process shares the terminal of ddfuzz, and whether its output is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalUse {
    /// libFuzzer has no terminal and its own process group, which is killed when the process ends.
    /// If the value is true, ddfuzz prints its output.
    Detached(bool),
    /// libFuzzer shares the terminal and the process group of ddfuzz, and its output is printed.
    Shared,
}

/// A running libFuzzer process. It is killed on drop, and when the thread that started it ends.
pub struct Process {
    child: Child,
    terminal: TerminalUse,
    said: Arc<Mutex<FuzzerOutput>>,
    reader: Option<JoinHandle<()>>,
}

/// How a libFuzzer process ended, and what it printed.
pub struct End {
    /// Exit status or signal with which the libFuzzer process ended.
    pub status: ExitStatus,
    /// What the libFuzzer process printed, as parsed: runs, coverage, and files with failing
    /// inputs.
    pub said: FuzzerOutput,
}

impl Process {
    /// Starts the libFuzzer binary `program` with the arguments `words` and the additional
    /// environment variables `env`, in the directory `cwd` or else the current one.
    pub fn start(
        program: &Path,
        words: &[OsString],
        env: &[(OsString, OsString)],
        cwd: Option<&Path>,
        terminal: TerminalUse,
    ) -> io::Result<Process> {
        let mut command = Command::new(program);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        command
            .args(words)
            .envs(env.iter().cloned())
            .stderr(Stdio::piped());
        if let TerminalUse::Detached(_) = terminal {
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
                // The parent may have ended before the signal was requested.
                match Pid::parent() == parent {
                    true => Ok(()),
                    false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
                }
            });
        }
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(FuzzerOutput::of(words)));
        let echo = terminal != TerminalUse::Detached(false);
        let reader = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || read_stderr(stderr, &said, echo))
        });
        Ok(Process {
            child,
            terminal,
            said,
            reader,
        })
    }

    fn said(&self) -> MutexGuard<'_, FuzzerOutput> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of inputs that the libFuzzer process has run, as it last printed.
    pub fn runs(&self) -> u64 {
        self.said().runs
    }

    /// Returns the paths of the failing inputs that the libFuzzer process has written since the
    /// last call; leaves out paths at which there is no regular file.
    pub fn written(&self) -> Vec<PathBuf> {
        let mut written = std::mem::take(&mut self.said().written);
        written.retain(|path| path.symlink_metadata().is_ok_and(|facts| facts.is_file()));
        written
    }

    /// Returns how the libFuzzer process has ended, and what it printed; `None` if it still runs.
    /// Does not wait. After it has returned an end, it must not be called again.
    pub fn end(&mut self) -> io::Result<Option<End>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        self.end_group();
        self.hear_out();
        let said = self.said().clone();
        Ok(Some(End { status, said }))
    }

    /// Waits until all output is read that the libFuzzer process printed before its end, but at
    /// most
    /// [`LAST_WORDS`]: another process, such as a daemon that a run has started, may hold the pipe
    /// open.
    fn hear_out(&mut self) {
        let began = Instant::now();
        let Some(reader) = self.reader.take() else {
            return;
        };
        while !reader.is_finished() && began.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(2));
        }
        if reader.is_finished() {
            let _ = reader.join();
        }
    }

    /// Sends SIGINT to the libFuzzer process.
    pub fn interrupt(&self) {
        let _ = nix::sys::signal::kill(self.id(), Signal::SIGINT);
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Kills the process group of the libFuzzer process, unless it is shared with ddfuzz.
    fn end_group(&self) {
        if let TerminalUse::Detached(_) = self.terminal {
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
            self.hear_out();
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
            // The output is printed unchanged, as libFuzzer alone would print it.
            let _ = io::stderr().write_all(&line);
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.take(line.trim_ascii_end());
    }
}

/// Formats libFuzzer's flag `-NAME=PATH`, for example `-artifact_prefix=DIR/`.
pub fn flag(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("-{name}="));
    word.push(value);
    word
}

/// Number of lines at the end of libFuzzer's output that are kept for an error message.
const KEPT_LINES: usize = 20;

/// The state of a libFuzzer process, parsed from its output: runs, coverage, and files with failing
/// inputs.
#[derive(Clone, Debug, Default)]
pub struct FuzzerOutput {
    /// Number of inputs that the libFuzzer process has run, as it last printed.
    pub runs: u64,
    /// Whether the libFuzzer process has run its whole corpus and now generates inputs.
    pub is_initialized: bool,
    /// Path of the failing input that the libFuzzer process wrote last, according to its output.
    pub last_written: Option<PathBuf>,
    /// Paths of the failing inputs that the libFuzzer process wrote since the last call of
    /// [`Process::written`], according to its output, oldest first.
    written: Vec<PathBuf>,
    /// Value of the flag `-artifact_prefix`: paths of failing inputs in the output begin with it,
    /// unless `-exact_artifact_path` sets a path.
    artifact_prefix: Vec<u8>,
    exact_artifact: Option<Vec<u8>>,
    last: VecDeque<String>,
}

/// Text in libFuzzer's output after which the path of a failing input follows.
const WRITTEN: &[u8] = b"Test unit written to ";

impl FuzzerOutput {
    /// Creates the state of a libFuzzer process that is started with the arguments `words`.
    fn of(words: &[OsString]) -> FuzzerOutput {
        let value = |name: &str| {
            let flags = words.iter().rev().map(|word| word.as_encoded_bytes());
            let mut values = flags.filter_map(|word| word.strip_prefix(name.as_bytes()));
            values.next().map(<[u8]>::to_vec)
        };
        FuzzerOutput {
            artifact_prefix: value("-artifact_prefix=").unwrap_or_else(|| b"./".to_vec()),
            exact_artifact: value("-exact_artifact_path="),
            ..FuzzerOutput::default()
        }
    }

    /// Returns true if libFuzzer writes failing inputs to this path; false if only the target can
    /// have printed such a path.
    fn is_artifact(&self, path: &[u8]) -> bool {
        let name = path.strip_prefix(self.artifact_prefix.as_slice());
        let is_named = name.is_some_and(|name| !name.is_empty() && !name.contains(&b'/'));
        is_named || self.exact_artifact.as_deref() == Some(path)
    }

    /// Updates what is known of the libFuzzer process (its runs, its coverage, the failing inputs
    /// that it has written) by `bytes`, one line that it has printed to stderr.
    fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let line = text.as_ref();
        let place = bytes.windows(WRITTEN.len()).position(|it| it == WRITTEN);
        if let Some(status) = line.strip_prefix('#') {
            let mut words = status.split_whitespace();
            let (runs, word) = (words.next().map(str::parse::<u64>), words.next());
            let is_status = word.is_some_and(|word| STATUS.contains(&word));
            // A frame of a stack trace also begins with `#` and a number.
            if let Some(Ok(runs)) = runs
                && (is_status || word == Some("READ"))
            {
                self.runs = runs.max(self.runs);
                self.is_initialized |= is_status;
            }
        } else if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.runs = count.trim().parse().unwrap_or(self.runs);
        } else if let Some(path) = place.map(|at| &bytes[at + WRITTEN.len()..])
            && self.is_artifact(path)
        {
            let path = PathBuf::from(OsStr::from_bytes(path));
            self.last_written = Some(path.clone());
            self.written.push(path);
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    /// Returns why libFuzzer failed: of its last lines, the last one that contains `ERROR`, else
    /// the last one that is not empty; empty if there is none.
    pub fn why(&self) -> &str {
        let mut lines = self.last.iter().rev().filter(|line| !line.is_empty());
        let error = lines.clone().find(|line| line.contains("ERROR"));
        error.or_else(|| lines.next()).map_or("", String::as_str)
    }
}

/// Formats libFuzzer's flag for the time limit of one input, in whole seconds.
pub fn timeout_flag(limit: Duration) -> OsString {
    format!("-timeout={}", limit.as_secs_f64().ceil().max(1.0)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> FuzzerOutput {
        let mut said = FuzzerOutput::of(&["-artifact_prefix=a b/".into()]);
        lines.iter().for_each(|line| said.take(line.as_bytes()));
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
        let said = after(&["#2\tREAD   units: 3", "stat::number_of_executed_units: 77"]);
        assert_eq!((said.runs, said.is_initialized), (77, false));
    }

    #[test]
    fn frames_of_a_stack_trace_are_no_status() {
        let said = after(&[
            "#2\tREAD   units: 3",
            "#10 0x55d0c2 in main parse.c:3",
            "#18446744073709551615 x",
        ]);
        assert_eq!((said.runs, said.is_initialized), (2, false));
    }

    #[test]
    fn the_file_of_the_failing_input_is_named() {
        let said = after(&[
            "==7== ERROR: libFuzzer: deadly signal",
            "artifact_prefix='a b/'; Test unit written to a b/crash-00",
            "Base64: YQ==",
        ]);
        assert_eq!(said.written, [PathBuf::from("a b/crash-00")]);
        assert_eq!(said.last_written, Some(PathBuf::from("a b/crash-00")));
        assert_eq!(said.why(), "==7== ERROR: libFuzzer: deadly signal");
    }

    #[test]
    fn a_path_that_the_target_prints_is_no_failing_input() {
        let said = after(&[
            "Test unit written to /etc/passwd",
            "Test unit written to a b/",
            "Test unit written to a b/../crash-00",
            "parsed: Test unit written to a",
        ]);
        assert_eq!((said.written, said.last_written), (Vec::new(), None));
    }
}
