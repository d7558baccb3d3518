//! Runs of successive numbers of rows, as the cross-reference tables of PDF state them: which objects
//! have rows follows from the rows that are left.

use std::sync::Arc;

use crate::node::Label;

/// Text in a file that states which numbers the rows of a table have, as runs of successive numbers:
/// the first number of each run, and how many there are.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Label of the group of the first row; those of the others follow.
    pub first: Label,
    /// Number of each row in the original file, in ascending order.
    pub numbers: Arc<[u64]>,
    /// How the runs are written.
    pub form: RunForm,
}

/// How runs of numbers are written in a file.
#[derive(Clone, Debug)]
pub enum RunForm {
    /// The head of the run that begins with the row of this index, with the bytes after it; nothing
    /// if none begins there.
    Head(usize, Arc<[u8]>),
    /// All runs, between these bytes. `is_implied` says that nothing is written while no row is
    /// missing.
    List {
        /// Bytes before the first run.
        front: Arc<[u8]>,
        /// Bytes after the last run.
        back: Arc<[u8]>,
        /// Whether nothing is written while all rows are in the file.
        is_implied: bool,
    },
}

impl Runs {
    /// Returns the bytes of the text; `is_left` says whether a group with this label is in the file.
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

    /// Checks whether the row at `index` follows one that is in the file and has the number before.
    fn continues(&self, index: usize, has: &impl Fn(usize) -> bool) -> bool {
        let before = index.checked_sub(1).filter(|before| has(*before));
        before
            .is_some_and(|before| self.numbers[before].checked_add(1) == Some(self.numbers[index]))
    }

    /// Returns first number and length of the run that begins with the row at `index`.
    fn run(&self, index: usize, has: &impl Fn(usize) -> bool) -> String {
        let rest = index + 1..self.numbers.len();
        let follow = rest.take_while(|next| has(*next) && self.continues(*next, has));
        format!("{} {}", self.numbers[index], 1 + follow.count())
    }
}
