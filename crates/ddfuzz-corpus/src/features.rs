//! Coverage features: sets of the edges that runs reach, with hit counts as in AFL and libFuzzer.

use serde::{Deserialize, Serialize};

use ddfuzz_minimize::log::Numbers;

/// A coverage feature: an instrumented place (edge) together with a range of hit counts (1, 2, 3,
/// 4–7, 8–15, 16–31, 32–127, 128 and more). It is encoded as eight times the number of the place,
/// plus the number of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Feature(pub u32);

impl Feature {
    /// Returns the feature of the instrumented place (edge) `place` that a run passed `count`
    /// times; `None` if `count` is 0, or the place's number is too large.
    fn of(place: usize, count: u8) -> Option<Feature> {
        let range = match count {
            0 => return None,
            1..=3 => u32::from(count) - 1,
            4..=7 => 3,
            8..=15 => 4,
            16..=31 => 5,
            32..=127 => 6,
            128..=255 => 7,
        };
        let place = u32::try_from(place).ok()?;
        Some(Feature(place.checked_mul(8)? + range))
    }

    /// Returns true if a run reached the feature, given the run's hit counter of each instrumented
    /// place (edge).
    fn is_in(self, counters: &[u8]) -> bool {
        let (least, greatest) = self.counts();
        let count = counters.get(self.place() as usize);
        count.is_some_and(|count| (least..=greatest).contains(count))
    }

    /// Returns the number of the instrumented place (edge) that the feature belongs to.
    pub fn place(self) -> u32 {
        self.0 / 8
    }

    /// Returns the least and the greatest hit count of the feature's range.
    pub fn counts(self) -> (u8, u8) {
        const RANGES: [(u8, u8); 8] = [
            (1, 1),
            (2, 2),
            (3, 3),
            (4, 7),
            (8, 15),
            (16, 31),
            (32, 127),
            (128, 255),
        ];
        RANGES[self.0 as usize % 8]
    }
}

/// A set of coverage features (edge and range of hit counts), in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Numbers", into = "Numbers")]
pub struct Features(Vec<Feature>);

impl Features {
    /// Returns the features that a run reached, given its hit counter of each instrumented place
    /// (edge), modulo 256.
    pub fn of_counters(counters: &[u8]) -> Features {
        let mut features = Vec::new();
        for (eighth, eight) in counters.chunks(8).enumerate() {
            // Most places are not reached by most runs.
            if eight.iter().all(|count| *count == 0) {
                continue;
            }
            let places = (eighth * 8..).zip(eight);
            features.extend(places.filter_map(|(place, count)| Feature::of(place, *count)));
        }
        Features(features)
    }

    /// Makes the set of the given features, which may be in any order and contain duplicates.
    pub fn from_unsorted(mut features: Vec<Feature>) -> Features {
        features.sort_unstable();
        features.dedup();
        Features(features)
    }

    /// Returns the features of the set, in ascending order.
    pub fn as_slice(&self) -> &[Feature] {
        &self.0
    }

    /// Returns the number of features in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of different instrumented places (edges) of the features in the set.
    pub fn edges(&self) -> u64 {
        self.0
            .chunk_by(|one, next| one.place() == next.place())
            .count() as u64
    }

    /// Returns true if the set contains no feature.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the set contains `feature`.
    pub fn contains(&self, feature: Feature) -> bool {
        self.0.binary_search(&feature).is_ok()
    }

    /// Returns true if the set contains all features of `others`.
    pub fn has_all(&self, others: &Features) -> bool {
        let mut own = self.0.iter();
        others.0.iter().all(|other| own.any(|one| one == other))
    }

    /// Returns true if a run with these hit counters (modulo 256) reached all features of the set.
    /// Faster than [`Features::of_counters`], since it reads only the counters of the set's places.
    pub fn are_in(&self, counters: &[u8]) -> bool {
        self.0.iter().all(|one| one.is_in(counters))
    }

    /// Returns the features of the set that a run reached; `counters` holds the hit counters of the
    /// run, modulo 256.
    pub fn of_which_in(&self, counters: &[u8]) -> Features {
        let reached = self.0.iter().filter(|one| one.is_in(counters));
        Features(reached.copied().collect())
    }

    /// Returns the intersection: the features that are in this set and in `other`.
    pub fn and(&self, other: &Features) -> Features {
        let mut left = self.0.as_slice();
        let mut both = Vec::new();
        for feature in &other.0 {
            left = &left[left.partition_point(|one| one < feature)..];
            if left.first() == Some(feature) {
                both.push(*feature);
            }
        }
        Features(both)
    }

