//! The best text so far, with the functions that test edits of it.

use std::{ops::Range, sync::Arc};

use crate::passes::coroutine::Asker;
use crate::passes::repair::Repair;
use crate::{Candidate, Config, Edit, Hints, Outcome, Replacement, Rule};

/// Number of bytes that are examined to tell whether the input is a text.
const SAMPLE: usize = 4096;

/// Longest run of equal bytes that is followed backwards, to bound the time of a step.
const LONGEST_RUN: usize = 1 << 16;

/// Number of neighboring bytes that count as a run.
const RUN: usize = 4;

/// The best configuration so far and its text. Invariant: its test gave FAIL, and it never grows.
pub(super) struct CurrentBest {
    asker: Asker,
    /// The whole input; empty if units are not bytes.
    original: Arc<[u8]>,
    /// Positions of the original from which the bytes of the best come.
    best: Config,
    /// Text of the best; `None` if it has to be rebuilt from `original` after a reduction.
    text: Option<Arc<[u8]>>,
    /// Whether bytes were replaced, so that the text cannot be rebuilt from `original`.
    rewritten: bool,
    /// Number of reductions so far.
    reductions: usize,
    /// Number of tests asked so far.
    asked: usize,
    /// Whether one test deleted at least [`RUN`] neighboring bytes.
    deleted_a_run: bool,
    /// Corrects numbers in each tested text, if a binary format was found.
    repair: Option<Repair>,
}

impl CurrentBest {
    /// Starts with the whole input, whose test gave FAIL.
    pub fn new(asker: Asker, original: Arc<[u8]>) -> CurrentBest {
        CurrentBest {
            asker,
            best: Config::all(original.len()),
            text: Some(original.clone()),
            original,
            rewritten: false,
            reductions: 0,
            asked: 0,
            deleted_a_run: false,
            repair: None,
        }
    }

    /// Starts with `units` units that are not bytes, whose test gave FAIL.
    pub fn of_units(asker: Asker, units: usize) -> CurrentBest {
        CurrentBest {
            best: Config::all(units),
            text: None,
            ..CurrentBest::new(asker, Arc::default())
        }
    }

    /// Number of units of the best: its size in bytes.
    pub fn len(&self) -> usize {
        self.best.len()
    }

    /// Number of reductions so far. A pass compares it to learn whether it changed something.
    pub fn reductions(&self) -> usize {
        self.reductions
    }

    /// Number of tests asked so far.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// Whether one test so far deleted at least [`RUN`] neighboring bytes.
    pub fn has_deleted_a_run(&self) -> bool {
        self.deleted_a_run
    }

    /// The hints of the last run.
    pub fn hints(&self) -> Hints {
        self.asker.hints()
    }

    /// The text of the best, rebuilt if a reduction changed it.
    pub fn text(&mut self) -> Arc<[u8]> {
        let text = self.text.take().unwrap_or_else(|| {
            let mut text = Vec::new();
            self.best.write_into(&self.original, &mut text);
            text.into()
        });
        self.text.insert(text).clone()
    }

    /// The byte of the best at a position; `None` beyond its end.
    pub fn byte(&self, position: usize) -> Option<u8> {
        match &self.text {
            Some(text) => text.get(position).copied(),
            None => {
                let unit = self.best.unit_at(position)?;
                self.original.get(unit).copied()
            }
        }
    }

    /// The first bytes of the best, up to [`SAMPLE`].
    pub fn sample(&self) -> Vec<u8> {
        let len = self.len().min(SAMPLE);
        (0..len).filter_map(|at| self.byte(at)).collect()
    }

    /// Whether the beginning of the best looks like a text: ASCII or UTF-8 with at most 5 % control
    /// characters.
    pub fn is_text(&self) -> bool {
        let sample = self.sample();
        let control = sample
            .iter()
            .filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
        let is_written = control.count() * 20 <= sample.len();
        is_written
            && match std::str::from_utf8(&sample) {
                Ok(_) => true,
                // The sample may end within a character.
                Err(error) => error.error_len().is_none(),
            }
    }

    /// First position of the run of equal bytes that ends at `position`. Deleting any byte of the
    /// run gives the same text. At most [`LONGEST_RUN`] bytes are followed backwards.
    pub fn run_start(&self, position: usize) -> usize {
        let byte = self.byte(position);
        let first = position.saturating_sub(LONGEST_RUN);
        let mut start = position;
        while byte.is_some() && start > first && self.byte(start - 1) == byte {
            start -= 1;
        }
        start
    }

    /// Sets or clears the repair that corrects numbers in texts tested from now on.
    pub fn repair_by(&mut self, repair: Option<Repair>) {
        self.repair = repair;
    }

    /// Tests an edit of the best, after corrections by the repair. A failing text becomes the best.
    pub async fn test(&mut self, rule: &'static str, edit: Edit) -> Outcome {
        match self.repair.take() {
            Some(mut repair) => {
                let outcome = repair.test(self, rule, edit).await;
                self.repair = Some(repair);
                outcome
            }
            None => self.ask(rule, edit, false).await,
        }
    }

    /// Tests the best without the range `cut` of its positions. A failing text becomes the best.
    pub async fn cut(&mut self, rule: &'static str, cut: Range<usize>) -> Outcome {
        let cuts = std::iter::once(cut).collect();
        self.test(rule, Edit::Cut(cuts)).await
    }

    /// Tests an edit without corrections. A failing text becomes the best. If `observed`, the
    /// compared operands are in [`hints`](CurrentBest::hints) afterwards.
    pub async fn ask(&mut self, rule: &'static str, edit: Edit, observed: bool) -> Outcome {
        let config = match &edit {
            Edit::Cut(cuts) if !self.rewritten => Some(self.best.id_without(cuts)),
            _ => None,
        };
        let candidate = Candidate {
            rule: Rule::Pass(rule),
            edit: edit.clone(),
            config,
            observed,
        };
        self.asked += 1;
        let outcome = self.asker.ask(candidate).await;
        if outcome == Outcome::Fail {
            self.take(&edit);
        }
        outcome
    }

    fn take(&mut self, edit: &Edit) {
        self.reductions += 1;
        if let Edit::Cut(cuts) = edit {
            self.deleted_a_run |= cuts.iter().any(|cut| cut.len() >= RUN);
        }
        self.text = match edit {
            Edit::Cut(_) if !self.rewritten => None,
            _ => {
                self.rewritten = true;
                let before = self.text();
                let mut text = Vec::with_capacity(before.len());
                edit.write_into(&self.original, &before, &mut text);
                Some(text.into())
            }
        };
        self.best = match edit {
            Edit::Cut(cuts) => self.best.without(cuts),
            Edit::Keep(config) => config.clone(),
            Edit::Set(replacements) => self.best.without(&lost(replacements)),
        };
        self.asker.set_best(&self.best);
    }
}

/// The positions that replacements remove, because the inserted bytes are fewer than the replaced
/// ones.
fn lost(replacements: &[Replacement]) -> Vec<Range<usize>> {
    let gone = replacements
        .iter()
        .map(|new| (new.at.start + new.with.len()).min(new.at.end)..new.at.end);
    gone.filter(|gone| !gone.is_empty()).collect()
}
