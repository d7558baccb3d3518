//! Guesses which bytes are not needed: if a sweep (deletion of bytes block by block) has deleted
//! equal bytes at two places, the same bytes are probably not needed at other places.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::passes::current_best::CurrentBest;

/// Maximum size, in bytes, of texts in which deleted bytes are remembered, in order to delete equal
/// bytes at other places.
const LARGEST: usize = 1 << 14;
/// Maximum length, in bytes, of a deleted range that is remembered, in order to delete equal bytes
/// at other places.
const LONGEST: usize = 16;
/// Minimum number of places at which bytes equal to deleted ones must stand; at fewer places, no
/// test deletes them together.
const WORTHWHILE: usize = 3;

/// A sequence of bytes of a text, with the byte before it and the byte after it.
struct Run<'a> {
    before: Option<u8>,
    bytes: Cow<'a, [u8]>,
    after: Option<u8>,
}

impl Run<'_> {
    fn of(text: &[u8], place: Range<usize>) -> Run<'_> {
        Run {
            before: place.start.checked_sub(1).map(|at| text[at]),
            bytes: Cow::Borrowed(&text[place.clone()]),
            after: text.get(place.end).copied(),
        }
    }
}

/// A recorder of the sequences of bytes that a sweep over a text (deletion of bytes block by block)
/// has deleted. It guesses at which other places equal sequences are not needed.
#[derive(Default)]
pub(super) struct Alike {
    /// The deleted sequences of bytes, in the order in which the sweep (a walk over the text that
    /// deletes bytes) has met them.
    deleted: Vec<Run<'static>>,
    /// Number of wrong guesses so far. Each wrong guess doubles the number of equal deleted
    /// sequences that must be known for the next guess.
    refused: u32,
}

impl Alike {
    /// Returns the current best text, to be passed to [`record_deleted`](Alike::record_deleted)
    /// once bytes of that text were deleted. Returns `None` if deletions are not to be recorded:
    /// the text is larger than [`LARGEST`], or passes may not guess from deleted bytes
    /// ([`CurrentBest::repeats_deletions`]).
    pub fn watch(work: &mut CurrentBest) -> Option<Arc<[u8]>> {
        let may_learn = work.repeats_deletions() && work.len() <= LARGEST;
        may_learn.then(|| work.text())
    }

    /// Records that a sweep (a walk over the text that deletes bytes of it) has deleted the range
    /// `place` of `text`. Only sequences of at most [`LONGEST`] bytes are recorded.
    pub fn record_deleted(&mut self, text: &[u8], place: Range<usize>) {
        if (1..=LONGEST).contains(&place.len()) {
            let run = Run::of(text, place);
            let bytes = Cow::Owned(run.bytes.into_owned());
            self.deleted.push(Run { bytes, ..run });
        }
    }

    /// Records that the last guess was wrong, so that the next guess requires twice as many equal
    /// deleted sequences.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Returns ranges of the current best text, all inside of `rest`, that are probably not needed,
    /// because they equal deleted bytes ([`Alike::places`]); `None` if nothing can be guessed.
    pub fn guess(&self, work: &mut CurrentBest, rest: Range<usize>) -> Option<Vec<Range<usize>>> {
        self.places(&Alike::watch(work)?, rest)
    }

    /// Returns the ranges in `rest` of `text` whose bytes equal the sequence that was deleted last,
    /// and that stand beside the same bytes as that sequence. Three ways are tried in order: the
    /// same byte before and after; the same byte before; the same byte after. A way is enough if at
    /// least [`WORTHWHILE`] ranges are found, and if sufficiently many deleted sequences are alike
    /// in this way, too: two, and twice as many after each wrong guess. `None` if no way is enough.
    fn places(&self, text: &[u8], rest: Range<usize>) -> Option<Vec<Range<usize>>> {
        let last = self.deleted.last()?;
        let needed = 1usize << (self.refused + 1).min(16);
        let [both, before, after] = [(true, true), (true, false), (false, true)];
        [both, before, after]
            .into_iter()
            .find_map(|(before, after)| {
                let is_like = |one: &Run<'_>| {
                    one.bytes == last.bytes
                        && (!before || one.before == last.before)
                        && (!after || one.after == last.after)
                };
                if self.deleted.iter().filter(|one| is_like(one)).count() < needed {
                    return None;
                }
                let (mut places, mut at) = (Vec::new(), rest.start);
                while at + last.bytes.len() <= rest.end {
                    let place = at..at + last.bytes.len();
                    let is_here = is_like(&Run::of(text, place.clone()));
                    at = if is_here { place.end } else { at + 1 };
                    if is_here {
                        places.push(place);
                    }
                }
                (places.len() >= WORTHWHILE).then_some(places)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::Alike;

    const TEXT: &[u8] = b"a b, a b, a b, a c, a b, a b";

    #[test]
    fn places_with_the_same_neighbors_are_guessed_first() {
        let mut alike = Alike::default();
        alike.record_deleted(TEXT, 26..27);
        assert_eq!(alike.places(TEXT, 0..25), None);
        alike.record_deleted(TEXT, 21..22);
        assert_eq!(alike.places(TEXT, 0..20), Some(vec![1..2, 6..7, 11..12]));
        // A wrong guess takes as many again.
        alike.refuse();
        assert_eq!(alike.places(TEXT, 0..20), None);
        // With one common neighbor.
        alike.record_deleted(TEXT, 16..17);
        alike.record_deleted(TEXT, 11..12);
        assert_eq!(alike.places(TEXT, 0..11), None);
        assert_eq!(alike.places(TEXT, 0..15), Some(vec![1..2, 6..7, 11..12]));
    }
}
