//! What an oracle is asked, apart from the text.

use super::course::kind_of;
use super::log::{ContentHash, Phase, What};
use super::{Answer, Kind, Oracle, OracleError};
use ddfuzz_delta::{Candidate, Hints, Outcome};

/// How a text is run, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Manner {
    /// Aside from the search.
    Check(What),
    /// As a candidate; in the proof in a fresh process.
    Test {
        kind: Kind,
        fresh: bool,
        /// Also for what the run tells besides its outcome.
        observed: bool,
    },
}

impl Manner {
    /// The manner in which a candidate is run in a phase, `None` for the search.
    pub fn of(candidate: &Candidate, phase: Option<Phase>) -> Manner {
        Manner::Test {
            kind: kind_of(&candidate.edit),
            fresh: phase == Some(Phase::Proof),
            observed: candidate.observed && phase.is_none(),
        }
    }

    /// Asks the oracle in this manner; there are hints only where it is to observe.
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

    /// Whether the search goes on by what the run tells besides its outcome: what comes behind is
    /// not foreseen, and so is not run ahead.
    pub fn is_observed(self) -> bool {
        matches!(self, Manner::Test { observed: true, .. })
    }

    /// Whether it asks for a fresh process.
    pub fn is_fresh(self) -> bool {
        match self {
            // The axiom proves that a result of one byte is minimal.
            Manner::Check(What::Confirm | What::Axiom) => true,
            Manner::Check(What::Baseline | What::Vote) => false,
            Manner::Test { fresh, .. } => fresh,
        }
    }

    /// Whether this answer changes what is asked next: a candidate that fails is another best.
    pub fn turns_at(self, outcome: Outcome) -> bool {
        match self {
            Manner::Check(What::Axiom) | Manner::Test { .. } => outcome == Outcome::Fail,
            Manner::Check(_) => false,
        }
    }
}

/// A question. Two that are equal have the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub manner: Manner,
    /// Hash of the text; `None` for a check, whose text follows from what it is for.
    pub text: Option<ContentHash>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddfuzz_delta::Comparison;

    /// Says by its hints, and by its outcome, how it was asked.
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
