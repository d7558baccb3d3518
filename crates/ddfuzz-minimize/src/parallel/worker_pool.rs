//! The worker pool of one minimization: it answers questions (texts to run) in order, while workers
//! run predicted texts ahead.

use crossbeam::channel::{Receiver, Sender, unbounded};
use ddfuzz_delta::Hints;
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::Crash;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use crate::log::What;
use crate::parallel::jobs::{Job, Jobs, Queue};
use crate::parallel::look_ahead::{LookAheadCost, OutcomePrediction, TestCost};
use crate::parallel::{BoxedOracle, MakeOracle, Workers};
use crate::progress::{Continuation, Progress};
use crate::question::{Answerer, Manner, ObservedAnswer, Question};
use crate::requests::Requests;
use crate::{Answer, Oracle, OracleError, Slip};

/// Number of jobs (runs of predicted texts) that are given out ahead for each worker.
const AHEAD: usize = 2;
/// Decides when worker threads start, as a multiple of the wall time from which a test is worth
/// running ahead (0.2 ms by default). The first two workers start when all tests so far have taken
/// this multiple (0.8 s by default), and each further one after as much time again. So a short
/// minimization starts none: a second target, needless runs and the exchange between threads would
/// cost it more than workers save.
const START_COST: u32 = 4000;

/// A series of predicted runs of the minimization, and the jobs of workers that make them.
struct Forecast {
    continuation: Continuation,
    jobs: VecDeque<(Question, u64)>,
}

/// Runs the tests and checks of a minimization in order, while worker threads run predicted ones
/// ahead.
pub(super) struct WorkerPool<'scope, 'env, 'o> {
    scope: &'scope Scope<'scope, 'env>,
    workers: &'env Workers<'o>,
    queue: &'env Queue,
    to_us: Sender<WorkerReport>,
    reports: Receiver<WorkerReport>,
    started: usize,
    alive: usize,
    forecast: Option<Forecast>,
    /// The requests to the first oracle that the thread of the caller makes. This thread runs the
    /// text that is due if no worker runs it.
    requests: Requests,
    jobs: Jobs,
    prediction: OutcomePrediction,
    test_cost: TestCost,
    look_ahead_cost: LookAheadCost,
    /// Wall time of all tests so far, which decides when workers start.
    tested: Duration,
}

