//! What an oracle is asked, apart from the text.

use super::log::{ContentHash, What};
use super::{Answer, Kind, Oracle, OracleError};
use crate::delta::Outcome;

/// How a text is run, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Manner {
    /// Aside from the search.
    Check(What),
    /// As a candidate; in the proof in a fresh process.
    Test { kind: Kind, fresh: bool },
}

impl Manner {
    /// Asks the oracle in this manner.
    pub fn put(self, oracle: &mut dyn Oracle, text: &[u8]) -> Result<Answer, OracleError> {
        match self {
            Manner::Check(_) if self.is_fresh() => oracle.ask_fresh(text, Kind::Deleting),
            Manner::Check(_) => oracle.ask(text, Kind::Deleting),
            Manner::Test { kind, fresh: true } => oracle.ask_fresh(text, kind),
            Manner::Test { kind, fresh: false } => oracle.ask(text, kind),
        }
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
