//! Minimizing by several workers: they run ahead what will be asked if no test fails.
//!
//! A clone of the search gets the predicted outcome of each candidate, never FAIL, and returns the
//! next candidates; workers run these before they are asked for. Answers are committed strictly in
//! the order of the questions, and each question is compared with the predicted one. So the log, the
//! result and all counts but `speculative` are those of one worker. A wrong prediction costs only
//! runs.
//!
//! A clone is used as long as its predictions come true. A test that fails ends it: later candidates
//! are made of another best. Waiting jobs are then taken back, running ones finish. Crashes of other
//! bugs that they meet are handed over all the same.

mod jobs;
mod look_ahead;
mod worker_pool;

use std::sync::Mutex;
use std::time::Duration;

use crate::driver::{drive, minimize};
use crate::parallel::jobs::Queue;
use crate::parallel::worker_pool::WorkerPool;
use crate::{Journal, MinimizeError, Minimized, Options, Oracle, OracleError};

/// An oracle that a worker can take into its thread.
pub type BoxedOracle<'a> = Box<dyn Oracle + Send + 'a>;

/// Makes one more oracle for the same failure; it is called in the thread of a worker.
pub type MakeOracle<'a> = dyn Fn() -> Result<BoxedOracle<'a>, OracleError> + Sync + 'a;

/// Handing a test to another thread and its answer back takes some 20 µs of both; where a test
/// costs ten times as much, running ahead begins to pay.
const WORTH: Duration = Duration::from_micros(200);

/// The workers of one minimization.
pub struct Workers<'a> {
    first: Mutex<BoxedOracle<'a>>,
    make: &'a MakeOracle<'a>,
    jobs: usize,
    worth: Duration,
}

impl<'a> Workers<'a> {
    /// As many workers as `jobs`; one runs nothing ahead. `first` answers by itself as long as tests are
    /// cheap, and is the oracle of the first worker after that; the others make their own. A
    /// worker that cannot make one is missing, and no failure.
    pub fn new(first: BoxedOracle<'a>, make: &'a MakeOracle<'a>, jobs: usize) -> Workers<'a> {
        Workers {
            first: Mutex::new(first),
            make,
            jobs: jobs.max(1),
            worth: WORTH,
        }
    }

    /// Tests are run ahead only where the median of the last ones took at least `cost` of wall
    /// time; 200 µs unless this says otherwise, and always where it is zero. No result depends on
    /// it.
    pub fn ahead_from(self, cost: Duration) -> Workers<'a> {
        Workers {
            worth: cost,
            ..self
        }
    }
}

/// Minimizes as [`minimize`], by several workers. The lines of the log, the result
/// and its counts are the same for any number of them, but for times and
/// [`Counts::speculative`](crate::Counts::speculative).
///
/// A worker whose oracle fails is given up, and its question is asked of the first one: only what
/// that answers counts. All threads have ended when this returns.
///
/// # Errors
/// As `minimize`.
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
