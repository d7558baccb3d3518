//! Configurations.

use ddfuzz::delta::Config;
use proptest::prelude::*;

use crate::trace::indices;

/// Ascending disjoint ranges within `0..len`, from the positions where they begin and end.
fn ranges(marks: &[usize], len: usize) -> Vec<std::ops::Range<usize>> {
    let mut marks: Vec<usize> = marks.iter().map(|mark| mark % (len + 1)).collect();
    marks.sort_unstable();
    marks.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
}

#[test]
fn touching_ranges_are_joined_and_empty_ones_left_out() {
    let config = Config::from_ranges([1..1, 1..3, 3..5, 9..10]).expect("ascending");
    assert_eq!(config.ranges().collect::<Vec<_>>(), [1..5, 9..10]);
    assert_eq!(config.len(), 5);
}

#[test]
fn overlapping_ranges_make_no_configuration() {
    assert_eq!(Config::from_ranges([0..3, 2..4]), None);
}

#[test]
fn everything_cut_is_the_empty_configuration() {
    let all = Config::all(9);
    assert_eq!(all.without(&[0..4, 4..9]), Config::empty());
    assert_eq!(
        all.id_without(std::slice::from_ref(&(0..9))),
        Config::empty().id()
    );
}

#[test]
fn one_unit_more_or_less_has_the_id_of_the_set_with_or_without_it() {
    let config = Config::from_ranges([2..4, 7..9]).expect("ascending");
    let single = Config::from_ranges(std::iter::once(5..6)).expect("ascending");
    assert_eq!(config.id().with(5), config.union(&single).id());
    let all = Config::all(9);
    assert_eq!(all.id().without(5), all.minus(&single).id());
}

proptest! {
    #![proptest_config(crate::fixed::seed())]

    #[test]
    fn cutting_ranges_equals_cutting_index_lists(
        units in 1usize..60,
        kept in prop::collection::vec(any::<usize>(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let config = Config::from_ranges(ranges(&kept, units)).expect("ascending");
        let before = indices(&config);
        let cuts = ranges(&cuts, config.len());
        let expected: Vec<usize> = before
            .iter()
            .enumerate()
            .filter(|(position, _)| !cuts.iter().any(|cut| cut.contains(position)))
            .map(|(_, unit)| *unit)
            .collect();
        let after = config.without(&cuts);
        prop_assert_eq!(indices(&after), expected.clone());
        prop_assert_eq!(after.len(), expected.len());
        prop_assert_eq!(config.id_without(&cuts), after.id());

        let original: Vec<usize> = (0..units).collect();
        let mut text = vec![77];
        after.write_into(&original, &mut text);
        prop_assert_eq!(text, expected);
    }

    #[test]
    fn equal_sets_have_equal_names_and_different_sets_different_ones(
        units in 1usize..60,
        one in prop::collection::vec(any::<usize>(), 0..12),
        two in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let one = Config::from_ranges(ranges(&one, units)).expect("ascending");
        let two = Config::from_ranges(ranges(&two, units)).expect("ascending");
        prop_assert_eq!(one.id() == two.id(), indices(&one) == indices(&two));
    }
}
