//! Held against what other tools keep.

use ddfuzz::corpus::cover::{Effort, cover};
use ddfuzz::corpus::{Amount, Features};

use super::brute::assert_covers;
use super::instances::{Instance, Item, set};
use super::peers;

/// Inputs, features, and how many an input has on average, before what comes with them.
const SHAPES: [(usize, u64, usize); 6] = [
    (300, 2000, 10),
    (1000, 300, 10),
    (1000, 3000, 40),
    (1500, 100, 15),
    (2000, 1000, 20),
    (60, 400, 60),
];

#[track_caller]
fn assert_no_worse(ours: Amount, instance: &Instance) {
    let rivals = [peers::merge(instance), peers::cmin(instance)];
    for (rival, amount) in ["-merge=1", "afl-cmin"].iter().zip(rivals) {
        assert!(
            ours.files <= amount.files,
            "{rival}: {amount:?}, here {ours:?}"
        );
        assert!(
            ours.bytes <= amount.bytes,
            "{rival}: {amount:?}, here {ours:?}"
        );
    }
}

#[test]
fn no_more_files_and_no_more_bytes_than_others() {
    let effort = Effort {
        steps: 2_000_000,
        nodes: 100,
        ..Effort::default()
    };
    for (seed, (items, features, mean)) in SHAPES.into_iter().enumerate() {
        let mut instance = Instance::grown(seed as u64, items, features, mean);
        let wanted = instance.reached();
        for effort in [
            effort,
            Effort {
                entries: 0,
                ..effort
            },
        ] {
            let found = cover(&mut instance, &wanted, &Features::default(), &effort).unwrap();
            assert_covers(&instance, &wanted, &found);
            assert_no_worse(found.amount, &instance);
        }
    }
}

#[test]
fn times_yield_where_they_would_cost_bytes() {
    let item = |bytes, milliseconds| Item {
        bytes,
        milliseconds,
        name: bytes,
        features: set([1]),
    };
    // A hundred times the size, and a hundredth of the time.
    let mut instance = Instance::of(vec![item(10, 700), item(1000, 7)]);
    let wanted = instance.reached();
    let found = cover(
        &mut instance,
        &wanted,
        &Features::default(),
        &Effort::default(),
    )
    .unwrap();
    assert_eq!((found.chosen, found.counts_time), (vec![0], false));
}

#[test]
fn times_do_not_make_it_worse_than_others() {
    for seed in 0..8 {
        let mut instance = Instance::grown(seed, 200, 60, 8);
        for (at, item) in instance.0.iter_mut().enumerate() {
            item.milliseconds = [1, 1, 700][at % 3];
        }
        let wanted = instance.reached();
        let found = cover(
            &mut instance,
            &wanted,
            &Features::default(),
            &Effort::default(),
        );
        let found = found.unwrap();
        assert_covers(&instance, &wanted, &found);
        assert_no_worse(found.amount, &instance);
    }
}

/// One pass of a greedy set cover takes few files and large ones.
#[test]
fn far_fewer_bytes_than_by_features_alone() {
    let mut instance = Instance::grown(9, 1000, 300, 10);
    let wanted = instance.reached();
    let found = cover(
        &mut instance,
        &wanted,
        &Features::default(),
        &Effort::default(),
    )
    .unwrap();
    let other = peers::set_cover_merge(&instance);
    assert!(
        found.amount.bytes < other.bytes,
        "{other:?}, here {found:?}"
    );
}
