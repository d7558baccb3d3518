//! The greedy cover.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;

use super::sets::Columns;

/// A column, and how many rows it would add when that was last looked at: never less than now.
#[derive(PartialEq, Eq)]
struct Offer {
    weight: u64,
    gain: u32,
    column: u32,
}

impl Ord for Offer {
    /// By rows for the weight, without rounding; then the lower number is the better offer.
    fn cmp(&self, other: &Offer) -> Ordering {
        let own = u128::from(self.gain) * u128::from(other.weight);
        let others = u128::from(other.gain) * u128::from(self.weight);
        own.cmp(&others)
            .then_with(|| other.column.cmp(&self.column))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Offer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Columns that cover all that the columns can cover, in the order in which they were chosen: each
/// time the one that adds the most rows for its weight. What a column adds only shrinks, so that
/// only the best offer is looked at again, and taken if it still is the best.
pub(super) fn greedy(columns: &mut impl Columns) -> io::Result<Vec<usize>> {
    let mut rows = Vec::new();
    let mut offers = Vec::with_capacity(columns.columns());
    for column in 0..columns.columns() {
        columns.read(column, &mut rows)?;
        if !rows.is_empty() {
            offers.push(Offer {
                weight: columns.weight(column),
                gain: rows.len() as u32,
                column: column as u32,
            });
        }
    }
    let mut offers = BinaryHeap::from(offers);
    let mut covered = vec![false; columns.rows()];
    let mut chosen = Vec::new();
    while let Some(mut best) = offers.pop() {
        let column = best.column as usize;
        columns.read(column, &mut rows)?;
        rows.retain(|row| !covered[*row as usize]);
        if rows.is_empty() {
            continue;
        }
        best.gain = rows.len() as u32;
        if offers.peek().is_some_and(|next| *next > best) {
            offers.push(best);
            continue;
        }
        for row in &rows {
            covered[*row as usize] = true;
        }
        chosen.push(column);
    }
    Ok(chosen)
}
