//! Makes a cover better by small changes.

use std::cmp::Reverse;
use std::io;

use super::sets::Columns;
use super::steps::Steps;

/// How often all columns are looked at.
const PASSES: usize = 4;

/// A cover under change.
struct Change<'a, C> {
    columns: &'a mut C,
    /// How many of the chosen have a row.
    holders: Vec<u32>,
    is_chosen: Vec<bool>,
    rows: Vec<u32>,
}

/// Takes out what is not needed, the heaviest first, and then puts one column in the place of one
/// or more that together cost more, as long as that goes on and steps are left. The result is
/// ascending, covers the same, and costs no more.
pub(super) fn improved(
    columns: &mut impl Columns,
    chosen: &[usize],
    steps: &mut Steps,
) -> io::Result<Vec<usize>> {
    let mut change = Change {
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

impl<C: Columns> Change<'_, C> {
    fn put(&mut self, column: usize) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_chosen[column], true) {
            self.columns.read(column, &mut self.rows)?;
            for row in &self.rows {
                self.holders[*row as usize] += 1;
            }
        }
        Ok(())
    }

    /// Takes a column out if the others cover its rows.
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

    /// Who of the chosen alone has a row (the column after it, or 0), and how many such rows each
    /// chosen one has.
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

    /// Offers each column that is not chosen the places of those whose own rows it has.
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

    /// Puts a column in the place of others, the heaviest first, unless that costs more in the end:
    /// two may share a row that nobody else has.
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
