//! The features that count, numbered without gaps.

use crate::{Feature, Features};

/// The rows of a cover: what is wanted and not covered yet. A bit for each feature up to the
/// greatest, and for each 64 of them how many stand before: a look-up touches two words.
pub(super) struct Universe {
    bits: Vec<u64>,
    before: Vec<u32>,
    features: Vec<Feature>,
}

impl Universe {
    /// Of what is in `wanted` but not in `covered`.
    pub fn new(wanted: &Features, covered: &Features) -> Universe {
        let features = wanted.less(covered).as_slice().to_vec();
        let words = features.last().map_or(0, |last| last.0 as usize / 64 + 1);
        let mut bits = vec![0_u64; words];
        for feature in &features {
            bits[feature.0 as usize / 64] |= 1 << (feature.0 % 64);
        }
        let mut sum = 0;
        let before = bits.iter().map(|word| {
            let before = sum;
            sum += word.count_ones();
            before
        });
        let before = before.collect();
        Universe {
            bits,
            before,
            features,
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// The feature of a row.
    pub fn feature(&self, row: usize) -> Feature {
        self.features[row]
    }

    /// The row of a feature, if it counts.
    pub fn row(&self, feature: Feature) -> Option<u32> {
        let word = feature.0 as usize / 64;
        let (bits, bit) = (*self.bits.get(word)?, 1_u64 << (feature.0 % 64));
        let rank = (bits & (bit - 1)).count_ones();
        (bits & bit != 0).then(|| self.before[word] + rank)
    }

    /// The rows of these features, ascending, each once.
    pub fn rows(&self, features: &[Feature], into: &mut Vec<u32>) {
        into.clear();
        into.extend(features.iter().filter_map(|feature| self.row(*feature)));
        // Counts of holders rest on it, whatever a journal says.
        if !into.is_sorted_by(|one, next| one < next) {
            into.sort_unstable();
            into.dedup();
        }
    }
}
