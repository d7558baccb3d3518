//! The pass over the brackets and strings of a text: deletes siblings in the tree of brackets,
//! replaces brackets by brackets inside of them, and deletes brackets without their content, and
//! contents of strings.

use std::ops::Range;

use crate::Edit;
use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::ranges::{mover, remove, union};
use crate::passes::tree::{Tree, parse, strings};
use crate::passes::units::{Positions, Units};

/// A text with fewer pairs of brackets than this is not treated as structured.
pub(super) const FEWEST_PAIRS: usize = 3;

/// Number of successive brackets or strings that turn out to be needed for the failure, after which
/// a list search that deletes brackets or strings ends; later passes still try their bytes.
pub(super) const FRUITLESS: usize = 16;

/// Number of chains of nested brackets, one after the other, that cannot be shortened, after which
/// no further chain is tried.
const FRUITLESS_CHAINS: usize = 128;

/// Reduces a text by deleting parts of the tree that its brackets make; returns whether the text
/// has such a tree, with at least `fewest` pairs of brackets.
///
/// Invariant: matching brackets stay matched, and items of lists stay separated.
pub(super) async fn structure(work: &mut CurrentBest, fewest: usize) -> bool {
    if !parse(&work.text()).is_some_and(|tree| is_worth_it(&tree, fewest)) {
        return false;
    }
    reduce_tree(work, &parse).await;
    let mut inside = Positions::strings(strings(&work.text()));
    if inside.len() > 0 {
        ListSearch::new(work, &mut inside)
            .stop_after(FRUITLESS)
            .reduce()
            .await;
    }
    true
}

/// A function that parses a text into a tree of pairs (such as brackets with their content) and
/// leaves; `None` if the text has no such tree.
pub(super) type Parse = dyn Fn(&[u8]) -> Option<Tree> + Sync;

/// Reduces the text by the tree that `parse` makes of it: deletes nodes of the tree, shortens
/// chains of nested pairs, and removes pairs of brackets without their content.
pub(super) async fn reduce_tree(work: &mut CurrentBest, parse: &Parse) {
    let Some(mut tree) = parse(&work.text()) else {
        return;
    };
    ListSearch::new(work, &mut tree)
        .stop_after(FRUITLESS)
        .reduce()
        .await;
    hoist(work, parse).await;
    if let Some(tree) = parse(&work.text()) {
        let mut brackets = Positions::brackets(&tree);
        ListSearch::new(work, &mut brackets)
            .stop_after(FRUITLESS)
            .reduce()
            .await;
    }
}

/// Returns true if a tree of brackets has at least `fewest` pairs; a tree with fewer is not
/// reduced.
fn is_worth_it(tree: &Tree, fewest: usize) -> bool {
    tree.nodes.iter().filter(|node| node.pair).count() >= fewest
}

/// Shortens chains of nested pairs of brackets, outermost first. Ends when no chain of the text
/// becomes shorter, or when [`FRUITLESS_CHAINS`] chains one after another have not.
async fn hoist(work: &mut CurrentBest, parse: &Parse) {
    let (mut done, mut fruitless) = (0, 0);
    while let Some(tree) = parse(&work.text()) {
        let before = work.reductions();
        for chain in tree.chains().iter().skip(done) {
            if fruitless == FRUITLESS_CHAINS {
                return;
            }
            ListSearch::new(work, &mut Chain::of(&tree, chain))
                .stop_after(FRUITLESS)
                .reduce()
                .await;
            done += 1;
            fruitless += 1;
            if work.reductions() > before {
                fruitless = 0;
                break;
            }
        }
        if work.reductions() == before {
            return;
        }
    }
}

/// The range of one pair of brackets, with all that is inside, in a chain of nested pairs. It
/// contains the ranges of all inner pairs of the chain.
type Level = Range<usize>;

/// A chain of nested pairs of brackets, each the only child of the pair around it, as a list of
/// units to delete. Deleting a unit removes one pair and keeps what is inside of it. The innermost
/// pair is not a unit.
pub(super) struct Chain {
    levels: Vec<Level>,
}

impl Chain {
    /// Makes a chain of brackets that are nested: the nodes of `tree` with the indices `nodes`, the
    /// outermost first.
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

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(self.places(cuts)))
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let places = self.places(cuts);
        let moved = mover(&places);
        remove(&mut self.levels, cuts);
        for level in &mut self.levels {
            *level = moved(level.start)..moved(level.end);
        }
        vec![0; cuts.len()]
    }
}

#[cfg(test)]
mod tests {
    use crate::{ExtraTests, Full, Outcome, Search, Structure};

    #[test]
    fn chains_that_stay_are_not_all_tried() {
        let text = "[[1]]".repeat(400);
        let mut search = Full::structured(text.as_bytes(), Structure::Text);
        search.allow_extra_tests(ExtraTests::None);
        let mut hoisted = 0;
        while let Some(candidate) = search.next() {
            hoisted += usize::from(candidate.rule.name() == "hoist");
            search.tell(Outcome::Pass);
        }
        // Three passes make trees of the text.
        assert!(hoisted <= 3 * super::FRUITLESS_CHAINS, "{hoisted} tests");
    }
}
