//! Passes that delete single bytes, pairs of bytes, and runs (sequences of neighboring bytes).

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::passes::alike::Alike;
use crate::passes::normalize::{LEAST, mark_proved};
use crate::passes::{current_best::CurrentBest, ranges::union};
use crate::{Edit, ExtraTests, Outcome, Replacement, one_change};

/// Deletes single bytes of the current best text from the end to the front; of a sequence of equal
/// bytes, only the last is tried. After each success, twice as many bytes are tried at once.
/// Returns true if, for at least half of the bytes that could not be deleted alone, the test
/// without the byte was UNRESOLVED instead of PASS; returns false otherwise, and if all bytes could
/// be deleted.
///
/// Invariant: no byte after the current position can be deleted alone while the bytes in front of
/// it stay. A round that deletes nothing proves that the result is 1-minimal, because it tests the
/// removal of each byte.
pub(super) async fn singles(work: &mut CurrentBest) -> bool {
    let (mut needed, mut unresolved) = (0, 0);
    let mut to = work.len();
    let (mut block, mut alike) = (1, Alike::default());
    while to > 0 {
        let size = block.min(to);
        if work.len() == 1 {
            // Only the empty text is smaller, and the caller has tested it.
            return false;
        }
        let text = Alike::watch(work);
        let outcome = work.cut("singles", to - size..to).await;
        if outcome == Outcome::Fail {
            to -= size;
            block *= 2;
            if let Some(text) = text {
                alike.record_deleted(&text, to..to + size);
                to = repeat(work, &mut alike, to).await;
            }
        } else if size > 1 {
            block = 1;
        } else {
            needed += 1;
            unresolved += usize::from(outcome == Outcome::Unresolved);
            to = work.run_start(to - 1);
        }
    }
    unresolved * 2 >= needed && needed > 0
}

/// Deletes, in one test, bytes in front of position `to` that are equal to bytes deleted by this
/// pass, and so are probably not needed. `alike` remembers the deleted bytes. Returns the position
/// from where the caller continues to delete single bytes towards the front: `to`, lowered by the
/// number of deleted bytes.
async fn repeat(work: &mut CurrentBest, alike: &mut Alike, to: usize) -> usize {
    let Some(places) = alike.guess(work, 0..to) else {
        return to;
    };
    let deleted: usize = places.iter().map(Range::len).sum();
    if work.test("singles", Edit::Cut(places)).await == Outcome::Fail {
        return to - deleted;
    }
    alike.refuse();
    to
}

/// Deletes pairs of single bytes, neighbors first, in at most `budget` tests. After each success it
/// starts again, because a deletion may make another pair deletable.
pub(super) async fn pairs(work: &mut CurrentBest, budget: usize) {
    let end = work.asked() + budget;
    'anew: loop {
        for apart in 1..work.len() {
            for first in (0..work.len() - apart).rev() {
                if work.asked() >= end || work.len() <= 2 {
                    return;
                }
                let second = first + apart;
                let cuts = union(vec![first..first + 1, second..second + 1]);
                if work.test("pairs", Edit::Cut(cuts)).await == Outcome::Fail {
                    continue 'anew;
                }
            }
        }
        return;
    }
}

/// In texts of at most this many bytes, deletions of sequences of bytes are not tried, because
/// other passes have tested nearly all of them.
const FEW: usize = 16;

/// Maximum size, in bytes, of results in which the deletion of every sequence of bytes is tried.
pub(super) const SHORT: usize = 24;

/// Maximum length, in bytes, of sequences of bytes whose deletion is tested at every position of
/// binary data, for each length from 2 on. (Sequences whose length a byte states are tested before,
/// whatever their length.)
const LONGEST: usize = 32;
/// Number of bytes at the beginning of a sequence of bytes, one of which may hold the length of the
/// sequence.
const HEADS: usize = 4;
/// Two numbers that give the maximum number of successive tests without success of the pass that
/// deletes sequences of bytes: the first number times the count of all tests before the pass, plus
/// the second one.
const FUTILE_TESTS: (usize, usize) = (4, 512);
/// Maximum number of successive tests without success of the pass that deletes sequences of bytes,
/// if the input looks like a text.
const FUTILE_TESTS_IN_TEXT: usize = 128;

