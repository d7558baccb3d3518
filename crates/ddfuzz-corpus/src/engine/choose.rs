//! Chooses the inputs to keep: a set cover of all stable features (reached in every run), plus, for
//! each flaky feature, the inputs that reach it most often.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::CleanError;
use crate::cover::{Cover, Effort, FAST, Sets, Slowness, UniqueFeatures, cover, unique_features};
use crate::{Feature, Features};

/// Divisor: if more than 1 of 20 features is only found by running inputs in separate processes,
/// the target keeps state between runs, and runs may not share a process.
const STATEFUL_DIVISOR: usize = 20;
/// Number of inputs that are run in separate processes in each attempt to find features of code
/// that runs once per process.
const ALONE: usize = 4;
/// Most attempts to find features of code that runs once per process; an attempt that finds none is
/// the last.
const ATTEMPTS: u32 = 4;
/// Greatest probability with which a flaky feature (reached in some runs only) may be lost: inputs
/// are kept for it until it is at most so probable that none of them reaches it when each is run
/// once.
const MISS_PROBABILITY: f64 = 0.01;
/// Minimum number of inputs that are kept for a flaky feature (reached in some runs only), if so
/// many reach it.
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
    fn again(&mut self, items: &[usize]) -> Result<Vec<Reruns>, CleanError>;

    /// Runs each of the inputs `items` several times, each time in a separate process, and returns
    /// for each input the features that every run reached; `None` if all runs have separate
    /// processes anyway.
    fn alone(&mut self, items: &[usize]) -> Result<Option<Vec<Features>>, CleanError>;

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
    pub again: BTreeMap<usize, Reruns>,
    /// Stable features: at least one input reaches them in every run.
    pub universe: Features,
    /// Features that any run of any input of the corpus reached.
    pub seen: Features,
    /// Whether some stable features belong to code that runs once per process.
    pub once_per_process: bool,
    /// Counts of features that only one input of the corpus, or only one kept input, reaches.
    pub unique_features: UniqueFeatures,
    /// CPU time of the first run of each input, by its number.
    pub times: Vec<Duration>,
}

/// The features of the corpus that kept inputs are added to (`--onto`); they need not be covered.
#[derive(Clone, Copy)]
pub(super) struct AlreadyCovered<'a> {
    /// Features that the `--onto` corpus reaches in every run.
    pub covered: &'a Features,
    /// Features that any run of the `--onto` corpus reached.
    pub seen: &'a Features,
}

/// Chooses inputs that reach all features of the corpus except those in `already`. Chosen inputs
/// are run again, and the choice is repeated until it depends on stable features only.
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
        return Ok(Some(Choice {
            unique_features: unique_features.map_err(CleanError::journal)?,
            sometimes: chooser.most_often(&unsteady, &cover.chosen),
            seen: chooser.seen,
            once_per_process: found > 0,
            times: chooser.times,
            again: chooser.again,
            cover,
            universe,
        }));
    }
}

