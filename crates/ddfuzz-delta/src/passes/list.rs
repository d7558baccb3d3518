//! The list search: ends, middle, and a sweep by group testing.

use std::ops::Range;

use crate::Outcome;
use crate::passes::current_best::CurrentBest;
use crate::passes::gap_model::{GapModel, Pattern, likely_half};
use crate::passes::units::Units;

/// Units kept by the probes for a cluster of needed units at the end.
const CLUSTERS: [usize; 3] = [1, 64, 4096];

/// More units than these are bisected at the front, too, instead of swept.
const CLUSTERED: usize = 1024;

/// Of more units than these no end is tried alone: where it is needed, bisection finds that out at
/// a cost that does not show in the proof of so many.
const MANY: usize = 4096;

/// A list of units under reduction.
pub(super) struct List<'a> {
    work: &'a mut CurrentBest,
    units: &'a mut dyn Units,
    /// Whether a pattern was taken, so that some of what is left was not tried.
    guessed: bool,
    /// Tests that were UNRESOLVED.
    unresolved: usize,
    /// As many of them end the search.
    patience: usize,
    /// As many needed units one after the other end a sweep.
    fruitless: usize,
}

/// What is known of the ends of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// Units at the front that are needed, or stand.
    pub front: usize,
    /// Units at the end that are needed.
    pub back: usize,
}

