//! Predicts where a sweep (deletion of units block by block) finds the next needed unit: by the
//! usual gap, or by a periodic pattern.

use std::ops::Range;

/// Model of the distance between needed units (those whose deletion makes the failure disappear),
/// learned while a sweep deletes blocks of units; it chooses the length of the next block.
///
/// A block is best if half of all blocks can be deleted: for gaps of mean length g, a length of g ·
/// ln 2 units. The tests per gap are then close to its entropy (compare Golomb codes).
#[derive(Debug)]
pub(super) struct GapModel {
    /// Expected distance from one needed unit to the next, in sixteenths of a unit.
    distance: usize,
    /// Number of units that the sweep, which goes from the end of a list to its front, has deleted
    /// since it found the last needed unit.
    gap: usize,
    /// Number of blocks of units that the sweep, which goes from the end of a list to its front,
    /// has deleted since it found the last needed unit.
    blocks: usize,
    /// Number of needed units that the sweep, which goes from the end of a list to its front, has
    /// found so far.
    seen: usize,
    /// True if the last two needed units were neighbors, so that the next one may be a neighbor,
    /// too.
    cluster: bool,
}

impl GapModel {
    /// Creates the model of the gaps between needed units, for a sweep over a list of `units` units
    /// from its end to its front. Until the sweep has found needed units, the model expects gaps of
    /// a sixth of the list.
    pub fn over(units: usize) -> GapModel {
        GapModel {
            distance: (units * 16 / 6).max(16),
            gap: 0,
            blocks: 0,
            seen: 0,
            cluster: false,
        }
    }

    /// Returns how many units the sweep should try to delete next, in one block.
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

    /// Records that the sweep (deletion of units block by block) deleted `units` units in one test:
    /// the gap that is being measured, between two needed units, is longer by them.
    pub fn record_deleted(&mut self, units: usize) {
        self.gap += units;
        self.blocks += 1;
    }

    /// Records that the sweep, which deletes blocks from the end of a list to its front, has found
    /// a unit that must stay; updates the expected distance between such units.
    pub fn record_needed(&mut self) {
        self.cluster = self.gap == 0;
        let distance = (self.gap + 1) * 16;
        // A moving average, in which old distances fade.
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

/// Returns where a bisection for the shortest failing prefix of `total` units should test next: the
/// length of a prefix, between `passing`, which is known to be too short, and `failing`, which is
/// known to fail. The shortest prefix is shorter than the returned length with probability 1/2.
///
/// If m needed units are spread evenly, the last one lies in the first fraction x with probability
/// xᵐ. The model assumes m = 1, 2, 4 or 8 with equal probability.
pub(super) fn likely_half(passing: usize, failing: usize, total: usize) -> usize {
    let chance = |end: usize| {
        // Only sums and products, whose results are equal on all machines.
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

/// Maximum length of a repeating pattern that is recognized, in pairs of a deleted and a kept
/// sequence of units.
const LONGEST: usize = 8;

/// Two lengths, in units, of neighboring sequences that a sweep from the end of a list to its front
/// has met: of a sequence that it deleted, and of the sequence in front of it, which it kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    deleted: usize,
    kept: usize,
}

/// A recorder of the sequences of units that a sweep (deletion of units block by block) deleted and
/// kept; if they make a repeating pattern, it guesses how the pattern continues.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// Lengths of the sequences of units that a sweep over a list (deletion of units block by
    /// block) deleted and kept, as pairs, in the order of the sweep; the last pair is still
    /// growing.
    pairs: Vec<Pair>,
    /// Number of wrong guesses of a repeating pattern so far. Each doubles the number of
    /// repetitions that the next guess requires.
    refused: u32,
}

impl Pattern {
    /// Records that a sweep over a list (deletion of units block by block) has deleted a sequence
    /// of `units` units; if the last recorded sequence was deleted, too, makes it longer instead.
    pub fn record_deleted(&mut self, units: usize) {
        match self.pairs.last_mut() {
            Some(pair) if pair.kept == 0 => pair.deleted += units,
            _ => self.pairs.push(Pair {
                deleted: units,
                kept: 0,
            }),
        }
    }

    /// Records that a sweep over a list (deletion of units block by block) has kept a sequence of
    /// `units` units, because the failure needs them; if the last recorded sequence was kept, too,
    /// makes it longer instead.
    pub fn record_kept(&mut self, units: usize) {
        match self.pairs.last_mut() {
            Some(pair) => pair.kept += units,
            None => self.pairs.push(Pair {
                deleted: 0,
                kept: units,
            }),
        }
    }

    /// Forgets the recorded sequences of deleted and of needed units. Called after a guess that
    /// their pattern repeats was correct: the sweep (deletion of units block by block) then skips
    /// units, so that its next sequences do not adjoin the recorded ones.
    pub fn forget(&mut self) {
        self.pairs.clear();
    }

    /// Records that a guess by the pattern of deleted and kept sequences was wrong: the next guess
    /// requires twice as many repetitions of the pattern.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Guesses which units the sweep can delete next, if the recorded sequences are a pattern that
    /// repeats. `rest` are the units that the sweep, which goes from the end to the front, has not
    /// reached. Returns ranges of `rest`, ascending; `None` if no pattern repeats. The pattern must
    /// have occurred at least twice, and twice as often after each wrong guess; the shortest such
    /// pattern is used.
    pub fn guess(&self, rest: Range<usize>) -> Option<Vec<Range<usize>>> {
        let (last, done) = self.pairs.split_last()?;
        if last.kept != 1 || last.deleted == 0 {
            // The last deleted run is complete only when a run of needed units has just begun.
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

/// Predicts which units a sweep from the end to the front will delete, if its sequences of deleted
/// and kept units repeat the pattern `period`. Returns, ascending, these ranges of `rest`, the
/// units not reached yet. In the first pair of `period`, the sweep has found only the first unit of
/// the kept sequence; the other units of that sequence are at the end of `rest`.
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
