//! Normalization: bytes become `0`.

use std::ops::Range;

use super::list::List;
use super::units::Units;
use super::workpiece::Workpiece;
use crate::{Edit, Outcome, Replacement};

/// The least byte of the order that results are compared by.
pub(super) const LEAST: u8 = b'0';

/// Halves of fewer bytes than these are not tried.
const HALVED: usize = 16;

/// The bytes of the best that are not `0` yet; to delete one here is to write `0` in its place.
pub(super) struct Unlike {
    rule: &'static str,
    /// Their positions, ascending.
    at: Vec<usize>,
}

impl Unlike {
    /// Those in a range.
    pub fn within(work: &mut Workpiece, rule: &'static str, range: Range<usize>) -> Unlike {
        let text = work.text();
        let at = range.filter(|at| text[*at] != LEAST).collect();
        Unlike { rule, at }
    }

    /// Writes `0` at some of them, which ascend.
    pub fn zeros(&self, units: impl Iterator<Item = usize>) -> Edit {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in units.map(|unit| self.at[unit]) {
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        let zeros = runs.into_iter().map(|run| Replacement {
            with: vec![LEAST; run.len()],
            at: run,
        });
        Edit::Set(zeros.collect())
    }
}

impl Units for Unlike {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.at.len()
    }

    fn edit(&self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(self.zeros(cuts.iter().cloned().flatten()))
    }

    fn taken(&mut self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize> {
        for cut in cuts.iter().rev() {
            self.at.drain(cut.clone());
        }
        vec![0; cuts.len()]
    }
}

/// Probes whether values matter: all bytes become `0`, else one half does; where it takes, the
/// rest is swept. What became equal is cut cheaply, and proved by one test a run.
///
/// Invariant: the size stays, and no byte becomes greater in the order of results.
pub(super) async fn normalize(work: &mut Workpiece) {
    let all = 0..work.len();
    if set(work, all.clone()).await || all.end < HALVED {
        return;
    }
    let half = all.end / 2;
    let rest = match set(work, 0..half).await {
        true => half..all.end,
        false if set(work, half..all.end).await => 0..half,
        false => return,
    };
    let mut unlike = Unlike::within(work, "normalize", rest);
    let units = unlike.len();
    List::new(work, &mut unlike).sweep_range(0..units).await;
}

/// Writes `0` over a range; whether that fails.
async fn set(work: &mut Workpiece, range: Range<usize>) -> bool {
    let unlike = Unlike::within(work, "normalize", range);
    if unlike.len() == 0 {
        return true;
    }
    let zeros = unlike.zeros(0..unlike.len());
    work.test("normalize", zeros).await == Outcome::Fail
}
