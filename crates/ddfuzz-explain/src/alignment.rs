//! Matches the points of two runs.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use crate::engine::run::{MOST_HITS, MOST_POINTS};
use crate::engine::{Point, Side};

/// A pair of corresponding points of the passing and the failing run: executions of the same
/// statement with the same stack. The runs may have executed the statement different numbers of
/// times before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched {
    /// The point as the passing run reaches it: statement, number of arrivals, and stack.
    pub in_passing: Point,
    /// The point as the failing run reaches it: statement, number of arrivals, and stack.
    pub in_failing: Point,
    /// Index of the point (execution of a statement) among all recorded points of the passing run.
    pub passing: usize,
    /// Index of the point (execution of a statement) among all recorded points of the failing run.
    pub failing: usize,
}

/// Returns the pairs of corresponding points (statement executions) of two runs: in both runs the
/// same statement is executed with the same stack. The pairs are in the order of time.
pub fn matched(passing: &[Point], failing: &[Point]) -> Vec<Matched> {
    let place = |point: &Point| (point.pc, point.stack);
    let places = |points: &[Point]| points.iter().map(place).collect::<Vec<_>>();
    let found = common(&places(passing), &places(failing)).into_iter();
    let matched = found.map(|(left, right)| Matched {
        in_passing: passing[left],
        in_failing: failing[right],
        passing: left,
        failing: right,
    });
    matched.collect()
}

/// Finds where two runs part before the point with the index `index` of the run `side`: returns the
/// last of the pairs `matched` (points that both runs share) that comes before it. `None` if the
/// point is shared itself, if no shared point comes before it, if both runs execute the same
/// statement right after the last pair, or if a recording is cut off, so that a shared point may be
/// missing.
pub fn parting(
    matched: &[Matched],
    [passing, failing]: [&[Point]; 2],
    side: Side,
    index: usize,
) -> Option<Matched> {
    let own = |it: &Matched| match side {
        Side::Passing => it.passing,
        Side::Failing => it.failing,
    };
    let before = matched.partition_point(|it| own(it) < index);
    if matched.get(before).is_some_and(|it| own(it) == index) {
        return None;
    }
    let last = matched[..before].last()?;
    let next = [
        passing.get(last.passing + 1)?,
        failing.get(last.failing + 1)?,
    ];
    let is_cut = |points: &[Point], pc: u64| {
        points.len() >= MOST_POINTS || (points.iter()).any(|it| it.pc == pc && it.nth >= MOST_HITS)
    };
    let parts = (next[0].pc, next[0].stack) != (next[1].pc, next[1].stack);
    let is_known = !is_cut(passing, next[1].pc) && !is_cut(failing, next[0].pc);
    (parts && is_known).then_some(*last)
}

/// Pairs equal elements of two sequences, and returns the pairs of indices, ascending in both. The
/// common beginning is paired one by one. In the rest, the n-th occurrence of an element is paired
/// with its n-th occurrence in the other sequence, counted from the front or from the back, as far
/// as the order allows. Each gap between two pairs is then treated in the same way.
fn common<T: Eq + Hash>(one: &[T], other: &[T]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut gaps = vec![(0..one.len(), 0..other.len())];
    while let Some((mut left, mut right)) = gaps.pop() {
        let both = left.clone().zip(right.clone());
        let is_same = |pair: &(usize, usize)| one[pair.0] == other[pair.1];
        let same: Vec<(usize, usize)> = both.take_while(is_same).collect();
        (left.start, right.start) = (left.start + same.len(), right.start + same.len());
        found.extend(same);
        let pairs = increasing(&candidates(one, other, &left, &right));
        if pairs.is_empty() {
            continue;
        }
        let mut from = (left.start, right.start);
        for pair in pairs.iter().copied().chain([(left.end, right.end)]) {
            if from.0 < pair.0 && from.1 < pair.1 {
                gaps.push((from.0..pair.0, from.1..pair.1));
            }
            from = (pair.0 + 1, pair.1 + 1);
        }
        found.extend(pairs);
    }
    found.sort_unstable();
    found
}

