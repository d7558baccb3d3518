//! Configurations as sets.

use std::ops::Range;

use super::{Config, part};

/// Each operation takes O(ranges) of its operands, unless it says otherwise.
impl Config {
    /// `self ∪ other`.
    pub fn union(&self, other: &Config) -> Config {
        Config::union_of([self, other])
    }

    /// The union of any number of configurations, `∅` of none. Takes O(r log r) for `r` ranges.
    pub fn union_of<'a>(configs: impl IntoIterator<Item = &'a Config>) -> Config {
        let mut ranges: Vec<Range<usize>> = configs.into_iter().flat_map(Config::ranges).collect();
        ranges.sort_by_key(|range| range.start);
        let mut end = 0;
        for range in &mut ranges {
            range.start = range.start.max(end);
            range.end = range.end.max(range.start);
            end = range.end;
        }
        Config::from_ascending(ranges)
    }

    /// `self \ other`.
    pub fn minus(&self, other: &Config) -> Config {
        let gone: Vec<Range<usize>> = other.ranges().collect();
        let mut left = Vec::new();
        let mut first = 0;
        for range in self.ranges() {
            let behind = |cut: &&Range<usize>| cut.end <= range.start;
            first += gone[first..].iter().take_while(behind).count();
            let mut start = range.start;
            let within = |cut: &&Range<usize>| cut.start < range.end;
            for cut in gone[first..].iter().take_while(within) {
                left.push(start..cut.start.max(start));
                start = cut.end.min(range.end);
            }
            left.push(start..range.end);
        }
        Config::from_ascending(left)
    }

    /// `self ∩ other`.
    pub fn intersection(&self, other: &Config) -> Config {
        self.minus(&self.minus(other))
    }

    /// Whether `self ⊆ other`.
    pub fn is_subset_of(&self, other: &Config) -> bool {
        self.len() <= other.len() && self.minus(other).is_empty()
    }

    /// Whether this unit of the original is kept. Takes O(log ranges).
    pub fn contains(&self, unit: usize) -> bool {
        self.count_below(unit) < self.count_below(unit + 1)
    }

    /// The kept units at these positions, which count kept units from 0; what lies beyond the
    /// last position is ignored.
    pub fn slice(&self, positions: Range<usize>) -> Config {
        self.without(&[0..positions.start, positions.end..self.len()])
    }

    /// Part number `index` (from 0) of this configuration split into `parts`, as [`part`] cuts.
    pub fn part(&self, parts: usize, index: usize) -> Config {
        self.slice(part(self.len(), parts, index))
    }
}
