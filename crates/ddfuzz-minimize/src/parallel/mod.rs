//! Minimization by several workers, which run the tests that will be needed if no test fails.
//!
//! A clone of the search receives a predicted outcome for each candidate, never FAIL, and returns
//! further candidates; workers run these ahead. Answers are used strictly in the order of the
//! questions (which text to run), and each question is compared with the predicted one. So the log,
//! the result and all counts except `speculative` are the same as with one worker; a wrong
//! prediction only wastes runs.
//!
//! A failing test ends the use of a clone, because later candidates are edits of another best text.
//! Waiting jobs are then taken back, and running ones finish. Crashes of other bugs in their runs
//! are still reported.
//!
//! The workers are no [`TaskPool`](ddfuzz_model::pool::TaskPool): they are started one by one when
//! tests take long enough, and their jobs are made, and taken back, while they run.

mod jobs;
mod look_ahead;
mod worker_pool;

use std::sync::Mutex;
use std::time::Duration;

use crate::driver::{drive, minimize};
use crate::parallel::jobs::Queue;
use crate::parallel::worker_pool::WorkerPool;
use crate::{Journal, MinimizeError, Minimized, Options, Oracle, OracleError};

/// An oracle in a box, which a worker thread can take over.
pub type BoxedOracle<'a> = Box<dyn Oracle + Send + 'a>;

/// Function that makes another oracle for the same failure; called in the thread of the worker that
/// uses it.
pub type MakeOracle<'a> = dyn Fn() -> Result<BoxedOracle<'a>, OracleError> + Sync + 'a;

/// Minimum wall time of a test for which workers run tests ahead: ten times the 20 µs that it takes
/// to pass a test to another thread.
const WORTH: Duration = Duration::from_micros(200);

/// What the worker threads of one minimization need: how many there are, the oracle of the first
/// one, and how the others make theirs.
pub struct Workers<'a> {
    first: Mutex<BoxedOracle<'a>>,
    make: &'a MakeOracle<'a>,
    jobs: usize,
    worth: Duration,
}

impl<'a> Workers<'a> {
    /// Describes the workers of a minimization: `jobs` threads that will run predicted tests ahead;
    /// with a single one, nothing is run ahead. While tests are cheap, the oracle `first` answers
    /// alone; later it also serves the first worker. Other workers make their oracles by `make`; if
    /// that fails, there is one worker less, which is not an error.
    pub fn new(first: BoxedOracle<'a>, make: &'a MakeOracle<'a>, jobs: usize) -> Workers<'a> {
        Workers {
            first: Mutex::new(first),
            make,
            jobs: jobs.max(1),
            worth: WORTH,
        }
    }

    /// Returns these workers with another value of how long tests must take for the workers to run
    /// further tests ahead: the median wall time of recent tests must be at least `cost` (200 µs by
    /// default; zero means always). The result of the minimization does not depend on it.
    pub fn ahead_from(self, cost: Duration) -> Workers<'a> {
        Workers {
            worth: cost,
            ..self
        }
    }
}

/// Minimizes like [`minimize`], with several workers. The log, the result and its counts do not
/// depend on the number of workers, except for times and
/// [`Counts::speculative`](crate::Counts::speculative).
///
/// If the oracle of a worker fails, the worker ends, and the first oracle runs its text. All
/// threads have ended when the function returns.
///
/// # Errors
/// As [`minimize`].
pub fn minimize_by_workers(
    input: &[u8],
    workers: Workers<'_>,
    journal: &mut Journal,
    options: &mut Options<'_>,
) -> Result<Minimized, MinimizeError> {
    if workers.jobs == 1 {
        let mut first = workers.first.into_inner();
        let first = first.as_mut().unwrap_or_else(|poisoned| poisoned.get_mut());
        return minimize(input, first.as_mut(), journal, options);
    }
    let queue = Queue::default();
    let workers = &workers;
    std::thread::scope(|scope| {
        let mut pool = WorkerPool::new(scope, workers, &queue);
        drive(input, &mut pool, journal, options)
    })
}
