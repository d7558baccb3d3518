//! Predicts which texts a minimization will run next, assuming that no test fails.

use ddfuzz_delta::interruption::{Interruption, interruptible};
use ddfuzz_delta::{
    Cache, Caching, Candidate, ConfigId, Edit, Outcome, Rule, Search, Seen, TextId,
};
use std::collections::VecDeque;
use std::ops::Range;

use crate::candidate_texts::{CandidateTexts, remove};
use crate::log::{ContentHash, Phase, What};
use crate::progress::{Progress, Stage};
use crate::question::{Manner, Question};
use crate::steadiness::open_runs;

/// Maximum number of tests of the proof of minimality (removals of single bytes) that are
/// predicted.
const PROOFS: usize = 1024;
/// Number of successive candidates with known outcomes (which need no run) after which the
/// prediction of further candidates pauses.
const KNOWN: usize = 256;
/// A prediction of tests remembers at least this many of the outcomes that it assumed last; it may
/// forget older ones.
const MOST_ASSUMED: usize = 4096;

impl Progress<'_> {
    /// Returns the text to run next, and how to run it; `None` if no run is due. Call
    /// [`next_step`](Progress::next_step) first.
    pub fn due(&self) -> Option<(Manner, &[u8])> {
        let texts = &self.texts;
        Some(match self.stage {
            Stage::Baseline => (Manner::Check(What::Baseline), texts.original()),
            Stage::Axiom => (Manner::Check(What::Axiom), &[]),
            Stage::Confirm => (Manner::Check(What::Confirm), self.result()),
            Stage::Repeat => (Manner::Check(What::Vote), self.repeats.as_ref()?.text()),
            Stage::Search | Stage::Proof => {
                let pending = texts.pending()?;
                (pending.manner(), texts.text())
            }
            Stage::End | Stage::Over | Stage::NotFailing(_) | Stage::Alternating => return None,
        })
    }

    /// Returns the text to run next, by its hash, and how to run it, as a question to the oracle;
    /// `None` if no run is due.
    pub fn question(&self) -> Option<Question> {
        let (manner, text) = self.due()?;
        let text = match manner {
            Manner::Check(What::Vote) => Some(ContentHash::of(text)),
            Manner::Check(_) => None,
            Manner::Test { .. } => self.texts.pending().map(|pending| pending.hash),
        };
        Some(Question { manner, text })
    }

    /// Starts a prediction of the texts that this minimization will run, beginning with the one
    /// that is due. It assumes that no test fails.
    pub fn continuation(&self) -> Continuation {
        let caching = self.texts.caching();
        let copy = || interruptible(self.interruption.as_ref(), || self.machine.clone());
        let mut continuation = Continuation {
            checks: VecDeque::new(),
            machine: None,
            interruption: self.interruption.clone(),
            open: Vec::new(),
            confirms: 0,
            repeats: Vec::new(),
            votes: self.votes.needed,
            already_run: self.votes.without_failure,
            again: None,
            assumed: AssumedOutcomes::new(caching),
        };
        match self.stage {
            Stage::Baseline => {
                let open = open_runs(self.baseline, self.slow, self.agreeing);
                continuation.checks = (0..open).map(|_| What::Baseline).collect();
                // If these runs determine a time limit or a number of votes, later questions
                // cannot be predicted yet.
                if !self.learns_limit && !self.is_flaky() {
                    continuation.checks.push_back(What::Axiom);
                    continuation.machine = copy();
                }
            }
            Stage::Axiom => {
                let open = self.votes.needed.saturating_sub(self.votes.without_failure);
                continuation.checks = (0..open).map(|_| What::Axiom).collect();
                continuation.already_run = 0;
                continuation.machine = copy();
            }
            Stage::Search => continuation.machine = copy(),
            Stage::Proof => {
                let open = self.open.as_deref().unwrap_or_default();
                let skipped = open.len().saturating_sub(PROOFS);
                continuation.open = open[skipped..].to_vec();
                if skipped == 0 {
                    continuation.confirms = self.confirmations();
                }
            }
            Stage::Confirm => {
                let open = self.confirmations().saturating_sub(self.confirmed.tries);
                match self.restored {
                    Some(_) => continuation.checks = (0..open).map(|_| What::Confirm).collect(),
                    None => continuation.confirms = open,
                }
            }
            Stage::Repeat => {
                let repeats = self.repeats.as_ref();
                continuation.repeats = repeats.map_or(Vec::new(), |one| one.open().to_vec());
            }
            Stage::End | Stage::Over | Stage::NotFailing(_) | Stage::Alternating => {}
        }
        continuation
    }
}

