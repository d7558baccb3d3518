//! The least cover, by branch and bound.

use super::bound::{Bound, RowPrices, bound};
use super::matrix::{Column, Matrix};
use super::reduce::reduce;

/// How many rounds the bound of the whole has, and those of its branches.
const ROUNDS: (u32, u32) = (400, 40);
/// How deep branches go: each stands on the stack.
const DEEPEST: u32 = 150;

/// A cover, and what is proved of it.
pub(super) struct Solved {
    /// The columns, in no order.
    pub cover: Vec<Column>,
    pub weight: u64,
    /// No cover costs less.
    pub lower: u64,
}

struct Search {
    prices: RowPrices,
    nodes: u32,
    steps: Steps,
}

/// A cover of all rows, and a lower bound: both are the least weight unless nodes or steps do not
/// suffice.
pub(super) fn solve(matrix: Matrix, nodes: u32, steps: u64) -> Solved {
    let names = matrix
        .names
        .iter()
        .max()
        .map_or(0, |name| *name as usize + 1);
    let total = matrix.columns.iter().map(|column| column.weight).sum();
    let mut search = Search {
        prices: RowPrices::new(names, total),
        nodes,
        steps: Steps(steps),
    };
    search.solve(matrix, u64::MAX, 0)
}

impl Search {
    /// A cover, and a bound that is right, or at least `upper`: nobody asks for covers that cost as
    /// much.
    fn solve(&mut self, matrix: Matrix, upper: u64, depth: u32) -> Solved {
        let no_dearer = |one: &Column, other: &Column| one.weight <= other.weight;
        let reduced = reduce(matrix, no_dearer, &mut self.steps);
        let weight = reduced.forced.iter().map(|column| column.weight).sum();
        let mut all = Solved {
            cover: reduced.forced,
            weight,
            lower: weight,
        };
        if reduced.rest.height() > 0 {
            for part in reduced.rest.parts() {
                let solved = self.part(&part, upper.saturating_sub(all.lower), depth);
                all.cover.extend(solved.cover);
                all.weight += solved.weight;
                all.lower += solved.lower;
            }
        }
        all
    }

    /// The same for a matrix that is reduced and in one piece.
    fn part(&mut self, matrix: &Matrix, upper: u64, depth: u32) -> Solved {
        // Half of what is left, so that something is left for what comes after.
        let affordable = self.steps.0 / (6 * matrix.entries() as u64);
        let rounds = if depth == 0 { ROUNDS.0 } else { ROUNDS.1 };
        let rounds = rounds.min(affordable.try_into().unwrap_or(u32::MAX));
        let bound = bound(matrix, &mut self.prices, rounds, upper, &mut self.steps);
        let columns = bound.cover.iter().map(|column| matrix.columns[*column]);
        let mut best = Solved {
            cover: columns.collect(),
            weight: bound.weight,
            lower: bound.lower,
        };
        let upper = upper.min(best.weight);
        let spent = self.nodes == 0 || self.steps.0 == 0 || depth >= DEEPEST;
        if bound.lower >= upper || spent {
            return best;
        }
        self.nodes -= 1;
        let lower = match self.fixed(matrix, &bound, upper) {
            Some(FixedColumns::Smaller { forced, rest }) => {
                self.with(&forced, rest, upper, depth, &mut best)
            }
            Some(FixedColumns::Nothing) => upper,
            None => self.branch(matrix, &bound, upper, depth, &mut best),
        };
        best.lower = best.lower.max(lower.min(upper)).min(best.weight);
        best
    }

    /// What a cover that costs less than `upper` must and cannot have, by what each column costs
    /// beyond what it brings in; `None` where that is too little to be worth a new start.
    fn fixed(&self, matrix: &Matrix, bound: &Bound, upper: u64) -> Option<FixedColumns> {
        let upper = self.prices.scaled(upper);
        let mut columns = vec![true; matrix.width()];
        let mut rows = vec![true; matrix.height()];
        let (mut forced, mut changes) = (Vec::new(), 0);
        // Weights are whole: one unit less than `upper` is the most that is asked for.
        let upper = upper - self.prices.scaled(1);
        for (column, cost) in bound.reduced.iter().enumerate() {
            if bound.value.saturating_add(cost.abs()) <= upper {
                continue;
            }
            changes += 1;
            columns[column] = false;
            if *cost < 0 {
                forced.push(matrix.columns[column]);
                for row in matrix.rows_of(column) {
                    rows[*row as usize] = false;
                }
            }
        }
        if changes * 20 < matrix.width().max(20) {
            return None;
        }
        let left = |row: usize| {
            matrix
                .holders_of(row)
                .iter()
                .any(|one| columns[*one as usize])
        };
        if (0..matrix.height()).any(|row| rows[row] && !left(row)) {
            return Some(FixedColumns::Nothing);
        }
        let rest = matrix.keep(&columns, &rows);
        Some(FixedColumns::Smaller { forced, rest })
    }

    /// Covers `rest` beside `taken`, and notes it if that is the best cover; the bound of all that.
    fn with(
        &mut self,
        taken: &[Column],
        rest: Matrix,
        upper: u64,
        depth: u32,
        best: &mut Solved,
    ) -> u64 {
        let weight: u64 = taken.iter().map(|column| column.weight).sum();
        if weight >= upper {
            return upper;
        }
        let mut solved = self.solve(rest, upper - weight, depth + 1);
        let total = solved.weight + weight;
        if total < best.weight {
            solved.cover.extend_from_slice(taken);
            (best.cover, best.weight) = (solved.cover, total);
        }
        solved.lower + weight
    }

    /// With and without the column that pays best for the row with the fewest holders.
    fn branch(
        &mut self,
        matrix: &Matrix,
        bound: &Bound,
        upper: u64,
        depth: u32,
        best: &mut Solved,
    ) -> u64 {
        let rarest = (0..matrix.height()).min_by_key(|row| matrix.holders_of(*row).len());
        let holders = rarest.map_or(&[][..], |row| matrix.holders_of(row));
        let Some(pivot) = holders
            .iter()
            .min_by_key(|one| bound.reduced[**one as usize])
        else {
            return bound.lower;
        };
        let pivot = *pivot as usize;
        let mut columns = vec![true; matrix.width()];
        columns[pivot] = false;
        let mut rows = vec![true; matrix.height()];
        let without = matrix.keep(&columns, &rows);
        for row in matrix.rows_of(pivot) {
            rows[*row as usize] = false;
        }
        let rest = matrix.keep(&columns, &rows);
        let taken = [matrix.columns[pivot]];
        let with = self.with(&taken, rest, upper, depth, best);
        let upper = upper.min(best.weight);
        // A reduced matrix has no row with a single holder, so that nothing is left out here.
        with.min(self.with(&[], without, upper, depth, best))
    }
}

/// What is left when columns are decided.
enum FixedColumns {
    /// No cover costs less than what is known.
    Nothing,
    Smaller {
        forced: Vec<Column>,
        rest: Matrix,
    },
}

/// How many steps are left. Steps and not time, so that a slow machine finds the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps(pub u64);

impl Steps {
    /// Takes so many; false when there were fewer: then none are left.
    pub fn take(&mut self, steps: usize) -> bool {
        let enough = self.0 >= steps as u64;
        self.0 = self.0.saturating_sub(steps as u64);
        enough
    }
}
