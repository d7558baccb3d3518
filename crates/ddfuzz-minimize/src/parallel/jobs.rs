//! The jobs of the workers: the queue of those that wait, and the state of each.

use ddfuzz_exec::TimeLimit;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::question::{Manner, Question};
use crate::{Answer, Slip};

/// A job handed out.
#[derive(Debug)]
enum JobState {
    /// It waits, or a worker runs it.
    Pending,
    /// Its answer is there; `None` where the oracle failed.
    Done(Option<Answer>),
}

/// The jobs that were handed out, and how many of the runs were of use.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    next: u64,
    /// Jobs whose answers are expected.
    expected: HashMap<u64, JobState>,
    /// Jobs that run although their answers are not expected any more.
    given_up: HashMap<u64, Question>,
    /// Answers of the jobs given up last. Where only a prediction was wrong and the best is the same,
    /// they may be asked for soon.
    spare: HashMap<Question, Answer>,
    unclaimed_slips: Vec<Slip>,
    ran: u64,
    used: u64,
}

/// What a new question needs.
pub(super) enum Need {
    /// A run.
    Run,
    /// Nothing: a job is on it, or has done it.
    Nothing,
}

impl Jobs {
    /// A number for the job that answers this question.
    pub fn expect(&mut self, question: Question) -> (u64, Need) {
        let running = self.given_up.iter().find(|(_, given)| **given == question);
        if let Some(id) = running.map(|(id, _)| *id).filter(|_| repeats(question)) {
            self.given_up.remove(&id);
            self.expected.insert(id, JobState::Pending);
            return (id, Need::Nothing);
        }
        let id = self.next;
        self.next += 1;
        match self.spare.remove(&question) {
            Some(answer) => {
                self.expected.insert(id, JobState::Done(Some(answer)));
                (id, Need::Nothing)
            }
            None => {
                self.expected.insert(id, JobState::Pending);
                (id, Need::Run)
            }
        }
    }

    /// Takes a worker's answer to a job.
    pub fn enter(&mut self, id: u64, answer: Option<Answer>) {
        self.ran += u64::from(answer.is_some());
        match (self.expected.get_mut(&id), self.given_up.remove(&id)) {
            (Some(state), _) => *state = JobState::Done(answer),
            (None, Some(question)) => self.leave(question, answer),
            (None, None) => {}
        }
    }

    /// The answer of a job, once it is there; inner `None` where there will be none.
    pub fn collect(&mut self, id: u64) -> Option<Option<Answer>> {
        match self.expected.remove(&id) {
            Some(JobState::Done(answer)) => {
                self.used += u64::from(answer.is_some());
                Some(answer)
            }
            Some(JobState::Pending) => {
                self.expected.insert(id, JobState::Pending);
                None
            }
            None => Some(None),
        }
    }

    /// Whether the answer of a job is there and invalidates its forecast.
    pub fn turns(&self, id: u64, manner: Manner) -> bool {
        match self.expected.get(&id) {
            Some(JobState::Done(Some(answer))) => manner.turns_at(answer.outcome),
            _ => false,
        }
    }

    /// Gives up these jobs: their answers are not needed. Those taken back will not run.
    pub fn give_up(&mut self, jobs: impl Iterator<Item = (Question, u64)>, taken_back: &[u64]) {
        self.spare.clear();
        for (question, id) in jobs {
            match self.expected.remove(&id) {
                Some(JobState::Done(answer)) => self.leave(question, answer),
                Some(JobState::Pending) if !taken_back.contains(&id) => {
                    self.given_up.insert(id, question);
                }
                _ => {}
            }
        }
    }

    /// Gives up all open jobs, because all workers are gone.
    pub fn give_up_all(&mut self) {
        self.given_up.clear();
        self.expected
            .retain(|_, state| matches!(state, JobState::Done(_)));
    }

    /// Whether a given-up job still runs.
    pub fn is_running(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Keeps the answer of a given-up job: its slip, or else the answer itself. A question with a slip
    /// runs again if it is asked, and the crash is filed with that test.
    fn leave(&mut self, question: Question, answer: Option<Answer>) {
        let Some(mut answer) = answer else { return };
        match answer.slip.take() {
            Some(slip) => self.unclaimed_slips.push(slip),
            None if repeats(question) => drop(self.spare.insert(question, answer)),
            None => {}
        }
    }

    /// Slips in answers of given-up jobs, since the last call.
    pub fn unclaimed_slips(&mut self) -> Vec<Slip> {
        std::mem::take(&mut self.unclaimed_slips)
    }

    /// Runs whose answers were not used.
    pub fn wasted(&self) -> u64 {
        self.ran - self.used
    }
}

/// Whether an answer holds whenever its question is asked. Checks are run again each time.
fn repeats(question: Question) -> bool {
    question.text.is_some()
}

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
struct QueueState {
    jobs: VecDeque<Job>,
    forecast: u64,
    /// A job of this forecast has invalidated it: those after it are not worth a run.
    turned: bool,
    closed: bool,
    /// Of jobs that are pushed from here on.
    limit: Option<TimeLimit>,
}

/// Jobs in the order in which they will be asked for. A job is begun by who takes it, and then
/// runs to its end; what still waits can be taken back.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl Queue {
    /// Appends a job of the current forecast.
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

    /// Notes that a job has invalidated its forecast. Waiting jobs stay until the forecast is
    /// withdrawn; earlier ones were begun, as jobs are taken in order.
    pub fn turn(&self, forecast: u64) {
        let mut state = self.lock();
        state.turned |= state.forecast == forecast;
    }

    /// Takes back all waiting jobs, and begins another forecast; returns their numbers.
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

    fn lock(&self) -> MutexGuard<'_, QueueState> {
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
