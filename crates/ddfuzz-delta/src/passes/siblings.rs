//! The children of a node of a syntax tree as units of a list search, each with its separator.

use std::collections::BinaryHeap;
use std::ops::Range;

use crate::Edit;
use crate::document::{SyntaxClass, SyntaxNode, SyntaxTree};
use crate::passes::current_best::CurrentBest;
use crate::passes::ranges::{is_within, mover, new_indices, retain, union};
use crate::passes::units::Units;

/// Name, in logs, of the pass that deletes nodes of a syntax tree among their siblings.
pub(super) const NODES: &str = "nodes";
/// Number of successive syntax nodes that could not lose all of their children at once, after which
/// no test deletes all children of a node together.
const NEEDED: usize = 2;

/// The children of one node of a syntax tree as units of a list search. The tree is kept up to date
/// while nodes are deleted.
pub(super) struct Siblings {
    nodes: Vec<SyntaxNode>,
    /// For each node of the syntax tree, whether the deletion of its children was tried.
    done: Vec<bool>,
    /// The nodes of the syntax tree whose children were not tried yet, each as its size in bytes
    /// and its index; the largest comes first.
    open: BinaryHeap<(usize, usize)>,
    /// Indices, in the syntax tree, of those children of the node being tried that were not deleted
    /// yet.
    children: Vec<usize>,
    /// Number of successive syntax nodes, including the present one, that have kept at least one
    /// child so far.
    needed: usize,
}

impl Siblings {
    /// Creates the state for deleting children of the nodes of `tree`, none of which was tried yet.
    pub fn of(tree: SyntaxTree) -> Siblings {
        let done = vec![false; tree.nodes.len()];
        Siblings {
            open: open_nodes(&tree.nodes, &done),
            done,
            nodes: tree.nodes,
            children: Vec::new(),
            needed: 0,
        }
    }

    /// Returns the node with the index `index` in the syntax tree of the present text.
    pub fn node(&self, index: usize) -> &SyntaxNode {
        &self.nodes[index]
    }

    /// Returns true if statements or declarations are among the children of the present node.
    pub fn has_statements(&self) -> bool {
        let mut classes = self.children.iter().map(|child| self.nodes[*child].class);
        classes.any(|class| matches!(class, SyntaxClass::Statement | SyntaxClass::Declaration))
    }

    /// Chooses the largest node whose children were not tried yet, and returns its index; `None` if
    /// there is none.
    pub fn next_parent(&mut self) -> Option<usize> {
        loop {
            let (_, parent) = self.open.pop()?;
            self.done[parent] = true;
            self.children = children(&self.nodes, parent)
                .filter(|child| self.nodes[*child].class != SyntaxClass::Punctuation)
                .filter(|child| !self.nodes[*child].place.is_empty())
                .collect();
            // Without its only child, a node of the same size was deleted with its own siblings; and
            // nothing is left of the root.
            let whole = |child: &usize| self.nodes[*child].place == self.nodes[parent].place;
            let is_root = parent == 0 && self.children.len() == 1;
            if !self.children.is_empty() && !is_root && !self.children.iter().any(whole) {
                self.needed += 1;
                return Some(parent);
            }
        }
    }

    /// Returns the ranges of the text to delete for those children of the present node whose
    /// indices in the list are in `cuts`: each child with the separator after it, or with the one
    /// before it if none follows.
    fn places(&self, cuts: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        for cut in cuts {
            let gone = &self.children[cut.clone()];
            let (Some(first), Some(last)) = (gone.first(), gone.last()) else {
                continue;
            };
            let mut place = self.nodes[*first].place.start..self.nodes[*last].place.end;
            match separator(&self.nodes, self.nodes[*last].last) {
                Some(after) => place.end = after.end,
                None => {
                    let before = cut.start.checked_sub(1).map(|index| self.children[index]);
                    let before =
                        before.and_then(|one| separator(&self.nodes, self.nodes[one].last));
                    place.start = before.map_or(place.start, |before| before.start);
                }
            }
            places.push(place);
        }
        union(places)
    }

