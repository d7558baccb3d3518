//! Hoisting: a subtree stands in the place of one that it lies in.

use std::ops::Range;

use super::places::{moved_place, union};
use super::tree::Tree;
use super::units::Units;
use super::workpiece::Workpiece;
use crate::Edit;

/// One node of a chain: where its body begins and ends.
type Level = Range<usize>;

/// A chain of nodes, each the only child of the one before it. As units, its levels but for the
/// innermost: to delete some is to put the body of the first level behind them in the place of the
/// first of them, which keeps its name.
pub(super) struct Chain {
    levels: Vec<Level>,
}

impl Chain {
    /// The chain of these nodes of a tree, outermost first.
    pub fn of(tree: &Tree, nodes: &[usize]) -> Chain {
        let body = |node: &usize| tree.nodes[*node].open..tree.nodes[*node].end;
        Chain {
            levels: nodes.iter().map(body).collect(),
        }
    }

    fn places(&self, cuts: &[Range<usize>]) -> Vec<Range<usize>> {
        let sides = cuts.iter().flat_map(|cut| {
            let (outer, inner) = (&self.levels[cut.start], &self.levels[cut.end]);
            [outer.start..inner.start, inner.end..outer.end]
        });
        union(sides.collect())
    }
}

impl Units for Chain {
    fn rule(&self) -> &'static str {
        "hoist"
    }

    fn len(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    fn edit(&self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(self.places(cuts)))
    }

    fn taken(&mut self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize> {
        let places = self.places(cuts);
        for cut in cuts.iter().rev() {
            self.levels.drain(cut.clone());
        }
        for level in &mut self.levels {
            *level = moved_place(&places, level);
        }
        vec![0; cuts.len()]
    }
}
