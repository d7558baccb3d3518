//! Arithmetic on deleted ranges of a text and deleted items of a list: where the remaining ones move to.

use std::ops::Range;

/// Sorts ranges, joins those that touch or overlap, and drops empty ones; returns the result.
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

/// Returns the number of positions before `at` that lie in the deleted ranges `gone`.
pub(super) fn gone_before(gone: &[Range<usize>], at: usize) -> usize {
    let before = gone
        .iter()
        .map(|gone| gone.end.min(at).saturating_sub(gone.start));
    before.sum()
}

/// Returns the number of positions of the range `place` that lie in the deleted ranges `gone`.
pub(super) fn gone_within(gone: &[Range<usize>], place: &Range<usize>) -> usize {
    gone_before(gone, place.end) - gone_before(gone, place.start)
}

/// Returns the new position that `at` has in a text after the ranges `gone` are deleted.
pub(super) fn moved(gone: &[Range<usize>], at: usize) -> usize {
    at - gone_before(gone, at)
}

/// Returns the new range that `place` has in a text after the ranges `gone` are deleted.
pub(super) fn moved_range(gone: &[Range<usize>], place: &Range<usize>) -> Range<usize> {
    moved(gone, place.start)..moved(gone, place.end)
}

/// Computes the index that each item of a list has after the deletion of the items for which `gone`
/// is true; a deleted item gets the index of the next remaining one. One more entry at the end is
/// the number of remaining items.
pub(super) fn new_indices(gone: &[bool]) -> Vec<usize> {
    let mut indices = Vec::with_capacity(gone.len() + 1);
    let mut kept = 0;
    for gone in gone {
        indices.push(kept);
        kept += usize::from(!gone);
    }
    indices.push(kept);
    indices
}

/// Removes the items of a list for which `gone`, at the same index, is true.
pub(super) fn retain<T>(items: &mut Vec<T>, gone: &[bool]) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        !gone[at - 1]
    });
}
