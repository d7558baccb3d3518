//! The runs at the end of a minimization that repeat the tests on which its claim rests.

use ddfuzz_delta::Outcome;
use std::ops::Range;

use crate::Rate;
use crate::candidate_texts::{CandidateTexts, remove};
use crate::progress::{Progress, Stage};
use crate::steadiness::{ESTIMATING, repeated_removals};

/// The removals of single bytes of the best that are run again, because the claim rests on only one
/// run of each: if the failure is flaky, one run without it proves little.
#[derive(Debug)]
pub(super) struct Repeats {
    /// Removals that are still to be run, the next one last; each is the run of equal bytes of
    /// which one byte is removed.
    open: Vec<Range<usize>>,
    /// The best text after the next removal in `open`; empty if none is left.
    text: Vec<u8>,
}

impl Repeats {
    /// Chooses `chosen` of the `removals`, spread evenly over them, and plans `times` runs of each
    /// in a row.
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

    /// Returns the text to run next.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the removals that are still to be run again, the next one last.
    pub fn open(&self) -> &[Range<usize>] {
        &self.open
    }
}

impl Progress<'_> {
    /// Begins to run removals again on which the claim rests. Returns false if there is nothing to
    /// run again: nothing is claimed, or the log is an older one, without such runs.
    pub(super) fn begin_repeats(&mut self) -> bool {
        let is_claimed = !self.is_flaky() && !self.is_contradicted() && self.restored.is_none();
        let Some(least) = self.least_confirmations.filter(|_| is_claimed) else {
            return false;
        };
        let removals = self.texts.single_removals();
        let proven = removals.map(|(at, proof)| proof.map(|_| at));
        let Some(proven) = proven.collect::<Option<Vec<_>>>() else {
            return false;
        };
        let executed = self.texts.counts.executed;
        let (chosen, times) = repeated_removals(proven.len() as u64, executed, least);
        let [chosen, times] = [chosen, times].map(|count| usize::try_from(count).unwrap_or(0));
        let repeats = Repeats::new(&proven, (chosen, times), &self.texts);
        let is_begun = !repeats.open.is_empty();
        self.repeats = Some(repeats);
        is_begun
    }

    /// Checks whether no chosen removal still has to be run again.
    pub(super) fn are_repeats_done(&self) -> bool {
        let open = |repeats: &Repeats| !repeats.open.is_empty();
        !self.repeats.as_ref().is_some_and(open)
    }

    /// Takes the outcome of the removal that was run again. If it fails, the claim is refuted: the
    /// stage of proof tests that removal once more, so that it may become the result, which is then
    /// confirmed as often as that of a flaky failure. If a budget was used up before, only the
    /// confirmations follow.
    pub(super) fn feed_repeat(&mut self, outcome: Outcome) {
        let Some(repeats) = &mut self.repeats else {
            return;
        };
        let at = repeats.open.pop();
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
