//! The list search, which most passes use: it reduces both ends of a list, its middle, and then
//! sweeps over the list by group testing.

use std::ops::Range;
use std::sync::Arc;

use crate::Outcome;
use crate::passes::alike::Alike;
use crate::passes::current_best::CurrentBest;
use crate::passes::gap_model::{GapModel, Pattern, likely_half};
use crate::passes::units::Units;

/// Numbers of units that are kept at the end of the list while all units before them are deleted in
/// one test: first one unit, then 64, then 4096. Once such a test fails, the larger numbers are not
/// tried.
const CLUSTERS: [usize; 3] = [1, 64, 4096];

/// If a list has more units than this, bisection finds how many units at its front can be deleted,
/// even if the list is too short for the next of the numbers [`CLUSTERS`]. The units of a shorter
/// list are deleted block by block at once.
const CLUSTERED: usize = 1024;

/// Number of units above which no test tries the first unit or the last unit of a list alone,
/// because bisection decides about them, too.
const MANY: usize = 4096;

/// A search that deletes units (bytes, lines or others) of the current best text: first at both
/// ends of the list, then in its middle, and then block by block.
pub(super) struct ListSearch<'a> {
    work: &'a mut CurrentBest,
    units: &'a mut dyn Units,
    /// True if units were deleted by the guess that a pattern of deleted and kept units repeats, so
    /// that some of the remaining units were not tested.
    guessed: bool,
    /// Number of UNRESOLVED tests of the list search so far.
    unresolved: usize,
    /// Number of UNRESOLVED tests after which the list search gives up.
    patience: usize,
    /// Number of successive units that the failure needs after which a sweep over the list
    /// (deletion block by block from its end) ends.
    fruitless: usize,
    /// True if a sweep (deletion of units block by block) ended because too many successive units
    /// were needed.
    stopped: bool,
}

/// The numbers of units at the front and at the end of a list that need not be tried, because the
/// failure is known to need them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// Number of units at the front of the list that need not be tried: the failure needs them, or
    /// their deletion deletes nothing.
    pub front: usize,
    /// Number of units at the end of the list that the failure needs.
    pub back: usize,
}

