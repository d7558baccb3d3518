//! What a search between two ends comes to.

use super::super::sides::Side;
use super::super::{Isolated, IsolationWarning};
use super::{Progress, Stage};
use crate::log::{ContentHash, EndLine, Goal, PassingEnd};
use crate::{Claim, Proved, Rate};

impl Progress {
    /// Whether the ends were what they should be in every run that was made to see it, and no text
    /// ended in two ways.
    fn is_reproducible(&self) -> bool {
        let rates = [
            self.baseline,
            self.confirmed_failing,
            self.confirmed_passing,
        ];
        !self.sides.contradicted && rates.iter().all(|rate| rate.hits == rate.tries)
    }

    /// The last line. A claim is made only where all is proven and the ends are reproducible.
    pub(super) fn end_line(&self) -> EndLine {
        let proofs = self.sides.proofs();
        let proved = Proved {
            done: proofs.iter().flatten().count() as u64,
            of: proofs.len() as u64,
        };
        let claim = match self.goal {
            _ if proved.done < proved.of || !self.is_reproducible() => Claim::BestSoFar,
            Goal::Maximize => Claim::OneMaximal,
            Goal::Isolate => Claim::OneMinimalDifference,
        };
        let failing = self.sides.end(Side::Failing);
        let passing = self.sides.end(Side::Passing);
        EndLine {
            claim,
            size: failing.len() as u64,
            blake3: ContentHash::of(&failing),
            tests: self.sides.counts,
            proved,
            proof: proofs.into_iter().flatten().collect(),
            passing: Some(PassingEnd {
                size: passing.len() as u64,
                blake3: ContentHash::of(&passing),
            }),
        }
    }

    /// The result, once the log is whole.
    pub fn isolated(&self) -> Option<Isolated> {
        let end = self.end.as_ref().filter(|_| self.stage == Stage::Over)?;
        let difference = self.sides.difference();
        let deltas_left = difference.len() as u64;
        let flaky = |rate: Rate| rate.hits < rate.tries;
        let isolates = self.goal == Goal::Isolate;
        let open = end.proved.of - end.proved.done;
        let warnings = [
            (flaky(self.baseline), IsolationWarning::FlakyInput),
            (
                flaky(self.confirmed_failing),
                IsolationWarning::FlakyFailing,
            ),
            (flaky(self.confirmed_passing), IsolationWarning::NotPassing),
            (self.sides.contradicted, IsolationWarning::Contradicted),
            (
                isolates && deltas_left > 1 && open == 0,
                IsolationWarning::Unresolved(deltas_left),
            ),
            (open > 0, IsolationWarning::Unproved(open)),
        ];
        let said = warnings.into_iter().filter(|(holds, _)| *holds);
        Some(Isolated {
            passing: self.sides.end(Side::Passing),
            failing: self.sides.end(Side::Failing),
            difference: self.sides.subject.changed(&difference),
            deltas_left,
            claim: end.claim,
            proved: end.proved,
            counts: end.tests,
            baseline: self.baseline,
            confirmed_passing: self.confirmed_passing,
            confirmed_failing: self.confirmed_failing,
            slips: self.slips.clone(),
            warnings: said.map(|(_, warning)| warning).collect(),
        })
    }
}
