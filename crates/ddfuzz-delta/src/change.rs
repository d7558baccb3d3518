//! The changes between two texts, computed from a longest common subsequence.

use std::{collections::HashMap, ops::Range};

use crate::sequence::lines;

/// Maximum size, in bytes, of two texts that are compared byte by byte; if one of them is larger,
/// they are compared by lines first.
const BYTE_BY_BYTE: usize = 64 * 1024;

/// Where two texts differ in at most this many bytes at one place, these bytes are compared in
/// pieces of [`BYTE_BY_BYTE`] bytes. A place that is `k` times as large is cut into pieces of a
/// `k`-th of [`BYTE_BY_BYTE`] bytes, because the time to compare two pieces grows with the square
/// of their size.
const IN_LARGE_PIECES: usize = 1 << 20;

/// Minimum size, in bytes, of the pieces into which a large place that differs between two texts is
/// cut, to be compared piece by piece.
const LEAST_PIECE: usize = 256;

/// A textual change from a passing text to a failing one: some bytes are removed, and others are
/// inserted in their place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The removed bytes, as a range of the passing text; empty for an insertion.
    pub at: Range<usize>,
    /// The inserted bytes, as a range of the failing text; empty for a removal.
    pub with: Range<usize>,
}

impl Change {
    /// Returns the number of removed bytes plus the number of inserted bytes.
    pub fn size(&self) -> usize {
        self.at.len() + self.with.len()
    }

    /// Splits this change into changes of one byte each, first the removals, then the insertions.
    pub fn bytes(&self) -> impl Iterator<Item = Change> + '_ {
        let removed = self.at.clone().map(|at| Change {
            at: at..at + 1,
            with: self.with.start..self.with.start,
        });
        let inserted = self.with.clone().map(|with| Change {
            at: self.at.end..self.at.end,
            with: with..with + 1,
        });
        removed.chain(inserted)
    }

    fn moved(self, at: usize, with: usize) -> Change {
        Change {
            at: self.at.start + at..self.at.end + at,
            with: self.with.start + with..self.with.end + with,
        }
    }
}

/// Computes the single change that turns `passing` into `failing`: it replaces what is between the
/// longest common beginning of both texts and the longest common end of their rests.
///
/// ```
/// use ddfuzz_delta::one_change;
///
/// let change = one_change(b"a small cat", b"a smaller bat");
/// assert_eq!((change.at, change.with), (7..9, 7..11));
/// ```
pub fn one_change(passing: &[u8], failing: &[u8]) -> Change {
    let same = |(one, other): &(&u8, &u8)| one == other;
    let front = passing.iter().zip(failing).take_while(same).count();
    let rests = [passing, failing].map(|text| text[front..].iter().rev());
    let [rest, other_rest] = rests;
    let back = rest.zip(other_rest).take_while(same).count();
    Change {
        at: front..passing.len() - back,
        with: front..failing.len() - back,
    }
}

/// Computes the changes that turn `passing` into `failing`, in ascending order; no two of them
/// touch.
///
/// If both texts have at most 64 KiB, the changes remove and insert as few bytes as possible.
/// Larger texts are compared by lines first, and then by bytes within the lines that differ. A
/// place in which more than 64 KiB differ is compared piece by piece: in pieces of 64 KiB, and in
/// smaller ones if more than 1 MiB differ.
///
/// ```
/// use ddfuzz_delta::changes;
///
/// let found = changes(b"a small cat", b"a smaller bat");
/// let ranges: Vec<_> = found.into_iter().map(|change| (change.at, change.with)).collect();
/// assert_eq!(ranges, [(7..7, 7..9), (8..9, 10..11)]);
/// ```
pub fn changes(passing: &[u8], failing: &[u8]) -> Vec<Change> {
    if passing.len().max(failing.len()) <= BYTE_BY_BYTE {
        return by_bytes(passing, failing);
    }
    let mut found: Vec<Change> = Vec::new();
    for lines in by_lines(passing, failing) {
        for piece in pieces(&lines) {
            let within = by_bytes(&passing[piece.at.clone()], &failing[piece.with.clone()]);
            for change in within {
                let change = change.moved(piece.at.start, piece.with.start);
                match found.last_mut() {
                    Some(last)
                        if last.at.end == change.at.start && last.with.end == change.with.start =>
                    {
                        last.at.end = change.at.end;
                        last.with.end = change.with.end;
                    }
                    _ => found.push(change),
                }
            }
        }
    }
    found
}

