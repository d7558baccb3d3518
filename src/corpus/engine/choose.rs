//! Which contents are kept: the cover of all that the corpus reaches each time.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::CleanError;
use crate::corpus::cover::{Cover, Effort, FAST, Held, Sets, Slowness, cover, held};
use crate::corpus::{Feature, Features};

/// Contents to choose from, in their canonical order.
pub(super) trait Source {
    /// How many there are.
    fn len(&self) -> usize;

    /// The size of one, in bytes.
    fn bytes(&self, item: usize) -> u64;

    /// What its first run has reached, which replaces what is in `into`, and its CPU time.
    fn first(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<Duration>;

    /// Runs these again, and gives for each what it reached in each run, the first one too.
    fn again(&mut self, items: &[usize]) -> Result<Vec<Again>, CleanError>;
}

/// What more runs of a content came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    /// What each of its runs reached; nothing where one of them did not end well.
    pub steady: Features,
    /// What any of them reached.
    pub ever: Features,
    /// The least CPU time of its runs.
    pub time: Duration,
}

/// What is chosen.
#[derive(Debug)]
pub(super) struct Choice {
    /// The cover, of contents by their number.
    pub cover: Cover,
    /// What the chosen ones reach each time, and how fast, with that of all that were run again.
    pub again: BTreeMap<usize, Again>,
    /// All that the corpus reaches each time.
    pub universe: Features,
    /// All that was seen to be reached: what is not in the universe did not come each time with any
    /// content.
    pub seen: Features,
    /// What is reached once only.
    pub held: Held,
    /// The CPU times of the first runs of all contents.
    pub times: Vec<Duration>,
}

/// Chooses the contents that reach all that the corpus does, and `covered` does not. Those that
/// are chosen are run again: what they do not reach each time does not count for them, until the
/// choice rests on nothing but what comes each time.
pub(super) fn choose(
    source: &mut dyn Source,
    covered: &Features,
    effort: &Effort,
) -> Result<Choice, CleanError> {
    let mut chooser = Chooser::new(source)?;
    chooser.look_at_slow()?;
    loop {
        let universe = chooser.universe();
        let cover = cover(&mut chooser, &universe, covered, effort).map_err(CleanError::journal)?;
        let fresh: Vec<usize> = (cover.chosen.iter().copied())
            .filter(|item| !chooser.again.contains_key(item))
            .collect();
        if fresh.is_empty() {
            let held = held(&mut chooser, &cover.chosen, &universe, covered);
            return Ok(Choice {
                held: held.map_err(CleanError::journal)?,
                seen: chooser.seen,
                times: chooser.times,
                again: chooser.again,
                cover,
                universe,
            });
        }
        chooser.run_again(&fresh)?;
    }
}

struct Chooser<'a> {
    source: &'a mut dyn Source,
    again: BTreeMap<usize, Again>,
    /// For each feature, how many contents reach it, by all that is known.
    holders: Vec<u32>,
    /// What was seen at all.
    seen: Features,
    /// By how much the target is slower than what counts as fast: its contents are compared with
    /// each other.
    pace: u32,
    /// The CPU times of the first runs.
    times: Vec<Duration>,
}

