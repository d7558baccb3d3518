//! A worker: takes jobs from the queue and runs them with an oracle of its own.

use crossbeam::channel::Sender;
use ddfuzz_exec::TimeLimit;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::parallel::jobs::{Job, Queue};
use crate::parallel::{BoxedOracle, MakeOracle};
use crate::{Answer, Oracle, OracleError};

/// A message of a worker.
#[derive(Debug)]
pub(super) enum WorkerReport {
    /// A job is done; `None` where the oracle failed.
    Done {
        id: u64,
        answer: Option<Answer>,
        /// Whether it ran in a fresh process.
        fresh: bool,
        /// Wall time.
        cost: Duration,
    },
    /// The worker is gone.
    Gone,
}

/// Where the oracle of a worker comes from.
pub(super) enum OracleSource<'a, 'o> {
    /// The one that also answers where nothing is run ahead.
    First(&'a Mutex<BoxedOracle<'o>>),
    /// One that the worker makes in its own thread, where it is also dropped: processes may be
    /// bound to the thread that started them.
    Made(&'a MakeOracle<'o>),
}

/// The oracle of a worker.
enum WorkerOracle<'a, 'o> {
    First(&'a Mutex<BoxedOracle<'o>>),
    Made {
        oracle: BoxedOracle<'o>,
        /// The learned limit that it knows.
        limit: Option<TimeLimit>,
    },
}

impl WorkerOracle<'_, '_> {
    fn answer(&mut self, job: &Job) -> Result<Answer, OracleError> {
        match self {
            // The committing thread has set its limit.
            WorkerOracle::First(first) => {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                job.run(first.as_mut())
            }
            WorkerOracle::Made { oracle, limit } => {
                if let Some(learned) = job.limit.filter(|_| *limit != job.limit) {
                    oracle.limit_time(learned);
                    *limit = job.limit;
                }
                job.run(oracle.as_mut())
            }
        }
    }
}

impl Job {
    /// Runs its text; jobs are not observed, and have no hints.
    fn run(&self, oracle: &mut dyn Oracle) -> Result<Answer, OracleError> {
        let (answer, _) = self.manner.put(oracle, &self.text)?;
        Ok(answer)
    }
}

/// Takes jobs until there are none left, or until the oracle fails: what it answers after that
/// would be worth nothing, and whoever needs the answer asks the first oracle again.
pub(super) fn work(source: OracleSource<'_, '_>, queue: &Queue, reports: Sender<WorkerReport>) {
    let mut post = ReportSender { reports, job: None };
    let mut oracle = match source {
        OracleSource::First(first) => WorkerOracle::First(first),
        OracleSource::Made(make) => match make() {
            Ok(oracle) => WorkerOracle::Made {
                oracle,
                limit: None,
            },
            // Fewer workers are no failure.
            Err(_) => return,
        },
    };
    while let Some(job) = queue.take() {
        post.job = Some((job.id, job.manner.is_fresh()));
        let began = Instant::now();
        let answer = oracle.answer(&job).ok();
        let cost = began.elapsed();
        if let Some(answer) = &answer
            && job.manner.turns_at(answer.outcome)
        {
            queue.turn(job.forecast);
        }
        let failed = answer.is_none();
        post.done(answer, cost);
        if failed {
            return;
        }
    }
}

/// Sends the reports of a worker. When the worker ends, also by a panic, it reports that, so that
/// nobody waits for ever.
struct ReportSender {
    reports: Sender<WorkerReport>,
    /// The job under way, and whether in a fresh process.
    job: Option<(u64, bool)>,
}

impl ReportSender {
    fn done(&mut self, answer: Option<Answer>, cost: Duration) {
        if let Some((id, fresh)) = self.job.take() {
            // Nobody listens only when all is over.
            let _ = self.reports.send(WorkerReport::Done {
                id,
                answer,
                fresh,
                cost,
            });
        }
    }
}

impl Drop for ReportSender {
    fn drop(&mut self) {
        self.done(None, Duration::ZERO);
        let _ = self.reports.send(WorkerReport::Gone);
    }
}
