//! Requests to an oracle: the text that a minimization asks for now, together with those that it
//! will ask for next if all of them pass.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::TimeLimit;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::progress::{Continuation, Progress};
use crate::question::{Answerer, Manner, ObservedAnswer, Question};
use crate::{Answer, Kind, Oracle, OracleError, Slip};

/// Wall time that the runs of one request should not exceed: after a longer request, the next one
/// has fewer runs. From 10 ms on, the processes of a request are checked for their limits again and
/// again, which costs CPU time.
const LONGEST: Duration = Duration::from_millis(8);
/// Number of texts in the first request with more than one text. The next request has twice as many
/// as the request before it, up to [`MOST`]; half as many if that request took too long.
const FIRST: usize = 8;
/// Largest number of runs in one request.
const MOST: usize = 128;

/// Largest number of tests of the search in one request. The number is small because a test that
/// does not pass makes the predicted tests after it useless.
const MOST_OF_SEARCH: usize = 32;

/// CPU time that a test of the search saves, about, if it shares a request with others.
const SAVED: Duration = Duration::from_micros(20);

/// Makes the requests to one oracle. If the oracle takes several texts in one request, the
/// predicted next questions (texts to run) are sent together with the present one: those of the
/// proof of minimality and of the confirmation, and those of the search as long as tests pass. The
/// answers are used in the order of the questions.
pub(super) struct Requests {
    /// The predicted next questions (texts to run), with the answers that were made ahead.
    ahead: VecDeque<(Question, Answer)>,
    /// The predicted questions after those, with their texts, which were not run yet.
    expected: VecDeque<(Question, Vec<u8>)>,
    /// The prediction of the questions after all of these. It is used as long as all answers are
    /// as predicted, since a prediction of the search begins with a costly clone.
    continuation: Option<Continuation>,
    /// How long the last such clone took; zero before the first one.
    clone_took: Duration,
    /// Number of tests of the search that have passed since one did not.
    passed: u32,
    /// Largest number of runs in the next request of the proof of minimality or of the confirmation
    /// after the proof. The number doubles with each such request, up to [`MOST`]; after one that
    /// has taken longer than [`LONGEST`], it is half the number of runs in that request.
    several: usize,
    /// Largest number of tests in the next request of the search; it grows while tests pass.
    of_search: usize,
    /// Number of requests to the oracle so far.
    made: u64,
    /// Number of runs that were made ahead and whose answers were not used.
    wasted: u64,
    /// Crashes of other bugs (slips) in runs whose answers were not used.
    unclaimed_slips: Vec<Slip>,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            ahead: VecDeque::new(),
            expected: VecDeque::new(),
            continuation: None,
            clone_took: Duration::ZERO,
            passed: 0,
            several: FIRST,
            of_search: 1,
            made: 0,
            wasted: 0,
            unclaimed_slips: Vec::new(),
        }
    }
}

