//! The best text so far, with the functions that test edits of it.

use std::{ops::Range, sync::Arc};

use crate::document::Document;
use crate::interruption;
use crate::passes::coroutine::Asker;
use crate::passes::envelope::{Envelope, Whole, lost};
use crate::passes::repair::Repair;
use crate::passes::syntax::SyntaxPredictor;
use crate::{Candidate, Config, Edit, ExtraTests, Hints, Outcome, Rule};

/// Maximum number of bytes at the beginning of the current best text that are examined to tell
/// whether it is a text.
const SAMPLE: usize = 4096;

/// Number of bytes at the beginning of the current best text that decide whether it is taken for a
/// file in a binary format: it is if more than a quarter of these bytes are control characters,
/// even if a text follows.
const HEAD: usize = 64;

/// If a text is not UTF-8 (it is in Latin-1, or an edit has cut a character), it still counts as a
/// text if at most one byte in this many is not ASCII.
const BYTES_PER_FOREIGN: usize = 16;

/// Maximum number of bytes that are looked at in a sequence of equal bytes, from its end backwards,
/// to find its first byte. This limit bounds the time of a step.
const LONGEST_RUN: usize = 1 << 16;

/// Minimum number of neighboring bytes that one test must delete to count as a test that deleted a
/// run (sequence of bytes).
const RUN: usize = 4;

/// The current best, which is the smallest failing configuration (set of kept units) so far, and
/// its text. Invariant: its test gave FAIL, and it never grows.
pub(super) struct CurrentBest {
    asker: Asker,
    /// The original input; empty if the units of the search are not bytes. While passes edit only
    /// some payloads (changeable bytes) of a document, the contents of these payloads as they were
    /// when these edits began.
    original: Arc<[u8]>,
    /// Positions of the original input from which the bytes of the current best text come.
    best: Config,
    /// The current best text; `None` if it has to be rebuilt from `original` after a reduction.
    text: Option<Arc<[u8]>>,
    /// True if bytes were replaced, so that the text cannot be rebuilt from `original`.
    rewritten: bool,
    /// Number of tests so far that gave FAIL, so that their text became the current best text.
    reductions: usize,
    /// Number of tests that the search has asked for so far.
    asked: usize,
    /// True once one test that gave FAIL has deleted at least [`RUN`] neighboring bytes.
    deleted_a_run: bool,
    /// True if passes may guess that bytes equal to deleted ones are not needed at other places
    /// either, and delete them in one test.
    repeats_deletions: bool,
    /// The repair, which corrects numbers such as lengths in each tested text; `None` if no such
    /// number is known.
    repair: Option<Repair>,
    /// The document whose payloads (changeable bytes) the passes edit at present, as if they were
    /// the whole text; `None` if passes edit the whole text.
    envelope: Option<Envelope>,
    /// The predictor that answers tests by counting syntax errors; `None` if no grammar is used at
    /// present.
    predictor: Option<SyntaxPredictor>,
    /// Limit on successive tests without success; `None` if there is no limit.
    fruitless_limit: Option<FruitlessLimit>,
}

/// A limit on successive tests without success. A test is a success if it makes the text shorter by
/// at least a 128th of its size.
#[derive(Clone, Copy)]
struct FruitlessLimit {
    /// Number of tests without success that are allowed after each success.
    granted: usize,
    /// Number of tests without success that are still allowed.
    left: usize,
}

/// A test must delete at least the text's size, in bytes, divided by this number to count as a
/// success for the limit on tests without success.
const WORTHWHILE: usize = 128;

/// Size, in bytes, of the edited payloads (changeable bytes) above which writing the whole file
/// (with compression) counts as slow as a test.
const SLOW: usize = 1 << 16;

impl CurrentBest {
    /// Creates the current best text: at first the whole input `original`, whose test gave FAIL.
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
            repeats_deletions: false,
            repair: None,
            envelope: None,
            predictor: None,
            fruitless_limit: None,
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

    /// Returns the size of the current best text: its number of units, which are mostly bytes.
    pub fn len(&self) -> usize {
        self.best.len()
    }

    /// Returns the number of tests so far that gave FAIL, so that their text became the current
    /// best text. A pass compares this number before and after its tests to learn whether it
    /// changed the text.
    pub fn reductions(&self) -> usize {
        self.reductions
    }

    /// Returns the number of tests that the search has asked for so far.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// Subtracts `tests` from the number that [`asked`](CurrentBest::asked) returns, so that these
    /// tests do not raise the budgets of other passes.
    pub fn discount(&mut self, tests: usize) {
        self.asked -= tests.min(self.asked);
    }

    /// Returns true if one test so far deleted at least [`RUN`] neighboring bytes.
    pub fn has_deleted_a_run(&self) -> bool {
        self.deleted_a_run
    }

