//! Arithmetic on deleted ranges of a text and deleted items of a list: where the remaining ones
//! move to.

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

/// Returns a function that takes a position in a text, and returns where the position lies after
/// the ranges `gone` are deleted. These must ascend and not overlap. It is faster than [`moved`] if
/// there are many ranges and many positions.
pub(super) fn mover(gone: &[Range<usize>]) -> impl Fn(usize) -> usize {
    let mut before = 0;
    let sums: Vec<usize> = gone
        .iter()
        .map(|gone| {
            before += gone.len();
            before - gone.len()
        })
        .collect();
    move |at| {
        let next = gone.partition_point(|gone| gone.start < at);
        match next.checked_sub(1) {
            Some(last) => at - sums[last] - (gone[last].end.min(at) - gone[last].start),
            None => at,
        }
    }
}

/// Returns true if two ranges have a position in common.
pub(super) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Returns true if the range `place` lies in one of the deleted ranges `gone`, which ascend and do
/// not touch or overlap.
pub(super) fn is_within(gone: &[Range<usize>], place: &Range<usize>) -> bool {
    let next = gone.partition_point(|gone| gone.start <= place.start);
    next > 0 && place.end <= gone[next - 1].end
}

/// Removes the items of a list whose indices lie in the ranges `cuts`.
pub(super) fn remove<T>(items: &mut Vec<T>, cuts: &[Range<usize>]) {
    let mut gone = vec![false; items.len()];
    for cut in cuts {
        gone[cut.clone()].fill(true);
    }
    retain(items, &gone);
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

/// Removes the items of a list for which the item of `gone` at the same index is true.
pub(super) fn retain<T>(items: &mut Vec<T>, gone: &[bool]) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        !gone[at - 1]
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_positions_move_as_single_ones_do() {
        let gone = [2..3, 3..6, 8..9, 12..20];
        let moved_by = mover(&gone);
        let all: Vec<usize> = (0..30).map(moved_by).collect();
        let each: Vec<usize> = (0..30).map(|at| moved(&gone, at)).collect();
        assert_eq!(all, each);
        assert_eq!(mover(&[])(7), 7);
        let mut items: Vec<usize> = (0..10).collect();
        remove(&mut items, &[0..2, 5..6, 8..10]);
        assert_eq!(items, [2, 3, 4, 6, 7]);
        for (place, expected) in [(3..6, true), (4..5, true), (1..4, false), (5..7, false)] {
            assert_eq!(is_within(&[2..6, 8..9], &place), expected, "{place:?}");
        }
    }
}