impl<'scope, 'env, 'o> WorkerPool<'scope, 'env, 'o> {
    /// Makes a pool without workers; their threads are started in `scope` when they are needed.
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        workers: &'env Workers<'o>,
        queue: &'env Queue,
    ) -> WorkerPool<'scope, 'env, 'o> {
        let (to_us, reports) = unbounded();
        WorkerPool {
            scope,
            workers,
            queue,
            to_us,
            reports,
            started: 0,
            alive: 0,
            forecast: None,
            requests: Requests::default(),
            jobs: Jobs::default(),
            prediction: OutcomePrediction::default(),
            test_cost: TestCost::new(workers.worth),
            look_ahead_cost: LookAheadCost::default(),
            tested: Duration::ZERO,
        }
    }

    /// Starts one more worker thread, unless the requested number is reached or the tests so far
    /// have not yet taken long enough to be worth a thread.
    fn start_worker(&mut self) {
        let number = u32::try_from(self.started.max(1)).unwrap_or(u32::MAX);
        let cost = self.workers.worth.saturating_mul(START_COST);
        if self.started == self.workers.jobs || self.tested < cost.saturating_mul(number) {
            return;
        }
        let (workers, queue, to_us) = (self.workers, self.queue, self.to_us.clone());
        let source = match self.started {
            0 => OracleSource::First(&workers.first),
            _ => OracleSource::Made(workers.make),
        };
        let thread = Builder::new().name("ddfuzz-test".to_owned());
        // If no further thread can be started, the present ones continue.
        self.started = match thread.spawn_scoped(self.scope, move || work(source, queue, to_us)) {
            Ok(_) => {
                self.alive += 1;
                self.started + 1
            }
            Err(_) => self.workers.jobs,
        };
    }

    fn take(&mut self, report: WorkerReport) {
        match report {
            WorkerReport::Done {
                id,
                answer,
                fresh,
                cost,
            } => {
                self.test_cost.note(fresh, cost);
                self.tested += cost;
                self.jobs.record_answer(id, answer);
            }
            WorkerReport::Gone => {
                self.alive -= 1;
                if self.alive == 0 {
                    self.queue.withdraw();
                    self.jobs.give_up_all();
                }
            }
        }
    }

    /// Drops the predicted runs of the present forecast, and takes those of their jobs that no
    /// worker has begun out of the queue.
    fn drop_forecast(&mut self) {
        if let Some(forecast) = self.forecast.take() {
            let taken_back = self.queue.withdraw();
            self.jobs.give_up(forecast.jobs.into_iter(), &taken_back);
        }
    }

    /// Predicts the next runs of the minimization whose state is `progress`, and gives them to the
    /// workers as jobs, until `room` predicted jobs are open. Does nothing if the outcome of a
    /// predicted run has shown that the prediction of the later ones is wrong.
    fn look_ahead(&mut self, progress: &Progress<'_>, room: usize) {
        let Some(forecast) = &mut self.forecast else {
            return;
        };
        let known = |(question, id): &(Question, u64)| self.jobs.invalidates(*id, question.manner);
        if forecast.jobs.iter().any(known) {
            return;
        }
        let mut text = Vec::new();
        while forecast.jobs.len() < room {
            let likely = |rule| self.prediction.likely(rule);
            let next = forecast
                .continuation
                .next(progress.texts(), likely, &mut text);
            let Some(question) = next else { return };
            let (id, needs_run) = self.jobs.expect(question);
            forecast.jobs.push_back((question, id));
            if needs_run {
                self.queue
                    .push(id, question.manner, std::mem::take(&mut text));
            }
        }
    }

    /// If `question` (a text to run) is the next one of the predicted questions, removes it from
    /// the prediction, and returns the number of the job that runs it. Else returns `None`.
    fn predicted_job(&mut self, question: Question) -> Option<u64> {
        let jobs = &mut self.forecast.as_mut()?.jobs;
        let (_, id) = jobs.pop_front_if(|(first, _)| *first == question)?;
        Some(id)
    }

    /// Waits for the answer of the job `id`, and returns it; `None` if there will be none, because
    /// the oracle or its worker failed.
    fn wait(&mut self, id: u64) -> Option<Answer> {
        loop {
            if let Some(answer) = self.jobs.collect(id) {
                return answer;
            }
            match self.reports.recv() {
                Ok(report) => self.take(report),
                Err(_) => return None,
            }
        }
    }

    /// Answers `question` (a text to run), which is due, by the job of a worker, and gives further
    /// predicted runs to workers until `room` predicted jobs are open. `None` if no job can answer
    /// it.
    fn by_job(
        &mut self,
        question: Question,
        progress: &Progress<'_>,
        room: usize,
    ) -> Option<Answer> {
        self.start_worker();
        if self.alive == 0 {
            self.drop_forecast();
            return None;
        }
        let first = self.forecast.as_ref().and_then(|one| one.jobs.front());
        if first.is_none_or(|(first, _)| *first != question) {
            self.drop_forecast();
            if !self.look_ahead_cost.allows_next() {
                return None;
            }
            self.forecast = Some(Forecast {
                continuation: self.look_ahead_cost.measure(|| progress.continuation()),
                jobs: VecDeque::new(),
            });
        }
        self.look_ahead(progress, room);
        let id = self.predicted_job(question)?;
        self.wait(id)
    }

    /// Locks the oracle that the first worker shares with the caller's thread, and returns it;
    /// waits while the worker uses it.
    fn first_oracle(&self) -> MutexGuard<'env, BoxedOracle<'o>> {
        let first = self.workers.first.lock();
        first.unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers `question`, which `progress` asks now, in the thread of the caller: runs the text by
    /// the oracle that this thread shares with the first worker, or takes the answer that an
    /// earlier request has given ahead. Returns the answer; `None` if no text is due. `left` is the
    /// maximum number of tests in a request; `None` means no limit.
    fn in_this_thread(
        &mut self,
        question: Question,
        progress: &Progress<'_>,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError> {
        let mut oracle = self.first_oracle();
        let (before, began) = (self.requests.made(), Instant::now());
        let told = self.requests.answer(oracle.as_mut(), progress, left)?;
        let took = began.elapsed();
        self.tested += took;
        if let Some((answer, _)) = &told {
            let cost = match oracle.takes_several() {
                true => answer.cost, // of one of several texts
                false => took,
            };
            // Observed tests are slower, so their cost says nothing about other tests. Those of one
            // request have one cost: a request that has waited for a processor counts once.
            if !question.manner.is_observed() && self.requests.made() != before {
                self.test_cost.note(question.manner.is_fresh(), cost);
            }
        }
        Ok(told)
    }
}

