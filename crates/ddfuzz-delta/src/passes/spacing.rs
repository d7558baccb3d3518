//! Where the next needed unit is to be expected.

/// How far needed units lie apart, as seen so far by a sweep.
///
/// A block is best as long as makes it go in one test of two: for gaps of mean length g these are
/// g · ln 2 units. The search of a gap then takes hardly more than its entropy (as in Golomb's
/// codes).
#[derive(Debug)]
pub(super) struct Spacing {
    /// Expected distance from one needed unit to the next, in sixteenths of a unit.
    distance: usize,
    /// Units deleted since the last needed one.
    gap: usize,
    /// Blocks deleted since the last needed one.
    blocks: usize,
    /// Needed units seen.
    seen: usize,
    /// Whether the last two needed units were neighbours: the next one may be, too.
    cluster: bool,
}

impl Spacing {
    /// Nothing is known of this many units.
    pub fn over(units: usize) -> Spacing {
        Spacing {
            distance: (units * 16 / 6).max(16),
            gap: 0,
            blocks: 0,
            seen: 0,
            cluster: false,
        }
    }

    /// Length of the next block.
    pub fn block(&self) -> usize {
        // ln 2 is about 11/16.
        let block = (self.distance * 11 / 256).max(1);
        let blocks = match self.cluster {
            true if self.blocks == 0 => return 1,
            true => self.blocks - 1,
            false => self.blocks,
        };
        block << blocks.saturating_sub(1).min(32)
    }

    /// A block was deleted.
    pub fn deleted(&mut self, units: usize) {
        self.gap += units;
        self.blocks += 1;
    }

    /// A needed unit was found in front of what was deleted.
    pub fn needed(&mut self) {
        self.cluster = self.gap == 0;
        let distance = (self.gap + 1) * 16;
        // The average, in which those long past fade.
        let weight = self.seen.min(7) + 1;
        self.distance = match distance * 16 < self.distance {
            true => self.distance / 2,
            false => (self.distance * weight + distance) / (weight + 1),
        };
        self.seen += 1;
        self.gap = 0;
        self.blocks = 0;
    }
}

/// The position between `passing` and `failing`, ends of prefixes of `total` units, at which the
/// shortest failing prefix ends as likely before as behind.
///
/// Of m needed units spread evenly the last is in front of the fraction x with probability xᵐ; m is
/// taken for 1, 2, 4 or 8, each as likely.
pub(super) fn likely_half(passing: usize, failing: usize, total: usize) -> usize {
    let chance = |end: usize| {
        // Only sums and products, so that all machines agree on them.
        let one = end as f64 / total as f64;
        let two = one * one;
        let four = two * two;
        one + two + four + four * four
    };
    let wanted = (chance(passing) + chance(failing)) / 2.0;
    let (mut low, mut high) = (passing, failing);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match chance(middle) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    high.clamp(passing + 1, failing - 1)
}
