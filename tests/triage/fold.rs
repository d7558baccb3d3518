//! Folding of recursion.

use ddfuzz::triage::normalise::fold_cycles;
use proptest::prelude::*;

fn fold(frames: &str) -> String {
    fold_cycles(frames.chars().collect(), |a, b| a == b)
        .into_iter()
        .collect()
}

#[test]
fn repetitions_become_one() {
    assert_eq!(fold("faaaam"), "fam");
    assert_eq!(fold("fabababm"), "fabm");
    assert_eq!(fold("aabaab"), "ab");
}

#[test]
fn cycles_up_to_ten_frames_are_folded_and_longer_ones_are_not() {
    assert_eq!(fold("abcdefghijabcdefghij"), "abcdefghij");
    assert_eq!(fold("abcdefghijkabcdefghijk"), "abcdefghijkabcdefghijk");
}

#[test]
fn frames_that_recur_apart_stay() {
    assert_eq!(fold("abcbd"), "abcbd");
    assert_eq!(fold(""), "");
}

proptest! {
    #![proptest_config(crate::fixed_cases(256))]

    #[test]
    fn the_depth_of_a_recursion_does_not_matter(cycle in "[a-c]{1,10}", more in 1usize..20) {
        let once = fold(&cycle.repeat(2));
        prop_assert_eq!(fold(&cycle.repeat(2 + more)), once);
    }
}
