//! The runs at the end of a minimization that repeat the tests on which its claim rests.

use ddfuzz_delta::Outcome;
use std::ops::Range;

use crate::Rate;
use crate::candidate_texts::{CandidateTexts, remove};
use crate::progress::{Progress, Stage};
use crate::steadiness::{ESTIMATING, repeated_removals};

/// The removals of single bytes of the best that are run again, because the claim rests on one run of
/// each: of an unsteady failure, one run that does not fail says little.
#[derive(Debug)]
pub(super) struct Repeats {
    /// The runs of equal bytes of which one is removed, the next one last.
    open: Vec<Range<usize>>,
    /// The best without a byte of the last of `open`; empty if none is open.
    text: Vec<u8>,
}

impl Repeats {
    /// Chooses `chosen` of the `removals`, spread evenly, each `times` times in succession.
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

    /// Returns the removals that are not run again yet, the next one last.
    pub fn open(&self) -> &[Range<usize>] {
        &self.open
    }
}

impl Progress<'_> {
    /// Begins to run the removals again on which a claim rests; returns false if there is none to run,
    /// because nothing is claimed or the log is one without these runs.
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

    /// Checks whether the removals on which the claim rests were run again, as far as they have to be.
    pub(super) fn is_repeated(&self) -> bool {
        let open = |repeats: &Repeats| !repeats.open.is_empty();
        !self.repeats.as_ref().is_some_and(open)
    }

    /// Takes the outcome of a removal that was run again. If it fails, nothing is claimed: the proof
    /// tests it once more, so that it may be the next result, and the result is confirmed as often as
    /// an unsteady one.
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
            (None, _) if self.is_repeated() => self.stage = Stage::End,
            (None, _) => {}
        }
    }
}
