//! What the passes work on: the best so far, and the way to ask for less.

use std::{ops::Range, sync::Arc};

use crate::passes::coroutine::Asker;
use crate::passes::repair::Repair;
use crate::{Candidate, Config, Edit, Hints, Outcome, Replacement, Rule};

/// Bytes that are looked at to tell a text.
const SAMPLE: usize = 4096;

/// Equal bytes that are looked back over, at most, so that no step takes long.
const LONGEST_RUN: usize = 1 << 16;

/// So many neighbours are a run.
const RUN: usize = 4;

/// The best so far and its text. Invariant: its test was FAIL, and it is never longer than what it
/// was before.
pub(super) struct CurrentBest {
    asker: Asker,
    /// The input; empty where units are no bytes.
    original: Arc<[u8]>,
    /// Positions of the original that the best has descended from.
    best: Config,
    /// Its text, where it was asked for since the last reduction, or bytes were replaced.
    text: Option<Arc<[u8]>>,
    /// Whether bytes were replaced, so that the text cannot be taken from the original any more.
    rewritten: bool,
    /// Reductions so far.
    reductions: usize,
    /// Tests asked so far.
    asked: usize,
    /// Whether neighbours went in one piece.
    lost_a_run: bool,
    /// What puts numbers right.
    repair: Option<Repair>,
}

impl CurrentBest {
    /// The whole input, whose test was FAIL.
    pub fn new(asker: Asker, original: Arc<[u8]>) -> CurrentBest {
        CurrentBest {
            asker,
            best: Config::all(original.len()),
            text: Some(original.clone()),
            original,
            rewritten: false,
            reductions: 0,
            asked: 0,
            lost_a_run: false,
            repair: None,
        }
    }

    /// All of some units that are no bytes, or of which nothing is known.
    pub fn of_units(asker: Asker, units: usize) -> CurrentBest {
        CurrentBest {
            best: Config::all(units),
            text: None,
            ..CurrentBest::new(asker, Arc::default())
        }
    }

    /// Size of the best, in bytes.
    pub fn len(&self) -> usize {
        self.best.len()
    }

    /// Reductions so far: a pass sees by it whether it changed anything.
    pub fn reductions(&self) -> usize {
        self.reductions
    }

    /// Tests asked so far.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// Whether neighbours, [`RUN`] or more of them, went in one piece.
    pub fn has_lost_a_run(&self) -> bool {
        self.lost_a_run
    }

    /// What the last run told.
    pub fn hints(&self) -> Hints {
        self.asker.hints()
    }

    /// The text of the best. It is made anew after reductions: ask for it where bytes decide.
    pub fn text(&mut self) -> Arc<[u8]> {
        let text = self.text.take().unwrap_or_else(|| {
            let mut text = Vec::new();
            self.best.write_into(&self.original, &mut text);
            text.into()
        });
        self.text.insert(text).clone()
    }

    /// The byte of the best at a position.
    pub fn byte(&self, position: usize) -> Option<u8> {
        match &self.text {
            Some(text) => text.get(position).copied(),
            None => {
                let unit = self.best.unit_at(position)?;
                self.original.get(unit).copied()
            }
        }
    }

    /// The bytes that the best begins with.
    pub fn sample(&self) -> Vec<u8> {
        let len = self.len().min(SAMPLE);
        (0..len).filter_map(|at| self.byte(at)).collect()
    }

    /// Whether the best begins like a text: hardly any control characters, in ASCII or UTF-8.
    pub fn is_text(&self) -> bool {
        let sample = self.sample();
        let control = sample
            .iter()
            .filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
        let is_written = control.count() * 20 <= sample.len();
        is_written
            && match std::str::from_utf8(&sample) {
                Ok(_) => true,
                // The sample may end inside of a character.
                Err(error) => error.error_len().is_none(),
            }
    }

    /// First position of the run of equal bytes that ends at `position`: deleting any one of them
    /// gives the same text. Longer runs than [`LONGEST_RUN`] are not followed to their beginning.
    pub fn run_start(&self, position: usize) -> usize {
        let byte = self.byte(position);
        let first = position.saturating_sub(LONGEST_RUN);
        let mut start = position;
        while byte.is_some() && start > first && self.byte(start - 1) == byte {
            start -= 1;
        }
        start
    }

    /// Has numbers put right in what is tested from now on.
    pub fn repair_by(&mut self, repair: Option<Repair>) {
        self.repair = repair;
    }

    /// Tests an edit of the best, and takes it where it fails.
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

    /// Tests the best without a range of its positions.
    pub async fn cut(&mut self, rule: &'static str, cut: Range<usize>) -> Outcome {
        let cuts = std::iter::once(cut).collect();
        self.test(rule, Edit::Cut(cuts)).await
    }

    /// Tests an edit as it is. What an observed run compared is in [`hints`](CurrentBest::hints).
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
            self.lost_a_run |= cuts.iter().any(|cut| cut.len() >= RUN);
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

/// The positions that replacements do away with: those behind what stands in their place.
fn lost(replacements: &[Replacement]) -> Vec<Range<usize>> {
    let gone = replacements
        .iter()
        .map(|new| (new.at.start + new.with.len()).min(new.at.end)..new.at.end);
    gone.filter(|gone| !gone.is_empty()).collect()
}
