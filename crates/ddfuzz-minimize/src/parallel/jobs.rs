//! What became of the tests that are run ahead.

use std::collections::HashMap;

use crate::question::{Manner, Question};
use crate::{Answer, Slip};

/// A job handed out.
#[derive(Debug)]
enum State {
    /// It waits, or a worker runs it.
    Out,
    /// Its answer is there; `None` where the oracle failed.
    In(Option<Answer>),
}

/// The jobs that were handed out, and how many of the runs were of use.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    next: u64,
    /// Jobs whose answers are expected.
    expected: HashMap<u64, State>,
    /// Jobs that run although their answers are not expected any more.
    given_up: HashMap<u64, Question>,
    /// Answers that were given up last. Where the way changed without a new best, as it may where
    /// PASS was taken for UNRESOLVED, the same may be asked soon.
    spare: HashMap<Question, Answer>,
    strays: Vec<Slip>,
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
            self.expected.insert(id, State::Out);
            return (id, Need::Nothing);
        }
        let id = self.next;
        self.next += 1;
        match self.spare.remove(&question) {
            Some(answer) => {
                self.expected.insert(id, State::In(Some(answer)));
                (id, Need::Nothing)
            }
            None => {
                self.expected.insert(id, State::Out);
                (id, Need::Run)
            }
        }
    }

    /// Takes what a worker tells of a job.
    pub fn enter(&mut self, id: u64, answer: Option<Answer>) {
        self.ran += u64::from(answer.is_some());
        match (self.expected.get_mut(&id), self.given_up.remove(&id)) {
            (Some(state), _) => *state = State::In(answer),
            (None, Some(question)) => self.leave(question, answer),
            (None, None) => {}
        }
    }

    /// The answer of a job, once it is there; inner `None` where there will be none.
    pub fn collect(&mut self, id: u64) -> Option<Option<Answer>> {
        match self.expected.remove(&id) {
            Some(State::In(answer)) => {
                self.used += u64::from(answer.is_some());
                Some(answer)
            }
            Some(State::Out) => {
                self.expected.insert(id, State::Out);
                None
            }
            None => Some(None),
        }
    }

    /// Whether the answer of a job is there and turns the forecast that it stands in.
    pub fn turns(&self, id: u64, manner: Manner) -> bool {
        match self.expected.get(&id) {
            Some(State::In(Some(answer))) => manner.turns_at(answer.outcome),
            _ => false,
        }
    }

    /// Nobody will ask for the answers of these jobs; those whose numbers were taken back are not
    /// begun.
    pub fn give_up(&mut self, jobs: impl Iterator<Item = (Question, u64)>, taken_back: &[u64]) {
        self.spare.clear();
        for (question, id) in jobs {
            match self.expected.remove(&id) {
                Some(State::In(answer)) => self.leave(question, answer),
                Some(State::Out) if !taken_back.contains(&id) => {
                    self.given_up.insert(id, question);
                }
                _ => {}
            }
        }
    }

    /// All workers are gone: what is out will not come.
    pub fn give_up_all(&mut self) {
        self.given_up.clear();
        self.expected
            .retain(|_, state| matches!(state, State::In(_)));
    }

    /// Whether a job runs that nobody asks for.
    pub fn is_running(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Another crash is kept; if the same is asked again, it is run again, and the crash is filed
    /// as that of its test.
    fn leave(&mut self, question: Question, answer: Option<Answer>) {
        let Some(mut answer) = answer else { return };
        match answer.slip.take() {
            Some(slip) => self.strays.push(slip),
            None if repeats(question) => drop(self.spare.insert(question, answer)),
            None => {}
        }
    }

    /// Slips of answers that nobody asked for, since the last call.
    pub fn strays(&mut self) -> Vec<Slip> {
        std::mem::take(&mut self.strays)
    }

    /// Runs whose answers nobody asked for.
    pub fn in_vain(&self) -> u64 {
        self.ran - self.used
    }
}

/// Whether an answer holds whenever its question is asked. Checks are run again each time.
fn repeats(question: Question) -> bool {
    question.text.is_some()
}
