//! Predicts what a minimization asks next if no test fails.

use ddfuzz_delta::{
    Cache, Caching, Candidate, ConfigId, Edit, Outcome, Rule, Search, Seen, TextId,
};
use std::collections::VecDeque;

use crate::course::Course;
use crate::log::{ContentHash, Phase, What};
use crate::progress::{Progress, Stage};
use crate::question::{Manner, Question};
use crate::steadiness::open_runs;

/// Proof tests that are looked ahead at most, until one fails: all of them would be as many as the
/// best has bytes.
const PROOFS: usize = 1024;
/// Tests answered by the cache that are gone through at one time.
const KNOWN: usize = 256;
/// Assumed outcomes that are kept at least.
const TOLD: usize = 4096;

impl Progress {
    /// How the text that is due is to be run. [`want`](Progress::want) must have been called.
    pub fn due(&self) -> Option<(Manner, &[u8])> {
        let course = &self.course;
        Some(match self.stage {
            Stage::Baseline => (Manner::Check(What::Baseline), course.original()),
            Stage::Axiom => (Manner::Check(What::Axiom), &[]),
            Stage::Confirm => (Manner::Check(What::Confirm), self.result()),
            Stage::Search | Stage::Proof => {
                let asked = course.asked()?;
                (asked.manner(), course.text())
            }
            Stage::End | Stage::Over | Stage::NotFailing(_) | Stage::Alternating => return None,
        })
    }

    /// The question that is due.
    pub fn question(&self) -> Option<Question> {
        let (manner, _) = self.due()?;
        let text = match manner {
            Manner::Check(_) => None,
            Manner::Test { .. } => self.course.asked().map(|asked| asked.hash()),
        };
        Some(Question { manner, text })
    }

    /// What will be asked from here on, the question that is due first.
    pub fn prospect(&self) -> Prospect {
        let caching = self.course.caching();
        let mut prospect = Prospect {
            checks: VecDeque::new(),
            machine: None,
            open: Vec::new(),
            confirms: 0,
            votes: self.votes.needed,
            cast: self.votes.cast,
            again: None,
            told: Told::new(caching),
        };
        match self.stage {
            Stage::Baseline => {
                let open = open_runs(self.baseline, self.slow, self.agreeing);
                prospect.checks = (0..open).map(|_| What::Baseline).collect();
                // What follows runs within the limit that these runs teach, and as often as they
                // say.
                if !self.learns_limit && !self.is_flaky() {
                    prospect.checks.push_back(What::Axiom);
                    prospect.machine = Some(self.machine.clone());
                }
            }
            Stage::Axiom => {
                let open = self.votes.needed.saturating_sub(self.votes.cast);
                prospect.checks = (0..open).map(|_| What::Axiom).collect();
                prospect.cast = 0;
                prospect.machine = Some(self.machine.clone());
            }
            Stage::Search => prospect.machine = Some(self.machine.clone()),
            Stage::Proof => {
                let open = self.open.as_deref().unwrap_or_default();
                let skipped = open.len().saturating_sub(PROOFS);
                prospect.open = open[skipped..].to_vec();
                if skipped == 0 {
                    prospect.confirms = self.confirmations();
                }
            }
            Stage::Confirm => {
                let open = self.confirmations().saturating_sub(self.confirmed.tries);
                match self.restored {
                    true => prospect.checks = (0..open).map(|_| What::Confirm).collect(),
                    false => prospect.confirms = open,
                }
            }
            Stage::End | Stage::Over | Stage::NotFailing(_) | Stage::Alternating => {}
        }
        prospect
    }
}

/// The questions of a minimization as long as no test fails. It is a copy of where the
/// minimization stood, and goes on by itself: it stays true until a test fails, and whoever asks
/// compares each question with the one that is really due.
pub(crate) struct Prospect {
    /// Checks before the search, and those of the input as given after it.
    checks: VecDeque<What>,
    /// A clone of the search; `None` where it is over or not begun.
    machine: Option<Box<dyn Search>>,
    /// Removals to be proven, the next one last.
    open: Vec<Candidate>,
    /// Confirmations of the best behind the proof.
    confirms: u64,
    /// Runs of a candidate that does not fail.
    votes: u64,
    /// Those of the first candidate that were made.
    cast: u64,
    /// What is asked again.
    again: Option<Again>,
    told: Told,
}