    /// Removes the nodes that lie in `places`, the deleted ranges of the text, from the tree, and
    /// moves the other nodes to their new positions.
    fn delete(&mut self, places: &[Range<usize>]) {
        let is_gone = |node: &SyntaxNode| !node.place.is_empty() && is_within(places, &node.place);
        let gone: Vec<bool> = self.nodes.iter().map(is_gone).collect();
        let index = new_indices(&gone);
        retain(&mut self.nodes, &gone);
        retain(&mut self.done, &gone);
        let moved = mover(places);
        for node in &mut self.nodes {
            node.place = moved(node.place.start)..moved(node.place.end);
            node.parent = node.parent.map(|parent| index[parent]);
            node.last = index[node.last];
        }
        self.children.retain(|child| !gone[*child]);
        for child in &mut self.children {
            *child = index[*child];
        }
        self.open = open_nodes(&self.nodes, &self.done);
    }
}

/// Returns the range of the node at `index` if the node is a separator between two siblings, such
/// as a comma; else `None`.
pub(super) fn separator(nodes: &[SyntaxNode], index: usize) -> Option<Range<usize>> {
    let node = nodes.get(index)?;
    let is_separator = node.class == SyntaxClass::Punctuation && node.place.len() == 1;
    let next = nodes.get(node.last)?;
    (is_separator && next.parent == node.parent && next.class != SyntaxClass::Punctuation)
        .then(|| node.place.clone())
}

/// Returns those nodes of the syntax tree that have children and are not marked in `done`, each as
/// its size in bytes and its index in the tree; the heap gives the largest one first.
fn open_nodes(nodes: &[SyntaxNode], done: &[bool]) -> BinaryHeap<(usize, usize)> {
    let nodes = nodes.iter().enumerate().zip(done);
    let open = nodes.filter(|((index, node), done)| !**done && node.last > index + 1);
    open.map(|((index, node), _)| (node.place.len(), index))
        .collect()
}

/// Returns the indices of the children of the node with the index `parent`.
pub(super) fn children(nodes: &[SyntaxNode], parent: usize) -> impl Iterator<Item = usize> {
    let end = nodes[parent].last;
    let first = Some(parent + 1).filter(|first| *first < end);
    std::iter::successors(first, move |child| {
        Some(nodes[*child].last).filter(|next| *next < end)
    })
}

impl Units for Siblings {
    fn rule(&self) -> &'static str {
        NODES
    }

    fn len(&self) -> usize {
        self.children.len()
    }

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let places = self.places(cuts);
        (!places.is_empty()).then_some(Edit::Cut(places))
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let places = self.places(cuts);
        let before = self.children.len();
        self.delete(&places);
        let asked: usize = cuts.iter().map(Range::len).sum();
        debug_assert_eq!(self.children.len() + asked, before);
        if self.children.is_empty() {
            self.needed = 0;
        }
        vec![0; cuts.len()]
    }

    /// Returns true if one test should delete all children of the present node. Returns false if
    /// that is likely to fail: each of the last [`NEEDED`] nodes kept at least one child that the
    /// failure needs. A single child is tested in any case.
    fn is_all_untested(&self) -> bool {
        self.needed <= NEEDED || self.children.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a tree of a root with `count` leaves of one byte.
    fn flat(count: usize) -> SyntaxTree {
        let leaf = |index: usize| SyntaxNode {
            place: index..index + 1,
            kind: 1,
            class: SyntaxClass::Number,
            parent: Some(0),
            last: index + 2,
        };
        let root = SyntaxNode {
            place: 0..count,
            kind: 0,
            class: SyntaxClass::Other,
            parent: None,
            last: count + 1,
        };
        SyntaxTree {
            nodes: [root].into_iter().chain((0..count).map(leaf)).collect(),
            ..SyntaxTree::default()
        }
    }

    #[test]
    fn leaves_are_no_parents_and_are_deleted_in_one_go() {
        let count = 1 << 17;
        let mut siblings = Siblings::of(flat(count));
        assert_eq!(siblings.open.len(), 1, "the root");
        assert_eq!(siblings.next_parent(), Some(0));
        let places: Vec<Range<usize>> = (0..count).step_by(2).map(|at| at..at + 1).collect();
        siblings.delete(&places);
        assert_eq!(siblings.children.len(), count / 2);
        assert_eq!(siblings.node(count / 2).place, count / 2 - 1..count / 2);
        assert_eq!(siblings.next_parent(), None);
    }
}
