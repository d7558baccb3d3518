//! Covers that prices of rows lead to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::matrix::Matrix;

/// A cover, ascending, found greedily by what columns cost beyond what they bring in at these
/// prices (Caprara, Fischetti and Toth 1999), and then without those that are not needed, the
/// heaviest first. `scaled` gives a weight in the unit of the prices.
pub(super) fn guided(matrix: &Matrix, prices: &[i64], scaled: impl Fn(u64) -> i64) -> Vec<usize> {
    let mut holders = vec![0_u32; matrix.height()];
    let score = |column: usize, holders: &[u32]| {
        let rows = matrix.rows_of(column).iter().map(|row| *row as usize);
        let (mut gain, mut loss) = (0, scaled(matrix.columns[column].weight));
        for row in rows.filter(|row| holders[*row] == 0) {
            gain += 1;
            loss -= prices[row];
        }
        score(loss, gain)
    };
    let all =
        (0..matrix.width()).filter_map(|column| Some(Reverse((score(column, &holders)?, column))));
    // A score only rises while rows are covered, so that the least is right if it still is the same.
    let mut heap: BinaryHeap<Reverse<(i128, usize)>> = all.collect();
    let mut chosen = Vec::new();
    let mut left = matrix.height();
    while let Some(Reverse((_, column))) = heap.pop().filter(|_| left > 0) {
        let Some(now) = score(column, &holders) else {
            continue;
        };
        if heap
            .peek()
            .is_some_and(|next| Reverse((now, column)) < *next)
        {
            heap.push(Reverse((now, column)));
            continue;
        }
        chosen.push(column);
        for row in matrix.rows_of(column) {
            let row = &mut holders[*row as usize];
            left -= usize::from(*row == 0);
            *row += 1;
        }
    }
    thinned(matrix, chosen, holders)
}

/// The less the better; `None` without gain. What pays for itself comes first, by how much and how
/// often; the rest by its loss for each row.
fn score(loss: i64, gain: i64) -> Option<i128> {
    let (loss, gain) = (i128::from(loss) << 16, i128::from(gain));
    match gain {
        0 => None,
        _ if loss > 0 => Some(loss / gain),
        _ => Some(loss * gain),
    }
}

/// Without those that are not needed.
fn thinned(matrix: &Matrix, mut chosen: Vec<usize>, mut holders: Vec<u32>) -> Vec<usize> {
    chosen.sort_unstable_by_key(|column| Reverse((matrix.columns[*column].weight, *column)));
    chosen.retain(|column| {
        let rows = matrix.rows_of(*column);
        let needed = rows.iter().any(|row| holders[*row as usize] == 1);
        if !needed {
            rows.iter().for_each(|row| holders[*row as usize] -= 1);
        }
        needed
    });
    chosen.sort_unstable();
    chosen
}
