//! Rounds of loops in which two runs are at points that they share: a statement may be executed as
//! often in both runs, but in rounds that do not correspond. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::alignment::Matched;
use crate::engine::Point;
use crate::engine::run::{MOST_HITS, MOST_POINTS};

/// Largest number of open calls whose loops are compared.
const DEEPEST: usize = 64;

/// A loop around a shared point, and the rounds in which both runs are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Addresses of those statements of the loop that one of the two runs has executed.
    pub statements: Vec<u64>,
    /// Number, from 1, of the round of the loop in which the passing run is at the shared point.
    pub passing: u64,
    /// Number, from 1, of the round of the loop in which the failing run is at the shared point.
    pub failing: u64,
}

/// A call that has not returned at a point: the hash of its stack, and the statements that it has
/// executed itself, in order.
struct Call {
    stack: u64,
    statements: Vec<u64>,
}

/// Returns the outermost loop around a shared point that the two runs, with all their points
/// `passing` and `failing`, are in different rounds of; `None` if there is none, or if the
/// recordings are not complete. `is_entry` tells whether a statement is the first one of its
/// function.
pub fn differing(
    [passing, failing]: [&[Point]; 2],
    at: &Matched,
    is_entry: &dyn Fn(u64) -> bool,
) -> Option<Rounds> {
    let recorded = |points: &[Point], at: usize| {
        let all = &points[..=at];
        points.len() < MOST_POINTS && all.iter().all(|it| it.nth < MOST_HITS)
    };
    if !recorded(passing, at.passing) || !recorded(failing, at.failing) {
        return None;
    }
    let left = calls(passing, at.passing, is_entry);
    let right = calls(failing, at.failing, is_entry);
    let stacks: Vec<u64> = left.iter().map(|it| it.stack).collect();
    let is_deep = left.len() > DEEPEST;
    if is_deep
        || left.len() != right.len()
        || stacks
            .iter()
            .zip(&right)
            .any(|(it, call)| *it != call.stack)
    {
        return None;
    }
    // A call that has been evaluated as an argument of another one looks like its caller.
    let goes_on = |points: &[Point], at: usize, index: usize| {
        let mut later = points[at + 1..].iter();
        let next = later.find(|it| stacks[..=index].contains(&it.stack));
        next.is_some_and(|it| it.stack == stacks[index])
    };
    let is_open = |index: usize| {
        [0, stacks.len() - 1].contains(&index)
            || goes_on(passing, at.passing, index)
            || goes_on(failing, at.failing, index)
    };
    let mut all = left.iter().zip(&right).enumerate();
    all.find_map(|(index, (one, other))| is_open(index).then(|| of_call(one, other)).flatten())
}

/// Returns the calls that have not returned when a run is at the point with the index `at`,
/// outermost first.
fn calls(points: &[Point], at: usize, is_entry: &dyn Fn(u64) -> bool) -> Vec<Call> {
    let mut open: Vec<Call> = Vec::new();
    for point in &points[..=at] {
        match open.iter().rposition(|it| it.stack == point.stack) {
            Some(index) => {
                open.truncate(index + 1);
                if is_entry(point.pc) {
                    open[index].statements.clear();
                }
            }
            None => open.push(Call {
                stack: point.stack,
                statements: Vec::new(),
            }),
        }
        if let Some(call) = open.last_mut() {
            call.statements.push(point.pc);
        }
    }
    open
}

/// Returns the outermost loop of a function that the runs are in different rounds of, from what a
/// call of the function has executed in each run.
fn of_call(one: &Call, other: &Call) -> Option<Rounds> {
    let here = *one.statements.last()?;
    if other.statements.last() != Some(&here) {
        return None;
    }
    let all = loops(one, other)?.into_iter();
    let mut around: Vec<_> = all.filter(|it| it.1.contains(&here)).collect();
    around.sort_by_key(|it| std::cmp::Reverse(it.1.len()));
    let heads: Vec<u64> = around.iter().map(|it| it.0).collect();
    let (left, right) = (rounds(one, &heads), rounds(other, &heads));
    let outer = (0..heads.len()).find(|it| left[*it] != right[*it])?;
    let (passing, failing) = (left[outer], right[outer]);
    (passing > 0 && failing > 0).then(|| Rounds {
        statements: around.swap_remove(outer).1.into_iter().collect(),
        passing,
        failing,
    })
}

