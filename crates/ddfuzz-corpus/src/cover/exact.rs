//! Lower bounds of the least cover, and the exact search by branch and bound ([`solve`]). A cover
//! is a set of columns (inputs) that covers all rows (features).
//!
//! In memory ([`bound`]): Lagrangian relaxation. Each row has a price of at least 0. The relaxed
//! problem pays the price of each row once, and takes each column whose rows are worth more than it
//! costs; by weak duality its value is a lower bound. Subgradient steps raise the prices of
//! uncovered rows, and lower those of rows covered more than once (Held, Wolfe and Crowder 1974;
//! Beasley 1990). All numbers are whole, so the bound is exact and the same on every machine.
//!
//! If the instance does not fit into memory ([`DualAscent`]): prices of rows such that no column's
//! rows are worth more than it costs; by duality their sum is a lower bound. Each pass raises each
//! row by the least factor that its columns allow. Results are rounded down, and do not depend on
//! the order of columns.

use std::io;

use super::greedy::guided;
use super::matrix::{Column, Matrix};
use super::reduce::reduce;
use super::{Columns, HEAVIEST};

/// Maximum numbers of subgradient steps for computing the lower bound of a set cover: first at the
/// root of the branch-and-bound search, second at each other node.
const ROUNDS: (u32, u32) = (400, 40);
/// Greatest depth of the branch-and-bound search; it is limited because the search is recursive.
const DEEPEST: u32 = 150;

/// A set cover, and a lower bound of the weight (total cost) of any cover.
pub(super) struct Solved {
    /// Columns (inputs) of the set cover that was found, in no order.
    pub cover: Vec<Column>,
    pub weight: u64,
    /// Lower bound of the weight (total cost) of any cover.
    pub lower: u64,
}

struct Search {
    prices: RowPrices,
    nodes: u32,
    steps: Steps,
}

/// Finds a set cover of small weight (total cost) for `matrix` by branch and bound, and a lower
/// bound of the weight of any cover. The cover is proved optimal unless the limits on search nodes
/// (`nodes`) or elementary steps (`steps`) are reached.
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
    /// Returns a set cover of `matrix` (columns: inputs; rows: features to cover) and a lower bound
    /// of the weight (total cost) of all its covers. Reduces the matrix, and solves its independent
    /// parts one by one. Only covers lighter than `upper` are of use: the search ends when none can
    /// exist, and then returns any cover. `depth`: how often the search has fixed columns or
    /// branched so far.
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

    /// Finds a set cover of a matrix that cannot be reduced or divided further, and a lower bound
    /// of the weight (total cost) of any cover. Computes bounds by Lagrangian relaxation. Then
    /// decides by them which columns (inputs) are in or out, or branches: searches covers with and
    /// without a column. `upper`: only covers that weigh less are searched for. `depth`: how many
    /// times the search has fixed columns or branched so far.
    fn part(&mut self, matrix: &Matrix, upper: u64, depth: u32) -> Solved {
        // Half of the remaining steps are left for later nodes.
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
                self.solve_with(&forced, rest, upper, depth, &mut best)
            }
            Some(FixedColumns::Nothing) => upper,
            None => self.branch(matrix, &bound, upper, depth, &mut best),
        };
        best.lower = best.lower.max(lower.min(upper)).min(best.weight);
        best
    }

    /// Finds columns (inputs) that every cover lighter than `upper` contains, and columns that none
    /// contains, by their reduced costs (cost minus the prices of their rows). Returns the columns
    /// that every such cover contains, and the matrix without all these columns and without the
    /// rows that the returned ones cover. Returns [`FixedColumns::Nothing`] if no cover is lighter,
    /// and `None` if fewer than a twentieth of all columns are decided: too few for a further
    /// search to be faster.
    fn fixed(&self, matrix: &Matrix, bound: &Bound, upper: u64) -> Option<FixedColumns> {
        let upper = self.prices.scaled(upper);
        let mut columns = vec![true; matrix.width()];
        let mut rows = vec![true; matrix.height()];
        let (mut forced, mut changes) = (Vec::new(), 0);
        // Weights are whole numbers: a better cover costs at least one unit less.
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

    /// Continues the search for covers of less weight than `upper` with the columns (inputs)
    /// `taken` in the cover; `rest` is the matrix of what they do not cover. A found cover that
    /// weighs less than `best` replaces it. `depth`: how many times the search has fixed columns or
    /// branched so far. Returns a lower bound of the weight of all covers that contain `taken`.
    fn solve_with(
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

    /// Searches covers by a case distinction: chooses the row (feature) that the fewest columns
    /// (inputs) cover, and one of these columns, and searches covers with this column, and covers
    /// without. A cover that weighs less than `best` replaces it. `bound` was computed for
    /// `matrix`; only covers that weigh less than `upper` are searched for; `depth` is how many
    /// times the search has fixed columns or branched so far. Returns a lower bound of the weight
    /// of any cover of the matrix.
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
        let with = self.solve_with(&taken, rest, upper, depth, best);
        let upper = upper.min(best.weight);
        // A reduced matrix has no row with a single column, so each row can still be covered.
        with.min(self.solve_with(&[], without, upper, depth, best))
    }
}