struct Chooser<'a> {
    source: &'a mut dyn CandidateSource,
    again: BTreeMap<usize, Reruns>,
    /// Numbers of the inputs that were already run in separate processes, so that they are not run
    /// so again.
    alone: BTreeSet<usize>,
    /// Number of inputs that reach each feature, indexed by feature.
    holders: Vec<u32>,
    /// Features that any run of any input of the corpus reached.
    seen: Features,
    /// Slowness factor of the corpus's median run; the CPU time of each input is divided by it.
    slowdown: u32,
    /// CPU time of the first run of each input, by its number.
    times: Vec<Duration>,
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
            again: BTreeMap::new(),
            alone: BTreeSet::new(),
            holders,
            seen: Features::default(),
            slowdown: 1,
            times,
        };
        chooser.seen = chooser.universe();
        Ok(chooser)
    }

    fn universe(&self) -> Features {
        let reached = self.holders.iter().enumerate();
        let reached = reached.filter(|(_, count)| **count > 0);
        Features::from_unsorted(reached.map(|(at, _)| Feature(at as u32)).collect())
    }

    /// Computes a set cover, runs newly chosen inputs again, and repeats this until all features of
    /// the chosen inputs are stable; returns the cover, and all features that it covers.
    fn settle(
        &mut self,
        covered: &Features,
        effort: &Effort,
    ) -> Result<(Cover, Features), CleanError> {
        loop {
            let universe = self.universe();
            let cover = cover(self, &universe, covered, effort).map_err(CleanError::journal)?;
            let fresh: Vec<usize> = (cover.chosen.iter().copied())
                .filter(|item| !self.again.contains_key(item))
                .collect();
            if fresh.is_empty() {
                return Ok((cover, universe));
            }
            self.run_again(&fresh)?;
        }
    }

    /// Runs slow inputs again, those in a slower class than the corpus's median, so that a single
    /// slow run does not decide which input is kept.
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
        let answers = self.source.again(items)?;
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
            self.again.insert(*item, again);
        }
        Ok(())
    }

    /// Finds features of code that runs once per process, such as the initialization of a table: in
    /// a shared process only the first input that triggers this code reaches them. Runs up to four
    /// inputs that reach most of the flaky features `unsteady` in separate processes, and counts
    /// features that an input reaches in each of these runs as stable. Returns the number of new
    /// stable features.
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
        let new = items.iter().filter(|item| !self.again.contains_key(item));
        let new: Vec<usize> = new.copied().collect();
        self.run_again(&new)?;
        let Some(alone) = self.source.alone(&items)? else {
            return Ok(0);
        };
        self.alone.extend(&items);
        let before = self.universe();
        for (item, alone) in items.iter().zip(alone) {
            self.take_alone(*item, &alone.less(&before));
        }
        Ok(self.universe().len() - before.len())
    }

    /// Counts `features`, which the input `item` reaches in every run in a separate process, as
    /// stable features of this input.
    fn take_alone(&mut self, item: usize, features: &Features) {
        let Some(again) = self.again.get_mut(&item) else {
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
    }

    /// Returns, for each of `features`, the numbers of at most [`MAX_HOLDERS`] of the smallest
    /// inputs that reached it in any run.
    fn holders_of(&mut self, features: &Features) -> Result<Vec<Vec<usize>>, CleanError> {
        let mut holders = vec![Vec::new(); features.len()];
        let mut first = Vec::new();
        for item in 0..self.source.len() {
            match self.again.get(&item) {
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

    /// Runs more of the inputs that reached the flaky features `unsteady` again, to learn how often
    /// each does. Returns true if any input was run.
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
            let new = holders.iter().filter(|item| !self.again.contains_key(item));
            items.extend(new.take(MOST.saturating_sub(known.len())));
        }
        let items: Vec<usize> = items.into_iter().collect();
        match items.is_empty() {
            true => Ok(false),
            false => self.run_again(&items).map(|()| true),
        }
    }

    /// Returns, for each of `features`, the inputs that reached it and were run again, with the
    /// estimated probability that the next run reaches it: from the input's own few reruns,
    /// smoothed by the rate over all inputs.
    fn how_often(&self, features: &Features) -> Vec<Vec<(usize, f64)>> {
        let mut known = vec![Vec::new(); features.len()];
        for (item, again) in &self.again {
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

    /// Returns the inputs that reach the flaky features `unsteady` most often, and the number of
    /// features that each is kept for. Ties go to inputs that are kept anyway, then to smaller
    /// ones.
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

/// Returns true if inputs that reach a flaky feature with the probabilities `rates` per run are
/// enough to keep it: all miss it with a probability of at most 0.01.
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
        let again = self.again.get(&item);
        again.map_or(Slowness::default(), |again| {
            Slowness::of(again.time / self.slowdown)
        })
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        match self.again.get(&item) {
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
mod tests {
    use super::*;
    use crate::features::set;

    /// Scripted inputs of ten bytes each, with the features of each run.
    #[derive(Default)]
    struct Script {
        runs: Vec<Vec<Vec<u32>>>,
        /// Features that each input reaches in a separate process; `None` if all runs have one.
        alone: Option<Vec<Vec<u32>>>,
        /// Inputs that were run again.
        repeated: Vec<usize>,
        slow: Vec<usize>,
    }

    impl CandidateSource for Script {
        fn len(&self) -> usize {
            self.runs.len()
        }

        fn bytes(&self, _: usize) -> u64 {
            10
        }

        fn first(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<Duration> {
            *into = set(&self.runs[item][0]).as_slice().to_vec();
            Ok(match self.slow.contains(&item) {
                true => FAST * 5,
                false => Duration::ZERO,
            })
        }

        fn again(&mut self, items: &[usize]) -> Result<Vec<Reruns>, CleanError> {
            self.repeated.extend_from_slice(items);
            let of = |item: &usize| {
                let runs = &self.runs[*item];
                let steady = runs.iter().map(|run| set(run)).reduce(|a, b| a.and(&b));
                let steady = steady.unwrap_or_default();
                let hits = |feature: &u32| {
                    let repeats = runs[1..].iter();
                    repeats.filter(|run| run.contains(feature)).count() as u32
                };
                let all = runs.iter().flatten();
                let unsteady = all.filter(|feature| !steady.contains(Feature(**feature)));
                let sometimes = unsteady.map(|feature| (Feature(*feature), hits(feature)));
                Reruns {
                    sometimes: sometimes.collect(),
                    runs: runs.len() as u32 - 1,
                    steady: steady.clone(),
                    time: match self.slow.contains(item) {
                        true => FAST * 5,
                        false => Duration::ZERO,
                    },
                }
            };
            Ok(items.iter().map(of).collect())
        }

        fn alone(&mut self, items: &[usize]) -> Result<Option<Vec<Features>>, CleanError> {
            let alone = self.alone.as_ref();
            Ok(alone.map(|alone| items.iter().map(|item| set(&alone[*item])).collect()))
        }

        fn repeats(&self) -> bool {
            self.runs.iter().any(|runs| runs.len() > 1)
        }
    }

    fn script(runs: &[&[&[u32]]]) -> Script {
        let of = |runs: &&[&[u32]]| runs.iter().map(|run| run.to_vec()).collect();
        Script {
            runs: runs.iter().map(of).collect(),
            ..Script::default()
        }
    }

    fn chosen(script: &mut Script, covered: &[u32]) -> Choice {
        choose_beside(script, covered, &[]).unwrap()
    }

    fn choose_beside(script: &mut Script, covered: &[u32], seen: &[u32]) -> Option<Choice> {
        let already = AlreadyCovered {
            covered: &set(covered),
            seen: &set(seen),
        };
        choose(script, already, &Effort::default()).unwrap()
    }

    #[test]
    fn what_does_not_come_each_time_counts_for_who_has_it_each_time() {
        // The first reaches all, once; the others each a part, each time.
        let mut all = script(&[&[&[1, 2, 3], &[1]], &[&[1, 2], &[1, 2]], &[&[3], &[3]]]);
        let choice = chosen(&mut all, &[]);
        assert_eq!(choice.cover.chosen, [1, 2]);
        assert_eq!(choice.universe, set(&[1, 2, 3]));
        assert!(choice.sometimes.is_empty());
        assert_eq!(all.repeated, [0, 1, 2]);
    }

    #[test]
    fn of_what_nobody_has_each_time_those_are_kept_that_have_it_most_often() {
        let (both, one): (&[u32], &[u32]) = (&[1, 7], &[1]);
        let often: &[&[u32]] = &[vec![both; 10], vec![one]].concat();
        let rarely: &[&[u32]] = &[vec![both], vec![one; 10]].concat();
        let mut all = script(&[rarely, often, rarely, often, often, rarely]);
        let choice = chosen(&mut all, &[]);
        assert_eq!(choice.cover.chosen, [0]);
        assert_eq!(choice.universe, set(&[1]));
        assert_eq!(choice.seen, set(&[1, 7]));
        // Of a hundred times, none of the three reaches it once.
        assert_eq!(choice.sometimes, BTreeMap::from([(1, 1), (3, 1), (4, 1)]));
        assert_eq!(all.repeated, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn at_least_two_are_kept_and_no_more_than_the_most() {
        let rarely: &[&[u32]] = &[&[1, 7], &[1], &[1], &[1], &[1], &[1]];
        let choice = chosen(&mut script(&[rarely; 30]), &[]);
        assert_eq!(choice.sometimes.len(), MOST);
        let (both, one): (&[u32], &[u32]) = (&[1, 7], &[1]);
        let mostly = [vec![both; 99], vec![one]].concat();
        let choice = chosen(&mut script(&[&mostly, &mostly, &mostly]), &[]);
        assert_eq!(choice.sometimes, BTreeMap::from([(0, 1), (1, 1)]));
    }

    #[test]
    fn what_is_seen_now_and_then_elsewhere_keeps_nobody() {
        let mut all = script(&[&[&[1, 7], &[1]], &[&[1, 7], &[1]]]);
        let choice = choose_beside(&mut all, &[], &[7]);
        assert!(choice.unwrap().sometimes.is_empty());
    }

    #[test]
    fn what_happens_once_in_a_process_needs_one_that_makes_it_happen() {
        // 9 is a table that the first run of a process builds, 8 one that two of them need.
        let mut runs: Vec<Vec<Vec<u32>>> = vec![vec![vec![1, 9], vec![1]]];
        runs.extend((2..60).map(|own| vec![vec![own], vec![own]]));
        runs[20] = vec![vec![21, 8], vec![21]];
        runs[40] = vec![vec![41], vec![41, 8]];
        let mut alone: Vec<Vec<u32>> = (1..60).map(|own| vec![own, 9]).collect();
        alone[20].push(8);
        alone[40].push(8);
        let mut all = Script {
            runs,
            alone: Some(alone),
            ..Script::default()
        };
        let choice = chosen(&mut all, &[]);
        assert_eq!(choice.universe, set(&(1..60).collect::<Vec<u32>>()));
        assert!(choice.sometimes.is_empty(), "{choice:?}");
    }

    #[test]
    fn a_target_that_remembers_much_gets_a_process_for_each_run() {
        let of = |own: u32| vec![vec![own, own + 100], vec![own]];
        let mut all = Script {
            runs: (0..60).map(of).collect(),
            alone: Some((0..60).map(|own| vec![own, own + 100]).collect()),
            ..Script::default()
        };
        assert!(choose_beside(&mut all, &[], &[]).is_none());
    }

    #[test]
    fn what_is_covered_already_needs_nobody() {
        let mut all = script(&[&[&[1, 2], &[1, 2]], &[&[3], &[3]]]);
        let choice = chosen(&mut all, &[1, 2]);
        assert_eq!(choice.cover.chosen, [1]);
        assert_eq!(all.repeated, [1]);
    }

    #[test]
    fn of_two_that_reach_the_same_the_faster_one_is_kept() {
        let same: &[&[u32]] = &[&[1], &[1]];
        let mut all = script(&[same; 3]);
        all.slow = vec![0];
        assert_eq!(chosen(&mut all, &[]).cover.chosen, [1]);
    }
}