/// Returns the loops that two calls of a function have executed: the statement at which each begins
/// a round, and its statements. `None` if the calls begin with different statements.
fn loops(one: &Call, other: &Call) -> Option<BTreeMap<u64, BTreeSet<u64>>> {
    let start = *one.statements.first()?;
    if other.statements.first() != Some(&start) {
        return None;
    }
    let mut before: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for pair in one.statements.windows(2).chain(other.statements.windows(2)) {
        before.entry(pair[1]).or_default().insert(pair[0]);
    }
    // What leads to `to` on ways that do not come through `head`.
    let leading = |to: u64, head: u64| {
        let mut found = BTreeSet::from([to]);
        let mut left = vec![to];
        while let Some(at) = left.pop().filter(|at| *at != head) {
            let new = before.get(&at).into_iter().flatten();
            left.extend(new.filter(|it| **it != head && found.insert(**it)));
        }
        found.insert(head);
        found
    };
    let mut all: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (head, ends) in &before {
        for end in ends {
            // The end of a round: all ways to it lead through the beginning of the round.
            let body = leading(*end, *head);
            if *head == start || !body.contains(&start) {
                all.entry(*head).or_default().extend(body);
            }
        }
    }
    Some(all)
}

/// Returns how often a call has come to each of `heads`, the first statements of loops around each
/// other (outermost first), since it has begun the latest round of the loop around.
fn rounds(call: &Call, heads: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; heads.len()];
    for statement in &call.statements {
        if let Some(index) = heads.iter().position(|it| it == statement) {
            counts[index] += 1;
            counts[index + 1..].fill(0);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a run: statement and stack; statements below 100 are entries of functions.
    fn run(points: &[(u64, u64)]) -> Vec<Point> {
        let point = |(index, (pc, stack)): (usize, &(u64, u64))| Point {
            pc: *pc,
            nth: points[..=index].iter().filter(|it| it.0 == *pc).count() as u64,
            stack: *stack,
        };
        points.iter().enumerate().map(point).collect()
    }

    fn between(passing: &[(u64, u64)], failing: &[(u64, u64)]) -> Option<[u64; 2]> {
        let (passing, failing) = (run(passing), run(failing));
        let at = Matched {
            in_passing: passing[passing.len() - 1],
            in_failing: failing[failing.len() - 1],
            passing: passing.len() - 1,
            failing: failing.len() - 1,
        };
        let found = differing([&passing, &failing], &at, &|pc| pc < 100);
        found.map(|it| [it.passing, it.failing])
    }

    #[test]
    fn rounds_of_the_loop_around_are_compared() {
        // A loop from 110 to 140 with another one from 120 to 130 in it.
        let start = [(1, 0), (110, 0)];
        let inner = [(120, 0), (130, 0)];
        let next = [(140, 0), (110, 0)];
        let failing = [&start[..], &inner, &inner, &inner].concat();
        let passing = [&start[..], &inner, &inner, &next, &inner].concat();
        assert_eq!(between(&passing, &failing), Some([2, 1]));
        assert_eq!(between(&failing, &failing), None);
        // The same round outside, another one inside.
        let longer = [&failing[..], &next, &inner].concat();
        assert_eq!(between(&passing, &longer), None);
        let longer = [&longer[..], &inner].concat();
        assert_eq!(between(&passing, &longer), Some([1, 2]));
        // The same loops, with the outer one behind the inner one in the code.
        let start = [(1, 0), (510, 0)];
        let next = [(540, 0), (510, 0)];
        let failing = [&start[..], &inner, &inner, &inner].concat();
        let passing = [&start[..], &inner, &inner, &next, &inner].concat();
        assert_eq!(between(&passing, &failing), Some([2, 1]));
        // A loop that is over, and a condition, are no rounds.
        let passing = [(1, 0), (110, 0), (120, 0), (110, 0), (120, 0), (150, 0)];
        assert_eq!(between(&passing, &[(1, 0), (110, 0), (150, 0)]), None);
        let passing = [(1, 0), (110, 0), (115, 0), (120, 0)];
        assert_eq!(between(&passing, &[(1, 0), (110, 0), (120, 0)]), None);
    }

    #[test]
    fn rounds_of_callers_are_compared_and_calls_begin_anew() {
        let call = [(110, 0), (2, 7), (210, 7)];
        let once = [&[(1, 0)][..], &call].concat();
        let twice = [&once[..], &call].concat();
        assert_eq!(between(&twice, &once), Some([2, 1]));
        // Without a loop around, another call is another execution.
        let other = [
            (1, 0),
            (110, 0),
            (2, 7),
            (210, 7),
            (120, 0),
            (2, 7),
            (210, 7),
        ];
        assert_eq!(between(&other, &other), None);
    }
}