impl Requests {
    /// Runs the text that `progress` asks for now by `oracle`, or takes the answer that an earlier
    /// request has made. Returns the answer, and the hints of an observed run; `None` if no text is
    /// due. `left` is the greatest number of tests in a request; `None` means no limit.
    pub fn answer(
        &mut self,
        oracle: &mut dyn Oracle,
        progress: &Progress<'_>,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError> {
        let Some(question) = progress.question() else {
            return Ok(None);
        };
        let mut answer = self.take(question);
        let of_search = question.manner.is_of_search();
        if answer.is_none()
            && oracle.takes_several()
            && (of_search && self.of_search > 1 || question.manner.is_of_proof())
        {
            let most = if of_search {
                self.of_search
            } else {
                self.several
            };
            let left = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX).max(1));
            let most = most.min(left.unwrap_or(usize::MAX));
            if self.expect(question, progress, most) {
                self.run_ahead(oracle, most, of_search)?;
                answer = self.take(question);
            }
        }
        if let Some(answer) = answer {
            let is_unexpected = match of_search {
                true => !self.note(&answer),
                false => question.manner.invalidates_prediction(answer.outcome),
            };
            if is_unexpected {
                // Confirmations that were made ahead are of the best before.
                self.forget();
            }
            return Ok(Some((answer, Hints::default())));
        }
        self.forget();
        let Some((manner, text)) = progress.due() else {
            return Ok(None);
        };
        self.made += 1;
        let (answer, hints) = manner.put(oracle, text)?;
        if of_search {
            self.note(&answer);
            self.adapt_search(1, std::slice::from_ref(&answer));
        }
        Ok(Some((answer, hints)))
    }

    /// Counts a test of the search among those that have passed in succession, and returns whether
    /// it has passed.
    fn note(&mut self, answer: &Answer) -> bool {
        let passed = answer.outcome == Outcome::Pass;
        self.passed = match passed {
            true => self.passed.saturating_add(1),
            false => 0,
        };
        passed
    }

    /// Predicts the questions that begin with `question`, the one that `progress` asks now, up to
    /// `most`, and all of the same kind: tests of the search, or runs in fresh processes. Returns
    /// false if there is no prediction. A new one of the search begins only when as many tests have
    /// passed in succession as would have saved the time of its clone: more will most likely pass.
    fn expect(&mut self, question: Question, progress: &Progress<'_>, most: usize) -> bool {
        let of_search = question.manner.is_of_search();
        self.predict(progress, most, of_search);
        if self.is_expected(question) {
            return true;
        }
        self.forget();
        if of_search && SAVED.saturating_mul(self.passed) < self.clone_took {
            return false;
        }
        let began = Instant::now();
        self.continuation = Some(progress.continuation());
        if of_search {
            self.clone_took = began.elapsed();
        }
        self.predict(progress, most, of_search);
        self.is_expected(question)
    }

    /// Goes on with the prediction, if there is one, until `most` questions are expected. It ends
    /// at a question of another kind.
    fn predict(&mut self, progress: &Progress<'_>, most: usize, of_search: bool) {
        let mut text = Vec::new();
        while self.expected.len() < most
            && let Some(continuation) = &mut self.continuation
        {
            match continuation.next(progress.texts(), |_| Outcome::Pass, &mut text) {
                Some(next) if Requests::is_alike(next.manner, of_search) => {
                    self.expected.push_back((next, std::mem::take(&mut text)));
                }
                _ => self.continuation = None,
            }
        }
    }

    fn is_expected(&self, question: Question) -> bool {
        let first = self.expected.front();
        first.is_some_and(|(first, _)| *first == question)
    }

    fn is_alike(manner: Manner, of_search: bool) -> bool {
        match of_search {
            true => manner.is_of_search(),
            false => manner.is_fresh(),
        }
    }

    /// Runs the first predicted texts, up to `most`, in one request. Keeps the answers for later
    /// questions. `of_search` is true if the texts are tests of the search, and false if they are
    /// runs of the proof of minimality or of the confirmation after the proof.
    fn run_ahead(
        &mut self,
        oracle: &mut dyn Oracle,
        most: usize,
        of_search: bool,
    ) -> Result<(), OracleError> {
        let candidates = self.expected.iter().take(most);
        let candidates = candidates.map(|(question, text)| (&text[..], question.manner.kind()));
        let candidates: Vec<(&[u8], Kind)> = candidates.collect();
        self.made += 1;
        let (asked, began) = (candidates.len(), Instant::now());
        let answers = match of_search {
            true => oracle.ask_several(&candidates)?,
            false => oracle.ask_fresh_several(&candidates)?,
        };
        let is_long = began.elapsed() > LONGEST;
        match of_search {
            true if is_long => self.of_search = (answers.len() / 2).max(1),
            true => self.adapt_search(asked, &answers),
            false if is_long => self.several = (answers.len() / 2).max(1),
            false => self.several = (self.several * 2).min(MOST),
        }
        let run = self.expected.drain(..answers.len().min(asked));
        let questions = run.map(|(question, _)| question);
        self.ahead = questions.zip(answers).collect();
        Ok(())
    }

    /// Sets the number of tests in the next request of the search. If all `asked` tests of the last
    /// request have passed, the number is twice `asked`, at most [`MOST_OF_SEARCH`]. If the last
    /// test did not pass, it is the number of tests that were run in the last request, which are
    /// those in `answers`. If the oracle took fewer texts than asked, it is `asked` again.
    fn adapt_search(&mut self, asked: usize, answers: &[Answer]) {
        let passed = answers.last();
        let passed = passed.is_some_and(|answer| answer.outcome == Outcome::Pass);
        self.of_search = match passed {
            true if answers.len() == asked => (2 * asked).min(MOST_OF_SEARCH),
            true => asked,
            false => answers.len().max(1),
        };
    }

    /// Drops the prediction of questions, and the answers that were made ahead.
    fn forget(&mut self) {
        self.drop_ahead();
        self.expected.clear();
        self.continuation = None;
    }

    /// Removes and returns the answer to `question` (a text to run), if it is the next one that was
    /// made ahead. Otherwise drops all answers that were made ahead, and returns `None`.
    fn take(&mut self, question: Question) -> Option<Answer> {
        if self.ahead.front()?.0 == question {
            return Some(self.ahead.pop_front()?.1);
        }
        self.forget();
        None
    }

    /// Drops the answers that were made ahead, but keeps the crashes of other bugs among them.
    fn drop_ahead(&mut self) {
        self.wasted += self.ahead.len() as u64;
        let slips = self.ahead.drain(..).filter_map(|(_, answer)| answer.slip);
        self.unclaimed_slips.extend(slips);
    }

    /// Returns the number of requests to the oracle so far.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Drops the answers that were made ahead. Returns the number of runs in the whole minimization
    /// whose answers were not used.
    pub fn finish(&mut self) -> u64 {
        self.drop_ahead();
        self.wasted
    }

    /// Returns the slips (crashes of other bugs) of runs whose answers were not used, and forgets
    /// them.
    pub fn unclaimed_slips(&mut self) -> Vec<Slip> {
        std::mem::take(&mut self.unclaimed_slips)
    }
}

/// Answers all questions of a minimization (texts to run) by one oracle.
pub(super) struct SingleOracle<'a> {
    oracle: &'a mut dyn Oracle,
    requests: Requests,
}

impl<'a> SingleOracle<'a> {
    /// Makes the answerer that lets `oracle` answer the questions (texts to run) of a minimization.
    pub fn new(oracle: &'a mut dyn Oracle) -> SingleOracle<'a> {
        SingleOracle {
            oracle,
            requests: Requests::default(),
        }
    }
}

impl Answerer for SingleOracle<'_> {
    fn answer(
        &mut self,
        progress: &Progress<'_>,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError> {
        self.requests.answer(self.oracle, progress, left)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.oracle.limit_time(learned);
    }

    fn finish(&mut self) -> u64 {
        self.requests.finish()
    }

    fn unclaimed_slips(&mut self) -> Vec<Slip> {
        self.requests.unclaimed_slips()
    }
}
