//! Lower bounds of the least cover, and the covers found on the way.
//!
//! In memory ([`bound`]): Lagrangian relaxation. Each row gets a price, not negative. The relaxed
//! problem pays the price of each row once and takes each column whose rows bring in more than it
//! costs; its value is never more than the least cover (weak duality), whatever the prices are.
//! Subgradient steps raise the prices of rows that the relaxed solution leaves out, and lower
//! those of rows it covers more than once (Held, Wolfe and Crowder 1974; for set cover Beasley
//! 1990). All in whole numbers: the bound is no matter of rounding, and the same everywhere.
//!
//! Where the instance does not fit into memory ([`Ascent`]): rows get prices such that no column
//! brings in more than it costs; their sum is a bound by duality. Pass by pass, each row is raised
//! by the least factor that any of its columns has room for. No column depends on another within a
//! pass, so that their order does not matter; all is rounded down.

use std::io;

use super::exact::Steps;
use super::greedy::guided;
use super::matrix::Matrix;
use super::{Columns, HEAVIEST};

/// The prices of all rows, by name: in parts of a unit of weight, a power of two.
pub(super) struct RowPrices {
    of_row: Vec<Option<i64>>,
    scale: i64,
}

/// What is known of the least cover of a matrix.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// No cover costs less.
    pub lower: u64,
    /// A cover, ascending.
    pub cover: Vec<usize>,
    /// What it costs.
    pub weight: u64,
    /// What the relaxed problem comes to at the best prices, and what each column costs beyond
    /// what its rows bring in; in parts of a unit.
    pub value: i64,
    pub reduced: Vec<i64>,
}

impl RowPrices {
    /// For rows with these names below `names`, of columns that together cost so much.
    pub fn new(names: usize, total: u64) -> RowPrices {
        // Sums of all weights are far from the end of the numbers.
        let room = (1_u64 << 58) / total.max(1);
        let scale = 1 << room.max(1).ilog2().min(16);
        RowPrices {
            of_row: vec![None; names],
            scale,
        }
    }

    /// So much weight, in parts.
    pub fn scaled(&self, weight: u64) -> i64 {
        weight as i64 * self.scale
    }

    /// No whole weight below this one reaches so many parts.
    fn whole(&self, parts: i64) -> u64 {
        let parts = parts.max(0) as u64;
        parts.div_ceil(self.scale as u64)
    }

    /// Where to start: as last time, or with the share in the cheapest column.
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

    /// The price of each row that was looked at, in parts, and how many these are in a unit.
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

/// How large a step is, in thousandths: at first, and when it is too small to go on.
const STEP: (i128, i128) = (2_000, 8);
/// After how many rounds without a better bound steps get shorter.
const PROOF_TIME_FACTOR: u32 = 8;

/// After how many rounds a cover is tried.
const COVERS: u32 = 5;

/// Bounds the least cover of a matrix that has rows, by so many rounds at most. Stops once no cover
/// below `upper` is possible, or the cover found is proved to be the least.
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
        } else if idle >= PROOF_TIME_FACTOR {
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

/// What each column costs beyond what its rows bring in.
fn reduced_costs(matrix: &Matrix, prices: &[i64], scale: &RowPrices) -> Vec<i64> {
    let cost = |column: usize| {
        let rows = matrix.rows_of(column).iter();
        let brought: i64 = rows.map(|row| prices[*row as usize]).sum();
        scale.scaled(matrix.columns[column].weight) - brought
    };
    (0..matrix.width()).map(cost).collect()
}

/// Moves the prices along the subgradient, by `step` thousandths over its length; false where it
/// has none.
fn moved(matrix: &Matrix, prices: &mut [i64], reduced: &[i64], step: i128) -> bool {
    let mut lacks = vec![1_i64; matrix.height()];
    for (column, _) in reduced.iter().enumerate().filter(|(_, cost)| **cost < 0) {
        for row in matrix.rows_of(column) {
            lacks[*row as usize] -= 1;
        }
    }
    let length = lacks.iter().zip(prices.iter());
    // A price of nothing cannot sink.
    let length = length.filter(|(lack, price)| **lack > 0 || **price > 0);
    let length: i128 = length.map(|(lack, _)| i128::from(lack * lack)).sum();
    if length == 0 {
        return false;
    }
    let step = step / (1_000 * length);
    // Beyond this no price makes sense, and sums of them would leave the numbers.
    let most = i64::MAX as i128 / (4 * (matrix.entries() as i128 + 1));
    for (price, lack) in prices.iter_mut().zip(lacks) {
        let moved = i128::from(*price) + step * i128::from(lack);
        *price = moved.clamp(0, most) as i64;
    }
    true
}

/// How many passes over all columns are made.
const PASSES: usize = 4;
/// Rows are priced in parts of a unit of weight, 2^16 of them.
const PARTS: u64 = 16;

/// Prices of rows, in parts of a unit.
pub(super) struct Ascent {
    prices: Vec<u64>,
}

impl Ascent {
    /// Each column shares its weight out evenly, and a row takes the least it is offered.
    pub fn new(columns: &mut impl Columns) -> io::Result<Ascent> {
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
        // What nobody has costs nothing.
        for price in prices.iter_mut().filter(|price| **price == u64::MAX) {
            *price = 0;
        }
        Ok(Ascent { prices })
    }

    /// From these prices: each a number and its denominator.
    pub fn from_prices(prices: impl Iterator<Item = (i64, i64)>) -> Ascent {
        let part = |(price, unit): (i64, i64)| {
            let part = (u128::from(price.max(0) as u64) << PARTS) / u128::from(unit.max(1) as u64);
            part.min(u128::from(HEAVIEST << PARTS)) as u64
        };
        Ascent {
            prices: prices.map(part).collect(),
        }
    }

    /// Raises the prices as often as that is worth it; then no cover costs less than this.
    pub fn bound(mut self, columns: &mut impl Columns) -> io::Result<u64> {
        for _ in 0..PASSES {
            self.raise(columns)?;
        }
        let sum: u128 = self.prices.iter().map(|price| u128::from(*price)).sum();
        Ok(sum.div_ceil(1 << PARTS) as u64)
    }

    /// Multiplies each price by the least factor that any of its columns has room for. Whatever the
    /// prices were, no column brings in more than it costs afterwards.
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