/// What the reduced costs of columns (cost of an input minus the prices of its features) show of
/// all covers that are better than the best known one: columns that each such cover contains, and
/// columns that none contains.
enum FixedColumns {
    /// No cover can weigh less (cost less in total) than the best known one.
    Nothing,
    Smaller {
        forced: Vec<Column>,
        rest: Matrix,
    },
}

/// Number of elementary steps that a search may still take: a limit on time that is the same on
/// every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps(pub u64);

impl Steps {
    /// Subtracts `steps` from the remaining steps, and returns true; if fewer remained, leaves 0
    /// and returns false.
    pub fn take(&mut self, steps: usize) -> bool {
        let enough = self.0 >= steps as u64;
        self.0 = self.0.saturating_sub(steps as u64);
        enough
    }
}

/// The prices (Lagrange multipliers) of all rows (features) of the complete set cover instance, as
/// whole multiples of a fraction (1/`scale`) of the unit of weights (costs of inputs).
pub(super) struct RowPrices {
    of_row: Vec<Option<i64>>,
    scale: i64,
}

/// Result of the Lagrangian relaxation of a set cover matrix: a lower bound, and the best cover
/// that was found.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// Lower bound of the weight (total cost) of any cover.
    pub lower: u64,
    /// The columns of the best cover that was found, ascending.
    pub cover: Vec<usize>,
    /// Total weight (cost) of the columns of the best cover that was found.
    pub weight: u64,
    /// Value of the relaxed problem at the best row prices, in the unit of prices: the lower bound
    /// before rounding.
    pub value: i64,
    /// Reduced cost of each column (input) at the best row prices: its cost minus the prices of its
    /// rows (features), in the unit of prices.
    pub reduced: Vec<i64>,
}

impl RowPrices {
    /// Creates prices, none of which is set yet, for the `names` rows (features) of a set cover
    /// instance. `total` is the weight (cost) of all columns: the unit of prices is chosen by it,
    /// as a fraction of the unit of weights, so that sums of prices do not overflow.
    pub fn new(names: usize, total: u64) -> RowPrices {
        // Sums of all scaled weights must not overflow.
        let room = (1_u64 << 58) / total.max(1);
        let scale = 1 << room.max(1).ilog2().min(16);
        RowPrices {
            of_row: vec![None; names],
            scale,
        }
    }

    /// Converts the weight (cost) of a column (input) to the unit of row prices, a fraction of the
    /// unit of weights.
    pub fn scaled(&self, weight: u64) -> i64 {
        weight as i64 * self.scale
    }

    /// Converts `parts`, in the unit of row prices, to a whole weight (cost), rounded up; 0 if it
    /// is negative.
    fn whole(&self, parts: i64) -> u64 {
        let parts = parts.max(0) as u64;
        parts.div_ceil(self.scale as u64)
    }

    /// Returns a price to start from for each row (feature) of a matrix: its last known price, or
    /// else the least share that a column (input) gives it, if each column divides its cost equally
    /// among its rows.
    fn start(&self, matrix: &Matrix) -> Vec<i64> {
        let share = |column: &u32| {
            let rows = matrix.rows_of(*column as usize).len() as i64;
            self.scaled(matrix.columns[*column as usize].weight) / rows
        };
        let price = |row: usize| {
            let least = || matrix.holders_of(row).iter().map(share).min();
            let known = self.of_row[matrix.names[row] as usize];
            known.or_else(least).unwrap_or(0)
        };
        (0..matrix.height()).map(price).collect()
    }