impl Answerer for WorkerPool<'_, '_, '_> {
    fn workers(&self) -> u32 {
        u32::try_from(self.workers.jobs).unwrap_or(u32::MAX)
    }

    fn answer(
        &mut self,
        progress: &Progress<'_>,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError> {
        while let Ok(report) = self.reports.try_recv() {
            self.take(report);
        }
        let Some(question) = progress.question() else {
            return Ok(None);
        };
        let most = AHEAD * self.workers.jobs;
        let votes = usize::try_from(progress.votes()).unwrap_or(usize::MAX);
        let room = match (question.manner, left.map(usize::try_from)) {
            // Confirmations and repeated removals do not count as tests.
            (Manner::Check(What::Confirm | What::Vote), _) | (_, None | Some(Err(_))) => most,
            (_, Some(Ok(left))) => most.min(left.max(1).saturating_mul(votes)),
        };
        let manner = question.manner;
        let ahead = !manner.is_observed() && self.test_cost.is_worth_it(manner.is_fresh());
        let answer = match ahead {
            true => self.by_job(question, progress, room),
            false => {
                self.drop_forecast();
                None
            }
        };
        let told = match answer {
            Some(answer) => Some((answer, Hints::default())),
            None => self.in_this_thread(question, progress, left)?,
        };
        if let Some((answer, _)) = &told {
            if let (Manner::Test { .. }, Some(pending)) =
                (question.manner, progress.texts().pending())
            {
                self.prediction
                    .learn(pending.candidate.rule, answer.outcome);
            }
            if question.manner.invalidates_prediction(answer.outcome) {
                self.drop_forecast();
            }
        }
        Ok(told)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.queue.limit_time(learned);
        self.first_oracle().limit_time(learned);
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        self.first_oracle().record(slip)
    }

    fn unclaimed_slips(&mut self) -> Vec<Slip> {
        let mut slips = self.jobs.unclaimed_slips();
        slips.extend(self.requests.unclaimed_slips());
        slips
    }

    fn finish(&mut self) -> u64 {
        self.drop_forecast();
        while self.jobs.is_running() {
            match self.reports.recv() {
                Ok(report) => self.take(report),
                Err(_) => break,
            }
        }
        self.queue.close();
        self.jobs.wasted() + self.requests.finish()
    }
}

impl Drop for WorkerPool<'_, '_, '_> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A message from a worker thread to the pool: a job has ended, or the worker has.
#[derive(Debug)]
pub(super) enum WorkerReport {
    /// A job (the run of one text) has ended; `answer` is `None` if the oracle failed.
    Done {
        id: u64,
        answer: Option<Answer>,
        /// Whether the job's run was in a fresh process.
        fresh: bool,
        /// Wall time of the job's run.
        cost: Duration,
    },
    /// The worker has ended and runs no more jobs.
    Gone,
}

/// How a worker gets the oracle by which it runs tests: it shares the first one or makes its own.
pub(super) enum OracleSource<'a, 'o> {
    /// The worker shares the first oracle, which also answers in the caller's thread.
    First(&'a Mutex<BoxedOracle<'o>>),
    /// The worker makes an oracle for itself in its own thread, and drops it there, because
    /// processes may be bound to the thread that started them.
    Made(&'a MakeOracle<'o>),
}

/// The oracle that runs the jobs of a worker: the one shared with the caller's thread, or one of
/// the worker alone.
enum WorkerOracle<'a, 'o> {
    First(&'a Mutex<BoxedOracle<'o>>),
    Made {
        oracle: BoxedOracle<'o>,
        /// The learned time limit that was last given to this oracle.
        limit: Option<TimeLimit>,
    },
}

impl WorkerOracle<'_, '_> {
    fn answer(&mut self, job: &Job) -> Result<Answer, OracleError> {
        match self {
            // The thread that uses the answers has set its time limit.
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
    /// Runs the text of the job with `oracle`, in the thread of a worker, and returns the answer.
    fn run(&self, oracle: &mut dyn Oracle) -> Result<Answer, OracleError> {
        let (answer, _) = self.manner.put(oracle, &self.text)?;
        Ok(answer)
    }
}

/// Does the work of one worker thread: runs jobs from `queue`, by the oracle that `source` gives,
/// and reports their answers. Ends when the queue is closed, or when its oracle fails; the pool
/// then has the text of the failed job run by the oracle of the calling thread.
pub(super) fn work(source: OracleSource<'_, '_>, queue: &Queue, reports: Sender<WorkerReport>) {
    let mut post = ReportSender { reports, job: None };
    let mut oracle = match source {
        OracleSource::First(first) => WorkerOracle::First(first),
        OracleSource::Made(make) => match make() {
            Ok(oracle) => WorkerOracle::Made {
                oracle,
                limit: None,
            },
            // A missing worker is no error.
            Err(_) => return,
        },
    };
    while let Some(job) = queue.take() {
        post.job = Some((job.id, job.manner.is_fresh()));
        let began = Instant::now();
        let answer = oracle.answer(&job).ok();
        let cost = began.elapsed();
        if let Some(answer) = &answer
            && job.manner.invalidates_prediction(answer.outcome)
        {
            queue.invalidate(job.forecast);
        }
        let failed = answer.is_none();
        post.done(answer, cost);
        if failed {
            return;
        }
    }
}

/// Sends the reports of a worker. When it is dropped, even by a panic, it reports the end of the
/// worker, so that the pool does not wait for it forever.
struct ReportSender {
    reports: Sender<WorkerReport>,
    /// Number of the job that the worker runs at present, and whether it runs in a fresh process;
    /// `None` between jobs.
    job: Option<(u64, bool)>,
}

impl ReportSender {
    fn done(&mut self, answer: Option<Answer>, cost: Duration) {
        if let Some((id, fresh)) = self.job.take() {
            // Sending fails only after the minimization has ended.
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
