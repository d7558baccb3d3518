//! The units that a list search deletes: the trait [`Units`], bytes, lines, brackets, strings.

use std::ops::Range;

use crate::Edit;
use crate::passes::current_best::CurrentBest;
use crate::passes::ranges::{moved_place, union};
use crate::passes::tree::Tree;

/// A list of units of the best that a list search deletes from, whatever deleting one takes.
pub(super) trait Units: Send {
    /// The name of the pass, as the log has it.
    fn rule(&self) -> &'static str;

    /// Number of units left.
    fn len(&self) -> usize;

    /// Deletes units; `None` where nothing would change. The ranges ascend without overlap.
    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit>;

    /// The edit of these cuts was taken. What has to stand although it lies in a cut, because
    /// something is left inside of it, is its answer, a number for each cut.
    fn taken(&mut self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize>;

    /// First of the units up to `index` whose deletion gives the same text as that of `index`.
    fn alike_from(&self, _: &CurrentBest, index: usize) -> usize {
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
    pub fn all(work: &CurrentBest, rule: &'static str, group: usize, skipped: usize) -> Bytes {
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

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(cuts.iter().map(|cut| self.place(cut)).collect()))
    }

    fn taken(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let gone: usize = cuts.iter().map(|cut| self.place(cut).len()).sum();
        self.at.end -= gone;
        vec![0; cuts.len()]
    }

    fn alike_from(&self, work: &CurrentBest, index: usize) -> usize {
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

/// The lines of the best, each with its newline.
pub(super) struct Lines {
    /// Where each line begins, and behind them the end of the text.
    starts: Vec<usize>,
}

impl Lines {
    /// The lines of the best.
    pub fn of(work: &mut CurrentBest) -> Lines {
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

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(cuts.iter().map(|cut| self.place(cut)).collect()))
    }

    fn taken(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
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

/// Places of the best, each of one or more ranges, that go one by one: the brackets of pairs, the
/// inside of strings.
pub(super) struct Positions {
    rule: &'static str,
    spots: Vec<Vec<Range<usize>>>,
}

impl Positions {
    /// The brackets of all pairs with their names: what is inside stays.
    pub fn brackets(tree: &Tree) -> Positions {
        let pairs = tree.nodes.iter().filter(|node| node.pair);
        Positions {
            rule: "unwrap",
            spots: pairs
                .map(|pair| vec![pair.start..pair.open + 1, pair.close..pair.end])
                .collect(),
        }
    }

    /// The inside of strings.
    pub fn strings(strings: Vec<Range<usize>>) -> Positions {
        let inside = strings.into_iter().filter(|inside| !inside.is_empty());
        Positions {
            rule: "strings",
            spots: inside.map(|inside| vec![inside]).collect(),
        }
    }

    fn places(&self, cuts: &[Range<usize>]) -> Vec<Range<usize>> {
        let spots = cuts.iter().flat_map(|cut| &self.spots[cut.clone()]);
        union(spots.flatten().cloned().collect())
    }
}

impl Units for Positions {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.spots.len()
    }

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let places = self.places(cuts);
        (!places.is_empty()).then_some(Edit::Cut(places))
    }

    fn taken(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let places = self.places(cuts);
        for cut in cuts.iter().rev() {
            self.spots.drain(cut.clone());
        }
        for range in self.spots.iter_mut().flatten() {
            *range = moved_place(&places, range);
        }
        vec![0; cuts.len()]
    }
}
