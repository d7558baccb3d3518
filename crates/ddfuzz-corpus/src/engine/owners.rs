//! Which kept file is to reach what: what trimming may not lose.

use std::collections::HashMap;

use crate::{Feature, Features};

/// Gives each feature of `wanted` to one of the kept files, of which (size, what it reaches) is
/// given in their canonical order: to the smallest that reaches it. What large ones reach beside
/// what only they do, they may then lose. A feature that no file reaches has no owner.
pub(super) fn owners(kept: &[(u64, &Features)], wanted: &Features) -> Vec<Features> {
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|at| (kept[*at].0, *at));
    let mut owner: HashMap<Feature, usize> = HashMap::new();
    for at in order {
        for feature in kept[at].1.as_slice() {
            if wanted.contains(*feature) {
                owner.entry(*feature).or_insert(at);
            }
        }
    }
    let mut owned = vec![Vec::new(); kept.len()];
    for (feature, at) in owner {
        owned[at].push(feature);
    }
    owned.into_iter().map(Features::from_unsorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[u32]) -> Features {
        Features::from_unsorted(numbers.iter().copied().map(Feature).collect())
    }

    #[test]
    fn the_smallest_file_that_reaches_a_feature_owns_it() {
        let (large, small, equal) = (set(&[1, 2, 3, 9]), set(&[2, 4]), set(&[2, 3]));
        let kept = [(50, &large), (7, &small), (7, &equal)];
        let owned = owners(&kept, &set(&[1, 2, 3, 4, 5]));
        assert_eq!(owned, [set(&[1]), set(&[2, 4]), set(&[3])]);
    }
}
