//! What keeping an input costs.

use std::time::Duration;

use ddfuzz::corpus::Features;
use ddfuzz::corpus::cover::{Effort, FAST, Slowness, cover, weight};

use super::instances::{Instance, Item, set};

#[test]
fn fast_inputs_are_equally_fast() {
    let class = |microseconds| Slowness::of(Duration::from_micros(microseconds));
    assert_eq!(class(0), class(9_999));
    assert_eq!(class(0), Slowness::default());
    assert_eq!(class(0).factor(), 1);
    assert_eq!(Slowness::of(FAST).factor(), 4);
    assert_eq!(class(39_999).factor(), 4);
    assert_eq!(class(40_000).factor(), 16);
    assert_eq!(Slowness::of(Duration::MAX).factor(), 1 << 20);
}

#[test]
fn a_weight_is_neither_nothing_nor_beyond_numbers() {
    let slowest = Slowness::of(Duration::MAX);
    assert_eq!(weight(0, Slowness::default(), 0), 1);
    assert_eq!(weight(100, Slowness::of(FAST), 20), 480);
    assert_eq!(weight(u64::MAX, slowest, u64::MAX), 1 << 40);
}

#[test]
fn a_fast_input_is_preferred_to_a_slow_one_of_its_size() {
    let item = |bytes, milliseconds, features: &[u64]| Item {
        bytes,
        milliseconds,
        name: milliseconds,
        features: set(features.iter().copied()),
    };
    let mut instance = Instance::of(vec![
        item(100, 500, &[1, 2]),
        item(100, 900, &[1, 2, 3]),
        item(100, 5, &[1, 2]),
        item(100, 6, &[3]),
        item(100, 7, &[2, 3, 4]),
    ]);
    let wanted = instance.reached();
    let found = cover(
        &mut instance,
        &wanted,
        &Features::default(),
        &Effort::default(),
    )
    .unwrap();
    let times = found.chosen.iter().map(|at| instance.0[*at].milliseconds);
    assert_eq!(times.collect::<Vec<_>>(), [5, 7]);
    assert!(found.counts_time);
}
