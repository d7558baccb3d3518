//! An instance in memory.

use std::io;

use super::{Columns, Slowness};

/// An input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Its number in [`super::Sets`].
    pub item: u32,
    pub bytes: u64,
    pub slowness: Slowness,
    /// What it costs, more than 0.
    pub weight: u64,
}

impl Column {
    /// One of which only the weight matters.
    pub fn weighing(item: u32, weight: u64) -> Column {
        Column {
            item,
            bytes: 0,
            slowness: Slowness::default(),
            weight,
        }
    }
}

/// Lists of numbers, end to end.
#[derive(Clone, Debug)]
struct Lists {
    starts: Vec<u32>,
    entries: Vec<u32>,
}

impl Lists {
    fn get(&self, list: usize) -> &[u32] {
        &self.entries[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// For each number below `numbers` the lists that have it, ascending.
    fn transposed(&self, numbers: usize) -> Lists {
        let mut starts = vec![0_u32; numbers + 1];
        for entry in &self.entries {
            starts[*entry as usize + 1] += 1;
        }
        for number in 0..numbers {
            starts[number + 1] += starts[number];
        }
        let mut next = starts.clone();
        let mut entries = vec![0; self.entries.len()];
        for (list, bounds) in self.starts.windows(2).enumerate() {
            for entry in &self.entries[bounds[0] as usize..bounds[1] as usize] {
                let place = &mut next[*entry as usize];
                entries[*place as usize] = list as u32;
                *place += 1;
            }
        }
        Lists { starts, entries }
    }
}

/// Columns of rows, and rows of columns. Each row has a column.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    pub columns: Vec<Column>,
    /// The row's number in the instance as it was gathered.
    pub names: Vec<u32>,
    rows_of: Lists,
    holders_of: Lists,
}

/// Takes the columns of a [`Matrix`] one by one.
#[derive(Clone)]
pub(super) struct Builder {
    columns: Vec<Column>,
    rows_of: Lists,
}

impl Builder {
    pub fn new() -> Builder {
        Builder {
            columns: Vec::new(),
            rows_of: Lists {
                starts: vec![0],
                entries: Vec::new(),
            },
        }
    }

    /// How many pairs of a column and a row there are.
    pub fn entries(&self) -> usize {
        self.rows_of.entries.len()
    }

    /// What each column costs.
    pub fn weights(&self) -> impl Iterator<Item = u64> {
        self.columns.iter().map(|column| column.weight)
    }

    /// Adds a column with these rows, ascending; one without rows is left out.
    pub fn push(&mut self, column: Column, rows: impl IntoIterator<Item = u32>) {
        let before = self.rows_of.entries.len();
        self.rows_of.entries.extend(rows);
        if self.rows_of.entries.len() > before {
            self.rows_of.starts.push(self.rows_of.entries.len() as u32);
            self.columns.push(column);
        }
    }

    /// The matrix; rows that no column has are dropped. `names` are those of all rows.
    pub fn finish(mut self, names: &[u32]) -> Matrix {
        let mut has_holder = vec![false; names.len()];
        for row in &self.rows_of.entries {
            has_holder[*row as usize] = true;
        }
        let mut number = vec![0; names.len()];
        let mut kept = Vec::new();
        for (row, name) in names.iter().enumerate().filter(|(row, _)| has_holder[*row]) {
            number[row] = kept.len() as u32;
            kept.push(*name);
        }
        for row in &mut self.rows_of.entries {
            *row = number[*row as usize];
        }
        let holders_of = self.rows_of.transposed(kept.len());
        Matrix {
            columns: self.columns,
            names: kept,
            rows_of: self.rows_of,
            holders_of,
        }
    }
}

impl Matrix {
    /// How many rows there are.
    pub fn height(&self) -> usize {
        self.names.len()
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// How many pairs of a column and a row there are.
    pub fn entries(&self) -> usize {
        self.rows_of.entries.len()
    }

    /// The rows of a column, ascending.
    pub fn rows_of(&self, column: usize) -> &[u32] {
        self.rows_of.get(column)
    }

    /// The columns of a row, ascending.
    pub fn holders_of(&self, row: usize) -> &[u32] {
        self.holders_of.get(row)
    }

    /// What these columns cost together.
    pub fn weight_of(&self, columns: &[usize]) -> u64 {
        columns.iter().map(|at| self.columns[*at].weight).sum()
    }

    /// The same with these columns and rows only; columns that have no row left are dropped, and
    /// so are rows that no column is left for.
    pub fn keep(&self, columns: &[bool], rows: &[bool]) -> Matrix {
        let mut builder = Builder::new();
        for (at, column) in self
            .columns
            .iter()
            .enumerate()
            .filter(|(at, _)| columns[*at])
        {
            let kept = self.rows_of(at).iter().copied();
            builder.push(*column, kept.filter(|row| rows[*row as usize]));
        }
        builder.finish(&self.names)
    }

    /// The same at other weights.
    pub fn weighed(&self, weight: impl Fn(&Column) -> u64) -> Matrix {
        let mut other = self.clone();
        for column in &mut other.columns {
            column.weight = weight(column);
        }
        other
    }

    /// The parts that share no row, each in the order of the whole.
    pub fn parts(self) -> Vec<Matrix> {
        let mut part_of_row = vec![usize::MAX; self.height()];
        let mut seen = vec![false; self.width()];
        let mut parts = 0;
        let mut open = Vec::new();
        for first in 0..self.height() {
            if part_of_row[first] != usize::MAX {
                continue;
            }
            part_of_row[first] = parts;
            open.push(first);
            while let Some(row) = open.pop() {
                for column in self.holders_of(row) {
                    if std::mem::replace(&mut seen[*column as usize], true) {
                        continue;
                    }
                    for other in self.rows_of(*column as usize) {
                        if part_of_row[*other as usize] == usize::MAX {
                            part_of_row[*other as usize] = parts;
                            open.push(*other as usize);
                        }
                    }
                }
            }
            parts += 1;
        }
        if parts <= 1 {
            return vec![self];
        }
        let mut builders: Vec<Builder> = (0..parts).map(|_| Builder::new()).collect();
        for (at, column) in self.columns.iter().enumerate() {
            let rows = self.rows_of(at);
            builders[part_of_row[rows[0] as usize]].push(*column, rows.iter().copied());
        }
        let finish = |builder: Builder| builder.finish(&self.names);
        builders.into_iter().map(finish).collect()
    }
}

/// The columns of a matrix, which can always be read.
pub(super) struct InMemory<'a>(pub &'a Matrix);

impl Columns for InMemory<'_> {
    fn columns(&self) -> usize {
        self.0.width()
    }

    fn rows(&self) -> usize {
        self.0.height()
    }

    fn weight(&self, column: usize) -> u64 {
        self.0.columns[column].weight
    }

    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()> {
        into.clear();
        into.extend_from_slice(self.0.rows_of(column));
        Ok(())
    }
}
