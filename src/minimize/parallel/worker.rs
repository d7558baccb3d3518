//! A worker: runs jobs with an oracle of its own.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::Sender;

use super::queue::Queue;
use super::{BoxedOracle, MakeOracle};
use crate::minimize::{Answer, Oracle, OracleError};

/// What a worker tells.
#[derive(Debug)]
pub(super) enum Report {
    /// A job is done; `None` where the oracle failed.
    Done {
        id: u64,
        answer: Option<Answer>,
        cost: Duration,
    },
    /// The worker is gone.
    Gone,
}

/// The oracle of a worker.
pub(super) enum Source<'a, 'o> {
    /// The one that also answers where nothing is run ahead.
    First(&'a Mutex<BoxedOracle<'o>>),
    /// One that the worker makes in its own thread, where it is also dropped: processes may be
    /// bound to the thread that started them.
    Made(&'a MakeOracle<'o>),
}

/// Takes jobs until there are none left, or until the oracle fails: what it answers after that
/// would be worth nothing, and whoever needs the answer asks the first oracle again.
pub(super) fn work(source: Source<'_, '_>, queue: &Queue, reports: Sender<Report>) {
    let mut post = Post { reports, job: None };
    let mut made;
    let mut ask: Box<dyn FnMut(Asking<'_>) -> Result<Answer, OracleError>> = match source {
        Source::First(first) => Box::new(move |asking| {
            asking(
                first
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .as_mut(),
            )
        }),
        Source::Made(make) => {
            // Fewer workers are no failure.
            let Ok(oracle) = make() else { return };
            made = oracle;
            Box::new(|asking| asking(made.as_mut()))
        }
    };
    while let Some(job) = queue.take() {
        post.job = Some(job.id);
        let began = Instant::now();
        let answer = ask(&mut |oracle| job.manner.put(oracle, &job.text)).ok();
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

type Asking<'a> = &'a mut dyn FnMut(&mut dyn Oracle) -> Result<Answer, OracleError>;

/// The way to whoever waits for answers. It says so when the worker is gone, by a panic too, so
/// that nobody waits for ever.
struct Post {
    reports: Sender<Report>,
    job: Option<u64>,
}

impl Post {
    fn done(&mut self, answer: Option<Answer>, cost: Duration) {
        if let Some(id) = self.job.take() {
            // Nobody listens only when all is over.
            let _ = self.reports.send(Report::Done { id, answer, cost });
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.done(None, Duration::ZERO);
        let _ = self.reports.send(Report::Gone);
    }
}
