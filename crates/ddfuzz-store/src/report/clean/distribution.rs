//! How values spread, in ranges that double.

use serde::{Deserialize, Serialize};

/// How many values lie in each range: 0, 1, 2 to 3, 4 to 7, 8 to 15, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution(Vec<u64>);

impl Distribution {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let range = (u64::BITS - value.leading_zeros()) as usize;
        if self.0.len() <= range {
            self.0.resize(range + 1, 0);
        }
        self.0[range] += 1;
    }

    /// The counts, from the least range on; behind the last there is none.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// The least value of a range.
    pub fn least(range: usize) -> u64 {
        match range {
            0 => 0,
            range => 1 << (range - 1).min(63),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_its_range() {
        let mut spread = Distribution::default();
        for value in [0, 1, 2, 3, 4, 7, 8, u64::MAX] {
            spread.add(value);
        }
        assert_eq!(spread.counts()[..5], [1, 1, 2, 2, 1]);
        assert_eq!(spread.counts().len(), 65);
        assert_eq!([0, 1, 2, 3, 4].map(Distribution::least), [0, 1, 2, 4, 8]);
    }
}
