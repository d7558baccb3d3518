//! Chooses the inputs to keep: a set cover of all stable features (reached in every run), plus, for
//! each flaky feature, the inputs that reach it most often.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::CleanError;
use crate::cover::{Cover, Effort, FAST, Sets, Slowness, UniqueFeatures, cover, unique_features};
use crate::{Feature, FeatureUnion, Features};

/// If more than one in this many features is found only when each input has its own process, the
/// target is taken to keep state between runs, and runs may not share a process.
const STATEFUL_DIVISOR: usize = 20;
/// Number of inputs that are run in separate processes in each attempt to find features of code
/// that runs only once in a process.
const ALONE: usize = 4;
/// Maximum number of searches for features of code that runs only once in a process; a search that
/// finds none is the last one.
const ATTEMPTS: u32 = 4;
/// Greatest permitted probability that the kept inputs, each run once, all miss a flaky feature
/// (one that only some runs reach). Inputs are added for the feature until this probability is
/// reached.
const MISS_PROBABILITY: f64 = 0.01;
/// Minimum number of inputs that are kept for a flaky feature (reached in some runs only), if at
/// least this many reach it.
const LEAST: usize = 2;
/// Maximum number of inputs that are kept for a flaky feature (reached in some runs only).
const MOST: usize = 24;
/// Maximum number of inputs that are recorded for a flaky feature (reached in some runs only) as
/// those that reach it.
const MAX_HOLDERS: usize = 64;

/// The inputs that a cleanup chooses from, numbered from 0 and sorted by size and hash; reads and
/// re-runs them.
pub(super) trait CandidateSource {
    fn len(&self) -> usize;

    /// Returns the size of the input with the number `item`, in bytes.
    fn bytes(&self, item: usize) -> u64;

    /// Replaces `into` by the features of the first run of the input `item`, and returns that run's
    /// CPU time.
    fn first(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<Duration>;

    /// Runs the inputs `items` again, and returns the features of each over all runs, including the
    /// first.
    fn rerun(&mut self, items: &[usize]) -> Result<Vec<Reruns>, CleanError>;

    /// Runs each of the inputs `items` several times, each time in a separate process, and returns
    /// for each input the features that every run reached; `None` if all runs have separate
    /// processes anyway.
    fn run_alone(&mut self, items: &[usize]) -> Result<Option<Vec<Features>>, CleanError>;

    /// Runs each of the inputs `items` once, in processes that many inputs share. Returns the
    /// features of each run, with `None` for a run that failed.
    fn together(&mut self, items: &[usize]) -> Result<Vec<Option<Features>>, CleanError>;

    /// Runs each of the inputs `items` twice in succession in one process. Returns the features of
    /// each second run, with `None` for a run that failed; `None` in place of the list if each run
    /// has a separate process anyway.
    fn run_twice(&mut self, items: &[usize]) -> Result<Option<Vec<Option<Features>>>, CleanError>;

    /// Returns true if the user wants inputs to be run more than once, so that flaky features are
    /// found.
    fn repeats(&self) -> bool;
}

/// The features that one input reached over several runs, and its CPU time.
#[derive(Clone, Debug, Default)]
pub(super) struct Reruns {
    /// Features that every run of the input reached; empty if a run failed.
    pub steady: Features,
    /// Features that only some runs of the input reached, each with the number of reruns that
    /// reached it. The first run is not counted, since the input was chosen for its features.
    pub sometimes: BTreeMap<Feature, u32>,
    /// Number of reruns of the input: all its runs except the first.
    pub runs: u32,
    /// The shortest CPU time of all runs of the input.
    pub time: Duration,
}

impl Reruns {
    /// Returns the features that at least one run of the input reached.
    pub fn ever(&self) -> Features {
        let sometimes = self.sometimes.keys().copied().collect();
        self.steady.or(&Features::from_unsorted(sometimes))
    }
}

/// The result of choosing inputs, which are given by number: a set cover of the stable features,
/// more inputs for flaky features, and the features and CPU times that were measured.
#[derive(Debug)]
pub(super) struct Choice {
    /// The chosen set cover: inputs that together reach all stable features (reached in every run
    /// of some input).
    pub cover: Cover,
    /// Numbers of the inputs that are kept for flaky features (reached in some runs only), each
    /// with the number of such features. Some of these inputs are in the set cover, too.
    pub sometimes: BTreeMap<usize, u64>,
    /// For each input that was run again, kept or not, by its number: the features and CPU times of
    /// its runs.
    pub reruns: BTreeMap<usize, Reruns>,
    /// The stable features: those that at least one input reaches in every run.
    pub universe: Features,
    /// Features that any run of any input of the corpus reached.
    pub seen: Features,
    /// Stable features of code that runs once per process: which input of a process reaches them
    /// depends on the order of the runs.
    pub once_per_process: Features,
    /// Features that only one input of the corpus, or only one kept input, reaches.
    pub unique_features: UniqueFeatures,
    /// CPU time of the first run of each input, by its number.
    pub times: Vec<Duration>,
}

/// The features of the corpus to which kept inputs are added (`--onto`); kept inputs need not reach
/// these features.
#[derive(Clone, Copy)]
pub(super) struct AlreadyCovered<'a> {
    /// Features that the `--onto` corpus reaches in every run.
    pub covered: &'a Features,
    /// Features that any run of the `--onto` corpus reached.
    pub seen: &'a Features,
}