    /// Allows passes to guess, from now on, that bytes equal to deleted ones are not needed at
    /// other places either.
    pub fn repeat_deletions(&mut self) {
        self.repeats_deletions = true;
    }

    /// Returns true if passes may guess, once bytes were deleted, that equal bytes at other places
    /// are not needed either, and delete all of them in one test.
    pub fn repeats_deletions(&self) -> bool {
        self.repeats_deletions
    }

    /// Returns the hints of the last test run: facts that it reported besides its outcome, such as
    /// compared operands.
    pub fn hints(&self) -> Hints {
        self.asker.hints()
    }

    /// Returns how many tests passes may take after the proof that the result is 1-minimal.
    pub fn extra_tests(&self) -> ExtraTests {
        self.asker.extra_tests()
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

    /// Returns true if the current best text looks like a text, judged by its first bytes
    /// ([`sample`](CurrentBest::sample)): at most 5 % of them are control characters other than
    /// white space, and they are UTF-8, or at most one in 16 is not ASCII. If `repeats_deletions`
    /// is set, at most 25 % of the first [`HEAD`] bytes may be such control characters.
    pub fn is_text(&self) -> bool {
        let sample = self.sample();
        let head = &sample[..sample.len().min(HEAD)];
        // Searches that are replayed from logs without a structure do not know the head.
        let has_head = self.repeats_deletions && controls(head) * 4 > head.len();
        !has_head && looks_like_text(&sample)
    }

    /// Returns the first position of the sequence of equal bytes that ends at `position`. Deleting
    /// any byte of the sequence gives the same text. At most [`LONGEST_RUN`] bytes are followed
    /// backwards.
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

    /// Makes passes see and edit, from now on, only some payloads (changeable bytes) of `document`,
    /// joined, as if they were the whole text. The payloads are given as a range of their indices;
    /// the text of the document must be the current best text.
    pub fn enter(&mut self, document: Arc<dyn Document>, payloads: Range<usize>) {
        let whole = Whole {
            text: self.text(),
            original: std::mem::take(&mut self.original),
            best: self.best.clone(),
            rewritten: self.rewritten,
        };
        let envelope = Envelope::new(document, payloads, whole);
        self.original = envelope.inside().into();
        self.best = Config::all(self.original.len());
        self.text = Some(self.original.clone());
        self.rewritten = false;
        self.envelope = Some(envelope);
    }

    /// Ends what [`enter`](CurrentBest::enter) began: passes see the whole text again. Returns the
    /// document with its payloads (changeable bytes) as passes have left them.
    ///
    /// # Panics
    /// Without a call of [`enter`](CurrentBest::enter) before.
    pub fn leave(&mut self) -> Arc<dyn Document> {
        let Some(Envelope {
            document, whole, ..
        }) = self.envelope.take()
        else {
            unreachable!("leave follows enter");
        };
        self.original = whole.original;
        self.best = whole.best;
        self.text = Some(whole.text);
        self.rewritten = whole.rewritten;
        document
    }

    /// Sets the predictor, or removes it for `None`. From now on, it predicts that texts with more
    /// syntax errors than the current best text do not fail, so that they are not run.
    pub fn predict_by(&mut self, predictor: Option<SyntaxPredictor>) {
        self.predictor = predictor;
    }

    /// Sets the limit on successive tests without success to `tests` (`None`: no limit). A test is
    /// a success if it makes the text shorter by at least a 128th of its size. After `tests` tests
    /// in a row without success, no more candidates are run: each counts as PASS.
    pub fn limit_fruitless(&mut self, tests: Option<usize>) {
        self.fruitless_limit = tests.map(|tests| FruitlessLimit {
            granted: tests,
            left: tests,
        });
    }

    /// Lowers the number of tests without success that are still allowed to half of the limit,
    /// unless fewer are left anyway. The next success restores the whole limit.
    pub fn halve_fruitless(&mut self) {
        if let Some(limit) = &mut self.fruitless_limit {
            limit.left = limit.left.min(limit.granted.div_ceil(2));
        }
    }

    /// Returns true if no more candidates are run, because the limit on successive tests without
    /// success is reached.
    pub fn is_limit_reached(&self) -> bool {
        self.fruitless_limit.is_some_and(|limit| limit.left == 0)
    }

    /// Returns the size of the whole current best text in bytes, also while passes edit payloads
    /// (changeable bytes).
    fn whole_len(&self) -> usize {
        let envelope = self.envelope.as_ref();
        envelope.map_or(self.best.len(), |envelope| envelope.whole.text.len())
    }

    /// Returns true if the text that `edit` makes of the current best text need not be run, because
    /// the predictor expects that it does not fail.
    fn is_refused(&mut self, edit: &Edit) -> bool {
        if self.predictor.is_none() {
            return false;
        }
        let text = edit.of_best(&self.text());
        self.predictor
            .as_mut()
            .is_some_and(|predictor| predictor.refuses(&text))
    }

    /// Returns by how many bytes the whole text becomes shorter if an edit is made in its payloads
    /// (changeable bytes, the contents of compressed or encoded parts); 0 if the text does not
    /// become shorter, or if passes do not edit payloads at present.
    pub fn shortened_by(&self, edit: &Edit) -> usize {
        let envelope = self.envelope.as_ref();
        envelope.map_or(0, |envelope| envelope.shortened_by(edit))
    }

    /// Tests an edit of the current best text, with numbers corrected by the repair if one is set.
    /// A text that fails becomes the new best. Returns the outcome.
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
    /// becomes the new best. Returns the outcome.
    pub async fn cut(&mut self, rule: &'static str, cut: Range<usize>) -> Outcome {
        let cuts = std::iter::once(cut).collect();
        self.test(rule, Edit::Cut(cuts)).await
    }

    /// Tests an edit of the current best text, without correcting numbers, and returns the outcome.
    /// A text that fails becomes the new best. If `observed`, the run also reports compared
    /// operands, which are in [`hints`](CurrentBest::hints) afterwards. Returns PASS without a test
    /// if payloads (changeable bytes) of a document are edited and the whole text would stay as it
    /// is or become longer, or if the limit on tests without success is reached.
    pub async fn ask(&mut self, rule: &'static str, edit: Edit, observed: bool) -> Outcome {
        interruption::check();
        if self.is_limit_reached() {
            return Outcome::Pass;
        }
        let size = self.whole_len();
        let config = match &edit {
            Edit::Cut(cuts) if !self.rewritten => Some(self.best.id_without(cuts)),
            _ => None,
        };
        let predicted = self.is_refused(&edit).then_some(Outcome::Pass);
        let sealed = match &self.envelope {
            // An edit that makes the whole text longer cannot become the best.
            Some(envelope) => match envelope.seal(&edit) {
                Some(sealed) => Some(sealed),
                None => {
                    self.count_unsealed();
                    return Outcome::Pass;
                }
            },
            None => None,
        };
        let candidate = Candidate {
            rule: Rule::Pass(rule),
            edit: sealed.as_ref().map_or(&edit, |sealed| &sealed.edit).clone(),
            config: config.filter(|_| sealed.is_none()),
            observed,
        };
        self.asked += usize::from(predicted.is_none());
        let outcome = self.asker.ask(candidate, predicted).await;
        if outcome == Outcome::Fail {
            self.take(&edit);
            if let (Some(envelope), Some(sealed)) = (&mut self.envelope, sealed) {
                envelope.take(sealed);
            }
            if self.predictor.is_some() {
                let text = self.text();
                self.predictor.iter_mut().for_each(|one| one.learn(&text));
            }
            let whole = self.envelope.as_ref().map(|envelope| &envelope.whole.best);
            self.asker.set_best(whole.unwrap_or(&self.best));
        }
        let deleted = size - self.whole_len();
        if let Some(limit) = &mut self.fruitless_limit {
            limit.left = match deleted * WORTHWHILE >= size {
                true => limit.granted,
                false => limit.left - 1,
            };
        }
        outcome
    }

    /// Counts an edit of payloads (the contents of a file that passes edit at present) as a test
    /// without success, although it was not tested: the whole file would not become smaller. Does
    /// so only if the payloads are larger than [`SLOW`] bytes, since writing the whole file then
    /// took as long as a test.
    fn count_unsealed(&mut self) {
        if let Some(limit) = self
            .fruitless_limit
            .as_mut()
            .filter(|_| self.best.len() > SLOW)
        {
            limit.left -= 1;
        }
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
            Edit::Set(_) => self.best.without(&lost(edit)),
        };
    }
}

/// Returns the number of ASCII control characters, other than white space, in `bytes`.
fn controls(bytes: &[u8]) -> usize {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    bytes.iter().filter(is_control).count()
}

/// Returns true if the first [`SAMPLE`] of the `bytes` look like a text: at most 5 % of them are
/// control characters other than white space, and they are valid UTF-8 (whose last character may be
/// cut off), or at most one in 16 of them is not ASCII.
pub(super) fn looks_like_text(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let is_written = controls(sample) * 20 <= sample.len();
    is_written
        && match std::str::from_utf8(sample) {
            Ok(_) => true,
            // The sample may end within a character.
            Err(error) if error.error_len().is_none() => true,
            Err(_) => {
                let foreign = sample.iter().filter(|byte| !byte.is_ascii());
                foreign.count() * BYTES_PER_FOREIGN <= sample.len()
            }
        }
}
