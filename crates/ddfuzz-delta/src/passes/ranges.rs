//! Places of a text that go, and where that leaves the others.

use std::ops::Range;

/// Sorted, joined where they touch, without empty ones.
pub(super) fn union(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.retain(|place| !place.is_empty());
    places.sort_by_key(|place| (place.start, place.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for place in places {
        match joined.last_mut() {
            Some(last) if last.end >= place.start => last.end = last.end.max(place.end),
            _ => joined.push(place),
        }
    }
    joined
}

/// How many positions in front of `at` go.
pub(super) fn gone_before(gone: &[Range<usize>], at: usize) -> usize {
    let before = gone
        .iter()
        .map(|gone| gone.end.min(at).saturating_sub(gone.start));
    before.sum()
}

/// How many positions of a place go.
pub(super) fn gone_within(gone: &[Range<usize>], place: &Range<usize>) -> usize {
    gone_before(gone, place.end) - gone_before(gone, place.start)
}

/// Where a position is once they are gone.
pub(super) fn moved(gone: &[Range<usize>], at: usize) -> usize {
    at - gone_before(gone, at)
}

/// Where a place is once they are gone.
pub(super) fn moved_place(gone: &[Range<usize>], place: &Range<usize>) -> Range<usize> {
    moved(gone, place.start)..moved(gone, place.end)
}