impl<'a> List<'a> {
    /// A list that deletes these units of the best.
    pub fn new(work: &'a mut CurrentBest, units: &'a mut dyn Units) -> List<'a> {
        List {
            work,
            units,
            guessed: false,
            unresolved: 0,
            patience: usize::MAX,
            fruitless: usize::MAX,
        }
    }

    /// Deletes units until each that is left is needed, as far as needs do not change while
    /// others go.
    pub async fn reduce(&mut self) {
        let all = 0..self.units.len();
        if all.is_empty() {
            return;
        }
        if self.units.all_is_open() && self.delete(all).await.is_some() {
            return;
        }
        let ends = self.ends().await;
        if !self.middle(ends).await {
            self.sweep(ends).await;
            if self.guessed && !self.units.are_judged_again() {
                self.guessed = false;
                self.sweep_range(0..self.units.len()).await;
            }
        }
    }

    /// Gives up where so many tests are UNRESOLVED: the size, or the place of what is left, may
    /// count, which other units respect.
    pub fn give_up_after(mut self, unresolved: usize) -> List<'a> {
        self.patience = unresolved;
        self
    }

    /// Ends sweeps behind so many needed units one after the other.
    pub fn stop_behind(mut self, needed: usize) -> List<'a> {
        self.fruitless = needed;
        self
    }

    /// Number of units left.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether it gave up.
    pub fn has_given_up(&self) -> bool {
        self.unresolved >= self.patience
    }

    /// Deletes units; gives how many of them still stand, `None` where they are needed.
    pub async fn delete(&mut self, cut: Range<usize>) -> Option<usize> {
        self.delete_all(vec![cut]).await.map(|stand| stand[0])
    }

    async fn delete_all(&mut self, cuts: Vec<Range<usize>>) -> Option<Vec<usize>> {
        if self.has_given_up() {
            return None;
        }
        let Some(edit) = self.units.edit(self.work, &cuts) else {
            return Some(cuts.iter().map(Range::len).collect());
        };
        let outcome = self.work.test(self.units.rule(), edit).await;
        self.unresolved += usize::from(outcome == Outcome::Unresolved);
        (outcome == Outcome::Fail).then(|| self.units.taken(self.work, &cuts))
    }

    /// Finds the shortest failing prefix by bisection, then a cluster of needed units at its end
    /// by galloping probes and bisection.
    ///
    /// Invariant of both: what is left fails, and what the other bound would leave does not.
    pub async fn ends(&mut self) -> Ends {
        let mut ends = Ends { front: 0, back: 0 };
        let total = self.units.len();
        if total < 2 {
            ends.back = total;
            return ends;
        }
        ends.back = 1;
        if total > MANY || self.delete(total - 1..total).await.is_some() {
            self.shortest_prefix(total).await;
        }
        let left = self.units.len();
        if left < 2 {
            return ends;
        }
        if self.is_one_run(&mut ends) {
            return ends;
        }
        let first = match left > MANY {
            true => Some(0),
            false => self.delete(0..1).await,
        };
        ends.front = match first {
            Some(stand) => self.cluster(stand).await,
            None => 1,
        };
        self.is_one_run(&mut ends);
        ends
    }

    /// Whether all units left are alike, so that all are needed because the last one is.
    fn is_one_run(&self, ends: &mut Ends) -> bool {
        let left = self.units.len();
        let one = left > 0 && self.units.alike_from(self.work, left - 1) == 0;
        if one {
            ends.front = left;
        }
        one
    }

    async fn shortest_prefix(&mut self, total: usize) {
        let (mut passing, mut failing) = (0, self.units.len());
        while failing - passing > 1 {
            let half = likely_half(passing, failing, total);
            match self.delete(half..failing).await {
                Some(0) => failing = half,
                _ => passing = half,
            }
        }
    }

    /// Deletes the front but for a cluster at the end; gives how many units at the front are
    /// needed, or stand.
    async fn cluster(&mut self, stand: usize) -> usize {
        let len = self.units.len();
        let mut too_few = 0;
        for kept in CLUSTERS {
            if stand + kept >= len {
                // All of a text of medium size is a cluster.
                return match len > CLUSTERED {
                    true => self.bisect_front(stand, len - stand - too_few).await,
                    false => stand,
                };
            }
            match self.delete(0..len - kept).await {
                Some(stand) => return self.bisect_front(stand, kept - too_few).await,
                None => too_few = kept,
            }
        }
        stand
    }

    /// Deletes units from position `front` on, of which deleting `too_many` does not fail. What
    /// stands in front of it may go with them.
    async fn bisect_front(&mut self, mut front: usize, mut too_many: usize) -> usize {
        while too_many > 1 {
            let half = too_many / 2;
            match self.delete(0..front + half).await {
                Some(stand) => {
                    front = stand;
                    too_many -= half;
                }
                None => too_many = half,
            }
        }
        (front + 1).min(self.units.len())
    }

    /// Deletes all between the needed ends in one test; says whether that is done.
    pub async fn middle(&mut self, ends: Ends) -> bool {
        let to = self.units.len().saturating_sub(ends.back);
        if ends.front == 0 || ends.front + 1 >= to {
            return ends.front >= to;
        }
        self.delete(ends.front..to).await.is_some()
    }

    /// Sweeps over all between the needed ends.
    pub async fn sweep(&mut self, ends: Ends) {
        let to = self.units.len().saturating_sub(ends.back);
        // With the last unit its like in front of it are needed.
        let to = match ends.back {
            0 => to,
            _ => self.units.alike_from(self.work, to),
        };
        self.sweep_range(ends.front..to.max(ends.front)).await;
    }

    /// Deletes blocks of `range` from its end to its front, each as long as recent gaps between
    /// needed units let expect. Behind a block that goes, a longer one is tried; inside a block
    /// that is needed its last needed unit is found by bisection, known from then on and never
    /// tested alone.
    ///
    /// Invariant: units of the range behind the position are needed, or stand.
    pub async fn sweep_range(&mut self, range: Range<usize>) {
        let mut spacing = GapModel::over(range.len());
        let mut pattern = Pattern::default();
        let mut to = range.end;
        let mut fruitless = 0;
        while to > range.start && fruitless < self.fruitless && !self.has_given_up() {
            let block = spacing.block().min(to - range.start);
            if self.delete(to - block..to).await.is_some() {
                to -= block;
                fruitless = 0;
                spacing.deleted(block);
                pattern.deleted(block);
                continue;
            }
            let needed = self.last_needed(to - block, to).await;
            fruitless += 1;
            if to - 1 > needed {
                fruitless = 0;
                spacing.deleted(to - 1 - needed);
                pattern.deleted(to - 1 - needed);
            }
            to = self.units.alike_from(self.work, needed).max(range.start);
            spacing.needed();
            pattern.kept(needed + 1 - to);
            to = self.repeat(&mut pattern, range.start..to).await;
        }
    }

    /// Deletes what a pattern says of the rest in front of the sweep, else of its nearer half;
    /// gives where the sweep goes on.
    async fn repeat(&mut self, pattern: &mut Pattern, rest: Range<usize>) -> usize {
        let nearer = rest.start + rest.len() / 2..rest.end;
        for part in [rest.clone(), nearer] {
            let Some(cuts) = pattern.guess(part.clone()) else {
                return rest.end;
            };
            if self.delete_all(cuts).await.is_some() {
                pattern.forget();
                self.guessed = true;
                return part.start;
            }
        }
        pattern.refuse();
        rest.end
    }

    /// The last needed unit of a block that is needed. What stands behind it is deleted.
    async fn last_needed(&mut self, from: usize, mut to: usize) -> usize {
        let mut needed = from;
        while to - needed > 1 {
            let half = needed + (to - needed) / 2;
            match self.delete(half..to).await {
                Some(_) => to = half,
                None => needed = half,
            }
        }
        needed
    }
}
