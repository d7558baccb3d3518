//! Where a minimization stands.

use super::super::certificate::runs;
use super::super::{Doing, Proved, Standing};
use super::{Progress, Stage};

impl Progress {
    /// Where things stand. What is proved is counted from what is at hand: texts are not hashed
    /// for it, as they are for a certificate.
    pub fn standing(&self) -> Standing {
        let course = self.course();
        let of = runs(self.result()).count() as u64;
        let done = match (self.end(), &self.open) {
            (Some(end), _) => end.proved.done,
            _ if self.is_flaky() || self.restored.is_some() => 0,
            (None, Some(open)) => of.saturating_sub(open.len() as u64 + self.unproven),
            (None, None) => course.singles().min(of),
        };
        Standing {
            doing: match self.stage {
                Stage::Baseline | Stage::Axiom | Stage::NotFailing(_) | Stage::Alternating => {
                    Doing::Baseline
                }
                Stage::Search => Doing::Search(course.rule()),
                Stage::Proof => Doing::Proof,
                Stage::Confirm | Stage::End | Stage::Over => Doing::Confirm,
            },
            size: self.result().len() as u64,
            size_before: course.original().len() as u64,
            executed: course.counts.executed,
            checks: course.counts.checks,
            proved: Proved { done, of },
        }
    }
}
