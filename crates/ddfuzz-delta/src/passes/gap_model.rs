//! Where a sweep expects the next needed unit: the gap model, and periodic patterns.

use std::ops::Range;

/// How far needed units lie apart, as seen so far by a sweep.
///
/// A block is best as long as makes it go in one test of two: for gaps of mean length g these are
/// g · ln 2 units. The search of a gap then takes hardly more than its entropy (as in Golomb's
/// codes).
#[derive(Debug)]
pub(super) struct GapModel {
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

impl GapModel {
    /// Nothing is known of this many units.
    pub fn over(units: usize) -> GapModel {
        GapModel {
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

/// Longest period, in pairs of a deleted and a kept run.
const LONGEST: usize = 8;

/// A run of deleted units and the run of kept ones in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    deleted: usize,
    kept: usize,
}

/// What a sweep from the end to the front decided, as far as it may repeat itself.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// The last pair is still growing.
    pairs: Vec<Pair>,
    /// Guesses that were refused: each asks for twice as many repeats.
    refused: u32,
}

impl Pattern {
    /// Units were deleted.
    pub fn deleted(&mut self, units: usize) {
        match self.pairs.last_mut() {
            Some(pair) if pair.kept == 0 => pair.deleted += units,
            _ => self.pairs.push(Pair {
                deleted: units,
                kept: 0,
            }),
        }
    }

    /// Units are needed.
    pub fn kept(&mut self, units: usize) {
        match self.pairs.last_mut() {
            Some(pair) => pair.kept += units,
            None => self.pairs.push(Pair {
                deleted: 0,
                kept: units,
            }),
        }
    }

    /// A guess was right: what was seen before it says nothing of what is in front of it.
    pub fn forget(&mut self) {
        self.pairs.clear();
    }

    /// A guess was refused.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// What to delete of the units `from..to` in front of those decided, if the last decisions
    /// go on repeating themselves: shortest period first, each seen at least twice.
    pub fn guess(&self, rest: Range<usize>) -> Option<Vec<Range<usize>>> {
        let (last, done) = self.pairs.split_last()?;
        if last.kept != 1 || last.deleted == 0 {
            // Only where a run of needed units begins is the deleted run before it whole.
            return None;
        }
        let repeats = 1usize << (self.refused + 1).min(16);
        let period = (1..=LONGEST).find_map(|period| {
            let needed = repeats * period - 1;
            let seen = &done[done.len().checked_sub(needed)?..];
            let again = (period..needed).all(|at| seen[at] == seen[at - period]);
            let begun = seen[needed - period].deleted == last.deleted;
            (again && begun).then(|| &seen[needed - period..])
        })?;
        let cuts = extrapolate(period, rest);
        (!cuts.is_empty()).then_some(cuts)
    }
}

/// Repeats a period towards the front, one unit of its first kept run being there already.
fn extrapolate(period: &[Pair], rest: Range<usize>) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut at = rest.end;
    let mut pairs = period.iter().cycle();
    let mut skip = pairs.next().map_or(0, |pair| pair.kept.saturating_sub(1));
    while at.saturating_sub(skip) > rest.start {
        at -= skip;
        let Some(pair) = pairs.next() else {
            break;
        };
        let start = at.saturating_sub(pair.deleted).max(rest.start);
        cuts.push(start..at);
        at = start;
        skip = pair.kept;
    }
    cuts.reverse();
    cuts
}
