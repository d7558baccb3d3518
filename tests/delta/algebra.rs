//! Configurations as sets.

use std::collections::BTreeSet;

use ddfuzz::delta::Config;
use proptest::prelude::*;

use crate::trace::indices;

fn config(units: &BTreeSet<usize>) -> Config {
    let config = Config::from_ranges(units.iter().map(|unit| *unit..*unit + 1));
    config.expect("ascending")
}

fn units() -> impl Strategy<Value = BTreeSet<usize>> {
    prop::collection::btree_set(0usize..24, 0..20)
}

fn sorted<'a>(units: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    units.copied().collect()
}

proptest! {
    #![proptest_config(crate::fixed::seed())]

    #[test]
    fn operations_equal_those_of_sets_of_numbers(one in units(), other in units()) {
        let (a, b) = (config(&one), config(&other));
        prop_assert_eq!(indices(&a.union(&b)), sorted(one.union(&other)));
        prop_assert_eq!(indices(&a.minus(&b)), sorted(one.difference(&other)));
        prop_assert_eq!(indices(&a.intersection(&b)), sorted(one.intersection(&other)));
        prop_assert_eq!(a.is_subset_of(&b), one.is_subset(&other));
        prop_assert!(a.intersection(&b).is_subset_of(&b));
        prop_assert_eq!(a.minus(&b).union(&a.intersection(&b)).id(), a.id());
    }

    #[test]
    fn units_are_found_and_counted(kept in units(), unit in 0usize..30) {
        let config = config(&kept);
        prop_assert_eq!(config.contains(unit), kept.contains(&unit));
        prop_assert_eq!(config.count_below(unit), kept.range(..unit).count());
    }

    #[test]
    fn parts_are_disjoint_and_make_up_the_whole(kept in units(), parts in 1usize..8) {
        let config = config(&kept);
        let all: Vec<Config> = (0..parts).map(|index| config.part(parts, index)).collect();
        prop_assert_eq!(all.iter().map(Config::len).sum::<usize>(), config.len());
        prop_assert_eq!(Config::union_of(&all), config);
    }
}

#[test]
fn the_union_of_nothing_is_empty() {
    assert!(Config::union_of([]).is_empty());
}

#[test]
fn a_slice_beyond_the_last_unit_ends_with_it() {
    let config = Config::from_ranges([2..4, 8..10]).expect("ascending");
    assert_eq!(indices(&config.slice(1..3)), [3, 8]);
    assert_eq!(indices(&config.slice(3..9)), [9]);
    assert!(config.slice(7..9).is_empty());
}
