//! Periodic patterns of what a sweep keeps and deletes.

use std::ops::Range;

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
