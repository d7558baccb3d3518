//! Heuristics for good covers (sets of inputs that reach all features): the greedy algorithm, a
//! greedy algorithm guided by prices of features, and local improvement.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;

use super::Columns;
use super::exact::Steps;
use super::matrix::Matrix;

/// A column (input) in the queue of the greedy algorithm, with an upper bound of the number of
/// uncovered rows (features) that it would cover.
#[derive(PartialEq, Eq)]
struct QueuedColumn {
    weight: u64,
    gain: u32,
    column: u32,
}

impl Ord for QueuedColumn {
    /// Orders columns (inputs) by the number of uncovered rows (features) that they would cover per
    /// weight (cost), the greatest last, without rounding; of equal ones the column with the lower
    /// number is greater.
    fn cmp(&self, other: &QueuedColumn) -> Ordering {
        let own = u128::from(self.gain) * u128::from(other.weight);
        let others = u128::from(other.gain) * u128::from(self.weight);
        own.cmp(&others)
            .then_with(|| other.column.cmp(&self.column))
    }
}

impl PartialOrd for QueuedColumn {
    fn partial_cmp(&self, other: &QueuedColumn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns a cover found by the greedy algorithm, with its columns (inputs) in the order of choice.
/// Each step chooses the column that covers the most uncovered rows (features) for its weight
/// (cost). A column's number of uncovered rows never grows, so in a queue ordered by the last known
/// numbers, only the number of the first column needs to be updated.
pub(super) fn greedy(columns: &mut impl Columns) -> io::Result<Vec<usize>> {
    let mut rows = Vec::new();
    let mut queue = Vec::with_capacity(columns.columns());
    for column in 0..columns.columns() {
        columns.read(column, &mut rows)?;
        if !rows.is_empty() {
            queue.push(QueuedColumn {
                weight: columns.weight(column),
                gain: rows.len() as u32,
                column: column as u32,
            });
        }
    }
    let mut queue = BinaryHeap::from(queue);
    let mut covered = vec![false; columns.rows()];
    let mut chosen = Vec::new();
    while let Some(mut best) = queue.pop() {
        let column = best.column as usize;
        columns.read(column, &mut rows)?;
        rows.retain(|row| !covered[*row as usize]);
        if rows.is_empty() {
            continue;
        }
        best.gain = rows.len() as u32;
        if queue.peek().is_some_and(|next| *next > best) {
            queue.push(best);
            continue;
        }
        for row in &rows {
            covered[*row as usize] = true;
        }
        chosen.push(column);
    }
    Ok(chosen)
}

/// Returns the columns (inputs) of a cover, ascending, without redundant ones. Columns are chosen
/// greedily by their cost minus the `prices` (Lagrange multipliers) of those of their rows
/// (features) that are not covered yet (Caprara, Fischetti and Toth 1999). `scaled` converts a
/// weight to the unit of the prices.
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
    // A score only grows as rows are covered, so the least one is right if it has not changed.
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

/// Returns the score of a column (input) for the greedy algorithm, which prefers the lowest: `loss`
/// (the column's cost minus the prices of its uncovered rows) divided by `gain` (the number of
/// these rows). `None` if `gain` is 0. Columns with a negative loss get the lowest scores.
fn score(loss: i64, gain: i64) -> Option<i128> {
    let (loss, gain) = (i128::from(loss) << 16, i128::from(gain));
    match gain {
        0 => None,
        _ if loss > 0 => Some(loss / gain),
        _ => Some(loss * gain),
    }
}

/// Removes redundant columns from the cover `chosen`, the most expensive first: inputs all of whose
/// features are also reached by other inputs in the cover. `holders` are, for each row (feature),
/// the number of chosen columns that cover it. Returns the remaining columns, ascending.
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

/// Maximum number of passes over all columns (inputs) to improve a set cover by replacing columns.
const PASSES: usize = 4;

/// A set cover that is improved step by step, by removing and replacing columns.
struct ChangedCover<'a, C> {
    columns: &'a mut C,
    /// For each row (feature), the number of chosen columns (inputs) that cover it.
    holders: Vec<u32>,
    is_chosen: Vec<bool>,
    rows: Vec<u32>,
}

/// Returns a cover, its columns (inputs) ascending, that costs no more than `chosen`: removes
/// redundant columns, the most expensive first, and replaces columns by one that costs less, in at
/// most `PASSES` passes, until nothing changes or no steps remain.
pub(super) fn improved(
    columns: &mut impl Columns,
    chosen: &[usize],
    steps: &mut Steps,
) -> io::Result<Vec<usize>> {
    let mut change = ChangedCover {
        holders: vec![0; columns.rows()],
        is_chosen: vec![false; columns.columns()],
        rows: Vec::new(),
        columns,
    };
    for column in chosen {
        change.put(*column)?;
    }
    change.thin_out()?;
    for _ in 0..PASSES {
        if !change.swap_all(steps)? {
            break;
        }
        change.thin_out()?;
    }
    let chosen = change.is_chosen.iter().enumerate();
    Ok(chosen.filter(|(_, is)| **is).map(|(at, _)| at).collect())
}

impl<C: Columns> ChangedCover<'_, C> {
    fn put(&mut self, column: usize) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_chosen[column], true) {
            self.columns.read(column, &mut self.rows)?;
            for row in &self.rows {
                self.holders[*row as usize] += 1;
            }
        }
        Ok(())
    }

    /// Removes `column` (an input) from the cover if other chosen columns cover all its rows
    /// (features). Returns true if it was removed, and false if the column is needed.
    fn drop_if_needless(&mut self, column: usize) -> io::Result<bool> {
        self.columns.read(column, &mut self.rows)?;
        let needed = self.rows.iter().any(|row| self.holders[*row as usize] < 2);
        if !needed && self.is_chosen[column] {
            self.is_chosen[column] = false;
            for row in &self.rows {
                self.holders[*row as usize] -= 1;
            }
        }
        Ok(!needed)
    }

    fn thin_out(&mut self) -> io::Result<()> {
        let chosen = self.is_chosen.iter().enumerate();
        let mut chosen: Vec<usize> = chosen.filter(|(_, is)| **is).map(|(at, _)| at).collect();
        chosen.sort_by_key(|column| Reverse((self.columns.weight(*column), *column)));
        for column in chosen {
            self.drop_if_needless(column)?;
        }
        Ok(())
    }

    /// Finds which rows (features) only one chosen column (input) covers. Returns two lists: for
    /// each row, the number of that column plus 1, or 0 if none or several cover it; and for each
    /// column, how many rows only it covers.
    fn owners(&mut self, steps: &mut Steps) -> io::Result<(Vec<u32>, Vec<u32>)> {
        let mut owner = vec![0; self.holders.len()];
        let mut owned = vec![0; self.is_chosen.len()];
        for (column, owned) in owned.iter_mut().enumerate() {
            if !self.is_chosen[column] {
                continue;
            }
            self.columns.read(column, &mut self.rows)?;
            steps.take(self.rows.len());
            for row in self
                .rows
                .iter()
                .filter(|row| self.holders[**row as usize] == 1)
            {
                owner[*row as usize] = column as u32 + 1;
                *owned += 1;
            }
        }
        Ok((owner, owned))
    }

    /// Goes through the columns (inputs) that are not in the cover. If one can replace columns of
    /// the cover that together cost more, puts it into the cover in their place. Returns true if at
    /// least one was replaced and steps remain, and else false.
    fn swap_all(&mut self, steps: &mut Steps) -> io::Result<bool> {
        let (mut owner, mut owned) = self.owners(steps)?;
        let mut hits: Vec<u32> = vec![0; self.is_chosen.len()];
        let mut any = false;
        for column in 0..self.is_chosen.len() {
            if self.is_chosen[column] {
                continue;
            }
            self.columns.read(column, &mut self.rows)?;
            if !steps.take(2 * self.rows.len() + 1) {
                return Ok(false);
            }
            let mut met = Vec::new();
            for row in &self.rows {
                let one = owner[*row as usize] as usize;
                if one > 0 {
                    hits[one - 1] += 1;
                    if hits[one - 1] == owned[one - 1] {
                        met.push(one - 1);
                    }
                }
            }
            for row in &self.rows {
                hits[(owner[*row as usize] as usize).saturating_sub(1)] = 0;
            }
            let saved: u64 = met.iter().map(|one| self.columns.weight(*one)).sum();
            if saved > self.columns.weight(column) && self.swap(column, &met)? {
                any = true;
                (owner, owned) = self.owners(steps)?;
            }
        }
        Ok(any)
    }

    /// Adds `column` to the cover, and removes those of `others` that become redundant, the most
    /// expensive first. Returns true if the total cost shrinks; else undoes the change and returns
    /// false.
    fn swap(&mut self, column: usize, others: &[usize]) -> io::Result<bool> {
        let mut others = others.to_vec();
        others.sort_by_key(|other| Reverse((self.columns.weight(*other), *other)));
        self.put(column)?;
        let (mut saved, mut dropped) = (0, Vec::new());
        for other in others {
            if self.drop_if_needless(other)? {
                saved += self.columns.weight(other);
                dropped.push(other);
            }
        }
        if saved > self.columns.weight(column) {
            return Ok(true);
        }
        for other in dropped {
            self.put(other)?;
        }
        self.drop_if_needless(column)?;
        Ok(false)
    }
}
