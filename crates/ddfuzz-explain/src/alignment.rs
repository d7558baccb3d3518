//! Which points of two runs are the same.

use std::collections::HashMap;

use crate::engine::Point;

/// A point that both runs go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched {
    /// The point.
    pub point: Point,
    /// Its index in the passing run.
    pub passing: usize,
    /// Its index in the failing run.
    pub failing: usize,
}

/// Matches the points of two runs: equal statements, reached equally often, with equal stacks. The
/// result is in the order of both runs; where the orders contradict each other, the longest part
/// that does not.
pub fn matched(passing: &[Point], failing: &[Point]) -> Vec<Matched> {
    let known: HashMap<&Point, usize> = failing
        .iter()
        .enumerate()
        .map(|(at, point)| (point, at))
        .collect();
    let mut pairs = Vec::new();
    for (at, point) in passing.iter().enumerate() {
        if let Some(failing) = known.get(point) {
            pairs.push(Matched {
                point: *point,
                passing: at,
                failing: *failing,
            });
        }
    }
    increasing(&pairs)
}

/// The longest part of the pairs whose indices in the failing run ascend.
fn increasing(pairs: &[Matched]) -> Vec<Matched> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].failing < pair.failing);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
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

    #[test]
    fn contradicting_orders_are_left_out() {
        let point = |pc| Point {
            pc,
            nth: 1,
            stack: 0,
        };
        let run = |pcs: &[u64]| pcs.iter().map(|pc| point(*pc)).collect::<Vec<_>>();
        let found = matched(&run(&[1, 2, 3, 4, 5]), &run(&[1, 4, 2, 3, 5, 6]));
        let pcs: Vec<u64> = found.iter().map(|pair| pair.point.pc).collect();
        assert_eq!(pcs, [1, 2, 3, 5]);
        assert!(matched(&run(&[1]), &[]).is_empty());
    }
}
