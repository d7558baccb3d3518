//! The structure pass: siblings, hoists, brackets, strings.

use super::chain::Chain;
use super::list::List;
use super::parse::{parse, strings};
use super::spots::Spots;
use super::tree::Tree;
use super::units::Units;
use super::workpiece::Workpiece;

/// Fewer bracket pairs are no structure.
const FEWEST_PAIRS: usize = 3;

/// Needed units one after the other behind which a sweep has no more hope: the bytes are tried
/// anyhow.
const FRUITLESS: usize = 16;

/// Reduces a text by the tree of its brackets; says whether it has one.
///
/// Invariant: brackets that match go on matching, and items stay separated.
pub(super) async fn structure(work: &mut Workpiece) -> bool {
    let Some(mut tree) = parse(&work.text()).filter(is_worth_it) else {
        return false;
    };
    List::new(work, &mut tree)
        .stop_behind(FRUITLESS)
        .reduce()
        .await;
    hoist(work).await;
    if let Some(tree) = parse(&work.text()) {
        let mut brackets = Spots::brackets(&tree);
        List::new(work, &mut brackets)
            .stop_behind(FRUITLESS)
            .reduce()
            .await;
    }
    let mut inside = Spots::strings(strings(&work.text()));
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
async fn hoist(work: &mut Workpiece) {
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
