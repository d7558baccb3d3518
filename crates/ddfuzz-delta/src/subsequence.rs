//! Longest common subsequences.

/// Which items of two sequences a longest common subsequence of them keeps, by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub first: Vec<bool>,
    pub second: Vec<bool>,
}

/// A longest common subsequence of two sequences of symbols below `symbols`.
///
/// The lengths are computed for 64 symbols at a time (Hyyrö, *Bit-parallel LCS-length computation
/// revisited*, 2004), the subsequence itself by halving the first sequence (Hirschberg 1975): time
/// O(n·m/64) however unlike the two are, and linear space.
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

/// A part of a sequence, and where it begins.
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
    /// Where each symbol stands in the second sequence: words and bits in them.
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

    /// Keeps what both begin and end with; gives what is left.
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

    /// Where to cut `second`, so that the subsequences of both halves are longest together.
    fn best_cut(&mut self, left: Part<'_>, right: Part<'_>, second: Part<'_>) -> usize {
        let before = self.lengths(left.of.iter(), second.of.iter());
        let behind = self.lengths(right.of.iter().rev(), second.of.iter().rev());
        let together = before.iter().zip(behind.iter().rev());
        let sums = together.map(|(one, other)| one + other).enumerate();
        // Of the best the first, so that equal sequences are always cut alike.
        let best = sums.max_by_key(|(cut, sum)| (*sum, usize::MAX - cut));
        best.map_or(0, |(cut, _)| cut)
    }

    /// The lengths of longest common subsequences of `first` and the first 0, 1, … of `second`.
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
        // The length grows where a bit is zero.
        let grows = |index: usize| usize::from(row[index / 64] >> (index % 64) & 1 == 0);
        let mut length = 0;
        let ahead = (0..second.len()).map(|index| {
            length += grows(index);
            length
        });
        std::iter::once(0).chain(ahead).collect()
    }
}

/// One more symbol of the first sequence: `row + (row & matches) | row & !matches`. Words without
/// matches change only where a carry reaches them.
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

/// Takes a carry into the words from where it stands up to `end`, as far as it goes; gives where
/// it stands then.
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
