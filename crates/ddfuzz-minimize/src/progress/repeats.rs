//! The runs at the end of a minimization that repeat the tests on which its claim rests.

use ddfuzz_delta::Outcome;
use std::ops::Range;

use crate::candidate_texts::{CandidateTexts, remove};
use crate::progress::{Progress, Stage};
use crate::steadiness::{ESTIMATING, repeated_removals};
use crate::{Proved, Rate, Runs};

/// The removals of single bytes of the best text (the smallest failing so far) that are run again,
/// because the claim rests on only one run of each: if the failure is flaky, one run without it
/// proves little.
#[derive(Debug)]
pub(super) struct Repeats {
    /// Removals that are still to be run, the next one last. Each is the range of a sequence of
    /// equal bytes, one of which is removed.
    open: Vec<Range<usize>>,
    /// The best text after the next removal in `open`; empty if none is left.
    text: Vec<u8>,
    /// Number of repeated runs that were made.
    done: u64,
}

impl Repeats {
    /// Returns a plan to repeat tests of the proof: it chooses `chosen` of the `removals` (ranges
    /// of the best text), evenly spread, and runs the text without each of them `times` times in a
    /// row. `texts` has the best text.
    fn new(
        removals: &[Range<usize>],
        (chosen, times): (usize, usize),
        texts: &CandidateTexts<'_>,
    ) -> Repeats {
        let open = (0..chosen).rev();
        let open = open.map(|number| removals[number * removals.len() / chosen].clone());
        let mut repeats = Repeats {
            open: open.flat_map(|at| std::iter::repeat_n(at, times)).collect(),
            text: Vec::new(),
            done: 0,
        };
        repeats.build(texts);
        repeats
    }

    fn build(&mut self, texts: &CandidateTexts<'_>) {
        self.text.clear();
        if let Some(at) = self.open.last() {
            remove(at).write_into(texts.original(), texts.best(), &mut self.text);
        }
    }

    /// Returns the text to run next: the best text without one byte. An earlier test of this text
    /// did not fail, and is repeated.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the removals that are still to be run again, the next one last.
    pub fn open(&self) -> &[Range<usize>] {
        &self.open
    }
}

impl Progress<'_> {
    /// Begins to run again some of the texts without a single byte of the result, which do not
    /// fail, as the claim says. Returns false if there is nothing to run again: nothing is claimed,
    /// no removal is proven, or the log is an older one, which has no such runs.
    pub(super) fn begin_repeats(&mut self) -> bool {
        if self.repeated(0).is_none() {
            return false;
        }
        let removals = self.texts.single_removals();
        let proven = removals.map(|(at, proof)| proof.map(|_| at));
        let Some(proven) = proven.collect::<Option<Vec<_>>>() else {
            return false;
        };
        let Some((chosen, times)) = self.repeated(proven.len() as u64) else {
            return false;
        };
        let [chosen, times] = [chosen, times].map(|count| usize::try_from(count).unwrap_or(0));
        let repeats = Repeats::new(&proven, (chosen, times), &self.texts);
        let is_begun = !repeats.open.is_empty();
        self.repeats = Some(repeats);
        is_begun
    }

    /// Returns two numbers: how many of the `removals` are run again at the end, and how many times
    /// each. Removals are those of single bytes that are proven to make the failure go away. `None`
    /// if nothing is claimed, or in an older log, which has no such runs.
    fn repeated(&self, removals: u64) -> Option<(u64, u64)> {
        let is_claimed = !self.is_flaky() && !self.is_contradicted() && self.restored.is_none();
        let least = self.least_confirmations.filter(|_| is_claimed)?;
        let executed = self.texts.counts.executed;
        Some(repeated_removals(removals, executed, least))
    }

    /// Returns how many runs have confirmed the result, and how many are needed: runs of the result
    /// itself, and repeated runs of the result without one of its bytes, which confirm the claim.
    /// `proved` says for how many single bytes the removal is proven to make the failure go away,
    /// and how many there are.
    pub(super) fn confirming(&self, proved: Proved) -> Runs {
        let repeated = self.repeats.as_ref().map_or(0, |repeats| repeats.done);
        let done = self.confirmed.tries + repeated;
        let steady = self.confirmed.hits == self.confirmed.tries;
        let open = match self.stage {
            Stage::Confirm => {
                let open = self.confirmations().saturating_sub(self.confirmed.tries);
                let is_proven = steady && proved.done == proved.of;
                let repeated = self.repeated(proved.of).filter(|_| is_proven);
                open + repeated.map_or(0, |(chosen, times)| chosen * times)
            }
            Stage::Repeat => self
                .repeats
                .as_ref()
                .map_or(0, |repeats| repeats.open.len() as u64),
            _ => 0,
        };
        let of = done + open;
        Runs { done, of }
    }

    /// Returns true if all removals of single bytes that were chosen to be run again have been run,
    /// and if none was chosen.
    pub(super) fn are_repeats_done(&self) -> bool {
        self.unrepeated() == 0
    }

    /// Returns the number of repeated runs that are still to be made. Each runs the best text
    /// without a single byte, as an earlier test did. 0 if no removal was chosen to be run again.
    pub(super) fn unrepeated(&self) -> u64 {
        let repeats = self.repeats.as_ref();
        repeats.map_or(0, |repeats| repeats.open.len() as u64)
    }

    /// Takes the outcome of a repeated run: the best text (the smallest failing so far) without one
    /// byte, which was proven not to fail and is run again. If it is FAIL, the claim is refuted:
    /// the stage of proof tests this removal once more; if the text fails in this test, too, it
    /// becomes the result and is confirmed as often as that of a flaky failure. If a budget was
    /// used up before, no removal is tested any more; only missing confirmations of the result
    /// follow.
    pub(super) fn feed_repeat(&mut self, outcome: Outcome) {
        let Some(repeats) = &mut self.repeats else {
            return;
        };
        let at = repeats.open.pop();
        repeats.done += 1;
        repeats.build(&self.texts);
        match (at.filter(|_| outcome == Outcome::Fail), self.ceased) {
            (Some(at), None) => {
                self.texts.refute(&at);
                (self.repeats, self.open, self.unproven) = (None, None, 0);
                self.confirmed = Rate::default();
                self.stage = Stage::Proof;
            }
            (Some(at), Some(_)) => {
                self.texts.refute(&at);
                self.repeats = None;
                self.stage = match self.confirmed.tries < ESTIMATING {
                    true => Stage::Confirm,
                    false => Stage::End,
                };
            }
            (None, _) if self.are_repeats_done() => self.stage = Stage::End,
            (None, _) => {}
        }
    }
}
