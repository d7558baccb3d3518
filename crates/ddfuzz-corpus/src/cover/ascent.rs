//! A lower bound where the instance does not fit into memory.
//!
//! Rows get prices such that no column brings in more than it costs; their sum is a bound by duality.
//! Pass by pass, each row is raised by the least factor that any of its columns has room for. No
//! column depends on another within a pass, so that their order does not matter; all is rounded down.

use std::io;

use super::sets::Columns;
use super::weight::HEAVIEST;

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
