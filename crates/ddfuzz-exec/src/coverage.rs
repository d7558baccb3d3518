//! What is told of the coverage of runs: the counters that the compiler has put into a target.

/// Of which runs the coverage is told. It costs a look at each counter of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Telling {
    /// Of none.
    #[default]
    Nothing,
    /// Of every run that came back.
    Every,
    /// Of those that have reached what no run of the same executor has reached before: another
    /// counter, or one in another range of its values (1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to
    /// 127, and more).
    Novel,
}

/// What was told of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// Which run of the last call, from 0.
    pub run: usize,
    /// How often each instrumented place was passed, modulo 256.
    pub counters: Vec<u8>,
}

/// What the runs of an executor have reached.
#[derive(Default)]
pub(crate) struct Reached {
    /// For each counter, a bit for each range.
    ranges: Vec<u8>,
}

impl Reached {
    /// A run had these counters.
    pub(crate) fn add(&mut self, counters: &[u8]) {
        if self.ranges.len() < counters.len() {
            self.ranges.resize(counters.len(), 0);
        }
        for (known, count) in self.ranges.iter_mut().zip(counters) {
            *known |= range_of(*count);
        }
    }

    /// The same; says whether any of them was not reached before.
    pub(crate) fn add_novel(&mut self, counters: &[u8]) -> bool {
        if self.ranges.len() < counters.len() {
            self.ranges.resize(counters.len(), 0);
        }
        let mut novel = false;
        for (known, eight) in self.ranges.chunks_mut(8).zip(counters.chunks(8)) {
            // Most places are not passed by most runs.
            if eight.iter().all(|count| *count == 0) {
                continue;
            }
            for (known, count) in known.iter_mut().zip(eight) {
                let range = range_of(*count);
                novel |= *known & range != range;
                *known |= range;
            }
        }
        novel
    }

    /// The bits.
    pub(crate) fn ranges(&self) -> &[u8] {
        &self.ranges
    }
}

/// The same as `range_of` of `runtime/counters.c`.
fn range_of(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128..=255 => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_that_no_run_has_reached_is_novel() {
        let mut reached = Reached::default();
        let mut counters = vec![0; 19];
        assert!(!reached.add_novel(&counters));
        counters[18] = 1;
        assert!(reached.add_novel(&counters));
        assert!(!reached.add_novel(&counters));
        counters[18] = 9;
        assert!(reached.add_novel(&counters));
        counters[18] = 15;
        assert!(!reached.add_novel(&counters));
    }

    #[test]
    fn each_range_of_a_counter_is_reached_for_itself() {
        let mut reached = Reached::default();
        reached.add(&[0, 1, 200]);
        reached.add(&[0, 5, 255]);
        assert_eq!(reached.ranges(), [0, 1 | 8, 128]);
    }
}