impl<'a> ListSearch<'a> {
    /// Creates a list search that deletes `units` from the current best text.
    pub fn new(work: &'a mut CurrentBest, units: &'a mut dyn Units) -> ListSearch<'a> {
        ListSearch {
            work,
            units,
            guessed: false,
            unresolved: 0,
            patience: usize::MAX,
            fruitless: usize::MAX,
            stopped: false,
        }
    }

    /// Deletes units of the list until each remaining one is needed for the failure. This takes for
    /// granted that a unit which is needed now is still needed after others are deleted.
    pub async fn reduce(&mut self) {
        let all = 0..self.units.len();
        if all.is_empty() {
            return;
        }
        if self.units.is_all_untested() && self.delete(all).await.is_some() {
            return;
        }
        let ends = self.ends().await;
        if !self.middle(ends).await {
            self.sweep(ends).await;
            if self.guessed && !self.units.are_retried() {
                self.guessed = false;
                self.sweep_range(0..self.units.len()).await;
            }
        }
    }

    /// Makes the list search give up after `unresolved` UNRESOLVED tests, which suggest that the
    /// target depends on the size or the position of bytes.
    pub fn give_up_after(mut self, unresolved: usize) -> ListSearch<'a> {
        self.patience = unresolved;
        self
    }

    /// Makes each sweep over the list (deletion of units block by block) end after `needed`
    /// successive units that turn out to be needed for the failure.
    pub fn stop_after(mut self, needed: usize) -> ListSearch<'a> {
        self.fruitless = needed;
        self
    }

    /// Returns the number of units (bytes, lines or others) of the list that remain.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns true if the list search gave up because too many tests were UNRESOLVED.
    pub fn has_given_up(&self) -> bool {
        self.unresolved >= self.patience
    }

    /// Returns true if a sweep (deletion of units block by block) ended before its last unit,
    /// because too many successive units were needed.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Tests the text without the units in `cut` and, if it fails, deletes them from the list.
    /// Returns how many of these units remain, 0 as a rule: a pair of brackets remains if it
    /// contains units outside of `cut`. Returns `None` if the text does not fail, or if the list
    /// search has given up.
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
        (outcome == Outcome::Fail).then(|| self.units.accept(self.work, &cuts))
    }

    /// Deletes units (bytes, lines or others) at the end and at the front of the list, as long as
    /// the text still fails: first finds the shortest failing prefix of the list by bisection; then
    /// how many of the last units of this prefix suffice for the failure, by growing numbers and
    /// bisection. Returns two numbers: how many units at the front and at the back of the remaining
    /// list need not be tried again.
    ///
    /// Invariant of each bisection between two numbers of units: the text with the greater number
    /// of units fails, the text with the smaller number does not.
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

    /// Returns true if all remaining units are equal, as in a sequence of equal bytes, else false.
    /// If true, sets `ends.front`, the number of units known to be needed, to the number of all
    /// units: since the last one is needed, an equal one is, too.
    fn is_one_run(&self, ends: &mut Ends) -> bool {
        let left = self.units.len();
        let one = left > 0 && self.units.first_equal(self.work, left - 1) == 0;
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

    /// Tests the text with only the last units of the list, in growing numbers ([`CLUSTERS`]). Once
    /// such a text fails, deletes all units before them, and finds by bisection how many of the
    /// remaining units can be deleted. `stand`: number of units at the front that stay in the list
    /// although their deletion succeeded, such as brackets around units that were kept. Returns how
    /// many units at the front need not be tried again.
    async fn cluster(&mut self, stand: usize) -> usize {
        let len = self.units.len();
        let mut too_few = 0;
        for kept in CLUSTERS {
            if stand + kept >= len {
                // The whole list is a cluster.
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

    /// Finds by bisection how many units at the front of the list can be deleted together, and
    /// deletes them. `front`: number of units at the front that must stay and are not tried, such
    /// as brackets around units that were kept. `too_many`: number of the next units, which are
    /// known not to be deletable all together. Returns how many units at the front need not be
    /// tried again: the ones that stay, and the first one that the failure needs.
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

    /// Tries to delete everything between the needed units at both ends of the list, in one test.
    /// Returns true if the rest fails, or if there is nothing between the ends; else false.
    pub async fn middle(&mut self, ends: Ends) -> bool {
        let to = self.units.len().saturating_sub(ends.back);
        if ends.front == 0 || ends.front + 1 >= to {
            return ends.front >= to;
        }
        self.delete(ends.front..to).await.is_some()
    }

    /// Deletes the unneeded units between the needed ends of the list, block by block from the end
    /// to the front.
    pub async fn sweep(&mut self, ends: Ends) {
        let to = self.units.len().saturating_sub(ends.back);
        // If the last unit is needed, so are the equal units directly before it.
        let to = match ends.back {
            0 => to,
            _ => self.units.first_equal(self.work, to),
        };
        self.sweep_range(ends.front..to.max(ends.front)).await;
    }

    /// Deletes blocks of the units in `range` from its end to its front. A model of the distance
    /// between needed units chooses the length of each block, and a longer block follows a deleted
    /// one. In a block that cannot be deleted, bisection finds the last needed unit, which is never
    /// tested alone.
    ///
    /// Invariant: all units of `range` after the current position are needed or cannot be deleted.
    pub async fn sweep_range(&mut self, range: Range<usize>) {
        let mut spacing = GapModel::over(range.len());
        let (mut pattern, mut alike) = (Pattern::default(), Alike::default());
        let mut to = range.end;
        let mut fruitless = 0;
        while to > range.start && fruitless < self.fruitless && !self.has_given_up() {
            let block = spacing.block().min(to - range.start);
            let bytes = self.watched();
            if self.delete(to - block..to).await.is_some() {
                to -= block;
                fruitless = 0;
                spacing.record_deleted(block);
                pattern.record_deleted(block);
                record(&mut alike, &bytes, to..to + block);
                to = self.repeat_alike(&mut alike, range.start..to).await;
                continue;
            }
            let needed = self.last_needed(to - block, to).await;
            fruitless += 1;
            if to - 1 > needed {
                fruitless = 0;
                record(&mut alike, &bytes, needed + 1..to);
                spacing.record_deleted(to - 1 - needed);
                pattern.record_deleted(to - 1 - needed);
            }
            to = self.units.first_equal(self.work, needed).max(range.start);
            spacing.record_needed();
            pattern.record_kept(needed + 1 - to);
            to = self.repeat(&mut pattern, range.start..to).await;
            if fruitless == 0 {
                to = self.repeat_alike(&mut alike, range.start..to).await;
            }
        }
        self.stopped = to > range.start && fruitless >= self.fruitless;
    }

    /// Returns the current best text and the position of the list's first unit in it. [`record`]
    /// takes them after units were deleted, to learn which other bytes may be unneeded, too. `None`
    /// if the units are not bytes, or if no such guesses are to be made.
    fn watched(&mut self) -> Option<(Arc<[u8]>, usize)> {
        let first = self.units.first_byte()?;
        Some((Alike::watch(self.work)?, first))
    }

    /// Deletes, in one test, bytes that are equal to bytes deleted elsewhere by the sweep (deletion
    /// of units block by block), and so are probably not needed. `alike` remembers the deleted
    /// bytes. Only units of `rest`, which the sweep has not reached, are deleted. Returns the end
    /// of `rest` after the deletion, from where the sweep continues towards the front.
    async fn repeat_alike(&mut self, alike: &mut Alike, rest: Range<usize>) -> usize {
        let Some(first) = self.units.first_byte() else {
            return rest.end;
        };
        let Some(places) = alike.guess(self.work, first + rest.start..first + rest.end) else {
            return rest.end;
        };
        let cuts: Vec<Range<usize>> = (places.into_iter())
            .map(|place| place.start - first..place.end - first)
            .collect();
        let deleted: usize = cuts.iter().map(Range::len).sum();
        if self.delete_all(cuts).await.is_some() {
            return rest.end - deleted;
        }
        alike.refuse();
        rest.end
    }

    /// Guesses that the pattern of deleted and kept units that `pattern` has seen so far repeats in
    /// `rest`, the units that the sweep (deletion of units block by block) has not reached yet.
    /// Deletes, in one test, the units of `rest` that the sweep would delete then. If the text
    /// without them does not fail, tries the same with the back half of `rest`, which the sweep
    /// reaches first. Returns the position from where the sweep continues towards the front.
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

    /// Bisects the block of units `from..to`, which cannot be deleted whole: deletes the units
    /// after its last needed unit, and returns the position of that unit.
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

/// Records in `alike` that a sweep (deletion of units block by block) has deleted the units `cut`;
/// `alike` guesses later at which other places equal bytes can be deleted. `bytes` has the text
/// before the deletion, and the position in it of the list's first unit; nothing is recorded if it
/// is `None`.
fn record(alike: &mut Alike, bytes: &Option<(Arc<[u8]>, usize)>, cut: Range<usize>) {
    if let Some((text, first)) = bytes {
        alike.record_deleted(text, first + cut.start..first + cut.end);
    }
}