/// Applies `changes`, whose inserted bytes are ranges of `failing`, to the text `passing`, and
/// writes the result into `text`, which is cleared first. The changes must be in ascending order.
///
/// ```
/// use ddfuzz_delta::{Change, Mode, Outcome, apply, changes, dd};
///
/// let (passing, failing) = (b"size 4, depth 1", b"size 7, depth 9");
/// let mut text = Vec::new();
/// // Fails if the depth is more than 5.
/// let isolated = dd(&changes(passing, failing), Mode::Isolate, |kept: &[Change]| {
///     apply(passing, failing, kept, &mut text);
///     match text.ends_with(b"9") {
///         true => Outcome::Fail,
///         false => Outcome::Pass,
///     }
/// })?;
/// assert_eq!(&failing[isolated.difference[0].with.clone()], b"9");
/// # Ok::<(), ddfuzz_delta::AxiomError>(())
/// ```
pub fn apply<'a>(
    passing: &[u8],
    failing: &[u8],
    changes: impl IntoIterator<Item = &'a Change>,
    text: &mut Vec<u8>,
) {
    text.clear();
    let mut from = 0;
    for change in changes {
        text.extend_from_slice(&passing[from..change.at.start]);
        text.extend_from_slice(&failing[change.with.clone()]);
        from = change.at.end;
    }
    text.extend_from_slice(&passing[from..]);
}

fn by_bytes(passing: &[u8], failing: &[u8]) -> Vec<Change> {
    let symbols = |text: &[u8]| -> Vec<u32> { text.iter().map(|byte| u32::from(*byte)).collect() };
    between(&symbols(passing), &symbols(failing), 256)
}

fn by_lines(passing: &[u8], failing: &[u8]) -> Vec<Change> {
    let (old, new) = (lines(passing), lines(failing));
    let mut numbers = HashMap::new();
    let mut symbols = |lines: &[&'_ [u8]]| -> Vec<u32> {
        let number = |line: &&[u8]| {
            let next = numbers.len() as u32;
            *numbers.entry(line.to_vec()).or_insert(next)
        };
        lines.iter().map(number).collect()
    };
    let (first, second) = (symbols(&old), symbols(&new));
    let (old, new) = (starts(&old), starts(&new));
    let found = between(&first, &second, numbers.len());
    let in_bytes = |change: Change| Change {
        at: old[change.at.start]..old[change.at.end],
        with: new[change.with.start]..new[change.with.end],
    };
    found.into_iter().map(in_bytes).collect()
}

