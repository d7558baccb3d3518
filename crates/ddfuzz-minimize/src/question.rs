//! A question of a minimization (a text to run, and how) and its answer; what is logged of the
//! answer; and the trait [`Answerer`].

use ddfuzz_delta::{Candidate, Hints, Outcome};
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::{Crash, Key};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::candidate_texts::kind_of;
use crate::driver::micros;
use crate::log::{Base64, ContentHash, Phase, Source, TestLine, What};
use crate::progress::Progress;
use crate::{Answer, CutOff, Kind, Oracle, OracleError, Process, Slip, SlipKeys};

/// How a text is run by the oracle, and for what purpose: as a check, or as a test of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Manner {
    /// A check (a run that is not a step of the search) with this purpose.
    Check(What),
    /// A test of a candidate. Tests of the proof of minimality use a fresh process.
    Test {
        kind: Kind,
        fresh: bool,
        /// Whether the run reports the operands that it compares, as hints for the search.
        observed: bool,
    },
}

impl Manner {
    /// Returns how `candidate` is run: `phase` is `None` in the search, and `Proof` in the proof of
    /// minimality after it.
    pub fn of(candidate: &Candidate, phase: Option<Phase>) -> Manner {
        Manner::Test {
            kind: kind_of(&candidate.edit),
            fresh: phase == Some(Phase::Proof),
            observed: candidate.observed && phase.is_none(),
        }
    }

    /// Runs `text` with `oracle` in this manner: observed, in a fresh process, or in the fastest
    /// way. Returns the answer, and the hints of an observed run, such as compared operands (else
    /// empty).
    pub fn put(self, oracle: &mut dyn Oracle, text: &[u8]) -> Result<(Answer, Hints), OracleError> {
        let kind = self.kind();
        if self.is_observed() {
            return oracle.ask_observed(text, kind);
        }
        let answer = match self.is_fresh() {
            true => oracle.ask_fresh(text, kind),
            false => oracle.ask(text, kind),
        };
        Ok((answer?, Hints::default()))
    }

    fn kind(self) -> Kind {
        match self {
            Manner::Check(_) => Kind::Deleting,
            Manner::Test { kind, .. } => kind,
        }
    }

    /// Checks whether the run reports hints, such as the operands that it compares. The search
    /// depends on these hints, so that runs after it cannot be predicted.
    pub fn is_observed(self) -> bool {
        matches!(self, Manner::Test { observed: true, .. })
    }

    /// Checks whether the run needs a fresh process, in which no other text ran before.
    pub fn is_fresh(self) -> bool {
        match self {
            // The run of the empty input proves that a result of one byte is minimal.
            Manner::Check(What::Confirm | What::Axiom | What::Vote) => true,
            Manner::Check(What::Baseline) => false,
            Manner::Test { fresh, .. } => fresh,
        }
    }

    /// Returns true if the run is a test of the search: a test of a candidate that neither needs a
    /// fresh process nor reports hints.
    fn is_of_search(self) -> bool {
        let Manner::Test {
            fresh, observed, ..
        } = self
        else {
            return false;
        };
        !fresh && !observed
    }

    /// Returns true if the run is part of the proof of minimality, or of the confirmation after it.
    pub fn is_of_proof(self) -> bool {
        matches!(
            self,
            Manner::Test { fresh: true, .. } | Manner::Check(What::Confirm | What::Vote)
        )
    }

    /// Returns true if `outcome`, that of a run made in this manner, makes the predicted later
    /// questions (texts to run) wrong. Predictions assume that no candidate fails: so FAIL of a
    /// candidate, of a vote (repeated run of a candidate of a flaky input) or of the empty input
    /// makes them wrong, because another text becomes the best text (the smallest failing so far).
    /// Returns false for all other outcomes and checks.
    pub fn invalidates_prediction(self, outcome: Outcome) -> bool {
        match self {
            Manner::Check(What::Axiom | What::Vote) | Manner::Test { .. } => {
                outcome == Outcome::Fail
            }
            Manner::Check(_) => false,
        }
    }
}

/// A question to the oracle: a text to run, and in which manner. Equal questions may share one
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub manner: Manner,
    /// Hash of the text; `None` for a check, whose purpose determines its text.
    pub text: Option<ContentHash>,
}

/// The answer of the oracle, the cache or a predictor to a test, as the log line of the test stores
/// it.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub outcome: Outcome,
    pub source: Source,
    pub us: u64,
    pub cut_off: Option<CutOff>,
    pub process: Process,
    pub slip: Option<SlipKeys>,
    /// Number of runs of the test that passed, although one failed.
    pub missed: u64,
    /// Minor key of the candidate's crash, if it differs from that of the best text before the
    /// test; `None` if it is the same, or there is no crash.
    pub minor: Option<Key>,
    /// Operand pairs that an observed run compared; `None` if the run was not observed.
    pub comparisons: Option<Vec<(Base64, Base64)>>,
    pub log_input: bool,
}