/// A question that is asked several times.
struct Again {
    question: Question,
    text: Vec<u8>,
    left: u64,
}

impl Prospect {
    /// The next question that needs a run, its text written into `text`; `None` where nothing can
    /// be said for now. `likely` is asked for the outcome of a candidate of a rule, not FAIL.
    pub fn next(
        &mut self,
        course: &Course,
        likely: impl Fn(Rule) -> Outcome,
        text: &mut Vec<u8>,
    ) -> Option<Question> {
        if let Some(again) = &mut self.again {
            text.clone_from(&again.text);
            let question = again.question;
            again.left -= 1;
            if again.left == 0 {
                self.again = None;
            }
            return Some(question);
        }
        if let Some(what) = self.checks.pop_front() {
            text.clear();
            match what {
                What::Axiom => self.told.record(None, ContentHash::of(&[]), Outcome::Pass),
                _ => text.extend_from_slice(course.original()),
            }
            return Some(check(what));
        }
        if self.machine.is_some() {
            return self.next_of_search(course, likely, text);
        }
        while let Some(candidate) = self.open.pop() {
            let (hash, hit) = course.look_up(&candidate, Some(Phase::Proof), text);
            if hit.is_none() {
                return Some(self.several(test(&candidate, hash, Some(Phase::Proof)), text));
            }
        }
        if self.confirms > 0 {
            self.confirms -= 1;
            text.clear();
            text.extend_from_slice(course.best());
            return Some(check(What::Confirm));
        }
        None
    }

    /// Asks a question as often as a candidate that does not fail is run.
    fn several(&mut self, question: Question, text: &[u8]) -> Question {
        let left = self
            .votes
            .saturating_sub(std::mem::take(&mut self.cast) + 1);
        self.again = (left > 0).then(|| Again {
            question,
            text: text.to_vec(),
            left,
        });
        question
    }

    fn next_of_search(
        &mut self,
        course: &Course,
        likely: impl Fn(Rule) -> Outcome,
        text: &mut Vec<u8>,
    ) -> Option<Question> {
        let machine = self.machine.as_mut()?;
        for _ in 0..KNOWN {
            let Some(candidate) = machine.next() else {
                self.machine = None;
                return None;
            };
            let (hash, hit) = course.look_up(&candidate, None, text);
            let id = hash.text_id();
            let hit = hit.or_else(|| self.told.lookup(candidate.config, id));
            let Some(hit) = hit else {
                let question = test(&candidate, hash, None);
                if question.manner.is_observed() {
                    return None;
                }
                let outcome = likely(candidate.rule);
                self.told.record(candidate.config, hash, outcome);
                machine.tell(outcome);
                return Some(self.several(question, text));
            };
            let outcome = hit.outcome();
            if outcome == Outcome::Fail && !matches!(candidate.edit, Edit::Keep(_)) {
                // Another best, which later texts would be made of.
                self.machine = None;
                return None;
            }
            machine.tell(outcome);
        }
        None
    }
}

fn check(what: What) -> Question {
    Question {
        manner: Manner::Check(what),
        text: None,
    }
}

fn test(candidate: &Candidate, hash: ContentHash, phase: Option<Phase>) -> Question {
    Question {
        manner: Manner::of(candidate, phase),
        text: Some(hash),
    }
}

/// The outcomes that a prospect assumes. Only the last are kept, so that a long way without a
/// failure does not hold every text of it twice; one that is forgotten costs a test in vain.
struct Told {
    caching: Caching,
    last: Cache,
    before: Cache,
    count: usize,
}

impl Told {
    fn new(caching: Caching) -> Told {
        Told {
            caching,
            last: Cache::new(caching),
            before: Cache::new(caching),
            count: 0,
        }
    }

    fn lookup(&self, config: Option<ConfigId>, text: TextId) -> Option<ddfuzz_delta::Hit> {
        let last = self.last.lookup(config, text);
        last.or_else(|| self.before.lookup(config, text))
    }

    fn record(&mut self, config: Option<ConfigId>, hash: ContentHash, outcome: Outcome) {
        if self.count == TOLD {
            self.before = std::mem::replace(&mut self.last, Cache::new(self.caching));
            self.count = 0;
        }
        self.count += 1;
        let seen = Seen {
            outcome,
            test: None,
        };
        self.last.record(config, hash.text_id(), seen);
    }
}