/// Returns the offsets, in bytes, at which `lines` begin in their concatenation, followed by the
/// offset at which the last line ends.
fn starts(lines: &[&[u8]]) -> Vec<usize> {
    let ends = lines.iter().scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Computes the changes that turn the sequence of symbols `first` into `second`: all items that
/// their longest common subsequence does not contain are removed or inserted. Symbols are numbers
/// below `symbols`.
fn between(first: &[u32], second: &[u32], symbols: usize) -> Vec<Change> {
    let kept = longest(first, second, symbols);
    let gone = |kept: &[bool], from: usize| kept[from..].iter().take_while(|kept| !**kept).count();
    let (mut at, mut with) = (0, 0);
    let mut found = Vec::new();
    while at < first.len() || with < second.len() {
        let (removed, inserted) = (gone(&kept.first, at), gone(&kept.second, with));
        if removed + inserted > 0 {
            found.push(Change {
                at: at..at + removed,
                with: with..with + inserted,
            });
        }
        // Both sequences keep their next item, unless they have ended.
        at += removed + 1;
        with += inserted + 1;
    }
    found
}

/// Returns a large change cut into pieces that are small enough to compare byte by byte: its
/// removed and its inserted bytes are cut into the same number of pieces, which are paired in
/// order.
fn pieces(change: &Change) -> impl Iterator<Item = Change> {
    let differing = change.at.len().max(change.with.len());
    let times_larger = differing.div_ceil(IN_LARGE_PIECES).max(1);
    let count = differing.div_ceil((BYTE_BY_BYTE / times_larger).max(LEAST_PIECE));
    let Change { at, with } = change.clone();
    (0..count).map(move |index| {
        let piece = |range: &Range<usize>| {
            let part = super::part(range.len(), count, index);
            range.start + part.start..range.start + part.end
        };
        Change {
            at: piece(&at),
            with: piece(&with),
        }
    })
}

/// A longest common subsequence of two sequences: for each item of either sequence, true if the
/// subsequence contains the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub first: Vec<bool>,
    pub second: Vec<bool>,
}

/// Computes a longest common subsequence of two sequences of symbols less than `symbols`.
///
/// Lengths are computed 64 symbols at a time (Hyyrö, *Bit-parallel LCS-length computation
/// revisited*, 2004); the subsequence is found by halving the first sequence (Hirschberg 1975). For
/// lengths n and m the time is O(n·m/64) and the space is linear.
pub(super) fn longest(first: &[u32], second: &[u32], symbols: usize) -> Kept {
    let mut search = Lcs {
        matches: vec![Vec::new(); symbols],
        kept: Kept {
            first: vec![false; first.len()],
            second: vec![false; second.len()],
        },
    };
    search.solve(Part { at: 0, of: first }, Part { at: 0, of: second });
    search.kept
}

/// A contiguous part of a sequence, with its start position `at` in the whole sequence.
#[derive(Clone, Copy)]
struct Part<'a> {
    at: usize,
    of: &'a [u32],
}

impl Part<'_> {
    fn split(self, index: usize) -> (Self, Self) {
        let (left, right) = self.of.split_at(index);
        let behind = Part {
            at: self.at + index,
            of: right,
        };
        (Part { of: left, ..self }, behind)
    }
}

struct Lcs {
    /// For each symbol its positions in the second sequence, as a bit set: words of 64 bits with
    /// the indices of the words.
    matches: Vec<Vec<(usize, u64)>>,
    kept: Kept,
}

impl Lcs {
    fn keep(&mut self, first: usize, second: usize) {
        self.kept.first[first] = true;
        self.kept.second[second] = true;
    }

    fn solve(&mut self, first: Part<'_>, second: Part<'_>) {
        let (first, second) = self.keep_ends(first, second);
        match (first.of, second.of) {
            ([], _) | (_, []) => {}
            ([only], many) => {
                if let Some(index) = many.iter().position(|symbol| symbol == only) {
                    self.keep(first.at, second.at + index);
                }
            }
            _ => {
                let (left, right) = first.split(first.of.len() / 2);
                let cut = self.best_cut(left, right, second);
                let (before, behind) = second.split(cut);
                self.solve(left, before);
                self.solve(right, behind);
            }
        }
    }

