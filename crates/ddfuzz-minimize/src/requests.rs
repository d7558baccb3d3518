//! Requests to an oracle: the text that a minimization asks for now, together with those that it
//! will ask for next if all of them pass.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::TimeLimit;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::progress::{Continuation, Progress};
use crate::question::{Answerer, Manner, ObservedAnswer, Question};
use crate::{Answer, Kind, Oracle, OracleError, Slip};

/// Wall time that a request should take at most: if a request takes longer, the next one of its
/// kind has fewer runs. While a request takes longer than 10 ms, the limits of its processes are
/// checked repeatedly, which costs CPU time.
const LONGEST: Duration = Duration::from_millis(8);
/// Largest number of runs in the first request of the proof of minimality or of the confirmation
/// after the proof. Later requests have more or fewer (`several` in [`Requests`]).
const FIRST: usize = 8;
/// Largest number of runs in one request of the proof of minimality or of the confirmation after
/// the proof.
const MOST: usize = 128;

/// Largest number of tests of the search in one request. The number is small because a test that
/// does not pass makes the predicted tests after it useless.
const MOST_OF_SEARCH: usize = 32;

/// CPU time that is saved, approximately, if a test of the search shares its request with others.
const SAVED: Duration = Duration::from_micros(20);

/// Makes the requests to one oracle. If the oracle takes several texts in one request, a request
/// has the text that is due and the texts that are predicted to be due next: of the proof of
/// minimality and of the confirmation after it, or of the search while its tests pass. The answers
/// to predicted texts are kept until the minimization asks for them.
pub(super) struct Requests {
    /// The next predicted questions, whose texts were run already, with their answers.
    ahead: VecDeque<(Question, Answer)>,
    /// The predicted questions after those in `ahead`, with their texts; these texts were not run
    /// yet.
    expected: VecDeque<(Question, Vec<u8>)>,
    /// The state from which the questions after those in `expected` are predicted; `None` if there
    /// is no prediction. The state is kept as long as all answers are as predicted, because a new
    /// prediction of the search takes a clone of the search, which takes long.
    continuation: Option<Continuation>,
    /// Wall time of the last clone of the search that was made for a prediction; zero if none was
    /// made yet.
    clone_took: Duration,
    /// Number of tests of the search that have passed in succession, up to the last one.
    passed: u32,
    /// Largest number of runs in the next request of the proof of minimality or of the confirmation
    /// after the proof. It is [`FIRST`] at first, and is doubled by each such request, up to
    /// [`MOST`]. A request that takes longer than [`LONGEST`] sets it to half the number of runs in
    /// that request.
    several: usize,
    /// Largest number of tests in the next request of the search; it is doubled while all tests
    /// pass ([`adapt_search`](Requests::adapt_search)).
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
    /// Answers the question that `progress` asks now: takes the answer that an earlier request has
    /// given ahead, or makes a request to `oracle`. Returns the answer and the hints, which are
    /// empty unless the run was observed; `None` if no text is due. `left` is the maximum number of
    /// tests in a request; `None` means no limit.
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

    /// Updates `passed` by `answer`, the answer to a test of the search. Returns whether the test
    /// has passed.
    fn note(&mut self, answer: &Answer) -> bool {
        let passed = answer.outcome == Outcome::Pass;
        self.passed = match passed {
            true => self.passed.saturating_add(1),
            false => 0,
        };
        passed
    }

    /// Predicts up to `most` questions, beginning with `question`, which `progress` asks now. All
    /// of them are tests of the search, or all are runs in fresh processes. Returns true if there
    /// is a prediction that begins with `question`. The present prediction is continued if it
    /// begins with `question`; else a new one is begun. A new prediction of the search clones the
    /// search, so it is begun only if many tests have passed in succession: as many as would have
    /// saved the time of the last clone ([`SAVED`] each).
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

    /// Continues the present prediction, if there is one, until `expected` has `most` questions.
    /// The prediction ends before the first question of another kind: `of_search` says whether
    /// tests of the search or runs in fresh processes are wanted.
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

    /// Runs the first texts of `expected`, at most `most`, in one request, and moves their
    /// questions with the answers to `ahead`. `of_search` is true if the texts are tests of the
    /// search, and false if they are runs of the proof of minimality or of the confirmation after
    /// the proof. Also sets how many texts the next request may have.
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

    /// Sets the maximum number of tests in the next request of the search, `of_search`. The last
    /// request of the search asked for `asked` tests, and got the answers `answers`. If all `asked`
    /// tests passed, the number is doubled, up to [`MOST_OF_SEARCH`]. If the oracle ran fewer
    /// tests, which all passed, the number stays `asked`. If the last test that ran did not pass,
    /// the number becomes the number of `answers`.
    fn adapt_search(&mut self, asked: usize, answers: &[Answer]) {
        let passed = answers.last();
        let passed = passed.is_some_and(|answer| answer.outcome == Outcome::Pass);
        self.of_search = match passed {
            true if answers.len() == asked => (2 * asked).min(MOST_OF_SEARCH),
            true => asked,
            false => answers.len().max(1),
        };
    }

    /// Drops the present prediction, and all answers that were made ahead.
    fn forget(&mut self) {
        self.drop_ahead();
        self.expected.clear();
        self.continuation = None;
    }

    /// Removes and returns the answer to `question` if it is the first answer in `ahead`. If
    /// another answer is the first one, drops all answers in `ahead` and the prediction. Returns
    /// `None` in this case, and if `ahead` is empty.
    fn take(&mut self, question: Question) -> Option<Answer> {
        if self.ahead.front()?.0 == question {
            return Some(self.ahead.pop_front()?.1);
        }
        self.forget();
        None
    }

    /// Drops all answers that were made ahead, and counts them in `wasted`. Keeps the crashes of
    /// other bugs (slips) among them in `unclaimed_slips`.
    fn drop_ahead(&mut self) {
        self.wasted += self.ahead.len() as u64;
        let slips = self.ahead.drain(..).filter_map(|(_, answer)| answer.slip);
        self.unclaimed_slips.extend(slips);
    }

    /// Returns the number of requests to the oracle so far.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Drops the answers that were made ahead. Returns the number of runs, in the whole
    /// minimization, that were made ahead and whose answers were not used.
    pub fn finish(&mut self) -> u64 {
        self.drop_ahead();
        self.wasted
    }

    /// Returns the crashes of other bugs (slips) in runs whose answers were not used; the next call
    /// returns only later ones.
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
