//! Splitting.

use ddfuzz::delta::part;

use crate::reference;

#[test]
fn the_larger_parts_come_first() {
    assert_eq!([0, 1, 2].map(|index| part(7, 3, index)), [0..3, 3..5, 5..7]);
}

#[test]
fn parts_equal_those_of_the_definition() {
    for len in 1..40usize {
        let list: Vec<usize> = (0..len).collect();
        for parts in 1..=len {
            let cut: Vec<Vec<usize>> = (0..parts)
                .map(|index| part(len, parts, index).collect())
                .collect();
            assert_eq!(cut, reference::split(&list, parts));
        }
    }
}

#[test]
fn a_part_beyond_the_last_is_empty() {
    assert!(part(7, 3, 3).is_empty());
    assert!(part(0, 0, 0).is_empty());
}
