//! Passes that replace bytes by `0`: `normalize`, `shortlex` and `values`.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::list::List;
use crate::passes::units::Units;
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
    pub fn within(work: &mut CurrentBest, rule: &'static str, range: Range<usize>) -> Unlike {
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

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(self.zeros(cuts.iter().cloned().flatten()))
    }

    fn taken(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
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
pub(super) async fn normalize(work: &mut CurrentBest) {
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
async fn set(work: &mut CurrentBest, range: Range<usize>) -> bool {
    let unlike = Unlike::within(work, "normalize", range);
    if unlike.len() == 0 {
        return true;
    }
    let zeros = unlike.zeros(0..unlike.len());
    work.test("normalize", zeros).await == Outcome::Fail
}

/// The name of this pass in the log.
const RULE: &str = "shortlex";

/// That of the last normal form, which comes when all else is proved.
const LAST: &str = "values";

/// Results of more bytes than these keep the values that they have come to.
pub(super) const SMALL: usize = 128;

/// So many tests the last normal form may take, however often it is come back to.
pub(super) const MOST_TESTS: usize = 512;

/// The last normal form: writes `0` over what can take it, from the end to the front, more bytes at
/// a time as long as it takes. Whether anything did: then single deletions are open again. `left` is
/// what is left of [`MOST_TESTS`].
///
/// Invariant: the size stays, and no byte becomes greater in the order of [`shortlex`]. Where nothing
/// takes and tests are left, no byte can become `0` alone.
pub(super) async fn last_form(work: &mut CurrentBest, left: &mut usize) -> bool {
    let before = work.reductions();
    let (mut to, mut block) = (work.len(), 1);
    if to > SMALL {
        return false;
    }
    while to > 0 && *left > 0 {
        let from = to - block.min(to);
        let unlike = Unlike::within(work, LAST, from..to);
        if unlike.len() == 0 {
            to = from;
            continue;
        }
        *left -= 1;
        let zeros = unlike.zeros(0..unlike.len());
        match work.test(LAST, zeros).await {
            Outcome::Fail => (to, block) = (from, block * 2),
            _ if block > 1 => block = 1,
            _ => to = from,
        }
    }
    work.reductions() > before
}

/// Writes `0` over single bytes, from the end to the front, as long as the budget of tests allows.
/// What takes extends it.
///
/// Invariant: the size stays, and no byte becomes greater in the order `0`, digits, letters, what
/// is printable, the rest.
pub(super) async fn shortlex(work: &mut CurrentBest, mut budget: usize) {
    let mut at = work.len();
    while at > 0 && budget > 0 {
        at -= 1;
        if work.byte(at) == Some(LEAST) {
            continue;
        }
        let zero = Replacement {
            at: at..at + 1,
            with: vec![LEAST],
        };
        match work.test(RULE, Edit::Set(vec![zero])).await {
            Outcome::Fail => budget += 1,
            Outcome::Pass | Outcome::Unresolved => budget -= 1,
        }
    }
}
