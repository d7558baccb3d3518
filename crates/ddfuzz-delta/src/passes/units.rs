//! The units that a list search deletes: the trait [`Units`], and its implementations for bytes,
//! lines, brackets and strings.

use std::ops::Range;

use crate::Edit;
use crate::passes::current_best::CurrentBest;
use crate::passes::ranges::{mover, remove, union};
use crate::passes::tree::Tree;

/// A list of units (bytes, lines or others) of the current best text, from which a list search
/// deletes.
pub(super) trait Units: Send {
    /// Returns the name, in logs, of the pass that deletes the units of this list.
    fn rule(&self) -> &'static str;

    /// Returns the number of units (bytes, lines or others) of the list that remain.
    fn len(&self) -> usize;

    /// Builds the edit that deletes the units in `cuts`, which ascend and do not overlap; `None` if
    /// it would change nothing.
    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit>;

    /// Updates the list after the text without the units in `cuts` failed and became the current
    /// best text. Returns, for each of `cuts`, how many of its units are still in the list; that is
    /// 0 unless a unit (such as a pair of brackets) contains units that were kept.
    fn accept(&mut self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize>;

    /// Returns the index of the first unit whose deletion gives the same text as the deletion of
    /// the unit at `index`. In a sequence of equal bytes, that is the first byte of the sequence;
    /// in general, it is `index` itself.
    fn first_equal(&self, _: &CurrentBest, index: usize) -> usize {
        index
    }

    /// Returns the position in the text of the first unit, if the units are bytes that follow each
    /// other; `None` (the default) for other units.
    fn first_byte(&self) -> Option<usize> {
        None
    }

    /// Returns true if a later pass of the search tests each remaining unit alone. The list search
    /// then does not try again the units that it has skipped by a wrong guess. False by default.
    fn are_retried(&self) -> bool {
        false
    }

    /// Returns true if the search shall test the text without all units of the list; false if the
    /// caller has probably tested it before.
    fn is_all_untested(&self) -> bool {
        true
    }
}

/// The bytes of the current best text as units, one by one or in groups of a fixed size; the last
/// group may be larger.
pub(super) struct Bytes {
    rule: &'static str,
    at: Range<usize>,
    group: usize,
    /// True if a later pass of the search tests the deletion of each byte alone; this is what
    /// [`Units::are_retried`] returns for these units.
    judged: bool,
}

impl Bytes {
    /// Lists all bytes of the current best text in groups of `group` bytes, except for the first
    /// `skipped` bytes.
    pub fn all(work: &CurrentBest, rule: &'static str, group: usize, skipped: usize) -> Bytes {
        Bytes {
            rule,
            at: skipped.min(work.len())..work.len(),
            group,
            judged: true,
        }
    }

    /// Lists the bytes in the range `at` of the current best text as units to delete, each a group
    /// of `group` bytes; for a pass after which no other pass tries the same deletions again.
    pub fn within(rule: &'static str, at: Range<usize>, group: usize) -> Bytes {
        Bytes {
            rule,
            at,
            group,
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

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let gone: usize = cuts.iter().map(|cut| self.place(cut).len()).sum();
        self.at.end -= gone;
        vec![0; cuts.len()]
    }

    fn first_equal(&self, work: &CurrentBest, index: usize) -> usize {
        match self.group {
            1 => work
                .run_start(self.at.start + index)
                .saturating_sub(self.at.start),
            _ => index,
        }
    }

    fn first_byte(&self) -> Option<usize> {
        (self.group == 1).then_some(self.at.start)
    }

    fn are_retried(&self) -> bool {
        self.judged
    }

    fn is_all_untested(&self) -> bool {
        // The caller has tested the empty text.
        self.at.start > 0
    }
}

/// The lines of the current best text, or sequences of lines, as units of a list search, each with
/// its newline.
pub(super) struct Lines {
    /// Start offset, in bytes, of each unit of the text, followed by the offset of the text's end.
    starts: Vec<usize>,
}

impl Lines {
    /// Splits the current best text into lines, as units of a list search.
    pub fn of(work: &mut CurrentBest) -> Lines {
        Lines::in_runs(work, 1)
    }

    /// Splits the current best text into sequences of lines of at least `size` bytes (only the last
    /// one may be smaller), as units of a list search.
    pub fn in_runs(work: &mut CurrentBest, size: usize) -> Lines {
        let text = work.text();
        let mut starts = vec![0];
        let mut at = 0;
        while at < text.len() {
            let least = (at + size.max(1) - 1).min(text.len());
            let line = text[least..].iter().position(|byte| *byte == b'\n');
            at = line.map_or(text.len(), |line| least + line + 1);
            starts.push(at);
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

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let places: Vec<Range<usize>> = cuts.iter().map(|cut| self.place(cut)).collect();
        let moved = mover(&places);
        remove(&mut self.starts, cuts);
        self.starts.iter_mut().for_each(|at| *at = moved(*at));
        vec![0; cuts.len()]
    }

    fn is_all_untested(&self) -> bool {
        false
    }
}

/// Ranges of the current best text as units of a list search: brackets with their counterparts,
/// contents of strings, words or blanks. A unit consists of one or more ranges.
pub(super) struct Positions {
    rule: &'static str,
    spots: Vec<Vec<Range<usize>>>,
}

impl Positions {
    /// Lists units that consist of one or more ranges of the text each, to be deleted by the pass
    /// `rule`; ranges do not overlap. Each item of `spots` is one unit.
    pub fn new(rule: &'static str, spots: Vec<Vec<Range<usize>>>) -> Positions {
        Positions { rule, spots }
    }

    /// Lists the brackets of all pairs of a tree, with the names before them, as units to delete;
    /// what is inside the brackets stays.
    pub fn brackets(tree: &Tree) -> Positions {
        let pairs = tree.nodes.iter().filter(|node| node.pair);
        Positions {
            rule: "unwrap",
            spots: pairs
                .map(|pair| vec![pair.start..pair.inner, pair.close..pair.end])
                .collect(),
        }
    }

    /// Lists the contents of `strings` (ranges of quoted strings) that are not empty, as units to
    /// delete.
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

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let places = self.places(cuts);
        let moved = mover(&places);
        remove(&mut self.spots, cuts);
        for range in self.spots.iter_mut().flatten() {
            *range = moved(range.start)..moved(range.end);
        }
        vec![0; cuts.len()]
    }
}
