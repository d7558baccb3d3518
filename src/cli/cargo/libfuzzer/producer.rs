//! libFuzzers that drop failing inputs, started again after each.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::corpus::Corpus;
use super::flags::Flags;
use super::process::{End, Process, flag, prefix};
use crate::campaign::CampaignError;
use crate::campaign::watch::{Producer, Producing};

/// So many deaths one after another, none of them by an input that could be left away, mean that
/// it does not get further.
const HOPELESS: u32 = 5;

/// What the processes of a campaign are.
pub struct Plan {
    /// The program.
    pub program: PathBuf,
    /// Flags of the user; those that hold for the whole campaign are in it once.
    pub flags: Flags,
    /// Variables set on top of the inherited environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder for failing inputs.
    pub artifacts: PathBuf,
    /// How many at a time.
    pub jobs: usize,
    /// Whether all that they say is shown.
    pub echo: bool,
}

/// libFuzzers that drop failing inputs, started again after each until their time is over or
/// their runs are made.
pub struct LibFuzzers {
    plan: Plan,
    corpus: Corpus,
    running: Vec<Option<Process>>,
    began: Instant,
    /// Runs of processes that have ended.
    made: u64,
    /// Deaths on end before any input of their own.
    early: u32,
}

impl LibFuzzers {
    /// Starts them.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn start(plan: Plan, corpus: PathBuf) -> io::Result<LibFuzzers> {
        std::fs::create_dir_all(&plan.artifacts)?;
        let mut all = LibFuzzers {
            corpus: Corpus::open(corpus)?,
            running: Vec::new(),
            began: Instant::now(),
            made: 0,
            early: 0,
            plan,
        };
        for _ in 0..all.plan.jobs.max(1) {
            let process = all.next()?;
            all.running.push(process);
        }
        Ok(all)
    }

    /// One more, if there is time and something to do for it.
    fn next(&self) -> io::Result<Option<Process>> {
        let mut words = vec![
            flag("artifact_prefix", &prefix(&self.plan.artifacts)),
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
            if left == 0 {
                return Ok(None);
            }
            words.push(format!("-runs={left}").into());
        }
        words.extend(self.plan.flags.each.iter().cloned());
        words.push(self.corpus.dir().into());
        words.extend(self.plan.flags.corpora.iter().map(OsString::from));
        let Plan {
            program, env, echo, ..
        } = &self.plan;
        Process::start(program, &words, env, *echo).map(Some)
    }

    /// One has ended: with a finding, or with its work done.
    fn ended(&mut self, end: &End) -> Result<Option<Process>, CampaignError> {
        self.made += end.said.runs;
        self.corpus.hand_back().map_err(system("keeping the corpus"))?;
        let Some(written) = &end.said.written else {
            return match end.status.success() {
                true => Ok(None),
                false => Err(CampaignError::System {
                    what: "libFuzzer has ended without a finding".to_owned(),
                    source: io::Error::other(format!("{}: {}", end.status, end.said.why())),
                }),
            };
        };
        let mut futile = !end.said.is_initialized;
        if futile && let Ok(input) = std::fs::read(written) {
            let left_out = self.corpus.leave_out(&input);
            futile = !left_out.map_err(system("copying the corpus"))?;
        }
        self.early = if futile { self.early + 1 } else { 0 };
        if self.early >= HOPELESS {
            return Err(CampaignError::System {
                what: "libFuzzer does not get beyond the beginning of its corpus".to_owned(),
                source: io::Error::other(match end.status.signal() {
                    Some(signal) => format!("signal {signal}, {}", end.said.why()),
                    None => end.said.why().to_owned(),
                }),
            });
        }
        self.next().map_err(system("starting libFuzzer"))
    }
}

impl Producer for LibFuzzers {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        for at in 0..self.running.len() {
            let Some(process) = &mut self.running[at] else {
                continue;
            };
            if let Some(end) = process.end().map_err(system("waiting for libFuzzer"))? {
                self.running[at] = None;
                self.running[at] = self.ended(&end)?;
            }
        }
        Ok(match self.running.iter().any(Option::is_some) {
            true => Producing::Running,
            false => Producing::Ended,
        })
    }

    fn runs(&self) -> u64 {
        let running = self.running.iter().flatten().map(Process::runs);
        self.made + running.sum::<u64>()
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
