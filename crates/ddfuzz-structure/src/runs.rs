//! Runs (sequences) of successive object numbers, as the cross-reference tables and streams of PDF
//! state them: when rows (entries) of a table are deleted, the runs are computed from the rows that
//! remain.

use std::sync::Arc;

use crate::node::Label;

/// Text in a file that states which numbers the rows of a table have, as runs (sequences) of
/// successive numbers: the first number of each run, and how many numbers the run has.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Label (id in the file's tree) of the group of nodes of the table's first row; the labels of
    /// the other rows follow it in order.
    pub first: Label,
    /// Number of each row in the original file, in ascending order.
    pub numbers: Arc<[u64]>,
    /// How the runs (sequences of successive numbers) are written in the file: each before its
    /// first row, or all in one list.
    pub form: RunForm,
}

/// How a file writes runs (sequences) of successive numbers, each by its first number and length:
/// each run in front of its first row, or all in one list.
#[derive(Clone, Debug)]
pub enum RunForm {
    /// The text stands in front of the row with this index (from 0). If a run (sequence of
    /// successive numbers) begins with that row, the text is the run's first number, its length,
    /// and these bytes; otherwise it is empty.
    Head(usize, Arc<[u8]>),
    /// The file lists all runs (sequences of successive numbers) in one place, as pairs of a run's
    /// first number and its length, after the bytes `front` and before the bytes `back`.
    List {
        /// Bytes that the list of runs (sequences of successive numbers) has before the first run.
        front: Arc<[u8]>,
        /// Bytes that the list of runs (sequences of successive numbers) has after the last run.
        back: Arc<[u8]>,
        /// True if the original file has no such list, because its runs (sequences of successive
        /// numbers) are the usual ones: then no list is written as long as no row was deleted.
        is_implied: bool,
    },
}

impl Runs {
    /// Returns the text by which the file states which rows of a table follow each other (first
    /// number and count), for the rows that are left; `is_left` returns true for the label (id in
    /// the file's tree) of such a row.
    pub fn write(&self, is_left: impl Fn(Label) -> bool) -> Vec<u8> {
        let has = |index: usize| is_left(self.first + index as Label);
        match &self.form {
            RunForm::Head(index, end) => match has(*index) && !self.continues(*index, &has) {
                true => [self.run(*index, &has).as_bytes(), end].concat(),
                false => Vec::new(),
            },
            RunForm::List {
                front,
                back,
                is_implied,
            } => {
                let count = self.numbers.len();
                if *is_implied && (0..count).all(has) {
                    return Vec::new();
                }
                let starts =
                    (0..count).filter(|index| has(*index) && !self.continues(*index, &has));
                let runs: Vec<String> = starts.map(|index| self.run(index, &has)).collect();
                [front, runs.join(" ").as_bytes(), back].concat()
            }
        }
    }

    /// Returns true if the row at `index` continues a run of successive numbers: the row before it
    /// still exists (`has` returns true for its index), and has the number one lower. Returns false
    /// if a new run begins with this row.
    fn continues(&self, index: usize, has: &impl Fn(usize) -> bool) -> bool {
        let before = index.checked_sub(1).filter(|before| has(*before));
        before
            .is_some_and(|before| self.numbers[before].checked_add(1) == Some(self.numbers[index]))
    }

    /// Returns the text that states the run of successive numbers which begins with the row at
    /// `index`: its first number and its length, as in `5 3`. `has` returns true for the index of a
    /// row that was not deleted.
    fn run(&self, index: usize, has: &impl Fn(usize) -> bool) -> String {
        let rest = index + 1..self.numbers.len();
        let follow = rest.take_while(|next| has(*next) && self.continues(*next, has));
        format!("{} {}", self.numbers[index], 1 + follow.count())
    }
}
