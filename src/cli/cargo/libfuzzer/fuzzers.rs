//! The libFuzzer processes of a campaign ([`LibFuzzers`]): starts them again after each crash, and
//! collects the failing inputs that they write.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::campaign::CampaignError;
use crate::campaign::watch::{Producer, Producing};
use crate::cli::cargo::libfuzzer::corpus::Corpus;
use crate::cli::cargo::libfuzzer::process::{End, Process, TerminalUse, flag};
use crate::cli::cargo::libfuzzer::{Flags, MAX_LEN};
use crate::exec::without_symbols;
use crate::files::regular;
use crate::report::{EndedBy, size};

/// Maximum number of times in a campaign that a libFuzzer process is started again after a signal
/// has ended it without a failing input.
const MAX_KILLED: u32 = 10;

/// Number of crashes in a row, on inputs that cannot be removed from the corpus, after which the
/// campaign gives up.
const MAX_FUTILE_CRASHES: u32 = 5;

/// Maximum wall time for a libFuzzer process to end after the campaign has stopped or its time is
/// over; then the process is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Prefixes of libFuzzer's file names for failing inputs.
const ARTIFACTS: [&str; 4] = ["crash-", "leak-", "oom-", "timeout-"];

/// Interval at which new inputs are copied from the temporary corpus to the user's corpus.
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
    /// Number of inputs run by all libFuzzer processes of the campaign that have ended.
    made: u64,
    /// Number of inputs that each process has still to run; empty without a limit.
    left: Vec<u64>,
    /// Number of libFuzzer processes that the campaign has started so far.
    starts: u32,
    /// Number of consecutive crashes of libFuzzer on inputs that could not be removed from the
    /// corpus.
    futile: u32,
    /// Number of times that a libFuzzer process was started again after a signal had ended it
    /// without a failing input.
    killed: u32,
    /// The first error that kept a libFuzzer process from being started again; `None` if there was
    /// none.
    error: Option<CampaignError>,
    /// Exit status of the first libFuzzer process that ended without success, because it found a
    /// failing input or for another reason; `None` if none did.
    unsuccessful: Option<ExitStatus>,
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
            killed: 0,
            error: None,
            unsuccessful: None,
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
    pub fn unsuccessful(&self) -> Option<ExitStatus> {
        self.unsuccessful
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

    /// Waits until all libFuzzer processes have ended, 10 s at most. Sends SIGINT after a second,
    /// for processes that Ctrl-C has not reached.
    pub fn wait(&mut self) {
        let began = Instant::now();
        let mut is_asked = false;
        while self.is_running() && began.elapsed() < END_TIMEOUT {
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

    /// Returns true if at least one libFuzzer process was running when the processes were last
    /// checked.
    pub fn is_running(&self) -> bool {
        self.running.iter().any(Option::is_some)
    }

    /// Waits until the libFuzzer processes end by themselves, or the user stops them.
    pub fn run_out(&mut self) {
        while !self.is_stopped() && matches!(self.poll(), Ok(Producing::Running)) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Starts the next libFuzzer process with the number `at`. A campaign runs several processes
    /// side by side, numbered from 0; when one has ended, the next one gets its number. The new
    /// process gets the time that the campaign has left, and the runs that are left for this
    /// number. Returns `None` if the time or these runs are used up.
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
            // The flag takes whole seconds, and 0 means no limit.
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

    /// Handles the end `end` of the libFuzzer process number `at`. If an input of the corpus has
    /// crashed the process at its start, removes this input from the temporary corpus. Returns the
    /// process that was started in its place; `None` if none was started. Fails if libFuzzer failed
    /// without a failing input, or crashed at the start too often.
    fn ended(&mut self, at: usize, end: &End) -> Result<Option<Process>, CampaignError> {
        self.made = self.made.saturating_add(end.said.runs);
        if let Some(left) = self.left.get_mut(at) {
            *left = left.saturating_sub(end.said.runs);
        }
        if !end.status.success() {
            self.unsuccessful = self.unsuccessful.or(Some(end.status));
        }
        let Some(written) = &end.said.last_written else {
            return self.ended_without_finding(at, end);
        };
        let mut futile = !end.said.is_initialized;
        if futile && let Ok(input) = regular::read(written, MAX_LEN) {
            let left_out = self.corpus.leave_out(&input);
            futile = !left_out.map_err(system("copying the corpus"))?;
        }
        self.futile = if futile { self.futile + 1 } else { 0 };
        if self.futile >= MAX_FUTILE_CRASHES {
            return Err(CampaignError::Fuzzer {
                what: "libFuzzer cannot get past the first inputs that it runs".to_owned(),
                why: end.status.to_string(),
                hint: FIRST_INPUTS,
            });
        }
        match self.plan.again && !self.is_stopped() {
            true => self.next(at).map_err(system("starting libFuzzer")),
            false => Ok(None),
        }
    }

    /// Handles the end `end` of the libFuzzer process number `at`, which has written no failing
    /// input. If a signal ended the process (the system sends one when memory is short), starts it
    /// again and returns the new process. Returns `None` if the process ended with success, or if
    /// no process is to be started again. In all other cases fails.
    fn ended_without_finding(
        &mut self,
        at: usize,
        end: &End,
    ) -> Result<Option<Process>, CampaignError> {
        if end.status.success() || !self.plan.again || self.is_stopped() {
            return Ok(None);
        }
        if end.status.signal().is_some() && self.killed < MAX_KILLED {
            self.killed += 1;
            return self.next(at).map_err(system("starting libFuzzer"));
        }
        Err(CampaignError::Fuzzer {
            what: "libFuzzer ended without a failing input".to_owned(),
            why: match end.said.why() {
                "" => end.status.to_string(),
                why => format!("{}: {why}", end.status),
            },
            hint: "-v prints what libFuzzer says; --memory and --jobs bound the memory that it uses",
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Producer for LibFuzzers {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        let is_late = |time| self.began.elapsed() > time + END_TIMEOUT;
        if self.plan.flags.time.is_some_and(is_late) {
            // The process hangs on an input; by its own limit it would do so for twenty minutes.
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
                match self.ended(at, &end) {
                    Ok(next) => self.running[at] = next,
                    // The other processes go on, and what they find is kept.
                    Err(error) => self.error = self.error.take().or(Some(error)),
                }
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

    fn ended_by(&self) -> EndedBy {
        self.plan.flags.ended_by(self.made, self.began.elapsed())
    }

    fn failure(&mut self) -> Option<CampaignError> {
        self.error.take()
    }

    fn warning(&self) -> Option<String> {
        (self.killed > 0).then(|| {
            let times = size::counted(self.killed.into(), "time");
            format!("libFuzzer was killed by a signal and started again {times} (is memory short?)")
        })
    }
}

/// Hint for a harness that fails on the inputs that libFuzzer runs before all others.
const FIRST_INPUTS: &str = "libFuzzer runs the empty input before all others, and ends where the \
                            harness fails on it: fix that, or use --engine libafl, which goes on";

/// Returns a function that converts an I/O error to a campaign error. `what`: the action that has
/// failed, in words.
fn system(what: &'static str) -> impl Fn(io::Error) -> CampaignError {
    move |source| CampaignError::System {
        what: what.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::cargo::libfuzzer::FuzzerOutput;

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
            killed: 0,
            error: None,
            unsuccessful: None,
            stop,
            plan: plan("/bin/true"),
        };
        let end = |runs| {
            let mut said = FuzzerOutput::default();
            (said.runs, said.is_initialized) = (runs, true);
            said.last_written = Some(PathBuf::from("crash-0"));
            End {
                status: ExitStatus::default(),
                said,
            }
        };
        for (at, runs) in [(0, 100), (1, 500), (0, 390)] {
            all.ended(at, &end(runs)).unwrap();
        }
        assert_eq!((all.left.as_slice(), all.made), ([10, 0].as_slice(), 990));
        assert!(all.next(1).unwrap().is_none());
        assert!(all.next(0).unwrap().is_some());
    }

    #[test]
    fn a_killed_process_is_started_again_a_bounded_number_of_times() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("killed");
        std::fs::write(&program, "#!/bin/sh\nkill -9 $$\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let mut plan = plan(program.to_str().unwrap());
        (plan.jobs, plan.again) = (1, true);
        plan.artifact_prefix = dir.path().join("artifacts/").into();
        let corpus = dir.path().join("corpus");
        let mut all = LibFuzzers::start(plan, corpus, Arc::default()).unwrap();
        while all.poll().unwrap() == Producing::Running {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(all.warning().unwrap().contains("10 times"));
        let failure = all.failure().unwrap().to_string();
        assert!(failure.contains("SIGKILL"), "{failure}");
        assert!(all.failure().is_none());
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