/// Returns pairs of indices of equal elements, in the part `left` of the sequence `one` and the
/// part `right` of `other`. The n-th occurrence of an element in one part is paired with its n-th
/// in the other part, counted once from the front and once from the back. The pairs ascend by their
/// first index; pairs with the same first index descend by the second, so that an ascending
/// subsequence takes at most one of them.
fn candidates<T: Eq + Hash>(
    one: &[T],
    other: &[T],
    left: &Range<usize>,
    right: &Range<usize>,
) -> Vec<(usize, usize)> {
    let mut places: HashMap<&T, [Vec<usize>; 2]> = HashMap::new();
    for (side, elements, part) in [(0, one, left), (1, other, right)] {
        for at in part.clone() {
            places.entry(&elements[at]).or_default()[side].push(at);
        }
    }
    let mut pairs = Vec::new();
    for [lefts, rights] in places.values() {
        let front = lefts.iter().zip(rights);
        let back = lefts.iter().rev().zip(rights.iter().rev());
        pairs.extend(front.chain(back).map(|(left, right)| (*left, *right)));
    }
    pairs.sort_unstable_by_key(|(left, right)| (*left, std::cmp::Reverse(*right)));
    pairs.dedup();
    pairs
}

/// Returns the longest subsequence of `pairs` in which the second indices ascend. The pairs are in
/// the order of their first indices. Of several longest subsequences, one that ends with the least
/// second index is returned.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) if pairs[*end].1 == pair.1 => {}
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        found.push(pairs[index]);
        at = before[index];
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pcs: &[u64]) -> Vec<Point> {
        let mut hits = HashMap::new();
        let point = |pc: &u64| {
            let nth = hits.entry(*pc).or_insert(0);
            *nth += 1;
            Point {
                pc: *pc,
                nth: *nth,
                stack: 0,
            }
        };
        pcs.iter().map(point).collect()
    }

    fn pairs(passing: &[u64], failing: &[u64]) -> Vec<(usize, usize)> {
        let found = matched(&run(passing), &run(failing));
        found.iter().map(|it| (it.passing, it.failing)).collect()
    }

    #[test]
    fn contradicting_orders_are_left_out() {
        assert_eq!(
            pairs(&[1, 2, 3, 4, 5], &[1, 4, 2, 3, 5, 6]),
            [(0, 0), (1, 2), (2, 3), (4, 4)]
        );
        assert!(matched(&run(&[1]), &[]).is_empty());
    }

    #[test]
    fn runs_part_before_what_only_one_executes() {
        let parted = |passing: &[u64], failing: &[u64], side, index| {
            let (passing, failing) = (run(passing), run(failing));
            let matched = matched(&passing, &failing);
            parting(&matched, [&passing, &failing], side, index).map(|it| it.in_passing.pc)
        };
        let (passing, failing) = ([1, 2, 3, 9], [1, 2, 7, 8, 9]);
        assert_eq!(parted(&passing, &failing, Side::Failing, 3), Some(2));
        assert_eq!(parted(&passing, &failing, Side::Passing, 2), Some(2));
        // Both execute it; nothing is shared before it; the failing run ends there.
        assert_eq!(parted(&passing, &failing, Side::Failing, 4), None);
        assert_eq!(parted(&[5, 1], &[6, 1], Side::Failing, 0), None);
        assert_eq!(parted(&[1, 2], &[1], Side::Passing, 1), None);
        // Later arrivals at 7 are not recorded.
        let often = [[1].as_slice(), &[7; MOST_HITS as usize], &[2, 3, 9]].concat();
        let last = often.len() + 1;
        let other = [&often[..often.len() - 2], &[7, 4, 9]].concat();
        assert_eq!(parted(&often, &other, Side::Failing, last - 2), None);
    }

    #[test]
    fn a_statement_that_one_run_executes_oftener_does_not_shift_what_follows() {
        // A loop over 7 and 8 that calls 9 once more, in its second round.
        let passing = [1, 7, 9, 8, 7, 9, 8, 7, 9, 8, 2];
        let failing = [1, 7, 9, 8, 7, 9, 9, 8, 7, 9, 8, 2];
        let found = pairs(&passing, &failing);
        assert_eq!(found.len(), passing.len());
        assert_eq!(found.last(), Some(&(10, 11)));
        assert!(found.contains(&(7, 8)), "{found:?}");
        // A loop that ends in its second round, where the other run goes on.
        let found = pairs(
            &[1, 7, 8, 9, 7, 8, 5, 9, 7, 8, 9, 2],
            &[1, 7, 8, 9, 7, 8, 9],
        );
        assert_eq!(found[4..], [(4, 4), (5, 5), (7, 6)]);
        // Different statements behind different ones.
        let found = pairs(&[1, 2, 5, 1, 2, 3, 4], &[1, 2, 6, 6, 1, 2, 2, 3, 4]);
        assert_eq!(found.len(), 6, "{found:?}");
    }
}