    /// Returns the price of each row (feature), 0 if it is not set yet, as a numerator and a
    /// denominator.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64)> {
        let prices = self.of_row.iter();
        prices.map(|price| (price.unwrap_or(0), self.scale))
    }

    fn keep(&mut self, matrix: &Matrix, prices: &[i64]) {
        for (name, price) in matrix.names.iter().zip(prices) {
            self.of_row[*name as usize] = Some(*price);
        }
    }
}

/// Greatest and least step size, in thousandths, of the subgradient search: it begins with the
/// first, halves the size when the bound no longer grows, and ends below the second. A step is the
/// step size times the gap between the weight of the best cover and the value of the relaxed
/// problem.
const STEP: (i128, i128) = (2_000, 8);
/// Number of subgradient steps without a better lower bound after which the step size is halved.
const PATIENCE: u32 = 8;

/// A cover is constructed from the row prices after every five subgradient steps.
const COVERS: u32 = 5;

/// Computes, by Lagrangian relaxation, a lower bound of the weight of any cover of a matrix with at
/// least one row, and a good cover. Starts from `row_prices`, and stores the best prices there.
///
/// Makes at most `rounds` subgradient steps. Stops earlier if no cover of less weight than `upper`
/// is possible, if the best cover is proved optimal, or if the prices hardly move any more. Also
/// stops when `steps`, the elementary steps that the search may still take, are used up; subtracts
/// from `steps` those that it took.
pub(super) fn bound(
    matrix: &Matrix,
    row_prices: &mut RowPrices,
    rounds: u32,
    upper: u64,
    steps: &mut Steps,
) -> Bound {
    let mut prices = row_prices.start(matrix);
    let mut best_prices = prices.clone();
    let mut found = Bound {
        lower: 0,
        cover: (0..matrix.width()).collect(),
        weight: u64::MAX,
        value: i64::MIN,
        reduced: Vec::new(),
    };
    let (mut step, mut idle) = (STEP.0, 0);
    for round in 0..rounds.max(1) {
        let reduced = reduced_costs(matrix, &prices, row_prices);
        let value =
            prices.iter().sum::<i64>() + reduced.iter().map(|cost| (*cost).min(0)).sum::<i64>();
        idle += 1;
        let better = value > found.value;
        if round % COVERS == 0 {
            let cover = guided(matrix, &prices, |weight| row_prices.scaled(weight));
            steps.take(2 * matrix.entries());
            let weight = matrix.weight_of(&cover);
            if weight < found.weight {
                (found.cover, found.weight) = (cover, weight);
            }
        }
        if better {
            idle = 0;
            found.value = value;
            found.reduced.clone_from(&reduced);
            best_prices.clone_from(&prices);
        } else if idle >= PATIENCE {
            idle = 0;
            step /= 2;
            prices.clone_from(&best_prices);
        }
        found.lower = row_prices.whole(found.value).min(found.weight);
        let done = found.lower >= upper.min(found.weight) || step < STEP.1;
        if !steps.take(3 * matrix.entries()) || done {
            break;
        }
        let gap = row_prices.scaled(found.weight) - value;
        if !moved(matrix, &mut prices, &reduced, step * i128::from(gap.max(1))) {
            break;
        }
    }
    row_prices.keep(matrix, &best_prices);
    found
}

/// Returns the reduced cost of each column (input): its cost minus the prices of its rows
/// (features), in the unit of prices.
fn reduced_costs(matrix: &Matrix, prices: &[i64], scale: &RowPrices) -> Vec<i64> {
    let cost = |column: usize| {
        let rows = matrix.rows_of(column).iter();
        let brought: i64 = rows.map(|row| prices[*row as usize]).sum();
        scale.scaled(matrix.columns[column].weight) - brought
    };
    (0..matrix.width()).map(cost).collect()
}