/// Chooses inputs of `source` that reach all features of the corpus except those in `already`.
/// Chosen inputs are run again, and the choice is repeated until it depends on stable features
/// only. `effort` limits memory and work of the choice.
///
/// Returns `None` if results depend too much on earlier runs in the same process.
pub(super) fn choose(
    source: &mut dyn CandidateSource,
    already: AlreadyCovered<'_>,
    effort: &Effort,
) -> Result<Option<Choice>, CleanError> {
    let mut chooser = Chooser::new(source)?;
    chooser.rerun_slow()?;
    let mut attempts = if chooser.source.repeats() {
        ATTEMPTS
    } else {
        0
    };
    let mut exchanges = attempts;
    let mut found = 0;
    // The first covers only show which inputs to run again: they need no proof of optimality.
    let mut is_first = true;
    loop {
        let effort = match is_first {
            true => effort.first(),
            false => *effort,
        };
        let (cover, universe) = chooser.settle(already.covered, &effort)?;
        let unsteady = chooser.seen.less(&universe);
        let unsteady = unsteady.less(already.covered).less(already.seen);
        if !unsteady.is_empty() && attempts > 0 {
            let more = chooser.find_once_per_process(&unsteady, &cover.chosen)?;
            found += more;
            if found * STATEFUL_DIVISOR > chooser.seen.len() {
                return Ok(None);
            }
            if more > 0 {
                attempts -= 1;
                continue;
            }
            attempts = 0;
        }
        if chooser.rerun_holders(&unsteady)? || std::mem::take(&mut is_first) {
            continue;
        }
        let unique_features =
            unique_features(&mut chooser, &cover.chosen, &universe, already.covered);
        let unique_features = unique_features.map_err(CleanError::journal)?;
        let needed = universe.less(already.covered);
        let private = &unique_features.private;
        if exchanges > 0 && chooser.find_others(&cover.chosen, private, &needed)? {
            exchanges -= 1;
            continue;
        }
        return Ok(Some(Choice {
            unique_features,
            sometimes: chooser.most_often(&unsteady, &cover.chosen),
            seen: chooser.seen,
            once_per_process: chooser.once.and(&universe),
            times: chooser.times,
            reruns: chooser.reruns,
            cover,
            universe,
        }));
    }
}

