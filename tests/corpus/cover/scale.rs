//! More inputs than are held in memory.

use std::collections::HashSet;
use std::io;

use ddfuzz::corpus::cover::{Effort, Sets, Slowness, cover};
use ddfuzz::corpus::{Feature, Features};

use super::instances::Random;

/// Inputs that are made each time anew.
struct Made {
    items: usize,
    /// How often features were asked for.
    reads: usize,
}

const FEATURES: u64 = 400;

impl Sets for Made {
    fn len(&self) -> usize {
        self.items
    }

    fn bytes(&self, item: usize) -> u64 {
        1 + item as u64 / 100
    }

    fn slowness(&self, _: usize) -> Slowness {
        Slowness::default()
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        self.reads += 1;
        let mut random = Random::new(item as u64 + 1);
        into.clear();
        for _ in 0..1 + random.below(4) {
            // The least of several: common ones are found by many.
            let draws = [random.below(FEATURES), random.below(FEATURES)];
            into.push(Feature(draws[0].min(draws[1]) as u32));
        }
        into.sort_unstable();
        into.dedup();
        Ok(())
    }
}

#[test]
fn a_hundred_thousand_inputs_are_covered_from_a_stream() {
    let mut made = Made {
        items: 100_000,
        reads: 0,
    };
    let wanted = Features::from_unsorted((0..FEATURES as u32).map(Feature).collect());
    let effort = Effort {
        entries: 10_000,
        ..Effort::default()
    };
    let found = cover(&mut made, &wanted, &Features::default(), &effort).unwrap();
    let reads = made.reads;
    let mut reached = HashSet::new();
    let mut features = Vec::new();
    for item in &found.chosen {
        made.features(*item, &mut features).unwrap();
        reached.extend(features.iter().copied());
    }
    assert_eq!(reached.len(), wanted.less(&found.missing).len());
    assert!(found.lower_bound > 0 && found.lower_bound <= found.weight);
    // Each is read a number of times that does not depend on how many there are.
    assert!(reads < 30 * made.items, "{reads}");
    // A tenth lies between what was found and what is proved, at most.
    let tenth = found.weight / 10;
    assert!(found.weight - tenth <= found.lower_bound, "{found:?}");
}
