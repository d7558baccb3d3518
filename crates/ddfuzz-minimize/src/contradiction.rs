//! Whether the same text was seen to end in two ways.

use std::collections::HashSet;

use super::Kind;
use ddfuzz_delta::{Outcome, TextId};

/// Looks for a text that failed in one run and did not in another, each in a process of its own and
/// in time. Where there is one the failure alternates, however steady it seemed when the input was
/// run alone, and nothing can be claimed.
#[derive(Clone, Debug, Default)]
pub(super) struct Contradictions {
    /// Texts that did not fail where bytes were replaced: another minor key is enough for that, and
    /// the same text may fail where it comes of deleting.
    rewritten: HashSet<TextId>,
    found: bool,
}

impl Contradictions {
    /// Takes a run of `text` in a process of its own, in time; `before` is what another one gave.
    pub fn note(&mut self, text: TextId, kind: Kind, outcome: Outcome, before: Option<Outcome>) {
        let (fails, failed) = (
            outcome == Outcome::Fail,
            before.map(|one| one == Outcome::Fail),
        );
        self.found |= match (kind, fails, failed) {
            // That it failed may have been by deleting, with another minor key.
            (Kind::Rewriting, false, _) => false,
            (Kind::Deleting, false, failed) => failed == Some(true),
            (Kind::Rewriting, true, failed) => failed == Some(false),
            (Kind::Deleting, true, failed) => {
                failed == Some(false) && !self.rewritten.contains(&text)
            }
        };
        if kind == Kind::Rewriting && !fails {
            self.rewritten.insert(text);
        }
    }

    /// Whether there was one.
    pub fn found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::ContentHash;

    fn found(runs: [(Kind, Outcome); 2]) -> bool {
        let text = ContentHash::of(b"text").text_id();
        let mut contradictions = Contradictions::default();
        let [(kind, outcome), (again, other)] = runs;
        contradictions.note(text, kind, outcome, None);
        contradictions.note(text, again, other, Some(outcome));
        contradictions.found()
    }

    #[test]
    fn a_text_that_fails_and_does_not_is_a_contradiction() {
        let (fail, pass) = (Outcome::Fail, Outcome::Pass);
        assert!(found([(Kind::Deleting, fail), (Kind::Deleting, pass)]));
        assert!(found([(Kind::Deleting, pass), (Kind::Deleting, fail)]));
        assert!(found([(Kind::Rewriting, fail), (Kind::Deleting, pass)]));
        assert!(!found([
            (Kind::Deleting, pass),
            (Kind::Deleting, Outcome::Unresolved)
        ]));
        assert!(!found([(Kind::Deleting, fail), (Kind::Deleting, fail)]));
    }

    #[test]
    fn another_minor_key_where_bytes_are_replaced_is_none() {
        let (fail, other) = (Outcome::Fail, Outcome::Unresolved);
        assert!(!found([(Kind::Rewriting, other), (Kind::Deleting, fail)]));
        assert!(!found([(Kind::Deleting, fail), (Kind::Rewriting, other)]));
    }
}