struct Chooser<'a> {
    source: &'a mut dyn CandidateSource,
    reruns: BTreeMap<usize, Reruns>,
    /// Numbers of the inputs that were already run in separate processes, which is done only once.
    alone: BTreeSet<usize>,
    /// Numbers of the inputs that were already run twice in succession, which is done only once.
    twice: BTreeSet<usize>,
    /// Features found so far that belong to code which runs only once in a process.
    once: Features,
    /// For each feature, as the index: the number of inputs that reach it.
    holders: Vec<u32>,
    /// Features that any run of any input of the corpus reached.
    seen: Features,
    /// Factor of the slowness class of the corpus's median run (1, 4, 16, …). The CPU time of each
    /// input is divided by it, so that only inputs slower than the median count as slow.
    slowdown: u32,
    /// CPU time of the first run of each input, by its number.
    times: Vec<Duration>,
    /// The set cover that was found last, with the limits on memory and work of the search that
    /// found it. `None` if there is none yet, or if features or times of inputs have changed since.
    last: Option<(Effort, Cover)>,
}

impl<'a> Chooser<'a> {
    fn new(source: &'a mut dyn CandidateSource) -> Result<Chooser<'a>, CleanError> {
        let (mut holders, mut features) = (Vec::new(), Vec::new());
        let mut times = Vec::with_capacity(source.len());
        for item in 0..source.len() {
            let first = source.first(item, &mut features);
            times.push(first.map_err(CleanError::journal)?);
            let most = features.last().map_or(0, |last| last.0 as usize + 1);
            if holders.len() < most {
                holders.resize(most, 0);
            }
            features.iter().for_each(|one| holders[one.0 as usize] += 1);
        }
        let mut chooser = Chooser {
            source,
            reruns: BTreeMap::new(),
            alone: BTreeSet::new(),
            twice: BTreeSet::new(),
            once: Features::default(),
            holders,
            seen: Features::default(),
            slowdown: 1,
            times,
            last: None,
        };
        chooser.seen = chooser.universe();
        Ok(chooser)
    }

    fn universe(&self) -> Features {
        let reached = self.holders.iter().enumerate();
        let reached = reached.filter(|(_, count)| **count > 0);
        Features::from_unsorted(reached.map(|(at, _)| Feature(at as u32)).collect())
    }

    /// Chooses a set cover, and runs its inputs a second time to drop unstable features; chooses
    /// again until each chosen input was run twice. Returns the cover, and all features that are
    /// stable so far.
    fn settle(
        &mut self,
        covered: &Features,
        effort: &Effort,
    ) -> Result<(Cover, Features), CleanError> {
        loop {
            let universe = self.universe();
            let known = self.last.take().filter(|(known, _)| known == effort);
            let cover = match known {
                Some((_, cover)) => cover,
                None => cover(self, &universe, covered, effort).map_err(CleanError::journal)?,
            };
            self.last = Some((*effort, cover.clone()));
            let fresh: Vec<usize> = (cover.chosen.iter().copied())
                .filter(|item| !self.reruns.contains_key(item))
                .collect();
            if fresh.is_empty() {
                return Ok((cover, universe));
            }
            self.run_again(&fresh)?;
        }
    }

    /// Runs again each input that was clearly slower than the corpus's median run, so that one slow
    /// run does not decide whether an input is kept.
    fn rerun_slow(&mut self) -> Result<(), CleanError> {
        let times = &self.times;
        let mut sorted = times.clone();
        if times.is_empty() {
            return Ok(());
        }
        let (_, middle, _) = sorted.select_nth_unstable(times.len() / 2);
        self.slowdown = u32::try_from(Slowness::of(*middle).factor()).unwrap_or(u32::MAX);
        let limit = FAST * self.slowdown;
        let slow: Vec<usize> = (0..times.len())
            .filter(|item| times[*item] >= limit)
            .collect();
        match slow.is_empty() {
            true => Ok(()),
            false => self.run_again(&slow),
        }
    }

    fn run_again(&mut self, items: &[usize]) -> Result<(), CleanError> {
        let answers = self.source.rerun(items)?;
        let mut first = Vec::new();
        for (item, again) in items.iter().zip(answers) {
            (self.source.first(*item, &mut first)).map_err(CleanError::journal)?;
            for feature in first.iter().filter(|one| !again.steady.contains(**one)) {
                self.holders[feature.0 as usize] -= 1;
            }
            let ever = again.ever();
            if !self.seen.has_all(&ever) {
                self.seen = self.seen.or(&ever);
            }
            let before = (self.slowness(*item), self.reruns.contains_key(item));
            let is_same = again.steady.as_slice() == first
                && before == (Slowness::of(again.time / self.slowdown), false);
            if !is_same {
                self.last = None;
            }
            self.reruns.insert(*item, again);
        }
        Ok(())
    }

    /// Finds features of code that runs only once in a process, such as the initialization of a
    /// table: in a shared process only the first input that triggers this code reaches them. Runs
    /// up to four inputs that reach most of the features `unsteady` (reached in some runs only),
    /// each several times in separate processes. A feature that an input reaches in each of these
    /// runs counts from now on as stable. Returns the number of new stable features.
    fn find_once_per_process(
        &mut self,
        unsteady: &Features,
        chosen: &[usize],
    ) -> Result<usize, CleanError> {
        let mut holders = self.holders_of(unsteady)?;
        for holders in &mut holders {
            holders.retain(|item| !self.alone.contains(item));
        }
        // Code that any input triggers is triggered by the smallest chosen input, too.
        let smallest = chosen.first().filter(|item| !self.alone.contains(item));
        let mut items: Vec<usize> = smallest.copied().into_iter().collect();
        let mut left: BTreeSet<usize> = (0..unsteady.len()).collect();
        while items.len() < ALONE && !left.is_empty() {
            let mut reached: BTreeMap<usize, usize> = BTreeMap::new();
            for item in left.iter().flat_map(|at| &holders[*at]) {
                *reached.entry(*item).or_insert(0) += 1;
            }
            let most = reached.iter().max_by_key(|(item, count)| {
                let is_chosen = chosen.binary_search(item).is_ok();
                (**count, is_chosen, std::cmp::Reverse(**item))
            });
            let Some((item, _)) = most else { break };
            left.retain(|at| !holders[*at].contains(item));
            if !items.contains(item) {
                items.push(*item);
            }
        }
        let new = items.iter().filter(|item| !self.reruns.contains_key(item));
        let new: Vec<usize> = new.copied().collect();
        self.run_again(&new)?;
        let Some(alone) = self.source.run_alone(&items)? else {
            return Ok(0);
        };
        self.alone.extend(&items);
        let before = self.universe();
        for (item, alone) in items.iter().zip(alone) {
            self.take_alone(*item, &alone.less(&before));
        }
        Ok(self.universe().len() - before.len())
    }

    /// Records that the input `item` reaches `features` in every run in a separate process, and
    /// counts them as its stable features. Does nothing if the input was not run again, or has
    /// failed.
    fn take_alone(&mut self, item: usize, features: &Features) {
        let Some(again) = self.reruns.get_mut(&item) else {
            return;
        };
        // An input that fails in some run counts for no feature.
        if again.runs == 0 || features.is_empty() {
            return;
        }
        let new = features.less(&again.steady);
        again.steady = again.steady.or(&new);
        for feature in new.as_slice() {
            again.sometimes.remove(feature);
            let at = feature.0 as usize;
            if self.holders.len() <= at {
                self.holders.resize(at + 1, 0);
            }
            self.holders[at] += 1;
        }
        self.seen = self.seen.or(&new);
        self.once = self.once.or(&new);
        self.last = None;
    }

    /// Finds other inputs for features of code that runs only once in a process. An input may have
    /// been chosen only because it is the first one in its process to reach such a feature; another
    /// chosen input would reach it, too, if it came first.
    ///
    /// To find these features, each chosen input is run twice in succession if it reaches features
    /// that no other chosen input reaches (`private`, one set for each input of `chosen`). A
    /// feature that the second run does not reach belongs to code that runs once. Then the chosen
    /// inputs are run again, except those whose `private` features all belong to such code. An
    /// input that now reaches one of the `private` features of the omitted inputs, and also reaches
    /// it in separate processes, counts from now on as reaching it in every run.
    ///
    /// Nothing is counted if the inputs run do not reach all of `needed`, since one input may
    /// prepare what another one reaches. Returns true if a feature was counted for another input,
    /// and false if none was.
    fn find_others(
        &mut self,
        chosen: &[usize],
        private: &[Features],
        needed: &Features,
    ) -> Result<bool, CleanError> {
        let private = || chosen.iter().copied().zip(private);
        let new = private().filter(|(item, own)| !own.is_empty() && !self.twice.contains(item));
        let new: Vec<usize> = new.map(|(item, _)| item).collect();
        let Some(second) = self.source.run_twice(&new)? else {
            return Ok(false);
        };
        for (item, second) in new.into_iter().zip(second) {
            self.twice.insert(item);
            if let (Some(again), Some(second)) = (self.reruns.get(&item), second) {
                self.once = self.once.or(&again.steady.less(&second));
            }
        }
        let needs_order = |own: &Features| !own.is_empty() && self.once.has_all(own);
        let (ordered, others): (Vec<_>, Vec<_>) = private().partition(|(_, own)| needs_order(own));
        if ordered.is_empty() || others.is_empty() {
            return Ok(false);
        }
        let mut wanted = FeatureUnion::default();
        ordered.iter().for_each(|(_, own)| wanted.add(own));
        let wanted = wanted.all();
        let others: Vec<usize> = others.into_iter().map(|(item, _)| item).collect();
        let found = self.source.together(&others)?;
        let mut reached = FeatureUnion::default();
        (found.iter().flatten()).for_each(|found| reached.add(found));
        if !reached.all().has_all(needed) {
            return Ok(false);
        }
        let reaches = |found: &Option<Features>| {
            (found.as_ref()).is_some_and(|found| !found.and(&wanted).is_empty())
        };
        let first = others.iter().zip(&found);
        let first: Vec<usize> = (first.filter(|(_, found)| reaches(found)))
            .map(|(item, _)| *item)
            .collect();
        let alone = self.source.run_alone(&first)?.unwrap_or_default();
        let mut is_found = false;
        for (item, alone) in first.into_iter().zip(alone) {
            let new = alone.and(&wanted);
            is_found |= !new.is_empty();
            self.take_alone(item, &new);
        }
        Ok(is_found)
    }

    /// Returns, for each of `features`, the numbers of at most [`MAX_HOLDERS`] of the smallest
    /// inputs that reached it in any run.
    fn holders_of(&mut self, features: &Features) -> Result<Vec<Vec<usize>>, CleanError> {
        let mut holders = vec![Vec::new(); features.len()];
        let mut first = Vec::new();
        for item in 0..self.source.len() {
            match self.reruns.get(&item) {
                Some(again) => first = again.ever().as_slice().to_vec(),
                None => {
                    let read = self.source.first(item, &mut first);
                    read.map_err(CleanError::journal)?;
                }
            }
            for feature in &first {
                if let Ok(at) = features.as_slice().binary_search(feature)
                    && holders[at].len() < MAX_HOLDERS
                {
                    holders[at].push(item);
                }
            }
        }
        Ok(holders)
    }

    /// Runs again the inputs that have reached features of `unsteady` (reached in some runs only),
    /// to learn how often each input reaches them. Returns true if any input was run, and false if
    /// enough is known or the user wants no reruns.
    fn rerun_holders(&mut self, unsteady: &Features) -> Result<bool, CleanError> {
        if unsteady.is_empty() || !self.source.repeats() {
            return Ok(false);
        }
        let known = self.how_often(unsteady);
        let holders = self.holders_of(unsteady)?;
        let mut items = BTreeSet::new();
        for (holders, known) in holders.iter().zip(&known) {
            let rates = known.iter().map(|(_, rate)| *rate);
            if known.len() >= LEAST && is_enough(rates) {
                continue;
            }
            let new = holders
                .iter()
                .filter(|item| !self.reruns.contains_key(item));
            items.extend(new.take(MOST.saturating_sub(known.len())));
        }
        let items: Vec<usize> = items.into_iter().collect();
        match items.is_empty() {
            true => Ok(false),
            false => self.run_again(&items).map(|()| true),
        }
    }

    /// Returns, for each of `features`, the inputs that reached it in some of their reruns only,
    /// each with the estimated probability that its next run reaches the feature. The estimate
    /// comes from the few reruns of the input, corrected towards the rate of all these inputs.
    fn how_often(&self, features: &Features) -> Vec<Vec<(usize, f64)>> {
        let mut known = vec![Vec::new(); features.len()];
        for (item, again) in &self.reruns {
            for (feature, hits) in &again.sometimes {
                if let Ok(at) = features.as_slice().binary_search(feature) {
                    known[at].push((*item, f64::from(*hits), f64::from(again.runs)));
                }
            }
        }
        let rates = known.into_iter().map(|known: Vec<(usize, f64, f64)>| {
            let hits: f64 = known.iter().map(|(_, hits, _)| hits).sum();
            let runs: f64 = known.iter().map(|(_, _, runs)| runs).sum();
            let of_all = hits / runs.max(1.0);
            let rate = |(item, hits, runs)| (item, (hits + of_all) / (runs + 1.0));
            known.into_iter().map(rate).collect()
        });
        rates.collect()
    }

    /// Chooses inputs to keep for each of the features `unsteady`, which only some runs reach:
    /// those that reach it most often, at least 2 and at most 24, until the probability that all of
    /// them, run once each, miss it is at most 0.01. Returns the inputs, each with the number of
    /// features it was chosen for. Of inputs that reach a feature equally often, one that is kept
    /// anyway (it is in `chosen`) comes first, then the smaller one.
    fn most_often(&self, unsteady: &Features, chosen: &[usize]) -> BTreeMap<usize, u64> {
        let mut kept: BTreeMap<usize, u64> = BTreeMap::new();
        let mut known = self.how_often(unsteady);
        // Features with few holders come first: their holders are kept in any case.
        known.sort_by_key(Vec::len);
        for mut items in known {
            items.sort_by(|(one, one_rate), (other, other_rate)| {
                let is_kept =
                    |item: &usize| chosen.binary_search(item).is_ok() || kept.contains_key(item);
                let order = |item: &usize| (!is_kept(item), self.source.bytes(*item), *item);
                (other_rate.total_cmp(one_rate)).then_with(|| order(one).cmp(&order(other)))
            });
            let mut taken = Vec::new();
            for (item, rate) in items.into_iter().take(MOST) {
                if taken.len() >= LEAST && is_enough(taken.iter().copied()) {
                    break;
                }
                taken.push(rate);
                *kept.entry(item).or_insert(0) += 1;
            }
        }
        kept
    }
}

/// Returns true if inputs that reach a flaky feature with the probabilities `rates`, each run once,
/// all miss the feature with a probability of at most 0.01; false if inputs must be added.
fn is_enough(rates: impl Iterator<Item = f64>) -> bool {
    rates.map(|rate| 1.0 - rate).product::<f64>() <= MISS_PROBABILITY
}

impl Sets for Chooser<'_> {
    fn len(&self) -> usize {
        self.source.len()
    }

    fn bytes(&self, item: usize) -> u64 {
        self.source.bytes(item)
    }

    fn slowness(&self, item: usize) -> Slowness {
        let again = self.reruns.get(&item);
        again.map_or(Slowness::default(), |again| {
            Slowness::of(again.time / self.slowdown)
        })
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        match self.reruns.get(&item) {
            Some(again) => {
                into.clear();
                into.extend_from_slice(again.steady.as_slice());
                Ok(())
            }
            None => self.source.first(item, into).map(drop),
        }
    }
}

#[cfg(test)]
mod tests;
