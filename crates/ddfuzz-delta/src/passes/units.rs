//! What a list search deletes: bytes, lines, siblings, records.

use std::ops::Range;

use super::workpiece::Workpiece;
use crate::Edit;

/// A list of units of the best that a list search deletes from, whatever deleting one takes.
pub(super) trait Units: Send {
    /// The name of the pass, as the log has it.
    fn rule(&self) -> &'static str;

    /// Number of units left.
    fn len(&self) -> usize;

    /// Deletes units; `None` where nothing would change. The ranges ascend without overlap.
    fn edit(&self, work: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit>;

    /// The edit of these cuts was taken. What has to stand although it lies in a cut, because
    /// something is left inside of it, is its answer, a number for each cut.
    fn taken(&mut self, work: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize>;

    /// First of the units up to `index` whose deletion gives the same text as that of `index`.
    fn alike_from(&self, _: &Workpiece, index: usize) -> usize {
        index
    }

    /// Whether a later pass tries each unit that is left alone.
    fn are_judged_again(&self) -> bool {
        false
    }

    /// Whether the text without any of them is still to be tested.
    fn all_is_open(&self) -> bool {
        true
    }
}

/// The bytes of the best, one by one or in groups of a fixed size; the last group takes the rest.
pub(super) struct Bytes {
    rule: &'static str,
    at: Range<usize>,
    group: usize,
    /// Whether a later pass tries each byte alone.
    judged: bool,
}

impl Bytes {
    /// All bytes of the best in groups of `group`, the first of them after `skipped` bytes.
    pub fn all(work: &Workpiece, rule: &'static str, group: usize, skipped: usize) -> Bytes {
        Bytes {
            rule,
            at: skipped.min(work.len())..work.len(),
            group,
            judged: true,
        }
    }

    /// The bytes of a range, one by one, which no later pass can try in this way.
    pub fn within(rule: &'static str, at: Range<usize>) -> Bytes {
        Bytes {
            rule,
            at,
            group: 1,
            judged: false,
        }
    }

    fn place(&self, cut: &Range<usize>) -> Range<usize> {
        let start = self.at.start + cut.start * self.group;
        let end = match cut.end == self.len() {
            true => self.at.end,
            false => self.at.start + cut.end * self.group,
        };
        start..end
    }
}

impl Units for Bytes {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.at.len() / self.group
    }

    fn edit(&self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(cuts.iter().map(|cut| self.place(cut)).collect()))
    }

    fn taken(&mut self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize> {
        let gone: usize = cuts.iter().map(|cut| self.place(cut).len()).sum();
        self.at.end -= gone;
        vec![0; cuts.len()]
    }

    fn alike_from(&self, work: &Workpiece, index: usize) -> usize {
        match self.group {
            1 => work
                .run_start(self.at.start + index)
                .saturating_sub(self.at.start),
            _ => index,
        }
    }

    fn are_judged_again(&self) -> bool {
        self.judged
    }

    fn all_is_open(&self) -> bool {
        // The empty text is part of the axiom.
        self.at.start > 0
    }
}
