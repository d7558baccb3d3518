//! A question of a minimization and its answer: how a text is run, what is logged of the answer,
//! and the trait [`Answerer`].

use ddfuzz_delta::{Candidate, Hints, Outcome};
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::{Crash, Key};

use crate::candidate_texts::kind_of;
use crate::driver::micros;
use crate::log::{Base64, ContentHash, Phase, Source, TestLine, What};
use crate::progress::Progress;
use crate::{Answer, CutOff, Kind, Oracle, OracleError, Process, Slip, SlipKeys};

/// How a text is run, and for what purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Manner {
    /// A check, which is a run outside of the search.
    Check(What),
    /// A test of a candidate. Tests of the proof use a fresh process.
    Test {
        kind: Kind,
        fresh: bool,
        /// Whether the run reports comparisons, as hints for the search.
        observed: bool,
    },
}

impl Manner {
    /// How a candidate is run in a phase; `None` is the search.
    pub fn of(candidate: &Candidate, phase: Option<Phase>) -> Manner {
        Manner::Test {
            kind: kind_of(&candidate.edit),
            fresh: phase == Some(Phase::Proof),
            observed: candidate.observed && phase.is_none(),
        }
    }

    /// Runs `text` with the oracle in this manner. There are hints only if the run is observed.
    pub fn put(self, oracle: &mut dyn Oracle, text: &[u8]) -> Result<(Answer, Hints), OracleError> {
        let kind = match self {
            Manner::Check(_) => Kind::Deleting,
            Manner::Test { kind, .. } => kind,
        };
        if self.is_observed() {
            return oracle.ask_observed(text, kind);
        }
        let answer = match self.is_fresh() {
            true => oracle.ask_fresh(text, kind),
            false => oracle.ask(text, kind),
        };
        Ok((answer?, Hints::default()))
    }

    /// Whether the run reports hints. The search depends on them, so no later question can be
    /// predicted.
    pub fn is_observed(self) -> bool {
        matches!(self, Manner::Test { observed: true, .. })
    }

    /// Whether the run needs a fresh process.
    pub fn is_fresh(self) -> bool {
        match self {
            // The run of the empty input proves that a result of one byte is minimal.
            Manner::Check(What::Confirm | What::Axiom) => true,
            Manner::Check(What::Baseline | What::Vote) => false,
            Manner::Test { fresh, .. } => fresh,
        }
    }

    /// Whether this outcome changes the next questions: a failing candidate becomes another best.
    pub fn invalidates_prediction(self, outcome: Outcome) -> bool {
        match self {
            Manner::Check(What::Axiom) | Manner::Test { .. } => outcome == Outcome::Fail,
            Manner::Check(_) => false,
        }
    }
}

/// A question to the oracle. Equal questions have equal answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub manner: Manner,
    /// Hash of the text; `None` for a check, whose purpose determines its text.
    pub text: Option<ContentHash>,
}

/// The answer to a test in the form of its log line.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub outcome: Outcome,
    pub source: Source,
    pub us: u64,
    pub cut_off: Option<CutOff>,
    pub process: Process,
    pub slip: Option<SlipKeys>,
    /// Minor key of the candidate, if it differs from that of the best before it.
    pub minor: Option<Key>,
    /// Operand pairs that an observed run compared.
    pub comparisons: Option<Vec<(Base64, Base64)>>,
    pub log_input: bool,
}

impl Reply {
    /// The answer that a log line contains.
    pub fn of(line: &TestLine) -> Reply {
        Reply {
            outcome: line.outcome,
            source: line.source,
            us: line.us,
            cut_off: line.cut_off,
            process: line.process,
            slip: line.slip,
            minor: line.minor,
            comparisons: line.comparisons.clone(),
            log_input: line.input.is_some(),
        }
    }

    /// The log form of an oracle's answer.
    pub fn from_answer(source: Source, answer: &Answer, log_input: bool) -> Reply {
        Reply {
            source,
            log_input,
            outcome: answer.outcome,
            us: micros(answer.cost),
            cut_off: answer.cut_off,
            process: answer.process,
            slip: answer.slip.as_ref().map(|slip| slip.keys),
            minor: None,
            comparisons: None,
        }
    }
}

/// An answer with the hints of its run.
pub(super) type ObservedAnswer = (Answer, Hints);

/// Answers the questions of a minimization one after another: a single oracle, or a pool of workers
/// that run ahead.
pub(super) trait Answerer {
    /// Answers the question that is due. At most `left` further tests will be asked, including this
    /// one; `None` is no limit. With a flaky input, a test may take several runs.
    fn answer(
        &mut self,
        progress: &Progress,
        left: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError>;

    /// Sets the time limit of all runs that are asked from now on.
    fn limit_time(&mut self, learned: TimeLimit);

    /// Makes the crash record of a slip that has none. A single oracle has already passed on all
    /// records.
    fn record(&mut self, _: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        Ok(None)
    }

    /// Takes the slips of wasted tests; each is returned once.
    fn unclaimed_slips(&mut self) -> Vec<Slip> {
        Vec::new()
    }

    /// Waits for all runs that are under way, and returns the number of wasted runs.
    fn finish(&mut self) -> u64 {
        0
    }
}

/// Answers by one oracle, which is asked only questions that are due.
pub(super) struct SingleOracle<'a>(pub &'a mut dyn Oracle);

impl Answerer for SingleOracle<'_> {
    fn answer(
        &mut self,
        progress: &Progress,
        _: Option<u64>,
    ) -> Result<Option<ObservedAnswer>, OracleError> {
        let Some((manner, text)) = progress.due() else {
            return Ok(None);
        };
        manner.put(self.0, text).map(Some)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.0.limit_time(learned);
    }
}

#[cfg(test)]
mod tests {
    use ddfuzz_delta::Comparison;

    use super::*;

    /// An oracle whose outcome and hints show how it was asked.
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
