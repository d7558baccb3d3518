//! What a minimization comes to.

use super::super::certificate::runs;
use super::super::log::{ContentHash, EndLine};
use super::super::{Claim, Minimized, Proved, Warning};
use super::Progress;

impl Progress {
    /// The last line. A claim is made only where every try of the input and the result failed, and
    /// no text ended in two ways; nothing is proven of a flaky input: what did not fail in some
    /// runs is likely not to. Nor is anything of an input that stands for a best that did not fail
    /// again.
    pub(super) fn end_line(&self) -> EndLine {
        let certificate = self.course.certificate();
        let best = self.result();
        let confirmed = self.confirmed.hits == self.confirmed.tries;
        let reproducible = confirmed && !self.course.is_contradicted();
        let (claim, proved, proof) = match self.is_flaky() {
            _ if self.restored.is_some() => {
                let of = runs(best).count() as u64;
                (Claim::BestSoFar, Proved { done: 0, of }, Vec::new())
            }
            true => {
                let of = certificate.proved().of;
                (Claim::BestSoFar, Proved { done: 0, of }, Vec::new())
            }
            false if reproducible => (
                certificate.claim(),
                certificate.proved(),
                certificate.proof(),
            ),
            false => (Claim::BestSoFar, certificate.proved(), certificate.proof()),
        };
        EndLine {
            claim,
            size: best.len() as u64,
            blake3: ContentHash::of(best),
            tests: self.course.counts,
            proved,
            proof,
            passing: None,
        }
    }

    /// The result, once the log is whole.
    pub fn minimized(&self) -> Option<Minimized> {
        let end = self.end()?;
        let untried = match self.rewrites && end.claim != Claim::BestSoFar {
            true => self.course.untried_values(),
            false => 0,
        };
        let warnings = [
            (self.empty_fails && self.restored.is_none(), Warning::EmptyInputFails),
            (
                self.is_flaky(),
                Warning::FlakyInput {
                    rate: self.baseline,
                    votes: self.votes.needed,
                },
            ),
            (
                self.confirmed.hits < self.confirmed.tries,
                Warning::FlakyResult {
                    rate: self.confirmed,
                },
            ),
            (
                self.restored.is_some(),
                Warning::Restored {
                    size: self.course.best().len() as u64,
                },
            ),
            (
                !self.is_flaky() && self.course.is_contradicted(),
                Warning::Contradicted,
            ),
            (untried > 0, Warning::Values { untried }),
        ];
        Some(Minimized {
            text: self.result().to_vec(),
            claim: end.claim,
            proved: end.proved,
            size_before: self.course.original().len() as u64,
            counts: end.tests,
            baseline: self.baseline,
            confirmed: self.confirmed,
            minor_after: self.minor_after,
            slips: self.slips.clone(),
            warnings: warnings
                .into_iter()
                .filter(|(holds, _)| *holds)
                .map(|one| one.1)
                .collect(),
        })
    }
}