/// A prediction of the texts that a minimization will run as long as no test fails, made by a copy
/// of its state that advances by itself. The caller compares each predicted run with the one that
/// is due.
pub(crate) struct Continuation {
    /// Predicted checks: runs of the original and the empty input before the search, or
    /// confirmations of the original input after it.
    checks: VecDeque<What>,
    /// A clone of the search; `None` if no candidates of the search can be predicted.
    machine: Option<Box<dyn Search>>,
    /// Tells whether the present step of the cloned search, and the prediction with it, is to be
    /// interrupted; `None` if no step ever is.
    interruption: Option<Interruption>,
    /// Removals of single bytes that still have to be tested for the proof of minimality, the next
    /// one last.
    open: Vec<Candidate>,
    /// Number of confirmations of the best text (the smallest failing so far), after the proof,
    /// that are still to be predicted.
    confirms: u64,
    /// Removals of single bytes that are to be run again, because the claim of minimality rests on
    /// them, the next one last.
    repeats: Vec<Range<usize>>,
    /// Number of runs without failure after which a candidate counts as not failing.
    votes: u64,
    /// Number of runs of the first predicted candidate that were already made.
    already_run: u64,
    /// The last predicted run, if the same text must be run again because the input is flaky; else
    /// `None`.
    again: Option<RepeatedQuestion>,
    assumed: AssumedOutcomes,
}

/// A predicted question to the oracle whose text is to be run several times, with the number of
/// runs that are still to be predicted.
struct RepeatedQuestion {
    question: Question,
    text: Vec<u8>,
    left: u64,
}

impl Continuation {
    /// Returns the next predicted question to the oracle, and writes the text to run into `text`.
    /// `None` if nothing more can be predicted now. `likely` predicts the outcome of a candidate
    /// from the rule that made it, and never returns FAIL.
    pub fn next(
        &mut self,
        texts: &CandidateTexts<'_>,
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
                What::Axiom => self
                    .assumed
                    .record(None, ContentHash::of(&[]), Outcome::Pass),
                _ => text.extend_from_slice(texts.original()),
            }
            return Some(check(what));
        }
        if self.machine.is_some() {
            let interruption = self.interruption.clone();
            let next = || self.next_of_search(texts, likely, text);
            return interruptible(interruption.as_ref(), next).unwrap_or_else(|| {
                self.machine = None;
                None
            });
        }
        while let Some(candidate) = self.open.pop() {
            let (hash, hit) = texts.look_up(&candidate, Some(Phase::Proof), text);
            if hit.is_none() {
                return Some(self.several(test(&candidate, hash, Some(Phase::Proof)), text));
            }
        }
        if self.confirms > 0 {
            self.confirms -= 1;
            text.clear();
            text.extend_from_slice(texts.best());
            return Some(check(What::Confirm));
        }
        let at = self.repeats.pop()?;
        remove(&at).write_into(texts.original(), texts.best(), text);
        Some(Question {
            text: Some(ContentHash::of(text)),
            ..check(What::Vote)
        })
    }

    /// Returns `question`, whose text is `text`, and plans further predicted runs of the same text:
    /// a candidate of a flaky input counts as not failing only after several runs. None are planned
    /// if the input is not flaky.
    fn several(&mut self, question: Question, text: &[u8]) -> Question {
        let left = self
            .votes
            .saturating_sub(std::mem::take(&mut self.already_run) + 1);
        self.again = (left > 0).then(|| RepeatedQuestion {
            question,
            text: text.to_vec(),
            left,
        });
        question
    }

    fn next_of_search(
        &mut self,
        texts: &CandidateTexts<'_>,
        likely: impl Fn(Rule) -> Outcome,
        text: &mut Vec<u8>,
    ) -> Option<Question> {
        let machine = self.machine.as_mut()?;
        for _ in 0..KNOWN {
            let Some(candidate) = machine.next() else {
                self.machine = None;
                return None;
            };
            let (hash, hit) = texts.look_up(&candidate, None, text);
            let id = hash.text_id();
            let hit = hit.or_else(|| self.assumed.lookup(candidate.config, id));
            if let (None, Some(predicted)) = (hit, machine.predicted()) {
                machine.tell(predicted);
                continue;
            }
            let Some(hit) = hit else {
                let question = test(&candidate, hash, None);
                if question.manner.is_observed() {
                    return None;
                }
                let outcome = likely(candidate.rule);
                self.assumed.record(candidate.config, hash, outcome);
                machine.tell(outcome);
                return Some(self.several(question, text));
            };
            let outcome = hit.outcome();
            if outcome == Outcome::Fail && !matches!(candidate.edit, Edit::Keep(_)) {
                // A new best: later texts cannot be predicted.
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

/// The outcomes that a prediction has assumed for texts. Old ones are forgotten to bound memory;
/// forgetting one costs at most a wasted test.
struct AssumedOutcomes {
    caching: Caching,
    last: Cache,
    before: Cache,
    count: usize,
}

impl AssumedOutcomes {
    fn new(caching: Caching) -> AssumedOutcomes {
        AssumedOutcomes {
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
        if self.count == MOST_ASSUMED {
            self.before = std::mem::replace(&mut self.last, Cache::new(self.caching));
            self.count = 0;
        }
        self.count += 1;
        let test = None;
        let seen = Seen { outcome, test };
        self.last.record(config, hash.text_id(), seen);
    }
}
