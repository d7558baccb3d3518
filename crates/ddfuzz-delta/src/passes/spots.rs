//! Places of a text as units.

use std::ops::Range;

use super::places::{moved_place, union};
use super::tree::Tree;
use super::units::Units;
use super::workpiece::Workpiece;
use crate::Edit;

/// Places of the best, each of one or more ranges, that go one by one: the brackets of pairs, the
/// inside of strings.
pub(super) struct Spots {
    rule: &'static str,
    spots: Vec<Vec<Range<usize>>>,
}

impl Spots {
    /// The brackets of all pairs with their names: what is inside stays.
    pub fn brackets(tree: &Tree) -> Spots {
        let pairs = tree.nodes.iter().filter(|node| node.pair);
        Spots {
            rule: "unwrap",
            spots: pairs
                .map(|pair| vec![pair.start..pair.open + 1, pair.close..pair.end])
                .collect(),
        }
    }

    /// The inside of strings.
    pub fn strings(strings: Vec<Range<usize>>) -> Spots {
        let inside = strings.into_iter().filter(|inside| !inside.is_empty());
        Spots {
            rule: "strings",
            spots: inside.map(|inside| vec![inside]).collect(),
        }
    }

    fn places(&self, cuts: &[Range<usize>]) -> Vec<Range<usize>> {
        let spots = cuts.iter().flat_map(|cut| &self.spots[cut.clone()]);
        union(spots.flatten().cloned().collect())
    }
}

impl Units for Spots {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.spots.len()
    }

    fn edit(&self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Option<Edit> {
        let places = self.places(cuts);
        (!places.is_empty()).then_some(Edit::Cut(places))
    }

    fn taken(&mut self, _: &mut Workpiece, cuts: &[Range<usize>]) -> Vec<usize> {
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
