//! A question of a minimization (a text to run, and how) and its answer; what is logged of the
//! answer; and the trait [`Answerer`].

use ddfuzz_delta::{Candidate, Hints, Outcome};
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::{Crash, Key};

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

    /// Returns how the text was made: by deleting only, or by rewriting bytes, too. This decides
    /// which keys its crash must have. The text of a check counts as made by deleting.
    pub fn kind(self) -> Kind {
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
    pub fn is_of_search(self) -> bool {
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
