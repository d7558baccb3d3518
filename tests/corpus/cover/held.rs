//! What only one input reaches.

use ddfuzz::corpus::Features;
use ddfuzz::corpus::cover::{Effort, cover, unique_features};

use super::instances::{Instance, Item, Random, set};

#[test]
fn private_and_sole_features_are_counted() {
    let mut random = Random::new(11);
    for _ in 0..100 {
        let mut instance = Instance::small(&mut random);
        let (all, covered) = (instance.reached(), set([0, 3]));
        let found = cover(&mut instance, &all, &covered, &Effort::default()).unwrap();
        let told = unique_features(&mut instance, &found.chosen, &all, &covered).unwrap();
        let wanted = all.less(&covered);
        let mut sole = Vec::new();
        for feature in wanted.as_slice() {
            let has = |at: &usize| instance.0[*at].features.contains(*feature);
            let holders: Vec<usize> = (0..instance.0.len()).filter(has).collect();
            if let [only] = holders[..] {
                sole.push((*feature, only));
            }
        }
        assert_eq!(told.sole, sole);
        for (place, at) in found.chosen.iter().enumerate() {
            let others = found.chosen.iter().filter(|other| *other != at);
            let others = others.fold(covered.clone(), |sum: Features, other| {
                sum.or(&instance.0[*other].features)
            });
            let private = instance.0[*at].features.less(&others);
            assert_eq!(told.private[place], private);
            assert!(!told.private[place].is_empty(), "a chosen input is needed");
        }
    }
}

#[test]
fn of_two_that_are_worth_the_same_the_first_is_kept() {
    let item = |bytes, name, features: &[u64]| Item {
        bytes,
        milliseconds: 1,
        name,
        features: set(features.iter().copied()),
    };
    let twins = vec![
        item(5, 1, &[1, 2]),
        item(5, 2, &[1, 2]),
        item(5, 3, &[2, 1]),
    ];
    let mut instance = Instance::of(twins);
    let wanted = instance.reached();
    for entries in [0, 1000] {
        let effort = Effort {
            entries,
            ..Effort::default()
        };
        let found = cover(&mut instance, &wanted, &Features::default(), &effort).unwrap();
        assert_eq!(found.chosen, [0]);
        assert!(found.optimal);
    }
}
