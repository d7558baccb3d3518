//! The tree that brackets and separators make of a text.

use std::ops::Range;

use super::places::{moved, union};
use super::units::Units;
use super::workpiece::Workpiece;
use crate::Edit;

/// A leaf or a bracket pair with what is inside, as places in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Where it begins: with what names it, as `"key":`.
    pub start: usize,
    /// Where its body begins, for a pair the opening bracket.
    pub open: usize,
    /// Where its closing part begins, for a pair; for a leaf its end.
    pub close: usize,
    /// Where it ends.
    pub end: usize,
    /// Where the separator behind it ends; `end` where there is none.
    pub separated: usize,
    /// The pair around it.
    pub parent: Option<usize>,
    /// Behind its last descendant.
    pub last: usize,
    /// Whether it is a bracket pair.
    pub pair: bool,
}

impl Node {
    fn shift(&mut self, gone: &[Range<usize>]) {
        for at in [
            &mut self.start,
            &mut self.open,
            &mut self.close,
            &mut self.end,
            &mut self.separated,
        ] {
            *at = moved(gone, *at);
        }
    }
}

/// The nodes of a text in pre-order. As units, a pair goes only with all that is inside.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The nodes that go with these cuts and are not inside of others that go.
    fn gone(&self, cuts: &[Range<usize>]) -> Vec<usize> {
        let mut gone = Vec::new();
        for cut in cuts {
            let mut at = cut.start;
            while at < cut.end {
                match self.nodes[at].last <= cut.end {
                    true => {
                        gone.push(at);
                        at = self.nodes[at].last;
                    }
                    false => at += 1,
                }
            }
        }
        gone
    }

    /// The sibling in front of a node.
    fn previous(&self, node: usize) -> Option<usize> {
        let parent = self.nodes[node].parent;
        let mut at = node.checked_sub(1)?;
        while self.nodes[at].parent != parent {
            at = self.nodes[at].parent?;
        }
        (Some(at) != parent).then_some(at)
    }

    /// The places that go with nodes: their own with the separator behind, and the separator in
    /// front where the last of the siblings goes.
    fn places(&self, gone: &[usize]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        for node in gone {
            let Node {
                start,
                end,
                separated,
                ..
            } = self.nodes[*node];
            let mut from = start;
            if separated == end {
                let mut before = self.previous(*node);
                while let Some(one) = before.filter(|one| gone.binary_search(one).is_ok()) {
                    before = self.previous(one);
                }
                if let Some(last) = before.map(|one| &self.nodes[one]) {
                    places.push(last.end..last.separated);
                    from = from.max(last.separated);
                }
            }
            places.push(from..separated);
        }
        union(places)
    }

    /// The pair around which nothing is, or which is not the only child of its pair, with its only
    /// child, the only child of that, and so on: chains of at least two nodes.
    pub fn chains(&self) -> Vec<Vec<usize>> {
        let only_child = |node: usize| {
            let Node { last, pair, .. } = self.nodes[node];
            (pair && node + 1 < last && self.nodes[node + 1].last == last).then_some(node + 1)
        };
        let heads = (0..self.nodes.len()).filter(|node| {
            self.nodes[*node].pair && node.checked_sub(1).and_then(only_child) != Some(*node)
        });
        let chain = |head: usize| std::iter::successors(Some(head), |at| only_child(*at));
        heads
            .map(|head| chain(head).collect::<Vec<_>>())
            .filter(|chain| chain.len() > 1)
            .collect()
    }
}

impl Units for Tree {
    fn rule(&self) -> &'static str {
        "siblings"
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn edit(&self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit> {
        let places = self.places(&self.gone(cuts));
        (!places.is_empty()).then_some(Edit::Cut(places))
    }

    fn taken(&mut self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize> {
        let tops = self.gone(cuts);
        let places = self.places(&tops);
        let mut gone = vec![false; self.nodes.len()];
        for top in tops {
            gone[top..self.nodes[top].last].fill(true);
        }
        let stand = cuts
            .iter()
            .map(|cut| gone[cut.clone()].iter().filter(|gone| !**gone).count());
        let stand = stand.collect();
        let mut index = Vec::with_capacity(gone.len() + 1);
        let mut kept = 0;
        for gone in &gone {
            index.push(kept);
            kept += usize::from(!gone);
        }
        index.push(kept);
        let mut at = 0;
        self.nodes.retain(|_| {
            at += 1;
            !gone[at - 1]
        });
        for node in &mut self.nodes {
            node.shift(&places);
            node.parent = node.parent.map(|parent| index[parent]);
            node.last = index[node.last];
        }
        stand
    }

    fn all_is_open(&self) -> bool {
        false
    }
}
