//! Reduces a set cover instance without losing its best covers, until nothing changes. Columns are
//! the inputs to choose from, and rows the features that they must cover.
//!
//! A row with only one column forces that column into the cover. A row is dropped if its columns
//! include all columns of another row. A column is dropped if another column that costs no more has
//! all its rows.

use std::collections::HashSet;

use super::exact::Steps;
use super::matrix::{Column, Matrix};

/// A reduced set cover matrix, and the columns (inputs) that the reduction has forced into the
/// cover.
pub(super) struct Reduced {
    /// Columns (inputs) that the reduction has put into the cover. A best cover of the reduced
    /// matrix together with these is a best cover of the matrix before the reduction.
    pub forced: Vec<Column>,
    pub rest: Matrix,
}

/// Reduces a set cover matrix without losing its best covers, until nothing changes or no steps
/// remain. Returns the reduced matrix, and the columns (inputs) that are in the cover in any case.
/// `no_dearer(b, a)` tells whether column `b` never costs more than `a`, so that it may replace `a`
/// if it covers the same rows; it must be transitive.
pub(super) fn reduce(
    mut matrix: Matrix,
    no_dearer: impl Fn(&Column, &Column) -> bool,
    steps: &mut Steps,
) -> Reduced {
    let mut forced = Vec::new();
    loop {
        let size = (matrix.width(), matrix.height());
        if let Some(rest) = without_sole_holders(&matrix, &mut forced) {
            matrix = rest;
        }
        if !steps.take(matrix.entries()) {
            break;
        }
        if let Some(rows) = equal_rows(&matrix) {
            matrix = matrix.keep(&vec![true; matrix.width()], &rows);
        }
        if let Some(rows) = implied_rows(&matrix, steps) {
            matrix = matrix.keep(&vec![true; matrix.width()], &rows);
        }
        if let Some(columns) = needless_columns(&matrix, &no_dearer, steps) {
            matrix = matrix.keep(&columns, &vec![true; matrix.height()]);
        }
        if size == (matrix.width(), matrix.height()) {
            break;
        }
    }
    Reduced {
        forced,
        rest: matrix,
    }
}

/// Moves into `forced` each column (input) that is the only one to cover some row (feature) of the
/// matrix. Returns the matrix without these columns and the rows that they cover; `None` if there
/// are no such columns.
fn without_sole_holders(matrix: &Matrix, forced: &mut Vec<Column>) -> Option<Matrix> {
    let mut columns = vec![true; matrix.width()];
    let mut rows = vec![true; matrix.height()];
    let before = forced.len();
    for row in 0..matrix.height() {
        let [only] = matrix.holders_of(row) else {
            continue;
        };
        let only = *only as usize;
        if std::mem::replace(&mut columns[only], false) {
            forced.push(matrix.columns[only]);
            for covered in matrix.rows_of(only) {
                rows[*covered as usize] = false;
            }
        }
    }
    (forced.len() > before).then(|| matrix.keep(&columns, &rows))
}

/// Returns, for each row (feature) of a set cover matrix, whether a reduction keeps it: of rows
/// that are covered by the same columns (inputs) it keeps only the first. `None` if all rows
/// differ.
fn equal_rows(matrix: &Matrix) -> Option<Vec<bool>> {
    let mut seen: HashSet<&[u32]> = HashSet::with_capacity(matrix.height());
    let rows = 0..matrix.height();
    let kept: Vec<bool> = rows
        .map(|row| seen.insert(matrix.holders_of(row)))
        .collect();
    (seen.len() < matrix.height()).then_some(kept)
}

/// Returns a Bloom filter of 64 bits for each list of numbers, to exclude most non-subsets quickly.
fn signatures<'a>(lists: impl Iterator<Item = &'a [u32]>) -> Vec<u64> {
    let bit = |number: &u32| 1_u64 << (number.wrapping_mul(0x9E37_79B1) >> 26);
    lists
        .map(|list| list.iter().fold(0, |bits, number| bits | bit(number)))
        .collect()
}

