//! The jobs of workers: the queue of waiting jobs, and the state of each job.

use ddfuzz_exec::TimeLimit;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::question::{Manner, Question};
use crate::{Answer, Slip};

/// State of a job (the run of one text by a worker) whose answer is needed: it waits or runs, or it
/// is done.
#[derive(Debug)]
enum JobState {
    /// The job waits in the queue or runs.
    Pending,
    /// The job has its answer; `None` if the oracle failed.
    Done(Option<Answer>),
}

/// The jobs (runs of one text each) that were given to workers, their answers, and how many of
/// their runs were useful.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    next: u64,
    /// State of the jobs whose answers are needed, by job number.
    expected: HashMap<u64, JobState>,
    /// Questions of the running jobs whose answers are no longer needed, by job number.
    given_up: HashMap<u64, Question>,
    /// Answers of the jobs that were given up last, by question (a text to run, and how). They are
    /// kept because the same questions are soon asked again if the prediction was wrong, but the
    /// best text is still the same.
    spare: HashMap<Question, Answer>,
    unclaimed_slips: Vec<Slip>,
    ran: u64,
    used: u64,
}

impl Jobs {
    /// Returns the number of the job for a question (a text, and how to run it), and whether a
    /// worker has to run the job: true for a new job, false for an earlier one that has run, or is
    /// running, for the same question.
    pub fn expect(&mut self, question: Question) -> (u64, bool) {
        let running = self.given_up.iter().find(|(_, given)| **given == question);
        if let Some(id) = running.map(|(id, _)| *id).filter(|_| repeats(question)) {
            self.given_up.remove(&id);
            self.expected.insert(id, JobState::Pending);
            return (id, false);
        }
        let id = self.next;
        self.next += 1;
        match self.spare.remove(&question) {
            Some(answer) => {
                self.expected.insert(id, JobState::Done(Some(answer)));
                (id, false)
            }
            None => {
                self.expected.insert(id, JobState::Pending);
                (id, true)
            }
        }
    }

    /// Records the answer of a worker to a job; `None` means that the oracle failed.
    pub fn record_answer(&mut self, id: u64, answer: Option<Answer>) {
        self.ran += u64::from(answer.is_some());
        match (self.expected.get_mut(&id), self.given_up.remove(&id)) {
            (Some(state), _) => *state = JobState::Done(answer),
            (None, Some(question)) => self.keep_answer(question, answer),
            (None, None) => {}
        }
    }

    /// Takes the answer of a job. `None` means that it has no answer yet, `Some(None)` that it will
    /// never have one, because the oracle failed or the job was given up.
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

    /// Returns true if the job `id` has run and its outcome makes the predictions of later runs
    /// wrong, because its text becomes the new best text (the smallest failing so far); false if
    /// its outcome is another one or not known yet. `manner` says how, and for what purpose, the
    /// text is run.
    pub fn invalidates(&self, id: u64, manner: Manner) -> bool {
        match self.expected.get(&id) {
            Some(JobState::Done(Some(answer))) => manner.invalidates_prediction(answer.outcome),
            _ => false,
        }
    }

    /// Gives up `jobs`, whose answers are not needed for now. Keeps their answers, also of those
    /// that still run, in case the same question (text to run) is asked next, and drops what was
    /// kept of jobs given up earlier. The jobs in `taken_back` had not begun to run, and will not.
    pub fn give_up(&mut self, jobs: impl Iterator<Item = (Question, u64)>, taken_back: &[u64]) {
        self.spare.clear();
        for (question, id) in jobs {
            match self.expected.remove(&id) {
                Some(JobState::Done(answer)) => self.keep_answer(question, answer),
                Some(JobState::Pending) if !taken_back.contains(&id) => {
                    self.given_up.insert(id, question);
                }
                _ => {}
            }
        }
    }

    /// Gives up all jobs without an answer, after all workers have ended.
    pub fn give_up_all(&mut self) {
        self.given_up.clear();
        self.expected
            .retain(|_, state| matches!(state, JobState::Done(_)));
    }

