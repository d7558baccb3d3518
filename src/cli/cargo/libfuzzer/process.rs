//! libFuzzer processes: starts them, parses what they print, and starts them again after each
//! crash.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::campaign::CampaignError;
use crate::campaign::watch::{Producer, Producing};
use crate::cli::cargo::libfuzzer::corpus::Corpus;
use crate::cli::cargo::libfuzzer::{Flags, MAX_LEN};
use crate::exec::without_symbols;
use crate::files::regular;

/// Maximum length of a line of libFuzzer's output, in bytes; longer lines are split.
const LONGEST_LINE: u64 = 1 << 16;

/// Wall time within which the output of a libFuzzer process that has ended must have been read.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Second words of the lines by which libFuzzer tells, once its corpus is read, how many inputs it
/// has run.
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
                // It may have died before this was asked for.
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
    /// last call, without those where no regular file is.
    pub fn written(&self) -> Vec<PathBuf> {
        let mut written = std::mem::take(&mut self.said().written);
        written.retain(|path| path.symlink_metadata().is_ok_and(|facts| facts.is_file()));
        written
    }

    /// Returns how the libFuzzer process ended, and its output, if it has ended; `None` if it still
    /// runs. Does not wait. Must not be called again after it has returned the end.
    pub fn end(&mut self) -> io::Result<Option<End>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        self.end_group();
        self.hear_out();
        let said = self.said().clone();
        Ok(Some(End { status, said }))
    }

    /// Waits until all that the libFuzzer process has printed before its end is read. Another process
    /// that holds its end of the pipe, such as a daemon that a run has started, is waited for no
    /// longer than [`LAST_WORDS`].
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
            // Byte for byte, as it would stand there without us.
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
    /// Path of the failing input that the libFuzzer process has said last that it wrote.
    pub last_written: Option<PathBuf>,
    /// Paths of the failing inputs that the libFuzzer process has said it wrote, in the order of
    /// its output, since they were last asked for.
    written: Vec<PathBuf>,
    /// Values of `-artifact_prefix` and `-exact_artifact_path`, which tell the paths of failing
    /// inputs from others that the target prints.
    artifact_prefix: Vec<u8>,
    exact_artifact: Option<Vec<u8>>,
    last: VecDeque<String>,
}