/// Returns true if `part` is a subset of `whole`; both are ascending. Adds the number of steps
/// taken to `steps`.
fn is_part(part: &[u32], mut whole: &[u32], steps: &mut usize) -> bool {
    if part.len() > whole.len() {
        return false;
    }
    for number in part {
        // Galloping search, since the other list may be much longer.
        let mut reach = 1;
        while reach < whole.len() && whole[reach - 1] < *number {
            reach *= 2;
            *steps += 1;
        }
        let end = reach.min(whole.len());
        let at = whole[..end].partition_point(|other| other < number);
        *steps += 2;
        if whole.get(at) != Some(number) {
            return false;
        }
        whole = &whole[at + 1..];
    }
    true
}

/// Returns, for each row (feature) of a set cover matrix, whether a reduction keeps it. A row is
/// dropped if all columns (inputs) that cover some other row cover it, too, since every cover
/// covers that other row. `None` if all rows are kept. No two rows may have equal columns.
fn implied_rows(matrix: &Matrix, steps: &mut Steps) -> Option<Vec<bool>> {
    let height = matrix.height();
    let marks = signatures((0..height).map(|row| matrix.holders_of(row)));
    let mut kept = vec![true; height];
    let mut order: Vec<usize> = (0..height).collect();
    order.sort_by_key(|row| (matrix.holders_of(*row).len(), *row));
    let mut dropped = false;
    for row in order {
        let holders = matrix.holders_of(row);
        if !kept[row] {
            continue;
        }
        // An implied row has all columns of this row, so it is found in the shortest of them.
        let shortest = holders
            .iter()
            .map(|holder| matrix.rows_of(*holder as usize));
        let Some(shortest) = shortest.min_by_key(|rows| rows.len()) else {
            continue;
        };
        let mut done = holders.len() + shortest.len();
        for other in shortest {
            let other = *other as usize;
            if other == row || !kept[other] || marks[row] & !marks[other] != 0 {
                continue;
            }
            if is_part(holders, matrix.holders_of(other), &mut done) {
                kept[other] = false;
                dropped = true;
            }
        }
        if !steps.take(done) {
            break;
        }
    }
    dropped.then_some(kept)
}

/// Returns, for each column (input) of a set cover matrix, whether a reduction keeps it: it drops a
/// column if another one that it keeps covers all its rows (features) and costs no more; of equal
/// ones, it keeps the first. When `steps` are used up, all further columns are kept. `None` if all
/// are kept.
fn needless_columns(
    matrix: &Matrix,
    no_dearer: &impl Fn(&Column, &Column) -> bool,
    steps: &mut Steps,
) -> Option<Vec<bool>> {
    let width = matrix.width();
    let marks = signatures((0..width).map(|column| matrix.rows_of(column)));
    let mut kept = vec![true; width];
    let mut dropped = false;
    for column in 0..width {
        let rows = matrix.rows_of(column);
        // A column with all these rows is a column of the rarest of them.
        let holders = rows.iter().map(|row| matrix.holders_of(*row as usize));
        let Some(rarest) = holders.min_by_key(|holders| holders.len()) else {
            continue;
        };
        let own = &matrix.columns[column];
        let mut done = rows.len() + rarest.len();
        let stands_in = |other: &u32, done: &mut usize| {
            let other = *other as usize;
            let better = &matrix.columns[other];
            // Of two equal columns the first is kept.
            other != column
                && kept[other]
                && marks[column] & !marks[other] == 0
                && no_dearer(better, own)
                && (other < column
                    || !no_dearer(own, better)
                    || matrix.rows_of(other).len() > rows.len())
                && is_part(rows, matrix.rows_of(other), done)
        };
        if rarest.iter().any(|other| stands_in(other, &mut done)) {
            kept[column] = false;
            dropped = true;
        }
        if !steps.take(done) {
            break;
        }
    }
    dropped.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_told_from_a_list_that_is_none() {
        let whole: Vec<u32> = (0..100).map(|number| number * 3).collect();
        let is = |part: &[u32]| is_part(part, &whole, &mut 0);
        assert!(is(&[]) && is(&[0]) && is(&[297]) && is(&[0, 3, 150, 297]) && is(&whole));
        assert!(!is(&[1]) && !is(&[0, 4]) && !is(&[298]) && !is(&[300]) && !is(&[3, 3]));
    }
}