    /// Checks whether any job whose answer is no longer needed is still running.
    pub fn is_running(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Keeps the answer of a given-up job, in case its question (a text to run) is due later. If
    /// the answer has a slip (a crash of another bug), only the slip is kept, and the question is
    /// run again when it is due, so that the crash belongs to that test.
    fn keep_answer(&mut self, question: Question, answer: Option<Answer>) {
        let Some(mut answer) = answer else { return };
        match answer.slip.take() {
            Some(slip) => self.unclaimed_slips.push(slip),
            None if repeats(question) => drop(self.spare.insert(question, answer)),
            None => {}
        }
    }

    /// Takes the slips (crashes of other bugs) that were found by jobs whose answers were no longer
    /// needed. Each slip is returned once: a later call returns only those found since.
    pub fn unclaimed_slips(&mut self) -> Vec<Slip> {
        std::mem::take(&mut self.unclaimed_slips)
    }

    /// Returns the number of runs that workers have made and whose answers were not used.
    pub fn wasted(&self) -> u64 {
        self.ran - self.used
    }
}

/// Checks whether an answer to the question (a text to run) stays valid if it is asked again:
/// `true` for tests of a candidate, `false` for checks, which are run again each time.
fn repeats(question: Question) -> bool {
    question.text.is_some()
}

/// A text that a worker has to run, and how.
#[derive(Debug)]
pub(super) struct Job {
    /// Number of the job, by which the pool finds its answer.
    pub id: u64,
    /// Number of the forecast (a series of predicted runs) that the job belongs to.
    pub forecast: u64,
    pub manner: Manner,
    pub text: Vec<u8>,
    /// Time limit of the job's run that was learned from the input; `None` if none is learned.
    pub limit: Option<TimeLimit>,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<Job>,
    forecast: u64,
    /// True if the outcome of a run has shown that the rest of the present forecast (a series of
    /// predicted runs) is wrong, so that no worker may take its waiting jobs.
    invalid: bool,
    closed: bool,
    /// Time limit, learned from the input, of jobs that are added from now on; `None` if none is
    /// learned.
    limit: Option<TimeLimit>,
}

/// The queue of jobs, in the order in which their answers will be needed. A job that a worker has
/// taken runs to its end; waiting jobs can be taken back.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl Queue {
    /// Adds a job to the end of the queue, as part of the present forecast (a series of predicted
    /// runs), and wakes a worker.
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

    /// Sets the learned time limit of jobs that are added to the queue from now on.
    pub fn limit_time(&self, learned: TimeLimit) {
        self.lock().limit = Some(learned);
    }

    /// Removes the next job from the queue for a worker, and waits if there is none. `None` after
    /// the queue was closed.
    pub fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if !state.invalid
                && let Some(job) = state.jobs.pop_front()
            {
                return Some(job);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Marks the forecast with the number `forecast` (a series of predicted runs) as wrong after an
    /// unexpected outcome. Its waiting jobs stay in the queue until they are withdrawn, but no
    /// worker takes them.
    pub fn invalidate(&self, forecast: u64) {
        let mut state = self.lock();
        state.invalid |= state.forecast == forecast;
    }

    /// Removes all waiting jobs from the queue and returns their numbers; begins a new forecast (a
    /// series of predicted runs).
    pub fn withdraw(&self) -> Vec<u64> {
        let mut state = self.lock();
        state.forecast += 1;
        state.invalid = false;
        state.jobs.drain(..).map(|job| job.id).collect()
    }

    /// Closes the queue: each worker ends after its present job.
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
        queue.invalidate(job.forecast);
        assert!(queue.lock().invalid);
        assert_eq!(queue.withdraw(), [1, 2]);
        // A job of an earlier forecast does not invalidate the present one.
        queue.push(3, MANNER, Vec::new());
        queue.invalidate(job.forecast);
        assert_eq!(queue.take().map(|job| job.id), Some(3));
        queue.close();
        assert!(queue.take().is_none());
    }
}
