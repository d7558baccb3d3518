//! Which bytes of an input a minimization has kept: the current best input as pieces of the input
//! as found and new bytes, computed from the edits in the minimization log.

use std::collections::HashMap;
use std::ops::Range;

use ddfuzz_minimize::log::{Base64, EditRecord, Line, Log};

/// Limit on the work of finding out from a minimization log where each byte of a reproducer comes
/// from. The work is the sum, over all reductions, of the number of pieces of the input; if it
/// exceeds the limit, the origin of the bytes stays unknown.
const MOST_WORK: usize = 50_000_000;

/// A piece of the best input of a minimization: bytes kept from the input as found, or new bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Bytes kept from the input as found: their range in it.
    Kept(Range<usize>),
    /// New bytes, which the minimization wrote in place of others.
    New(Vec<u8>),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Kept(range) => range.len(),
            Piece::New(bytes) => bytes.len(),
        }
    }

    fn part(&self, range: Range<usize>) -> Piece {
        match self {
            Piece::Kept(whole) => Piece::Kept(whole.start + range.start..whole.start + range.end),
            Piece::New(bytes) => Piece::New(bytes[range].to_vec()),
        }
    }
}

/// Returns the pieces (ranges of the input as found, and new bytes) that the minimized input
/// consists of, computed from the reductions in the log. `None` if the reductions do not lead from
/// `original` to exactly `minimized`, or are too many to compute the pieces.
pub(super) fn lineage(log: &Log, original: &[u8], minimized: &[u8]) -> Option<Vec<Piece>> {
    let start = log.start.as_ref()?;
    if start.call.is_some() || start.difference.is_some() || start.size != original.len() as u64 {
        return None;
    }
    let mut pieces = vec![Piece::Kept(0..original.len())];
    let mut failed: HashMap<u64, &EditRecord> = HashMap::new();
    let mut work = 0;
    for (_, line) in &log.lines {
        match line {
            Line::Test(test) if test.has_failed() => drop(failed.insert(test.i, &test.edit)),
            Line::Reduce(step) => {
                pieces = edited(&pieces, failed.get(&step.i)?, original.len())?;
                failed.clear();
                work += pieces.len();
            }
            // The log has no reduction to the empty input.
            Line::End(end) if end.size == 0 => pieces.clear(),
            _ => {}
        }
        if work > MOST_WORK {
            return None;
        }
    }
    concatenate_to(&pieces, original, minimized).then_some(pieces)
}

/// Returns the byte ranges of the input as found that are kept in a reproducer, given by its
/// pieces: `[start, end]`, without the byte at `end`, sorted and joined.
pub(super) fn kept_ranges(pieces: &[Piece]) -> Vec<[u64; 2]> {
    let ranges = pieces.iter().filter_map(|piece| match piece {
        Piece::Kept(range) => Some([range.start as u64, range.end as u64]),
        Piece::New(_) => None,
    });
    let mut ranges: Vec<[u64; 2]> = ranges.collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joins = next[0] <= last[1];
        if joins {
            last[1] = last[1].max(next[1]);
        }
        joins
    });
    ranges
}

/// Returns the byte ranges of the minimized input, which consists of `pieces`, that hold new bytes
/// (bytes that do not come from the input as found): `[start, end]`, without the byte at `end`,
/// sorted.
pub(super) fn new_ranges(pieces: &[Piece]) -> Vec<[u64; 2]> {
    let mut at = 0;
    let mut ranges = Vec::new();
    for piece in pieces {
        let end = at + piece.len() as u64;
        if matches!(piece, Piece::New(_)) {
            ranges.push([at, end]);
        }
        at = end;
    }
    ranges
}

/// Returns true if the concatenation of `pieces` (ranges of the text `original`, and new bytes) is
/// the text `minimized`. Compares the sizes first, because the log may be forged and repeat parts
/// of the original without end.
fn concatenate_to(pieces: &[Piece], original: &[u8], minimized: &[u8]) -> bool {
    let sizes = pieces.iter().map(Piece::len);
    let size = sizes.fold(0_usize, usize::saturating_add);
    size == minimized.len() && bytes(pieces, original) == minimized
}

fn bytes(pieces: &[Piece], original: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Kept(range) => text.extend(&original[range.clone()]),
            Piece::New(bytes) => text.extend(bytes),
        }
    }
    text
}

