//! Passes that write `0` over bytes: `normalize`, `shortlex` and `values`.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::units::Units;
use crate::{Edit, Outcome, Replacement};

/// The digit `0`, which is written over bytes whose values do not matter: the least byte in the
/// order by which results of equal size are compared ([`shortlex`]).
pub(super) const LEAST: u8 = b'0';

/// If a text does not fail with `0` written over all of its bytes, and has at least this size in
/// bytes, `0` is tested over each half of it.
const HALVED: usize = 16;

/// The bytes of the current best text that differ from one value, as units of a list search: to
/// delete a unit is to write this value over the byte.
pub(super) struct OtherBytes {
    rule: &'static str,
    value: u8,
    /// Positions, in the current best text, of the bytes that differ from the value to be written,
    /// ascending.
    at: Vec<usize>,
}

impl OtherBytes {
    /// Lists the positions in `range` of the current best text at which other bytes than `value`
    /// stand, as units over which `value` is to be written; `rule` is the name of the pass in logs.
    pub fn within(
        work: &mut CurrentBest,
        rule: &'static str,
        range: Range<usize>,
        value: u8,
    ) -> OtherBytes {
        let text = work.text();
        let at = range.filter(|at| text[*at] != value).collect();
        OtherBytes { rule, value, at }
    }

    /// Builds the edit that overwrites listed bytes of the text with the list's value (such as
    /// `0`): those whose indices in the list are `units`, in ascending order.
    pub fn written(&self, units: impl Iterator<Item = usize>) -> Edit {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in units.map(|unit| self.at[unit]) {
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        let zeros = runs.into_iter().map(|run| Replacement {
            with: vec![self.value; run.len()],
            at: run,
        });
        Edit::Set(zeros.collect())
    }
}

impl Units for OtherBytes {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.at.len()
    }

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(self.written(cuts.iter().cloned().flatten()))
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        for cut in cuts.iter().rev() {
            self.at.drain(cut.clone());
        }
        vec![0; cuts.len()]
    }
}

/// Tests whether the values of bytes matter: writes `0` over all bytes of the text or, if that does
/// not fail, over one half, and then over as many blocks of the other half as possible. Sequences
/// of equal bytes can then be deleted in few tests.
///
/// Invariant: the size does not change, and no byte becomes greater in the order in which results
/// of the same size are compared.
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
    let mut unlike = OtherBytes::within(work, "normalize", rest, LEAST);
    let units = unlike.len();
    ListSearch::new(work, &mut unlike)
        .sweep_range(0..units)
        .await;
}

/// Tests the current best text with `0` written over a range; returns whether it still fails.
async fn set(work: &mut CurrentBest, range: Range<usize>) -> bool {
    let unlike = OtherBytes::within(work, "normalize", range, LEAST);
    if unlike.len() == 0 {
        return true;
    }
    let zeros = unlike.written(0..unlike.len());
    work.test("normalize", zeros).await == Outcome::Fail
}

/// Name, in logs, of the pass that writes `0` over single bytes ([`shortlex`]).
const RULE: &str = "shortlex";

/// Name, in logs, of the pass that writes `0` over blocks of bytes at the end of a search
/// ([`last_form`]).
const LAST: &str = "values";

/// Maximum size of results, in bytes, that [`last_form`] processes by writing `0` over bytes.
pub(super) const SMALL: usize = 128;

/// Maximum number of tests by which one search writes `0` over bytes of its result ([`last_form`]).
pub(super) const MOST_TESTS: usize = 512;

/// Writes `0` over as many bytes as possible at the end of a search, in blocks that grow with each
/// success, from the end of the text to its front. `left` is how many tests the search may still
/// spend on this; each test lowers it by one. Returns true if a byte changed: then single deletions
/// must be tried again. Does nothing to a text of more than [`SMALL`] bytes.
///
/// Invariant: the size does not change, and no byte becomes greater in the order of [`shortlex`].
/// If nothing changed and tests are left, no single byte can become `0`.
pub(super) async fn last_form(work: &mut CurrentBest, left: &mut usize) -> bool {
    let before = work.reductions();
    let (mut to, mut block) = (work.len(), 1);
    if to > SMALL {
        return false;
    }
    while to > 0 && *left > 0 {
        let from = to - block.min(to);
        let unlike = OtherBytes::within(work, LAST, from..to, LEAST);
        if unlike.len() == 0 {
            to = from;
            continue;
        }
        *left -= 1;
        let zeros = unlike.written(0..unlike.len());
        match work.test(LAST, zeros).await {
            Outcome::Fail => (to, block) = (from, block * 2),
            _ if block > 1 => block = 1,
            _ => to = from,
        }
    }
    work.reductions() > before
}

/// Makes a test that serves as a mark in logs: tests after it do not belong to the proof of
/// 1-minimality. It is the test of the text with `0` written over all bytes, which [`last_form`]
/// has usually made before, so that the cache answers it.
pub(super) async fn mark_proved(work: &mut CurrentBest) {
    let all = 0..work.len();
    let unlike = OtherBytes::within(work, LAST, all, LEAST);
    let zeros = unlike.written(0..unlike.len());
    work.test(LAST, zeros).await;
}

/// Writes `0` over single bytes, from the end to the front, in about `budget` tests; each success
/// adds one test to the budget.
///
/// Invariant: the size does not change, and no byte becomes greater in the order `0`, other digits,
/// letters, other printable characters, other bytes.
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
