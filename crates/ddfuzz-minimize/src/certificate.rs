//! The certificate of a result: which tests of the log prove that it is minimal. Also detects texts
//! that failed in one run and did not fail in another.

use ddfuzz_delta::{Outcome, TextId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, ops::Range};

use crate::{Kind, log::What};

/// Degree of minimality that the log proves of the result of a minimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Claim {
    /// Removing any one byte makes the failure go away (*Why Programs Fail*, A.11), proven by
    /// outcomes in the log.
    #[serde(rename = "1-minimal")]
    OneMinimal,
    /// Removing any one or two bytes makes the failure go away (*Why Programs Fail*, A.10), proven
    /// by outcomes in the log.
    #[serde(rename = "2-minimal")]
    TwoMinimal,
    /// The result passes, and with any single delta (byte or edit in which it differs from the
    /// failing input) added, it no longer passes, proven by outcomes in the log.
    #[serde(rename = "1-maximal")]
    OneMaximal,
    /// One input passes, the other fails, and their difference is 1-minimal (*Why Programs Fail*,
    /// A.15), proven by outcomes in the log: with any single delta (byte or edit) of the difference
    /// added, the first input no longer passes; with any one removed, the second no longer fails.
    #[serde(rename = "1-minimal-difference")]
    OneMinimalDifference,
    /// The result fails and is the smallest input found; minimality is not proven.
    #[serde(rename = "best-so-far")]
    BestSoFar,
}

impl std::fmt::Display for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Claim::OneMinimal => "1-minimal",
            Claim::TwoMinimal => "2-minimal",
            Claim::OneMaximal => "1-maximal",
            Claim::OneMinimalDifference => "1-minimal-difference",
            Claim::BestSoFar => "best-so-far",
        })
    }
}

/// How much of a claim (such as 1-minimality) is proven: the number of tests that the claim needs,
/// and how many of them have an outcome that proves their part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proved {
    /// Number of tests whose outcome is known and supports the claim; for `min`, distinct removals
    /// of single bytes with an outcome that is not FAIL.
    pub done: u64,
    /// Number of tests that the claim needs; for `min`, distinct removals of single bytes. In a
    /// sequence of equal bytes, all removals give the same text and count once.
    pub of: u64,
}

/// Reference to the log line whose outcome proves a part of a claim such as 1-minimality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProofRef {
    /// The `test` line of the log with this index proves a part of the claim.
    Test(u64),
    /// The `check` line of the log with this purpose proves a part of the claim: the axiom proves
    /// that the empty input does not fail.
    Check(What),
}

/// For a text, the log lines that prove that removals of its single bytes make the failure go away,
/// and the number of all removals of single bytes. In a sequence of equal bytes, all removals give
/// the same text, so they count once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    proof: Vec<ProofRef>,
    of: u64,
}

impl Certificate {
    /// Makes the certificate of a text from its removals of single bytes in ascending order of
    /// position: for each, the log line which proves that the text does not fail without the byte.
    pub fn new(proofs: impl IntoIterator<Item = Option<ProofRef>>) -> Certificate {
        let mut certificate = Certificate::default();
        for proof in proofs {
            certificate.of += 1;
            certificate.proof.extend(proof);
        }
        certificate
    }

    /// Makes the certificate of `text` that proves nothing: it names no log line.
    pub fn without_proof(text: &[u8]) -> Certificate {
        Certificate {
            proof: Vec::new(),
            of: count_runs(text),
        }
    }

    /// Returns two numbers: of removals of single bytes that are proven to make the failure go
    /// away, and of all removals of single bytes.
    pub fn proved(&self) -> Proved {
        Proved {
            done: self.proof.len() as u64,
            of: self.of,
        }
    }

    /// Returns the log lines that prove that removals of single bytes make the failure go away, in
    /// ascending order of position.
    pub fn proof(&self) -> &[ProofRef] {
        &self.proof
    }

    /// Returns [`Claim::OneMinimal`] if every removal of a single byte is proven to make the
    /// failure go away, else [`Claim::BestSoFar`].
    pub fn claim(&self) -> Claim {
        match self.proof.len() as u64 == self.of {
            true => Claim::OneMinimal,
            false => Claim::BestSoFar,
        }
    }
}

/// Returns the maximal sequences of equal bytes of a text, as ranges in ascending order.
pub(super) fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    text.chunk_by(|one, next| one == next)
        .scan(0, |start, run| {
            let at = *start..*start + run.len();
            *start = at.end;
            Some(at)
        })
}

/// Returns the number of maximal sequences of equal bytes of a text, which is that of its distinct
/// removals of a single byte.
pub(super) fn count_runs(text: &[u8]) -> u64 {
    let borders = text.windows(2).filter(|pair| pair[0] != pair[1]);
    borders.count() as u64 + u64::from(!text.is_empty())
}

/// Detects texts that failed in one run and did not fail in another. Then the failure is flaky, and
/// nothing can be claimed of the result. Only runs in separate processes that kept their time limit
/// count.
#[derive(Clone, Debug, Default)]
pub(super) struct Contradictions {
    /// Texts that were UNRESOLVED only because rewriting bytes changed the minor key (hash of the
    /// call path). The same text may fail if it results from deletions.
    rewritten: HashSet<TextId>,
    found: bool,
}

impl Contradictions {
    /// Records a contradiction if a run of `text` ended with `outcome`, an earlier run of the same
    /// text with `before` (`None` if there was none), and only one of the two is FAIL. It is no
    /// contradiction if the run that did not fail was of a candidate made by rewriting bytes
    /// (`kind`): such a candidate must also keep the minor key (hash of the call path), so it may
    /// not fail where another candidate with the same text does.
    pub fn note(&mut self, text: TextId, kind: Kind, outcome: Outcome, before: Option<Outcome>) {
        let (fails, failed) = (
            outcome == Outcome::Fail,
            before.map(|one| one == Outcome::Fail),
        );
        self.found |= match (kind, fails, failed) {
            // The earlier failure may result from deletions, with another minor key.
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

    /// Records that a text failed in one run and did not fail in another.
    pub fn record(&mut self) {
        self.found = true;
    }

    /// Checks whether any text so far failed in one run and did not fail in another.
    pub fn found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::ContentHash;

    #[test]
    fn runs_are_counted_as_they_are_listed() {
        for text in [&b""[..], b"a", b"aa", b"ab", b"aabbbaa", b"abcabc"] {
            assert_eq!(count_runs(text), runs(text).count() as u64, "{text:?}");
        }
    }

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