/// Applies an edit from the minimization log to an input that consists of `pieces`, and returns the
/// pieces of the edited input; `None` if the byte ranges of the edit do not fit the input. `whole`
/// is the size, in bytes, of the input as found.
fn edited(pieces: &[Piece], edit: &EditRecord, whole: usize) -> Option<Vec<Piece>> {
    let changes: Vec<(usize, usize, &[u8])> = match edit {
        EditRecord::Cut(ranges) => (ranges.iter())
            .map(|[start, end]| change(*start, *end, &[]))
            .collect::<Option<_>>()?,
        EditRecord::Set(ranges) => (ranges.iter())
            .map(|(start, end, Base64(with))| change(*start, *end, with))
            .collect::<Option<_>>()?,
        EditRecord::Keep(ranges) => {
            let mut all = Vec::new();
            for [start, end] in ranges {
                let (start, end, _) = change(*start, *end, &[])?;
                all.push((end <= whole).then_some(Piece::Kept(start..end))?);
            }
            return Some(all);
        }
    };
    let mut result = Vec::new();
    let mut source = Source {
        pieces,
        at: 0,
        base: 0,
    };
    for (start, end, with) in changes {
        source.take(start, Some(&mut result))?;
        source.take(end, None)?;
        if !with.is_empty() {
            push(&mut result, Piece::New(with.to_vec()));
        }
    }
    let all = pieces.iter().map(Piece::len).sum();
    source.take(all, Some(&mut result))?;
    Some(result)
}

fn change(start: u64, end: u64, with: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    (start <= end).then_some((start, end, with))
}

/// A reader that goes once through the pieces of an input, from beginning to end, to copy those
/// that an edit keeps.
struct Source<'a> {
    /// The pieces of the input that the reader has not yet read to their end.
    pieces: &'a [Piece],
    /// Position in the input up to which the reader has read, in bytes.
    at: usize,
    /// Position in the input at which the first of `pieces` begins, in bytes.
    base: usize,
}

impl Source<'_> {
    /// Moves the reader of the input's pieces (ranges of the original, and new bytes) from the
    /// present position up to the position `to`, in bytes. Appends the pieces in between to `kept`,
    /// if given. `None` if `to` is after the end of the input.
    fn take(&mut self, to: usize, mut kept: Option<&mut Vec<Piece>>) -> Option<()> {
        if to < self.at {
            return None;
        }
        while self.at < to {
            let piece = self.pieces.first()?;
            let from = self.at - self.base;
            let until = piece.len().min(to - self.base);
            if let Some(kept) = kept.as_deref_mut()
                && from < until
            {
                push(kept, piece.part(from..until));
            }
            self.at = self.base + until;
            if until == piece.len() {
                self.base += piece.len();
                self.pieces = &self.pieces[1..];
            }
        }
        Some(())
    }
}

/// Appends a piece to `pieces`. Joins it with the last piece if both are new bytes, or if the range
/// of `piece` in the input as found begins where that of the last piece ends.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (Some(Piece::Kept(last)), Piece::Kept(next)) if last.end == next.start => {
            last.end = next.end;
        }
        (Some(Piece::New(last)), Piece::New(next)) => last.extend(next),
        (_, piece) => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[Piece]) -> Vec<u8> {
        bytes(pieces, b"0123456789")
    }

    #[test]
    fn cuts_and_replacements_are_followed_to_the_bytes_of_the_original() {
        let whole = vec![Piece::Kept(0..10)];
        let cut = edited(&whole, &EditRecord::Cut(vec![[0, 2], [5, 9]]), 10).unwrap();
        assert_eq!(text(&cut), b"2349");
        let set = EditRecord::Set(vec![(1, 3, Base64(b"ab".to_vec()))]);
        let set = edited(&cut, &set, 10).unwrap();
        assert_eq!(text(&set), b"2ab9");
        assert_eq!(kept_ranges(&set), [[2, 3], [9, 10]]);
        assert_eq!(new_ranges(&set), [[1, 3]]);
        let keep = edited(&set, &EditRecord::Keep(vec![[3, 5], [9, 10]]), 10).unwrap();
        assert_eq!(text(&keep), b"349");
    }

    #[test]
    fn pieces_that_repeat_the_original_without_end_are_not_put_together() {
        let original = vec![b'x'; 1 << 20];
        let pieces = vec![Piece::Kept(0..original.len()); 1 << 20];
        assert!(!concatenate_to(&pieces, &original, b"x"));
        assert!(concatenate_to(&pieces[..1], &original, &original));
    }

    #[test]
    fn an_insertion_removes_nothing() {
        let whole = vec![Piece::Kept(0..10)];
        let set = EditRecord::Set(vec![(4, 4, Base64(b"x".to_vec()))]);
        let set = edited(&whole, &set, 10).unwrap();
        assert_eq!(text(&set), b"0123x456789");
        assert_eq!(kept_ranges(&set), [[0, 10]]);
    }

    #[test]
    fn ranges_that_do_not_fit_have_no_lineage() {
        let whole = vec![Piece::Kept(0..10)];
        for cut in [vec![[4, 11]], vec![[5, 4]], vec![[5, 6], [1, 2]]] {
            assert_eq!(edited(&whole, &EditRecord::Cut(cut), 10), None);
        }
        assert_eq!(edited(&whole, &EditRecord::Keep(vec![[0, 11]]), 10), None);
    }
}