/// Deletes sequences of neighboring bytes that can only be deleted together, and returns whether
/// any sequence was deleted.
///
/// Such a sequence can be a record without a recognizable beginning, as in inputs of harnesses that
/// consume structured data. Group testing finds it only if a half happens to have the same borders.
/// This pass tries sequences at every position: first those whose length is given by one of their
/// first bytes, and then every length up to [`LONGEST`], because records of one kind have the same
/// length. Last, it shortens the bytes that follow a length byte together with that byte.
///
/// The pass takes many tests. It runs only if a sequence of neighbors was deleted before and more
/// than [`FEW`] bytes remain; the first two steps only on binary data. If `vain` has a text in
/// which no sequence could be deleted, only sequences that touch what has changed since are tried.
pub(super) async fn runs(work: &mut CurrentBest, vain: &mut VainRuns) -> bool {
    if work.len() <= FEW || !work.has_deleted_a_run() {
        return false;
    }
    let before = work.reductions();
    let changed = vain.changed_in(&work.text());
    // An input that looks like a text may still contain length bytes.
    let is_text = work.is_text();
    let patience = match is_text {
        true => FUTILE_TESTS_IN_TEXT,
        false => work.asked() * FUTILE_TESTS.0 + FUTILE_TESTS.1,
    };
    let mut search = RunSearch {
        left: patience,
        patience,
        changed,
        reductions: before,
    };
    if !is_text {
        search.every_place(work).await;
    }
    let mut at = 0;
    while search.left > 0 && at < work.len() {
        search.shorten(work, at).await;
        at += 1;
    }
    let is_vain = work.reductions() == before;
    if is_vain && search.left > 0 {
        vain.text = Some(work.text());
    }
    !is_vain
}

/// The text in which the pass that deletes sequences of bytes has tried all of them without
/// success.
#[derive(Default)]
pub(super) struct VainRuns {
    /// The text in which no sequence of bytes could be deleted; `None` as long as the pass has not
    /// tried all sequences of one text.
    text: Option<Arc<[u8]>>,
}

impl VainRuns {
    /// Returns the range of `text` that has changed since all sequences of bytes were tried without
    /// success; the whole text if they were not.
    fn changed_in(&self, text: &[u8]) -> Range<usize> {
        let before = self.text.as_ref();
        before.map_or(0..text.len(), |before| one_change(before, text).with)
    }
}

/// State of a search for sequences of bytes that can be deleted.
struct RunSearch {
    /// Number of tests without success that are still allowed.
    left: usize,
    /// Number of tests without success that are allowed after each success.
    patience: usize,
    /// The range of the text that sequences must touch to be tried; it counts until a sequence is
    /// deleted.
    changed: Range<usize>,
    /// Number of tests that gave FAIL before the search for sequences of bytes began.
    reductions: usize,
}

/// Tests the deletion of every sequence of two bytes or more of a small text, the longest sequences
/// first, until one is deleted.
pub(super) async fn every_run(work: &mut CurrentBest) {
    let size = work.len();
    if size > SHORT {
        return;
    }
    for length in (2..size).rev() {
        for start in (0..=size - length).rev() {
            if work.cut("runs", start..start + length).await == Outcome::Fail {
                return;
            }
        }
    }
}

/// Minimum size, in bytes, of the runs of equal bytes that [`stretches`] deletes.
const LONG_RUN: usize = 8;
/// Maximum number of runs of equal bytes, the longest of a result, around which [`stretches`] tests
/// deletions, one run at a time. The deletion of all long runs together has no such limit.
const MOST_RUNS: usize = 4;
/// Number of tests that the search must have made for each test of [`stretches`]: first for each
/// deletion around runs of equal bytes, second for each deletion of all but one end of the result.
const TESTS_PER_STRETCH: (usize, usize) = (32, 128);

