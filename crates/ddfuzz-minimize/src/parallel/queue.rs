//! The jobs that wait for a worker.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::question::Manner;
use ddfuzz_exec::TimeLimit;

/// A text to be run.
#[derive(Debug)]
pub(super) struct Job {
    /// Its number.
    pub id: u64,
    /// The forecast that it belongs to.
    pub forecast: u64,
    pub manner: Manner,
    pub text: Vec<u8>,
    /// The limit on its time that was learned.
    pub limit: Option<TimeLimit>,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    forecast: u64,
    /// A job of this forecast has turned it: those behind are not worth a run.
    turned: bool,
    closed: bool,
    /// Of jobs that are pushed from here on.
    limit: Option<TimeLimit>,
}

/// Jobs in the order in which they will be asked for. A job is begun by who takes it, and then
/// runs to its end; what still waits can be taken back.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// Puts a job behind the others; it belongs to the forecast of now.
    pub fn push(&self, id: u64, manner: Manner, text: Vec<u8>) {
        let mut state = self.lock();
        let (forecast, limit) = (state.forecast, state.limit);
        state.jobs.push_back(Job {
            id,
            forecast,
            manner,
            text,
            limit,
        });
        drop(state);
        self.changed.notify_one();
    }

    /// Limits the time of jobs that are pushed from here on.
    pub fn limit_time(&self, learned: TimeLimit) {
        self.lock().limit = Some(learned);
    }

    /// Waits for a job; `None` when there will be no more.
    pub fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if !state.turned
                && let Some(job) = state.jobs.pop_front()
            {
                return Some(job);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A job has turned its forecast. All that wait behind it stay where they are, until the
    /// forecast is withdrawn: those before it were begun, as jobs are taken in order.
    pub fn turn(&self, forecast: u64) {
        let mut state = self.lock();
        state.turned |= state.forecast == forecast;
    }

    /// Takes back all jobs that wait, and begins another forecast; gives their numbers.
    pub fn withdraw(&self) -> Vec<u64> {
        let mut state = self.lock();
        state.forecast += 1;
        state.turned = false;
        state.jobs.drain(..).map(|job| job.id).collect()
    }

    /// No more jobs: workers end after the one that they run.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    const MANNER: Manner = Manner::Test {
        kind: Kind::Deleting,
        fresh: false,
        observed: false,
    };

    #[test]
    fn nothing_behind_a_job_that_turned_is_begun() {
        let queue = Queue::default();
        (0..3).for_each(|id| queue.push(id, MANNER, Vec::new()));
        let job = queue.take().expect("a job");
        queue.turn(job.forecast);
        assert!(queue.lock().turned);
        assert_eq!(queue.withdraw(), [1, 2]);
        // One that was begun before does not turn the forecast of now.
        queue.push(3, MANNER, Vec::new());
        queue.turn(job.forecast);
        assert_eq!(queue.take().map(|job| job.id), Some(3));
        queue.close();
        assert!(queue.take().is_none());
    }
}
