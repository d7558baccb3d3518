//! libFuzzers that drop failing inputs, started again after each.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Flags;
use super::corpus::Corpus;
use super::process::{Attached, End, Process, flag};
use crate::campaign::CampaignError;
use crate::campaign::watch::{Producer, Producing};

/// So many deaths one after another, none of them by an input that could be left away, mean that
/// it does not get further.
const HOPELESS: u32 = 5;

/// How long one may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// What the names of its failing inputs begin with.
const ARTIFACTS: [&str; 4] = ["crash-", "leak-", "oom-", "timeout-"];

/// Between two times that new inputs go to the user's corpus, where libFuzzer has a copy of it.
const HAND_BACK: Duration = Duration::from_secs(1);

/// What the processes of a campaign are.
pub struct Plan {
    /// The program.
    pub program: PathBuf,
    /// Flags of the user; those that hold for the whole campaign are in it once. Its corpora are
    /// only read.
    pub flags: Flags,
    /// Variables set on top of the inherited environment.
    pub env: Vec<(OsString, OsString)>,
    /// What the names of files for failing inputs begin with.
    pub artifact_prefix: OsString,
    /// How many at a time.
    pub jobs: usize,
    /// How they are attached to us.
    pub attached: Attached,
    /// Whether one is started again after a finding.
    pub again: bool,
}

/// libFuzzers that drop failing inputs, started again after each until their time is over or
/// their runs are made.
pub struct LibFuzzers {
    plan: Plan,
    corpus: Corpus,
    handed_back: Instant,
    running: Vec<Option<Process>>,
    dropped: Vec<PathBuf>,
    began: Instant,
    /// Runs of processes that have ended.
    made: u64,
    /// Deaths one after another that bring nothing.
    futile: u32,
    /// How the first one ended that did not end well.
    failed: Option<ExitStatus>,
    stop: Arc<AtomicBool>,
}

impl LibFuzzers {
    /// Starts them; new inputs go to `corpus`. When `stop` turns true none is started again.
    pub fn start(plan: Plan, corpus: PathBuf, stop: Arc<AtomicBool>) -> io::Result<LibFuzzers> {
        if plan.artifact_prefix.as_encoded_bytes().ends_with(b"/") {
            std::fs::create_dir_all(&plan.artifact_prefix)?;
        }
        let mut all = LibFuzzers {
            corpus: Corpus::open(corpus, plan.flags.corpora.clone())?,
            handed_back: Instant::now(),
            running: Vec::new(),
            dropped: Vec::new(),
            began: Instant::now(),
            made: 0,
            futile: 0,
            failed: None,
            stop,
            plan,
        };
        for _ in 0..all.plan.jobs.max(1) {
            let process = all.next()?;
            all.running.push(process);
        }
        Ok(all)
    }

    /// The status of the first one that did not end well.
    pub fn failed(&self) -> Option<ExitStatus> {
        self.failed
    }

    /// Gives the failing inputs of earlier calls, too, of which Ctrl-C may have left some. What is
    /// on record is not run again.
    pub fn drop_again(&mut self) {
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

    /// Lets those that run come to their end, as after Ctrl-C, which has reached those that are
    /// attached through: asks them after a second, and gives up after some.
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

    /// One more, if there is time and something to do for it.
    fn next(&self) -> io::Result<Option<Process>> {
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
        if let Some(runs) = self.plan.flags.runs {
            let left = runs.saturating_sub(self.made) / self.plan.jobs.max(1) as u64;
            if left == 0 && self.made > 0 {
                return Ok(None);
            }
            words.push(format!("-runs={left}").into());
        }
        words.extend(self.plan.flags.each.iter().cloned());
        words.extend(self.corpus.dirs().into_iter().map(OsString::from));
        let (program, env) = (&self.plan.program, &self.plan.env);
        Process::start(program, &words, env, None, self.plan.attached).map(Some)
    }

    /// One has ended: with a finding, or with its work done. Gives the one that goes on for it.
    fn ended(&mut self, end: &End) -> Result<Option<Process>, CampaignError> {
        self.made += end.said.runs;
        if !end.status.success() {
            self.failed = self.failed.or(Some(end.status));
        }
        let Some(written) = end.said.written.last() else {
            return match end.status.success() || !self.plan.again || self.is_stopped() {
                true => Ok(None),
                false => Err(gone("libFuzzer ended without a finding", end)),
            };
        };
        let mut futile = !end.said.is_initialized;
        if futile && let Ok(input) = std::fs::read(written) {
            let left_out = self.corpus.leave_out(&input);
            futile = !left_out.map_err(system("copying the corpus"))?;
        }
        self.futile = if futile { self.futile + 1 } else { 0 };
        if self.futile >= HOPELESS {
            return Err(gone(
                "libFuzzer fails on the first inputs of its corpus again and again",
                end,
            ));
        }
        match self.plan.again && !self.is_stopped() {
            true => self.next().map_err(system("starting libFuzzer")),
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
                self.running[at] = self.ended(&end)?;
            }
        }
        if self.handed_back.elapsed() > HAND_BACK {
            let handed = self.corpus.hand_back();
            handed.map_err(system("keeping the corpus"))?;
            self.handed_back = Instant::now();
        }
        Ok(match self.running.iter().any(Option::is_some) {
            true => Producing::Running,
            false => Producing::Ended,
        })
    }

    fn dropped(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.dropped)
    }

    fn runs(&self) -> u64 {
        let running = self.running.iter().flatten().map(Process::runs);
        self.made + running.sum::<u64>()
    }
}

/// Why no more come.
fn gone(what: &str, end: &End) -> CampaignError {
    CampaignError::System {
        what: what.to_owned(),
        source: io::Error::other(format!("{}: {}", end.status, end.said.why())),
    }
}

/// What was tried, for an error.
fn system(what: &'static str) -> impl Fn(io::Error) -> CampaignError {
    move |source| CampaignError::System {
        what: what.to_owned(),
        source,
    }
}

/// The longest time that one input may take, for libFuzzer: whole seconds.
pub fn timeout_flag(limit: Duration) -> OsString {
    format!("-timeout={}", limit.as_secs_f64().ceil().max(1.0)).into()
}