    /// Returns the union: the features that are in this set or in `other`.
    pub fn or(&self, other: &Features) -> Features {
        let mut all = self.0.clone();
        all.extend_from_slice(&other.0);
        Features::from_unsorted(all)
    }

    /// Returns the difference: the features of the set that are not in `other`.
    pub fn less(&self, other: &Features) -> Features {
        let rest = self.0.iter().copied();
        Features(rest.filter(|one| !other.contains(*one)).collect())
    }
}

impl From<&Features> for Numbers {
    fn from(features: &Features) -> Numbers {
        Numbers(features.0.iter().map(|one| one.0).collect())
    }
}

impl From<Features> for Numbers {
    fn from(features: Features) -> Numbers {
        Numbers::from(&features)
    }
}

impl From<Numbers> for Features {
    fn from(numbers: Numbers) -> Features {
        Features::from_unsorted(numbers.0.into_iter().map(Feature).collect())
    }
}

/// Number of features that a `FeatureUnion` buffers before it merges them into its set.
const WAITING: usize = 1 << 20;

/// Collects the union of the features of many runs. Memory grows with the union, not with the
/// number of runs.
#[derive(Debug, Default)]
pub struct FeatureUnion {
    joined: Features,
    waiting: Vec<Feature>,
}

impl FeatureUnion {
    /// Adds the features that one run has reached to those that earlier runs have reached.
    pub fn add(&mut self, features: &Features) {
        self.waiting.extend_from_slice(features.as_slice());
        if self.waiting.len() > WAITING {
            self.join();
        }
    }

    /// Returns the union: all features of the runs that were added.
    pub fn all(mut self) -> Features {
        self.join();
        self.joined
    }

    fn join(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.joined = self.joined.or(&Features::from_unsorted(waiting));
    }
}

/// Makes a set of the features with the given `numbers`, for tests.
#[cfg(test)]
pub(crate) fn set(numbers: &[u32]) -> Features {
    Features::from_unsorted(numbers.iter().copied().map(Feature).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_in_the_range_that_fuzzers_tell_apart() {
        for (count, range) in [
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 3),
            (7, 3),
            (8, 4),
            (31, 5),
            (32, 6),
        ] {
            let feature = Feature::of(5, count).unwrap();
            assert_eq!(feature, Feature(40 + range));
            assert_eq!(feature.place(), 5);
            let (least, greatest) = feature.counts();
            assert!((least..=greatest).contains(&count));
        }
        assert_eq!(Feature::of(5, 0), None);
        assert_eq!(Feature::of(0, 255), Some(Feature(7)));
    }

    #[test]
    fn what_was_not_passed_is_no_feature() {
        let mut counters = vec![0; 20];
        counters[17] = 3;
        counters[2] = 1;
        assert_eq!(Features::of_counters(&counters), set(&[16, 17 * 8 + 2]));
    }

    #[test]
    fn counters_are_asked_for_some_features_alone() {
        let counters = [0, 2, 5, 255];
        let all = Features::of_counters(&counters);
        assert!(all.are_in(&counters));
        assert!(!set(&[9, 16]).are_in(&counters));
        assert!(!set(&[4 * 8]).are_in(&counters));
        assert_eq!(
            set(&[8, 9, 16, 19, 900]).of_which_in(&counters),
            set(&[9, 19])
        );
    }

    #[test]
    fn sets_meet_join_and_differ() {
        let (left, right) = (set(&[9, 1, 5, 5]), set(&[5, 9, 12]));
        assert_eq!(left.and(&right), set(&[5, 9]));
        assert_eq!(left.or(&right), set(&[1, 5, 9, 12]));
        assert_eq!(left.less(&right), set(&[1]));
        assert!(left.has_all(&set(&[1, 9])));
        assert!(!left.has_all(&right));
        assert!(left.has_all(&Features::default()));
    }

    #[test]
    fn nothing_is_lost_where_more_is_added_than_may_wait() {
        let run =
            |from: u32| Features::from_unsorted((from..from + 400_000).map(Feature).collect());
        let mut union = FeatureUnion::default();
        for from in [0, 300_000, 600_000, 0, 900_000] {
            union.add(&run(from));
            assert!(union.waiting.len() <= WAITING);
        }
        assert_eq!(union.all().len(), 1_300_000);
        assert!(FeatureUnion::default().all().is_empty());
    }
}
