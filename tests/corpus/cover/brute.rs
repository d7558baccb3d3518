//! The least cover, by trying all.

use ddfuzz::corpus::Features;
use ddfuzz::corpus::cover::{Cover, Sets, Slowness, weight};

use super::instances::Instance;

/// What an input costs on the terms of a cover.
pub fn cost(instance: &Instance, item: usize, terms: &Cover) -> u64 {
    let slowness = if terms.counts_time {
        instance.slowness(item)
    } else {
        Slowness::default()
    };
    weight(instance.bytes(item), slowness, terms.price)
}

/// The weight of the least cover of `wanted`, all of which is reached, on the terms of `terms`.
pub fn least(instance: &Instance, wanted: &Features, terms: &Cover) -> u64 {
    let bits = |features: &Features| {
        let places = wanted.as_slice().iter().enumerate();
        let held = places.filter(|(_, feature)| features.contains(**feature));
        held.fold(0_u64, |bits, (place, _)| bits | 1 << place)
    };
    let items: Vec<(u64, u64)> = (0..instance.0.len())
        .map(|at| (bits(&instance.0[at].features), cost(instance, at, terms)))
        .collect();
    let all = bits(wanted);
    let choices = 0..1_u32 << items.len();
    let weights = choices.filter_map(|choice| {
        let chosen = (0..items.len()).filter(|at| choice >> at & 1 == 1);
        let (covered, weight) = chosen.fold((0, 0), |(covered, weight), at| {
            (covered | items[at].0, weight + items[at].1)
        });
        (covered == all).then_some(weight)
    });
    weights.min().expect("all inputs together reach everything")
}

/// That a cover is what it says: reaches all of `wanted`, at the weight and of the amount it names.
#[track_caller]
pub fn assert_covers(instance: &Instance, wanted: &Features, cover: &Cover) {
    let chosen = || cover.chosen.iter().copied();
    assert!(cover.chosen.is_sorted_by(|one, next| one < next));
    let reached = chosen().flat_map(|at| instance.0[at].features.as_slice());
    let reached = Features::from_unsorted(reached.copied().collect());
    assert!(reached.has_all(&wanted.less(&cover.missing)));
    let weight: u64 = chosen().map(|at| cost(instance, at, cover)).sum();
    assert_eq!(cover.weight, weight);
    let bytes: u64 = chosen().map(|at| instance.0[at].bytes).sum();
    assert_eq!(cover.amount.bytes, bytes);
    assert_eq!(cover.amount.files, cover.chosen.len() as u64);
    assert!(cover.lower_bound <= cover.weight);
    assert_eq!(cover.optimal, cover.lower_bound == cover.weight);
}
