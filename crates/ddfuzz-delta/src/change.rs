//! What makes two texts differ.

use std::collections::HashMap;
use std::ops::Range;

use super::pieces::lines;
use super::subsequence::longest;

/// Texts of at most this many bytes are compared byte by byte as a whole.
const BYTE_BY_BYTE: usize = 64 * 1024;

/// A textual change, one of the circumstances in which a failing text differs from a passing one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The range of the passing text that it removes, in bytes.
    pub at: Range<usize>,
    /// The range of the failing text that it puts there, in bytes.
    pub with: Range<usize>,
}

impl Change {
    /// Bytes that it removes and inserts.
    pub fn size(&self) -> usize {
        self.at.len() + self.with.len()
    }

    /// Each byte that it removes or inserts as a change of its own; those that remove come first.
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

/// The changes that lead from `passing` to `failing`, ascending, no two of them touching.
///
/// Where both have at most 64 KiB they remove and insert as few bytes as any changes can. Larger
/// texts are compared line by line first, then byte by byte inside the lines that differ; where
/// more than 64 KiB differ in one place, that place is compared piece by piece.
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

/// Writes `passing` with these changes, which ascend, into `text`, which is cleared first.
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

/// Where each line begins, and where the last one ends.
fn starts(lines: &[&[u8]]) -> Vec<usize> {
    let ends = lines.iter().scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// What a longest common subsequence leaves of both.
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
        // The next item of both is kept, unless this was the end.
        at += removed + 1;
        with += inserted + 1;
    }
    found
}

/// Cuts a change into pieces whose bytes can be compared: equally many of both sides.
fn pieces(change: &Change) -> impl Iterator<Item = Change> {
    let count = change
        .at
        .len()
        .max(change.with.len())
        .div_ceil(BYTE_BY_BYTE);
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
