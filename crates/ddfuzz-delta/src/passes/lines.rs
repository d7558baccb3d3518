//! Lines as units.

use std::ops::Range;

use super::units::Units;
use super::workpiece::Workpiece;
use crate::Edit;

/// The lines of the best, each with its newline.
pub(super) struct Lines {
    /// Where each line begins, and behind them the end of the text.
    starts: Vec<usize>,
}

impl Lines {
    /// The lines of the best.
    pub fn of(work: &mut Workpiece) -> Lines {
        let text = work.text();
        let behind = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let mut starts: Vec<usize> = std::iter::once(0)
            .chain(behind.map(|(at, _)| at + 1))
            .collect();
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Lines { starts }
    }

    fn place(&self, cut: &Range<usize>) -> Range<usize> {
        self.starts[cut.start]..self.starts[cut.end]
    }
}

impl Units for Lines {
    fn rule(&self) -> &'static str {
        "lines"
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn edit(&self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(cuts.iter().map(|cut| self.place(cut)).collect()))
    }

    fn taken(&mut self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize> {
        for cut in cuts.iter().rev() {
            let gone = self.place(cut).len();
            self.starts.drain(cut.clone());
            self.starts[cut.start..]
                .iter_mut()
                .for_each(|at| *at -= gone);
        }
        vec![0; cuts.len()]
    }

    fn all_is_open(&self) -> bool {
        false
    }
}