impl Reply {
    /// Extracts the answer to a test from its log line.
    pub fn of(line: &TestLine) -> Reply {
        Reply {
            outcome: line.outcome,
            source: line.source,
            us: line.us,
            cut_off: line.cut_off,
            process: line.process,
            slip: line.slip,
            missed: line.missed,
            minor: line.minor,
            comparisons: line.comparisons.clone(),
            log_input: line.input.is_some(),
        }
    }

    /// Converts an oracle's answer to the form in which a test's log line stores it.
    pub fn from_answer(source: Source, answer: &Answer, log_input: bool) -> Reply {
        Reply {
            source,
            log_input,
            outcome: answer.outcome,
            us: micros(answer.cost),
            cut_off: answer.cut_off,
            process: answer.process,
            slip: answer.slip.as_ref().map(|slip| slip.keys),
            missed: answer.missed,
            minor: None,
            comparisons: None,
        }
    }
}

/// The oracle's answer to a test, with the hints for the search, such as compared operands, that an
/// observed run gave.
pub(super) type ObservedAnswer = (Answer, Hints);

/// Runs the tests and checks of a minimization, one after another: by a single oracle, or by a pool
/// of workers that run predicted tests ahead.
pub(super) trait Answerer {
    /// Runs the text that `progress` asks for next. Returns the oracle's answer and the run's hints
    /// (facts besides its outcome, such as compared operands); `None` if no text is due. `left` is
    /// the maximum number of tests that will still be asked, including this one; `None` without a
    /// limit. With a flaky input, a test may take several runs.
    fn answer(
        &mut self,
        progress: &Progress<'_>,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError>;

    /// Makes all later runs use the time limit that was learned from the input.
    fn limit_time(&mut self, learned: TimeLimit);

    /// Makes the crash record of a slip (a crash of another bug) that has none. Returns `None` if
    /// no record can be made. Also returns `None` where a single oracle answers, since it has made
    /// a record of each slip already.
    fn record(&mut self, _: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        Ok(None)
    }

    /// Returns the slips (crashes of other bugs) of tests that workers made in advance and the
    /// search did not need, and forgets them, so that the next call returns only later slips.
    fn unclaimed_slips(&mut self) -> Vec<Slip> {
        Vec::new()
    }

    /// Returns the number of runs that may be under way at the same time; 1 without workers.
    fn workers(&self) -> u32 {
        1
    }

    /// Waits for all runs that are under way. Returns the number of runs in the whole minimization
    /// that were made ahead and whose answers were not used; 0 without workers.
    fn finish(&mut self) -> u64 {
        0
    }
}

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

/// Answers all questions of a minimization (texts to run) by one oracle. If the oracle takes
/// several texts in one request, the predicted next questions are sent together with the present
/// one: those of the proof of minimality and of the confirmation, and those of the search as long
/// as tests pass.
pub(super) struct SingleOracle<'a> {
    oracle: &'a mut dyn Oracle,
    /// The predicted next questions (texts to run), with the answers that were made ahead.
    ahead: VecDeque<(Question, Answer)>,
    /// Largest number of runs in the next request of the proof of minimality or of the confirmation
    /// after the proof. The number doubles with each such request, up to [`MOST`]; after one that
    /// has taken longer than [`LONGEST`], it is half the number of runs in that request.
    several: usize,
    /// Largest number of tests in the next request of the search; it grows while tests pass.
    of_search: usize,
    /// Number of runs that were made ahead and whose answers were not used.
    wasted: u64,
    /// Crashes of other bugs (slips) in runs whose answers were not used.
    unclaimed_slips: Vec<Slip>,
}