impl<'a> Chooser<'a> {
    fn new(source: &'a mut dyn Source) -> Result<Chooser<'a>, CleanError> {
        let (mut holders, mut features) = (Vec::new(), Vec::new());
        let mut times = Vec::with_capacity(source.len());
        for item in 0..source.len() {
            times.push(
                source
                    .first(item, &mut features)
                    .map_err(CleanError::journal)?,
            );
            let most = features.last().map_or(0, |last| last.0 as usize + 1);
            if holders.len() < most {
                holders.resize(most, 0);
            }
            features.iter().for_each(|one| holders[one.0 as usize] += 1);
        }
        let mut chooser = Chooser {
            source,
            again: BTreeMap::new(),
            holders,
            seen: Features::default(),
            pace: 1,
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

    /// Runs again what seems slow: the noise of the machine must not decide.
    fn look_at_slow(&mut self) -> Result<(), CleanError> {
        let times = &self.times;
        let mut sorted = times.clone();
        if times.is_empty() {
            return Ok(());
        }
        let (_, middle, _) = sorted.select_nth_unstable(times.len() / 2);
        self.pace = u32::try_from(Slowness::of(*middle).factor()).unwrap_or(u32::MAX);
        let limit = FAST * self.pace;
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
            if !self.seen.has_all(&again.ever) {
                self.seen = self.seen.or(&again.ever);
            }
            self.again.insert(*item, again);
        }
        Ok(())
    }
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
            Slowness::of(again.time / self.pace)
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

    /// Contents of ten bytes each, with what their first and their second run reach.
    struct Script {
        runs: Vec<(Vec<u32>, Vec<u32>)>,
        /// Which were run again.
        repeated: Vec<usize>,
        slow: Vec<usize>,
    }

    fn set(numbers: &[u32]) -> Features {
        Features::from_unsorted(numbers.iter().copied().map(Feature).collect())
    }

    impl Source for Script {
        fn len(&self) -> usize {
            self.runs.len()
        }

        fn bytes(&self, _: usize) -> u64 {
            10
        }

        fn first(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<Duration> {
            *into = set(&self.runs[item].0).as_slice().to_vec();
            Ok(match self.slow.contains(&item) {
                true => FAST * 5,
                false => Duration::ZERO,
            })
        }

        fn again(&mut self, items: &[usize]) -> Result<Vec<Again>, CleanError> {
            self.repeated.extend_from_slice(items);
            let of = |item: &usize| {
                let (first, second) = &self.runs[*item];
                let time = match self.slow.contains(item) {
                    true => FAST * 5,
                    false => Duration::ZERO,
                };
                Again {
                    steady: set(first).and(&set(second)),
                    ever: set(first).or(&set(second)),
                    time,
                }
            };
            Ok(items.iter().map(of).collect())
        }
    }

    fn script(runs: &[(&[u32], &[u32])]) -> Script {
        Script {
            runs: runs.iter().map(|(a, b)| (a.to_vec(), b.to_vec())).collect(),
            repeated: Vec::new(),
            slow: Vec::new(),
        }
    }

    fn chosen(script: &mut Script, covered: &[u32]) -> Choice {
        choose(script, &set(covered), &Effort::default()).unwrap()
    }

    #[test]
    fn what_does_not_come_each_time_counts_for_who_has_it_each_time() {
        // The first reaches all, once; the others each a part, each time.
        let mut all = script(&[(&[1, 2, 3], &[1]), (&[1, 2], &[1, 2]), (&[3], &[3])]);
        let choice = chosen(&mut all, &[]);
        assert_eq!(choice.cover.chosen, [1, 2]);
        assert_eq!(choice.universe, set(&[1, 2, 3]));
        assert_eq!(all.repeated, [0, 1, 2]);
    }

    #[test]
    fn what_nobody_has_each_time_leaves_the_decision() {
        let mut all = script(&[(&[1, 7], &[1]), (&[1, 7], &[1, 9])]);
        let choice = chosen(&mut all, &[]);
        assert_eq!(choice.cover.chosen, [0]);
        assert_eq!(choice.universe, set(&[1]));
        assert_eq!(choice.seen, set(&[1, 7, 9]));
    }

    #[test]
    fn what_is_covered_already_needs_nobody() {
        let mut all = script(&[(&[1, 2], &[1, 2]), (&[3], &[3])]);
        let choice = chosen(&mut all, &[1, 2]);
        assert_eq!(choice.cover.chosen, [1]);
        assert_eq!(all.repeated, [1]);
    }

    #[test]
    fn of_two_that_reach_the_same_the_faster_one_is_kept() {
        let mut all = script(&[(&[1], &[1]), (&[1], &[1]), (&[1], &[1])]);
        all.slow = vec![0];
        assert_eq!(chosen(&mut all, &[]).cover.chosen, [1]);
    }
}