/// Moves the row prices along the subgradient, if the columns with negative `reduced` costs are
/// taken: raises the prices of uncovered rows, and lowers those of rows covered more than once,
/// down to 0. The length of the move is `step` divided by the length of the subgradient; `step` is
/// in thousandths of the unit of prices. Returns false if no price can move: each row is covered
/// once, or more often at a price of 0.
fn moved(matrix: &Matrix, prices: &mut [i64], reduced: &[i64], step: i128) -> bool {
    let mut lacks = vec![1_i64; matrix.height()];
    for (column, _) in reduced.iter().enumerate().filter(|(_, cost)| **cost < 0) {
        for row in matrix.rows_of(column) {
            lacks[*row as usize] -= 1;
        }
    }
    let length = lacks.iter().zip(prices.iter());
    // A price of 0 cannot be lowered.
    let length = length.filter(|(lack, price)| **lack > 0 || **price > 0);
    let length: i128 = length.map(|(lack, _)| i128::from(lack * lack)).sum();
    if length == 0 {
        return false;
    }
    let step = step / (1_000 * length);
    // Limits prices so that their sums do not overflow.
    let most = i64::MAX as i128 / (4 * (matrix.entries() as i128 + 1));
    for (price, lack) in prices.iter_mut().zip(lacks) {
        let moved = i128::from(*price) + step * i128::from(lack);
        *price = moved.clamp(0, most) as i64;
    }
    true
}

/// Number of times that the dual ascent goes through all columns to raise the prices of the rows.
const PASSES: usize = 4;
/// Number of fractional bits of the price of a row (feature) in the dual ascent: prices are
/// fixed-point numbers in units of 2^-16 of a weight (cost of an input).
const PARTS: u64 = 16;

/// Dual ascent: a lower bound for a set cover instance that is not in memory. Each row (feature)
/// has a price, which is raised in passes over the columns (inputs); the sum of all prices is the
/// bound.
pub(super) struct DualAscent {
    prices: Vec<u64>,
}

impl DualAscent {
    /// Creates the first prices of the dual ascent: each column (input) divides its weight (cost)
    /// equally among its rows (features), and the price of a row is the least share that it gets
    /// from a column.
    pub fn new(columns: &mut impl Columns) -> io::Result<DualAscent> {
        let mut rows = Vec::new();
        let mut prices = vec![u64::MAX; columns.rows()];
        for column in 0..columns.columns() {
            columns.read(column, &mut rows)?;
            if rows.is_empty() {
                continue;
            }
            let share = (columns.weight(column) << PARTS) / rows.len() as u64;
            for row in &rows {
                let price = &mut prices[*row as usize];
                *price = (*price).min(share);
            }
        }
        // A row without columns has no price.
        for price in prices.iter_mut().filter(|price| **price == u64::MAX) {
            *price = 0;
        }
        Ok(DualAscent { prices })
    }

    /// Creates the start prices of the dual ascent from prices that the Lagrangian relaxation has
    /// found, one for each row. Each price is given as a numerator and a denominator.
    pub fn from_prices(prices: impl Iterator<Item = (i64, i64)>) -> DualAscent {
        let part = |(price, unit): (i64, i64)| {
            let part = (u128::from(price.max(0) as u64) << PARTS) / u128::from(unit.max(1) as u64);
            part.min(u128::from(HEAVIEST << PARTS)) as u64
        };
        DualAscent {
            prices: prices.map(part).collect(),
        }
    }

    /// Raises the prices of all rows in several passes over the columns, and returns the sum of the
    /// prices: a lower bound of the weight (total cost) of any cover.
    pub fn bound(mut self, columns: &mut impl Columns) -> io::Result<u64> {
        for _ in 0..PASSES {
            self.raise(columns)?;
        }
        let sum: u128 = self.prices.iter().map(|price| u128::from(*price)).sum();
        Ok(sum.div_ceil(1 << PARTS) as u64)
    }

    /// Multiplies the price of each row (feature) by a factor: the least of the factors that the
    /// columns (inputs) covering the row permit. A column permits its cost divided by the sum of
    /// the prices of all its rows, so that these prices then add up to at most the column's cost.
    fn raise(&mut self, columns: &mut impl Columns) -> io::Result<()> {
        let mut factors = vec![u128::MAX; self.prices.len()];
        let mut rows = Vec::new();
        for column in 0..columns.columns() {
            columns.read(column, &mut rows)?;
            let brought = rows
                .iter()
                .map(|row| u128::from(self.prices[*row as usize]));
            let brought: u128 = brought.sum();
            if brought == 0 {
                continue;
            }
            let room = (u128::from(columns.weight(column)) << (2 * PARTS)) / brought;
            for row in &rows {
                let factor = &mut factors[*row as usize];
                *factor = (*factor).min(room);
            }
        }
        for (price, factor) in self.prices.iter_mut().zip(factors) {
            if factor != u128::MAX {
                *price = ((u128::from(*price) * factor) >> PARTS) as u64;
            }
        }
        Ok(())
    }
}
