//! The best text so far, with the functions that test edits of it.

use std::{ops::Range, sync::Arc};

use crate::passes::coroutine::Asker;
use crate::passes::repair::Repair;
use crate::{Candidate, Config, Edit, Hints, Outcome, Replacement, Rule};

/// Number of bytes that are examined to tell whether the input is a text.
const SAMPLE: usize = 4096;

/// Maximum length, in bytes, of a run of equal bytes that is followed backwards, to bound the time
/// of a step.
const LONGEST_RUN: usize = 1 << 16;

/// Minimum number of neighboring bytes, deleted by one test, that count as a run.
const RUN: usize = 4;

/// The current best, which is the smallest failing configuration so far, and its text. Invariant:
/// its test gave FAIL, and it never grows.
pub(super) struct CurrentBest {
    asker: Asker,
    /// The whole original input; empty if the units of the search are not bytes.
    original: Arc<[u8]>,
    /// Positions of the original input from which the bytes of the current best text come.
    best: Config,
    /// The current best text; `None` if it has to be rebuilt from `original` after a reduction.
    text: Option<Arc<[u8]>>,
    /// True if bytes were replaced, so that the text cannot be rebuilt from `original`.
    rewritten: bool,
    /// Number of tests so far that gave FAIL, so that their text became the current best.
    reductions: usize,
    /// Number of tests that were asked for so far.
    asked: usize,
    /// True once one test has deleted at least [`RUN`] neighboring bytes.
    deleted_a_run: bool,
    /// Corrects numbers such as lengths in each tested text; `None` if no binary format was found.
    repair: Option<Repair>,
}

impl CurrentBest {
    /// Creates the current best: at first the whole input `original`, whose test gave FAIL.
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

    /// Creates the current best of a search over `units` units that are not bytes; all of them
    /// together gave FAIL.
    pub fn of_units(asker: Asker, units: usize) -> CurrentBest {
        CurrentBest {
            best: Config::all(units),
            text: None,
            ..CurrentBest::new(asker, Arc::default())
        }
    }

    /// Returns the size of the current best: its number of units, which are mostly bytes.
    pub fn len(&self) -> usize {
        self.best.len()
    }

    /// Returns the number of tests so far that gave FAIL, so that their text became the current
    /// best. A pass compares it to learn whether it changed something.
    pub fn reductions(&self) -> usize {
        self.reductions
    }

    /// Returns the number of tests that were asked for so far.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// Returns true if one test so far deleted at least [`RUN`] neighboring bytes.
    pub fn has_deleted_a_run(&self) -> bool {
        self.deleted_a_run
    }

    /// Returns the hints of the last run: facts such as compared operands.
    pub fn hints(&self) -> Hints {
        self.asker.hints()
    }

    /// Returns the current best text, which is rebuilt if a reduction changed it.
    pub fn text(&mut self) -> Arc<[u8]> {
        let text = self.text.take().unwrap_or_else(|| {
            let mut text = Vec::new();
            self.best.write_into(&self.original, &mut text);
            text.into()
        });
        self.text.insert(text).clone()
    }

    /// Returns the byte at a position of the current best text; `None` beyond its end.
    pub fn byte(&self, position: usize) -> Option<u8> {
        match &self.text {
            Some(text) => text.get(position).copied(),
            None => {
                let unit = self.best.unit_at(position)?;
                self.original.get(unit).copied()
            }
        }
    }

    /// Returns the first bytes of the current best text, at most [`SAMPLE`].
    pub fn sample(&self) -> Vec<u8> {
        let len = self.len().min(SAMPLE);
        (0..len).filter_map(|at| self.byte(at)).collect()
    }

    /// Returns true if the beginning of the current best looks like a text: ASCII or UTF-8 with at
    /// most 5 % control characters.
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

    /// Returns the first position of the run of equal bytes that ends at `position`. Deleting any
    /// byte of the run gives the same text. At most [`LONGEST_RUN`] bytes are followed backwards.
    pub fn run_start(&self, position: usize) -> usize {
        let byte = self.byte(position);
        let first = position.saturating_sub(LONGEST_RUN);
        let mut start = position;
        while byte.is_some() && start > first && self.byte(start - 1) == byte {
            start -= 1;
        }
        start
    }

    /// Sets or clears the repair, which corrects numbers such as lengths in texts tested from now
    /// on.
    pub fn repair_by(&mut self, repair: Option<Repair>) {
        self.repair = repair;
    }

    /// Tests an edit of the current best text, with numbers corrected by the repair if one is set.
    /// A text that fails becomes the new best.
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

    /// Tests the current best text without the range `cut` of its positions. A text that fails
    /// becomes the new best.
    pub async fn cut(&mut self, rule: &'static str, cut: Range<usize>) -> Outcome {
        let cuts = std::iter::once(cut).collect();
        self.test(rule, Edit::Cut(cuts)).await
    }

    /// Tests an edit of the current best text without correcting numbers. A text that fails becomes
    /// the new best. If `observed`, the compared operands are in [`hints`](CurrentBest::hints)
    /// afterwards.
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

/// Returns the positions of the current best text that replacements remove, because they insert
/// fewer bytes than they replace.
fn lost(replacements: &[Replacement]) -> Vec<Range<usize>> {
    let gone = replacements
        .iter()
        .map(|new| (new.at.start + new.with.len()).min(new.at.end)..new.at.end);
    gone.filter(|gone| !gone.is_empty()).collect()
}
