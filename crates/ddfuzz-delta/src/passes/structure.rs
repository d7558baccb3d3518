//! The pass over nested structure: siblings, hoists, brackets, strings.

use std::ops::Range;

use crate::Edit;
use crate::passes::current_best::CurrentBest;
use crate::passes::list::List;
use crate::passes::ranges::{moved_place, union};
use crate::passes::tree::{Tree, parse, strings};
use crate::passes::units::{Positions, Units};

/// Fewer bracket pairs are no structure.
const FEWEST_PAIRS: usize = 3;

/// Needed units one after the other behind which a sweep has no more hope: the bytes are tried
/// anyhow.
const FRUITLESS: usize = 16;

/// Reduces a text by the tree of its brackets; says whether it has one.
///
/// Invariant: brackets that match go on matching, and items stay separated.
pub(super) async fn structure(work: &mut CurrentBest) -> bool {
    let Some(mut tree) = parse(&work.text()).filter(is_worth_it) else {
        return false;
    };
    List::new(work, &mut tree)
        .stop_behind(FRUITLESS)
        .reduce()
        .await;
    hoist(work).await;
    if let Some(tree) = parse(&work.text()) {
        let mut brackets = Positions::brackets(&tree);
        List::new(work, &mut brackets)
            .stop_behind(FRUITLESS)
            .reduce()
            .await;
    }
    let mut inside = Positions::strings(strings(&work.text()));
    if inside.len() > 0 {
        List::new(work, &mut inside)
            .stop_behind(FRUITLESS)
            .reduce()
            .await;
    }
    true
}

/// Whether there is enough structure to go by.
fn is_worth_it(tree: &Tree) -> bool {
    tree.nodes.iter().filter(|node| node.pair).count() >= FEWEST_PAIRS
}

/// Shortens chains of pairs, outermost first, until none gets shorter.
async fn hoist(work: &mut CurrentBest) {
    let mut done = 0;
    while let Some(tree) = parse(&work.text()) {
        let chains = tree.chains();
        let Some(chain) = chains.get(done) else {
            return;
        };
        List::new(work, &mut Chain::of(&tree, chain))
            .stop_behind(FRUITLESS)
            .reduce()
            .await;
        done += 1;
    }
}

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

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        Some(Edit::Cut(self.places(cuts)))
    }

    fn taken(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
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