/// What stands in front of the path of a failing input in libFuzzer's output.
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

    /// Checks whether libFuzzer writes failing inputs to this path; if not, the target has printed
    /// it.
    fn is_artifact(&self, path: &[u8]) -> bool {
        let name = path.strip_prefix(self.artifact_prefix.as_slice());
        let is_named = name.is_some_and(|name| !name.is_empty() && !name.contains(&b'/'));
        is_named || self.exact_artifact.as_deref() == Some(path)
    }

    /// Updates this state of a libFuzzer process by one line that it has printed to stderr.
    fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let line = text.as_ref();
        let place = bytes.windows(WRITTEN.len()).position(|it| it == WRITTEN);
        if let Some(status) = line.strip_prefix('#') {
            let mut words = status.split_whitespace();
            let (runs, word) = (words.next().map(str::parse::<u64>), words.next());
            let is_status = word.is_some_and(|word| STATUS.contains(&word));
            // A frame of a stack trace begins alike.
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

/// Number of consecutive crashes, on inputs that cannot be removed from the corpus, after which the
/// campaign gives up.
const MAX_FUTILE_CRASHES: u32 = 5;

/// Wall time within which a libFuzzer process must end after the campaign's time is over or the
/// campaign has stopped; later it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Prefixes of libFuzzer's file names for failing inputs.
const ARTIFACTS: [&str; 4] = ["crash-", "leak-", "oom-", "timeout-"];

/// Interval at which new inputs are copied from the temporary corpus to the user's.
const WRITE_BACK_INTERVAL: Duration = Duration::from_secs(1);

/// How the libFuzzer processes of a campaign are started: program, flags, environment, number.
pub struct LibFuzzerPlan {
    /// Path of the fuzz target, the program that contains libFuzzer.
    pub program: PathBuf,
    /// libFuzzer's flags for the whole campaign and for each process, and further corpus
    /// directories, which are only read.
    pub flags: Flags,
    /// Environment variables of the libFuzzer processes, set in addition to the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Prefix of the paths to which libFuzzer writes failing inputs: a directory, or a directory
    /// and the beginning of names.
    pub artifact_prefix: OsString,
    /// Number of libFuzzer processes that the campaign runs at the same time.
    pub jobs: usize,
    /// Whether the libFuzzer processes share the terminal of ddfuzz, and whether their output is
    /// printed.
    pub terminal: TerminalUse,
    /// Whether a libFuzzer process is started again after it has found a failing input.
    pub again: bool,
}

/// The libFuzzer processes of a campaign. If [`LibFuzzerPlan::again`] is true, each is started
/// again after it has found a failing input, until the time or the number of runs is used up or the
/// campaign is stopped.
pub struct LibFuzzers {
    plan: LibFuzzerPlan,
    corpus: Corpus,
    written_back: Instant,
    running: Vec<Option<Process>>,
    dropped: Vec<PathBuf>,
    began: Instant,
    /// Total number of inputs that were run by those libFuzzer processes of the campaign which have
    /// ended.
    made: u64,
    /// Number of inputs that each process has still to run; empty without a limit.
    left: Vec<u64>,
    /// Number of libFuzzer processes that the campaign has started so far.
    starts: u32,
    /// Number of consecutive crashes of libFuzzer on inputs that could not be removed from the
    /// corpus.
    futile: u32,
    /// Exit status of the first libFuzzer process that ended without success, because it found a
    /// failing input or for another reason; `None` if none did.
    failed: Option<ExitStatus>,
    stop: Arc<AtomicBool>,
}

impl LibFuzzers {
    /// Starts as many libFuzzer processes as `plan` says; they write new inputs to the directory
    /// `corpus`. Once `stop` is true, none is started again.
    pub fn start(
        plan: LibFuzzerPlan,
        corpus: PathBuf,
        stop: Arc<AtomicBool>,
    ) -> io::Result<LibFuzzers> {
        if plan.artifact_prefix.as_encoded_bytes().ends_with(b"/") {
            std::fs::create_dir_all(&plan.artifact_prefix)?;
        }
        let mut all = LibFuzzers {
            corpus: Corpus::open(corpus, plan.flags.corpora.clone())?,
            written_back: Instant::now(),
            running: Vec::new(),
            dropped: Vec::new(),
            began: Instant::now(),
            made: 0,
            left: Vec::new(),
            starts: 0,
            futile: 0,
            failed: None,
            stop,
            plan,
        };
        let jobs = all.plan.jobs.max(1);
        if let Some(runs) = all.plan.flags.runs {
            let share = |at: u64| runs / jobs as u64 + u64::from(at < runs % jobs as u64);
            all.left = (0..jobs as u64).map(share).collect();
        }
        for at in 0..jobs {
            let process = all.next(at)?;
            all.running.push(process);
        }
        Ok(all)
    }

    /// Returns the exit status of the first libFuzzer process that ended without success, because
    /// it found a failing input or for another reason; `None` if none did.
    pub fn failed(&self) -> Option<ExitStatus> {
        self.failed
    }

    /// Queues the failing inputs in libFuzzer's artifact directory, where interrupted campaigns may
    /// have left some, to be processed like new ones; inputs that were already processed are not
    /// run again. Does nothing if the artifact prefix is not a directory.
    pub fn queue_old_artifacts(&mut self) {
        let prefix = self.plan.artifact_prefix.as_encoded_bytes();
        if !prefix.ends_with(b"/") {
            return;
        }
        let entries = std::fs::read_dir(&self.plan.artifact_prefix);
        let mut paths: Vec<PathBuf> = (entries.into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                ARTIFACTS.iter().any(|kind| name.starts_with(kind))
            })
            .collect();
        paths.sort();
        self.dropped.extend(paths);
    }

    /// Waits until all libFuzzer processes have ended, 10 s at most; returns earlier if one of them
    /// fails without a failing input. Sends SIGINT after a second, for processes that Ctrl-C has
    /// not reached.
    pub fn wait(&mut self) {
        let began = Instant::now();
        let mut is_asked = false;
        while self.running.iter().any(Option::is_some) && began.elapsed() < END_TIMEOUT {
            if !is_asked && began.elapsed() > Duration::from_secs(1) {
                self.running.iter().flatten().for_each(Process::interrupt);
                is_asked = true;
            }
            if self.poll().is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Checks whether a libFuzzer process was running when it was last asked for.
    pub fn is_running(&self) -> bool {
        self.running.iter().any(Option::is_some)
    }

    /// Waits until the libFuzzer processes end by themselves, one of them fails without a failing
    /// input, or the user stops them.
    pub fn run_out(&mut self) {
        while !self.is_stopped() && matches!(self.poll(), Ok(Producing::Running)) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Starts the libFuzzer process with the index `at` for the remaining time and its remaining
    /// runs; `None` if the time or its runs are used up.
    fn next(&mut self, at: usize) -> io::Result<Option<Process>> {
        let prefix = Path::new(&self.plan.artifact_prefix);
        let mut words = vec![
            flag("artifact_prefix", prefix),
            "-print_final_stats=1".into(),
        ];
        if let Some(time) = self.plan.flags.time {
            let left = time.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            // Whole seconds, of which 0 means for ever.
            let seconds = left.as_secs_f64().ceil().max(1.0);
            words.push(format!("-max_total_time={seconds}").into());
        }
        if let Some(left) = self.left.get(at) {
            if *left == 0 && self.made > 0 {
                return Ok(None);
            }
            words.push(format!("-runs={left}").into());
        }
        words.extend(self.plan.flags.each.iter().cloned());
        words.extend(self.plan.flags.seed_of_start(self.starts));
        self.starts = self.starts.wrapping_add(1);
        words.extend(self.corpus.dirs().into_iter().map(OsString::from));
        let (program, terminal) = (&self.plan.program, self.plan.terminal);
        let env = match terminal {
            TerminalUse::Detached(false) => without_symbols(&self.plan.env),
            _ => self.plan.env.clone(),
        };
        Process::start(program, &words, &env, None, terminal).map(Some)
    }

    /// Handles the end of the libFuzzer process with the index `at`: if an input of the corpus
    /// crashed it at the start, removes that input from the temporary corpus. Returns the process
    /// that was started again in its place, if any. Fails if libFuzzer failed without a failing
    /// input, or crashed at the start too often.
    fn ended(&mut self, at: usize, end: &End) -> Result<Option<Process>, CampaignError> {
        self.made = self.made.saturating_add(end.said.runs);
        if let Some(left) = self.left.get_mut(at) {
            *left = left.saturating_sub(end.said.runs);
        }
        if !end.status.success() {
            self.failed = self.failed.or(Some(end.status));
        }
        let Some(written) = &end.said.last_written else {
            return match end.status.success() || !self.plan.again || self.is_stopped() {
                true => Ok(None),
                false => Err(gone("libFuzzer ended without a finding", end)),
            };
        };
        let mut futile = !end.said.is_initialized;
        if futile && let Ok(input) = regular::read(written, MAX_LEN) {
            let left_out = self.corpus.leave_out(&input);
            futile = !left_out.map_err(system("copying the corpus"))?;
        }
        self.futile = if futile { self.futile + 1 } else { 0 };
        if self.futile >= MAX_FUTILE_CRASHES {
            return Err(gone(
                "libFuzzer fails on the first inputs of its corpus again and again",
                end,
            ));
        }
        match self.plan.again && !self.is_stopped() {
            true => self.next(at).map_err(system("starting libFuzzer")),
            false => Ok(None),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Producer for LibFuzzers {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        let is_late = |time| self.began.elapsed() > time + END_TIMEOUT;
        if self.plan.flags.time.is_some_and(is_late) {
            // It hangs in an input, for which it has twenty minutes of its own.
            let running = self.running.iter().flatten();
            self.dropped.extend(running.flat_map(Process::written));
            self.running.clear();
        }
        for at in 0..self.running.len() {
            let Some(process) = &mut self.running[at] else {
                continue;
            };
            let end = process.end().map_err(system("waiting for libFuzzer"))?;
            self.dropped.extend(process.written());
            if let Some(end) = end {
                self.running[at] = None;
                self.running[at] = self.ended(at, &end)?;
            }
        }
        if self.written_back.elapsed() > WRITE_BACK_INTERVAL {
            let handed = self.corpus.write_back();
            handed.map_err(system("keeping the corpus"))?;
            self.written_back = Instant::now();
        }
        Ok(match self.is_running() {
            true => Producing::Running,
            false => Producing::Ended,
        })
    }

    fn dropped(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.dropped)
    }

    fn runs(&self) -> u64 {
        let running = self.running.iter().flatten().map(Process::runs);
        running.fold(self.made, u64::saturating_add)
    }

    fn ended_by(&self) -> crate::report::EndedBy {
        self.plan.flags.ended_by(self.made, self.began.elapsed())
    }
}

/// Builds the campaign error for a libFuzzer process that ended unexpectedly: `what` says what is
/// wrong; the exit status and libFuzzer's own error message in `end` are its cause.
fn gone(what: &str, end: &End) -> CampaignError {
    CampaignError::System {
        what: what.to_owned(),
        source: io::Error::other(format!("{}: {}", end.status, end.said.why())),
    }
}

/// Returns a function that converts I/O errors to campaign errors; `what` is what was attempted.
fn system(what: &'static str) -> impl Fn(io::Error) -> CampaignError {
    move |source| CampaignError::System {
        what: what.to_owned(),
        source,
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

    #[test]
    fn each_process_makes_its_share_of_the_runs_however_often_it_crashes() {
        let stop = Arc::default();
        let mut all = LibFuzzers {
            corpus: Corpus::open(std::env::temp_dir(), Vec::new()).unwrap(),
            written_back: Instant::now(),
            running: Vec::new(),
            dropped: Vec::new(),
            began: Instant::now(),
            made: 0,
            left: vec![500, 500],
            starts: 0,
            futile: 0,
            failed: None,
            stop,
            plan: plan("/bin/true"),
        };
        let end = |runs| End {
            status: ExitStatus::default(),
            said: FuzzerOutput {
                runs,
                is_initialized: true,
                last_written: Some(PathBuf::from("crash-0")),
                ..FuzzerOutput::default()
            },
        };
        for (at, runs) in [(0, 100), (1, 500), (0, 390)] {
            all.ended(at, &end(runs)).unwrap();
        }
        assert_eq!((all.left.as_slice(), all.made), ([10, 0].as_slice(), 990));
        assert!(all.next(1).unwrap().is_none());
        assert!(all.next(0).unwrap().is_some());
    }

    fn plan(program: &str) -> LibFuzzerPlan {
        LibFuzzerPlan {
            program: PathBuf::from(program),
            flags: Flags::default(),
            env: Vec::new(),
            artifact_prefix: OsString::new(),
            jobs: 2,
            terminal: TerminalUse::Detached(false),
            again: false,
        }
    }
}