/// Tests deletions of long stretches of a result, one after the other, until one gives FAIL. Each
/// single byte of the result is needed, but perhaps only because a shorter deletion moves the bytes
/// behind it to offsets at which they no longer cause the failure. The deletions are, in this
/// order: all long runs of equal bytes together; each such run; each such run with everything in
/// front of it, or behind it ([`around_runs`]); all but a few bytes at one end ([`at_ends`]).
/// Returns true if the text has changed; single bytes must then be tried again. Makes few tests,
/// compared with the search before ([`TESTS_PER_STRETCH`]), and none in a result of at most
/// [`SHORT`] bytes.
pub(super) async fn stretches(work: &mut CurrentBest) -> bool {
    let asked = work.asked();
    let text = work.text();
    let share = match work.extra_tests() {
        ExtraTests::Many => asked,
        ExtraTests::Few => asked / 2,
        ExtraTests::None => 0,
    };
    if text.len() <= SHORT || share < TESTS_PER_STRETCH.0 {
        return false;
    }
    let at_runs = around_runs(&text).into_iter();
    let ends = at_ends(text.len()).into_iter();
    let cuts = at_runs
        .take(share / TESTS_PER_STRETCH.0)
        .chain(ends.take(share / TESTS_PER_STRETCH.1));
    let cuts: Vec<Vec<Range<usize>>> = cuts.collect();
    // In a text of zeros, the mark would be a test of the text itself.
    if !cuts.is_empty() && text.iter().any(|byte| *byte != LEAST) {
        mark_proved(work).await;
    }
    for cuts in cuts {
        if work.test("stretches", Edit::Cut(cuts)).await == Outcome::Fail {
            break;
        }
    }
    work.discount(work.asked() - asked);
    // The mark, too, may have changed the text.
    *work.text() != *text
}

/// Returns deletions, each a list of ranges, of the runs of at least [`LONG_RUN`] equal bytes in
/// `text`: of all of them together, of each of the longest ([`MOST_RUNS`]), and of each of the
/// longest with everything in front of it, or behind it.
fn around_runs(text: &[u8]) -> Vec<Vec<Range<usize>>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for run in text.chunk_by(|one, next| one == next) {
        let start = runs.last().map_or(0, |run| run.end);
        runs.push(start..start + run.len());
    }
    runs.retain(|run| run.len() >= LONG_RUN);
    let all = (runs.len() > 1).then(|| runs.clone());
    runs.sort_by_key(|run| Reverse(run.len()));
    runs.truncate(MOST_RUNS);
    let alone = runs.iter().map(|run| vec![run.clone()]);
    let sides = runs
        .iter()
        .flat_map(|run| [0..run.end, run.start..text.len()]);
    let sides = sides.map(|cut| vec![cut]);
    let mut cuts: Vec<Vec<Range<usize>>> = all.into_iter().chain(alone).chain(sides).collect();
    cuts.retain(|cuts| cuts.iter().map(Range::len).sum::<usize>() < text.len());
    cuts
}

/// Returns deletions that each leave only the last, or only the first, 1, 2, 4, 8, … bytes of a
/// text of `len` bytes, at most half of them. A deletion is a list of ranges.
fn at_ends(len: usize) -> Vec<Vec<Range<usize>>> {
    let kept = std::iter::successors(Some(1), |kept| Some(kept * 2));
    let kept = kept.take_while(|kept| kept * 2 <= len);
    let ends = kept.flat_map(|kept| [0..len - kept, kept..len]);
    ends.map(|cut| vec![cut]).collect()
}