impl<'a> SingleOracle<'a> {
    /// Makes the answerer that lets `oracle` answer the questions (texts to run) of a minimization.
    pub fn new(oracle: &'a mut dyn Oracle) -> SingleOracle<'a> {
        SingleOracle {
            oracle,
            ahead: VecDeque::new(),
            several: FIRST,
            of_search: 1,
            wasted: 0,
            unclaimed_slips: Vec::new(),
        }
    }

    /// Runs in one request the text that `progress` asks for now, and the texts that it will ask
    /// for next if all of these pass. Keeps the answers for later questions. `left` is the greatest
    /// number of runs; `None` means no limit. `of_search` is true if the texts are tests of the
    /// search, and false if they are runs of the proof of minimality or of the confirmation after
    /// the proof.
    fn run_ahead(
        &mut self,
        progress: &Progress<'_>,
        left: Option<u64>,
        of_search: bool,
    ) -> Result<(), OracleError> {
        let left = left.and_then(|left| usize::try_from(left).ok());
        let most = if of_search {
            self.of_search
        } else {
            self.several
        };
        let most = most.min(left.unwrap_or(usize::MAX).max(1));
        let fits = |manner: Manner| match of_search {
            true => manner.is_of_search(),
            false => manner.is_fresh(),
        };
        let (mut questions, mut texts) = (Vec::new(), Vec::new());
        let (mut continuation, mut text) = (progress.continuation(), Vec::new());
        while questions.len() < most
            && let Some(question) =
                continuation.next(progress.texts(), |_| Outcome::Pass, &mut text)
            && fits(question.manner)
        {
            questions.push(question);
            texts.push(text.clone());
        }
        let kinds = questions.iter().map(|question| question.manner.kind());
        let candidates = texts.iter().map(Vec::as_slice).zip(kinds);
        let candidates: Vec<_> = candidates.collect();
        let began = Instant::now();
        let answers = match of_search {
            true => self.oracle.ask_several(&candidates)?,
            false => self.oracle.ask_fresh_several(&candidates)?,
        };
        match of_search {
            true => self.adapt_search(candidates.len(), &answers),
            false if began.elapsed() > LONGEST => self.several = (answers.len() / 2).max(1),
            false => self.several = (self.several * 2).min(MOST),
        }
        self.ahead = questions.into_iter().zip(answers).collect();
        Ok(())
    }

    /// Sets the number of tests in the next request of the search. If all `asked` tests of the last
    /// request have passed, the number is twice `asked`, at most [`MOST_OF_SEARCH`]; else it is the
    /// number of tests that were run in the last request, which are those in `answers`.
    fn adapt_search(&mut self, asked: usize, answers: &[Answer]) {
        let passed = answers.last();
        let passed = passed.is_some_and(|answer| answer.outcome == Outcome::Pass);
        self.of_search = match passed && answers.len() == asked {
            true => (2 * asked).min(MOST_OF_SEARCH),
            false => answers.len().max(1),
        };
    }

    /// Removes and returns the answer to `question` (a text to run), if it is the next one that was
    /// made ahead. Otherwise drops all answers that were made ahead, and returns `None`.
    fn take(&mut self, question: Question) -> Option<Answer> {
        if self.ahead.front()?.0 == question {
            return Some(self.ahead.pop_front()?.1);
        }
        self.drop_ahead();
        None
    }

    /// Drops the answers that were made ahead, but keeps the crashes of other bugs among them.
    fn drop_ahead(&mut self) {
        self.wasted += self.ahead.len() as u64;
        let slips = self.ahead.drain(..).filter_map(|(_, answer)| answer.slip);
        self.unclaimed_slips.extend(slips);
    }
}

impl Answerer for SingleOracle<'_> {
    fn answer(
        &mut self,
        progress: &Progress<'_>,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError> {
        let Some(question) = progress.question() else {
            return Ok(None);
        };
        let mut answer = self.take(question);
        let of_search = question.manner.is_of_search();
        if answer.is_none()
            && self.oracle.takes_several()
            && (of_search && self.of_search > 1 || question.manner.is_of_proof())
        {
            self.run_ahead(progress, left, of_search)?;
            answer = self.take(question);
        }
        if let Some(answer) = answer {
            if question.manner.invalidates_prediction(answer.outcome) {
                // Confirmations that were made ahead are of the best before.
                self.drop_ahead();
            }
            return Ok(Some((answer, Hints::default())));
        }
        let Some((manner, text)) = progress.due() else {
            return Ok(None);
        };
        let (answer, hints) = manner.put(self.oracle, text)?;
        if of_search {
            self.adapt_search(1, std::slice::from_ref(&answer));
        }
        Ok(Some((answer, hints)))
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.oracle.limit_time(learned);
    }

    fn finish(&mut self) -> u64 {
        self.drop_ahead();
        self.wasted
    }

    fn unclaimed_slips(&mut self) -> Vec<Slip> {
        std::mem::take(&mut self.unclaimed_slips)
    }
}

#[cfg(test)]
mod tests {
    use ddfuzz_delta::Comparison;

    use super::*;

    /// An oracle for tests of this file. Its outcomes and hints differ between the ways to ask it,
    /// so that a test sees whether it was asked for an observed run, a fresh process, or the
    /// fastest run.
    struct Teller;

    impl Oracle for Teller {
        fn ask(&mut self, _: &[u8], _: Kind) -> Result<Answer, OracleError> {
            Ok(Answer::of(Outcome::Pass))
        }

        fn ask_fresh(&mut self, _: &[u8], _: Kind) -> Result<Answer, OracleError> {
            Ok(Answer::of(Outcome::Unresolved))
        }

        fn ask_observed(
            &mut self,
            text: &[u8],
            kind: Kind,
        ) -> Result<(Answer, Hints), OracleError> {
            let (left, right) = (text.to_vec(), b"word".to_vec());
            let hints = Hints {
                comparisons: vec![Comparison { left, right }],
                ..Hints::default()
            };
            Ok((self.ask(text, kind)?, hints))
        }
    }

    #[test]
    fn only_a_question_that_observes_has_hints() {
        for (fresh, observed) in [(false, false), (true, false), (false, true)] {
            let kind = Kind::Rewriting;
            let manner = Manner::Test {
                kind,
                fresh,
                observed,
            };
            let (answer, hints) = manner.put(&mut Teller, b"text").unwrap();
            assert_eq!(answer.outcome == Outcome::Unresolved, fresh);
            assert_eq!(!hints.comparisons.is_empty(), observed);
            assert_eq!(manner.is_observed(), observed);
        }
    }
}
