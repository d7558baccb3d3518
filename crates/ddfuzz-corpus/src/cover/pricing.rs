//! Solves an instance that does not fit into memory through one that does.
//!
//! A few good columns of each row are taken into memory, and what prices of rows their instance has is
//! found there. At these prices all other columns are looked at, and those that would pay are taken in
//! as well (Caprara, Fischetti and Toth 1999). The prices also bound the whole from below.

use std::collections::HashSet;
use std::io;

use super::Effort;
use super::ascent::Ascent;
use super::bound::{RowPrices, bound};
use super::exact::solve;
use super::matrix::{Builder, Column, Matrix};
use super::sets::Columns;
use super::steps::Steps;

/// Beyond so many entries, some columns at a time lead further than all of them in the same steps.
pub(super) const LARGE: usize = 100_000;
/// How often prices are looked for.
const TURNS: usize = 3;
/// Rounds of the bound at each turn.
const ROUNDS: u32 = 200;
/// How many columns of each row are taken at each turn.
const OF_EACH_ROW: usize = 6;

/// A better cover than `chosen`, if one is found, and a weight that no cover is below.
pub(super) fn priced(
    columns: &mut impl Columns,
    chosen: Vec<usize>,
    effort: &Effort,
) -> io::Result<(Vec<usize>, u64)> {
    let mut few = Few {
        builder: Builder::new(),
        known: HashSet::new(),
        limit: effort.entries.min(u32::MAX as usize),
    };
    if !few.take(columns, &chosen)? {
        let lower = Ascent::new(columns)?.bound(columns)?;
        return Ok((chosen, lower));
    }
    let upper: u64 = chosen.iter().map(|column| columns.weight(*column)).sum();
    // More would leave too few rounds for each.
    few.limit = few.limit.min(LARGE.max(4 * few.builder.entries()));
    // By what a row costs on average.
    let good = best_of_rows(columns, |weight, rows| {
        (weight << 16) as i128 / rows.len() as i128
    })?;
    few.take(columns, &good)?;
    let mut prices = RowPrices::new(columns.rows(), few.total());
    let mut steps = Steps(effort.steps);
    let rounds = |matrix: &Matrix| {
        let each = 3 * (TURNS as u64 + 1) * matrix.entries().max(1) as u64;
        (effort.steps / each).min(u64::from(ROUNDS)) as u32
    };
    for _ in 0..TURNS {
        let matrix = few.matrix(columns.rows());
        bound(&matrix, &mut prices, rounds(&matrix), upper, &mut steps);
        let of_row: Vec<i64> = prices.iter().map(|(price, _)| price).collect();
        let paying = best_of_rows(columns, |weight, rows| {
            let brought: i128 = rows
                .iter()
                .map(|row| i128::from(of_row[*row as usize]))
                .sum();
            i128::from(prices.scaled(weight)) - brought
        })?;
        few.take(columns, &paying)?;
    }
    let matrix = few.matrix(columns.rows());
    bound(&matrix, &mut prices, rounds(&matrix), upper, &mut steps);
    let lower = Ascent::from_prices(prices.iter()).bound(columns)?;
    let solved = solve(matrix, effort.nodes, effort.steps);
    let found: Vec<usize> = solved.cover.iter().map(|one| one.item as usize).collect();
    let is_better = solved.weight < upper;
    Ok((if is_better { found } else { chosen }, lower))
}

/// Columns in memory.
struct Few {
    builder: Builder,
    known: HashSet<usize>,
    limit: usize,
}

impl Few {
    /// Takes these in that are not there, as far as there is room; false where there was not.
    fn take(&mut self, columns: &mut impl Columns, more: &[usize]) -> io::Result<bool> {
        let mut rows = Vec::new();
        for column in more {
            if !self.known.insert(*column) {
                continue;
            }
            columns.read(*column, &mut rows)?;
            if self.builder.entries() + rows.len() > self.limit {
                return Ok(false);
            }
            let weight = columns.weight(*column);
            let taken = Column::weighing(*column as u32, weight);
            self.builder.push(taken, rows.iter().copied());
        }
        Ok(true)
    }

    fn total(&self) -> u64 {
        self.builder.weights().sum()
    }

    fn matrix(&self, rows: usize) -> Matrix {
        let names: Vec<u32> = (0..rows as u32).collect();
        self.builder.clone().finish(&names)
    }
}

/// The columns with the least values in each row: those that are best anywhere first, so that a
/// limit cuts off the least.
fn best_of_rows(
    columns: &mut impl Columns,
    value: impl Fn(u64, &[u32]) -> i128,
) -> io::Result<Vec<usize>> {
    let mut best: Vec<Vec<(i128, u32)>> = vec![Vec::new(); columns.rows()];
    let mut rows = Vec::new();
    for column in 0..columns.columns() {
        columns.read(column, &mut rows)?;
        if rows.is_empty() {
            continue;
        }
        let entry = (value(columns.weight(column), &rows), column as u32);
        for row in &rows {
            let best = &mut best[*row as usize];
            if best.len() < OF_EACH_ROW || best.last().is_some_and(|last| entry < *last) {
                best.truncate(OF_EACH_ROW - 1);
                let place = best.partition_point(|other| *other < entry);
                best.insert(place, entry);
            }
        }
    }
    let mut order = Vec::new();
    for rank in 0..OF_EACH_ROW {
        let ranked = best.iter().filter_map(|best| best.get(rank));
        order.extend(ranked.map(|(_, column)| *column as usize));
    }
    Ok(order)
}