impl RunSearch {
    /// Tests the deletion of a sequence of bytes at every position of the text: first sequences
    /// whose length is stated by one of their first [`HEADS`] bytes, then sequences of each length
    /// from 2 to [`LONGEST`].
    async fn every_place(&mut self, work: &mut CurrentBest) {
        for head in 1..=HEADS {
            let told = |text: &[u8], at: usize| Some(head + usize::from(*text.get(at + head - 1)?));
            self.sweep(work, &told).await;
        }
        for length in 2..=LONGEST {
            self.sweep(work, &|_, _| Some(length)).await;
        }
    }

    /// Returns true if the sequence of bytes in the range `run` need not be tried: it lies in a
    /// part of the text in which all sequences were tried without success.
    fn is_vain(&self, work: &CurrentBest, run: &Range<usize>) -> bool {
        let touches = run.start <= self.changed.end && self.changed.start <= run.end;
        !touches && work.reductions() == self.reductions
    }

    /// Takes the byte at position `at` for the length of the bytes after it, and lowers both
    /// together: keeps only the first 0, 1, 2, 4, … of these bytes, and writes their number as the
    /// new length, until the text fails.
    async fn shorten(&mut self, work: &mut CurrentBest, at: usize) {
        let Some(length) = work.byte(at) else { return };
        let run = at..at + 1 + usize::from(length);
        // In a run of equal bytes only the last is tried as a length.
        let is_length = length >= 2 && run.end <= work.len() && work.byte(at + 1) != Some(length);
        if !is_length || self.is_vain(work, &run) {
            return;
        }
        let mut kept: u8 = 0;
        while kept < length && self.left > 0 {
            let rest = work.text()[at + 1..][..usize::from(kept)].to_vec();
            let replacement = Replacement {
                at: run.clone(),
                with: std::iter::once(kept).chain(rest).collect(),
            };
            match work.test("runs", Edit::Set(vec![replacement])).await {
                Outcome::Fail => {
                    self.left = self.patience;
                    return;
                }
                Outcome::Pass | Outcome::Unresolved => self.left -= 1,
            }
            kept = kept.saturating_mul(2).max(1);
        }
    }

