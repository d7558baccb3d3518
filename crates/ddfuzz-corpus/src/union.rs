//! What many runs reach together.

use super::{Feature, Features};

/// So many features wait to be joined, at most, but for those of one run.
const WAITING: usize = 1 << 20;

/// What many runs reach together: as much in memory as that is, and no list of all runs.
#[derive(Debug, Default)]
pub struct Union {
    joined: Features,
    waiting: Vec<Feature>,
}

impl Union {
    /// One more run has reached these.
    pub fn add(&mut self, features: &Features) {
        self.waiting.extend_from_slice(features.as_slice());
        if self.waiting.len() > WAITING {
            self.join();
        }
    }

    /// What all of them reach.
    pub fn all(mut self) -> Features {
        self.join();
        self.joined
    }

    fn join(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.joined = self.joined.or(&Features::from_unsorted(waiting));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_where_more_is_added_than_may_wait() {
        let run =
            |from: u32| Features::from_unsorted((from..from + 400_000).map(Feature).collect());
        let mut union = Union::default();
        for from in [0, 300_000, 600_000, 0, 900_000] {
            union.add(&run(from));
            assert!(union.waiting.len() <= WAITING);
        }
        assert_eq!(union.all().len(), 1_300_000);
        assert!(Union::default().all().is_empty());
    }
}