    /// Records that the common prefix and the common suffix of `first` and `second`, which are
    /// parts of the two compared sequences, belong to the common subsequence. Returns what is left
    /// of `first` and of `second` without that prefix and suffix.
    fn keep_ends<'a>(&mut self, first: Part<'a>, second: Part<'a>) -> (Part<'a>, Part<'a>) {
        let equal = |(one, other): &(&u32, &u32)| one == other;
        let begin = first.of.iter().zip(second.of).take_while(equal).count();
        (0..begin).for_each(|index| self.keep(first.at + index, second.at + index));
        let (first, second) = (first.split(begin).1, second.split(begin).1);
        let backwards = first.of.iter().rev().zip(second.of.iter().rev());
        let end = backwards.take_while(equal).count();
        let (first, last_of_first) = first.split(first.of.len() - end);
        let (second, last_of_second) = second.split(second.of.len() - end);
        (0..end).for_each(|index| self.keep(last_of_first.at + index, last_of_second.at + index));
        (first, second)
    }

    /// Returns the position at which to cut `second` in two, so that two longest common
    /// subsequences are as long as possible in sum: that of `left` with the first piece, and that
    /// of `right` with the second piece.
    fn best_cut(&mut self, left: Part<'_>, right: Part<'_>, second: Part<'_>) -> usize {
        let before = self.lengths(left.of.iter(), second.of.iter());
        let behind = self.lengths(right.of.iter().rev(), second.of.iter().rev());
        let together = before.iter().zip(behind.iter().rev());
        let sums = together.map(|(one, other)| one + other).enumerate();
        // The first of several best cuts, so that equal sequences are always cut alike.
        let best = sums.max_by_key(|(cut, sum)| (*sum, usize::MAX - cut));
        best.map_or(0, |(cut, _)| cut)
    }

    /// Computes the lengths of the longest common subsequences of `first` with each prefix of
    /// `second`, shortest prefix first.
    fn lengths<'a>(
        &mut self,
        first: impl Iterator<Item = &'a u32>,
        second: impl ExactSizeIterator<Item = &'a u32> + Clone,
    ) -> Vec<usize> {
        for (index, symbol) in second.clone().enumerate() {
            let (word, bit) = (index / 64, 1u64 << (index % 64));
            let list = &mut self.matches[*symbol as usize];
            match list.last_mut() {
                Some((last, bits)) if *last == word => *bits |= bit,
                _ => list.push((word, bit)),
            }
        }
        let mut row = vec![u64::MAX; second.len().div_ceil(64)];
        for symbol in first {
            advance(&mut row, &self.matches[*symbol as usize]);
        }
        for symbol in second.clone() {
            self.matches[*symbol as usize].clear();
        }
        // The length grows at each zero bit.
        let grows = |index: usize| usize::from(row[index / 64] >> (index % 64) & 1 == 0);
        let mut length = 0;
        let ahead = (0..second.len()).map(|index| {
            length += grows(index);
            length
        });
        std::iter::once(0).chain(ahead).collect()
    }
}

/// Updates the bit row of Hyyrö's algorithm for the length of a longest common subsequence by one
/// more symbol of the first sequence: `row + (row & matches) | row & !matches`. A word without
/// matches changes only if a carry reaches it.
fn advance(row: &mut [u64], matches: &[(usize, u64)]) {
    let mut carry = None;
    for &(word, bits) in matches {
        carry = carry_on(row, carry, word).filter(|at| *at == word);
        let old = row[word];
        let (sum, over) = old.overflowing_add(old & bits);
        let (sum, again) = sum.overflowing_add(u64::from(carry.is_some()));
        row[word] = sum | (old & !bits);
        carry = (over || again).then_some(word + 1);
    }
    carry_on(row, carry, row.len());
}

/// Adds a carry bit to `row`, a bit row in words of 64 bits, at the word with the index `carry`; a
/// word that overflows passes the carry on to the next one. Returns `Some(end)` if the carry
/// reaches the word with the index `end`; `None` if `carry` is `None`, or a word before `end` takes
/// it up.
fn carry_on(row: &mut [u64], carry: Option<usize>, end: usize) -> Option<usize> {
    let mut at = carry?;
    while at < end {
        let full = row[at] == u64::MAX;
        row[at] |= row[at].wrapping_add(1);
        if !full {
            return None;
        }
        at += 1;
    }
    Some(at)
}