    /// Tests the deletion of a sequence of bytes at each position, from the front to the end.
    /// `length` returns how long the sequence at a position is, or `None` if none begins at it.
    /// After a success, the same position is tried again.
    async fn sweep(
        &mut self,
        work: &mut CurrentBest,
        length: &(dyn Fn(&[u8], usize) -> Option<usize> + Sync),
    ) {
        let mut at = 0;
        while self.left > 0 && at < work.len() {
            let text = work.text();
            let run = length(&text, at).map(|length| at..at + length);
            let run = run.filter(|run| (at + 2..=text.len()).contains(&run.end));
            let Some(run) = run.filter(|run| !self.is_vain(work, run)) else {
                at += 1;
                continue;
            };
            match work.cut("runs", run).await {
                Outcome::Fail => self.left = self.patience,
                Outcome::Pass | Outcome::Unresolved => {
                    self.left -= 1;
                    at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Full, Rule, Search, document::Structure};

    #[test]
    fn only_what_has_changed_is_tried_again() {
        let vain = |text: &[u8]| VainRuns {
            text: Some(text.into()),
        };
        assert_eq!(VainRuns::default().changed_in(b"abcd"), 0..4);
        assert_eq!(vain(b"abcd").changed_in(b"abcd"), 4..4);
        assert_eq!(vain(b"abcd").changed_in(b"abxd"), 2..3);
        assert_eq!(vain(b"abcd").changed_in(b"xbcy"), 0..4);
        assert_eq!(vain(b"abcd").changed_in(b"abd"), 2..2);
        assert_eq!(vain(b"aaaa").changed_in(b"aa"), 2..2);
        assert_eq!(vain(b"ab").changed_in(b"abab"), 2..4);
    }

    /// Fails if a body is as long as the sixth byte says, in a code of its own, whatever follows.
    fn has_whole_body(text: &[u8]) -> bool {
        const HEAD: [u8; 5] = [0x91, 0x05, 0xf3, 0x88, 0x17];
        let Some((head, [code, body @ ..])) = text.split_at_checked(HEAD.len()) else {
            return false;
        };
        let wanted = 40 + usize::from(*code ^ 0x5a) % 64;
        let is_kept = |at: usize| !at.is_multiple_of(3) || body[at] == (at * 37 + 129) as u8;
        *head == HEAD && body.len() >= wanted && (0..40).all(is_kept)
    }

    /// Returns how many tests of runs the search makes between two others that succeed, and the
    /// size of the result.
    fn runs_of(structure: Structure) -> (Vec<usize>, usize) {
        let mut input = vec![0x91, 0x05, 0xf3, 0x88, 0x17, 0x5a ^ 30];
        input.extend((0..300).map(|at| (at * 37 + 129) as u8));
        let mut search = Full::structured(&input, structure);
        let (mut best, mut text) = (input.clone(), Vec::new());
        let mut rounds = vec![0];
        while let Some(candidate) = search.next() {
            candidate.write_into(&input, &best, &mut text);
            let is_of_runs = candidate.rule == Rule::Pass("runs");
            *rounds.last_mut().unwrap() += usize::from(is_of_runs);
            let fails = has_whole_body(&text);
            if fails {
                best.clone_from(&text);
                if !is_of_runs && *rounds.last().unwrap() > 0 {
                    rounds.push(0);
                }
            }
            search.tell(if fails { Outcome::Fail } else { Outcome::Pass });
        }
        (rounds, best.len())
    }

    #[test]
    fn runs_are_tried_in_full_once() {
        let (_, size) = runs_of(Structure::Unknown);
        let (rounds, same) = runs_of(Structure::Binary);
        assert_eq!((size, same), (72, 72));
        let [first, second] = rounds[..] else {
            panic!("{rounds:?}");
        };
        assert!(second < first / 2, "{rounds:?}");
    }

    /// Minimizes a text; returns the result, and the number of tests of the pass `stretches`.
    fn without_stretches(input: &[u8], fails: &dyn Fn(&[u8]) -> bool) -> (Vec<u8>, usize) {
        assert!(fails(input));
        let mut search = Full::structured(input, Structure::Text);
        let (mut best, mut text, mut tests) = (input.to_vec(), Vec::new(), 0);
        while let Some(candidate) = search.next() {
            candidate.write_into(input, &best, &mut text);
            tests += usize::from(candidate.rule == Rule::Pass("stretches"));
            search.tell(match fails(&text) {
                true => Outcome::Fail,
                false => Outcome::Pass,
            });
            if fails(&text) {
                best.clone_from(&text);
            }
        }
        (best, tests)
    }

    #[test]
    fn what_fails_only_at_the_beginning_of_a_block_loses_all_in_front_of_it() {
        let mut input: Vec<u8> = (0..4000).map(|at| b'a' + (at * at % 23) as u8).collect();
        input[1020..1022].copy_from_slice(b"[!");
        let fails = |text: &[u8]| text.chunks(255).any(|block| block.starts_with(b"[!"));
        let (result, tests) = without_stretches(&input, &fails);
        assert_eq!(result, b"[!");
        assert!(tests <= 4, "{tests} tests");
    }

    #[test]
    fn stretches_of_a_result_that_needs_all_of_it_take_few_tests() {
        let input: Vec<u8> = (0..400).map(|at| b'a' + (at * at % 23) as u8).collect();
        let needed = input[100..150].to_vec();
        let fails = |text: &[u8]| text.windows(50).any(|fifty| fifty == needed);
        let (result, tests) = without_stretches(&input, &fails);
        assert_eq!(result, needed);
        assert!(tests <= 1, "{tests} tests");
    }

    #[test]
    fn zeros_that_are_all_needed_end_the_search() {
        let input = [b"0123456789".repeat(40), b"\0".repeat(2)].concat();
        let fails = |text: &[u8]| text.len() >= 60;
        let (result, tests) = without_stretches(&input, &fails);
        assert_eq!((result.len(), tests <= 8), (60, true), "{tests} tests");
    }
}
