//! The choice depends on the contents only.

use std::io;

use ddfuzz::corpus::cover::{Effort, Sets, Slowness, cover, unique_features};
use ddfuzz::corpus::{Feature, Features};

use super::instances::{Instance, Item, Random};

fn chosen(instance: &mut Instance, effort: &Effort) -> Vec<Item> {
    let wanted = instance.reached();
    let found = cover(instance, &wanted, &Features::default(), effort).unwrap();
    found
        .chosen
        .iter()
        .map(|at| instance.0[*at].clone())
        .collect()
}

fn shuffled(items: &[Item], random: &mut Random) -> Vec<Item> {
    let mut items = items.to_vec();
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
    items
}

#[test]
fn any_order_gives_the_same_choice() {
    let mut random = Random::new(5);
    let whole = Effort::default();
    for effort in [
        whole,
        Effort {
            entries: 0,
            ..whole
        },
    ] {
        let mut instance = Instance::grown(6, 300, 200, 20);
        let first = chosen(&mut instance, &effort);
        for _ in 0..3 {
            let mut other = Instance::of(shuffled(&instance.0, &mut random));
            assert_eq!(chosen(&mut other, &effort), first);
        }
    }
}

#[test]
fn choosing_among_the_chosen_keeps_them() {
    for seed in 0..5 {
        let mut instance = Instance::grown(seed, 300, 200, 20);
        let first = chosen(&mut instance, &Effort::default());
        let second = chosen(&mut Instance::of(first.clone()), &Effort::default());
        let files = |items: &[Item]| items.len();
        let bytes = |items: &[Item]| items.iter().map(|item| item.bytes).sum::<u64>();
        assert_eq!(
            (files(&second), bytes(&second)),
            (files(&first), bytes(&first))
        );
    }
}

/// Inputs of which one cannot be read.
struct Torn(Instance);

impl Sets for Torn {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self, item: usize) -> u64 {
        self.0.bytes(item)
    }

    fn slowness(&self, item: usize) -> Slowness {
        self.0.slowness(item)
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        match item {
            7 => Err(io::Error::other("torn")),
            _ => self.0.features(item, into),
        }
    }
}

#[test]
fn an_input_that_cannot_be_read_is_an_error() {
    let mut torn = Torn(Instance::grown(8, 20, 20, 5));
    let (wanted, none) = (torn.0.reached(), Features::default());
    let error = cover(&mut torn, &wanted, &none, &Effort::default()).unwrap_err();
    assert_eq!(error.to_string(), "torn");
    assert!(unique_features(&mut torn, &[], &wanted, &none).is_err());
}
