//! The inputs that may be kept: reads their features, runs them again, and records those that fail.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::CleanError;
use super::choose::{CandidateSource, Reruns};
use crate::measure::{Contents, MeasureSettings, Repeated};
use crate::quarantine::FailingInput;
use crate::{Feature, Features};
use ddfuzz_exec::Ended;
use ddfuzz_exec::Freshness;
use ddfuzz_minimize::log::ContentHash;

/// Maximum number of features of candidates (the inputs to choose from in a cleanup) that are held
/// in memory (32 MiB). Features of all further inputs are read from the journal each time.
const HELD: usize = 8 << 20;

/// The contents of the corpus that did not fail; the cleanup chooses from them what to keep.
pub(super) struct Candidates<'a> {
    /// All contents of the corpus whose coverage was measured, including those on which the target
    /// failed.
    pub contents: &'a mut Contents,
    /// How candidates are run again: the target, the number of workers and the limits.
    pub settings: &'a MeasureSettings<'a>,
    /// Number of times that each kept content is run, including the first.
    pub repeats: u32,
    /// Numbers of the contents that are candidates (may be kept by the cleanup), ascending.
    pub healthy: Vec<usize>,
    /// For each content that failed in its first run but in no rerun, by number: the features that
    /// its runs reached, which are used instead of those of the first run.
    pub recovered: BTreeMap<usize, Features>,
    /// Numbers of the contents whose first run looked like a failure, and which did not fail when
    /// triage ran them again.
    cleared: BTreeSet<usize>,
    /// Numbers of the candidates (contents that may be kept) that failed when they were run again,
    /// or could not be read.
    pub unfit: BTreeSet<usize>,
    /// Contents that the cleanup might have kept, but that failed when they were run again; they
    /// are to be stored in crash groups.
    pub relapsed: Vec<FailingInput>,
    /// Numbers of the candidates (contents that may be kept) whose files can no longer be read.
    pub gone: Vec<usize>,
    /// Cache of the first runs of the candidates with the lowest numbers, in their order: the
    /// features that the run reached, and its CPU time.
    held: Vec<(Box<[Feature]>, Duration)>,
    /// Total number of features in the cache of first runs (`held`).
    held_features: usize,
}

impl<'a> Candidates<'a> {
    /// Creates the candidates, which a cleanup may keep: the contents with the numbers `healthy`. A
    /// candidate that is run again is run `repeats` times in all.
    pub fn new(
        contents: &'a mut Contents,
        settings: &'a MeasureSettings<'a>,
        repeats: u32,
        healthy: Vec<usize>,
    ) -> Candidates<'a> {
        Candidates {
            contents,
            settings,
            repeats,
            healthy,
            recovered: BTreeMap::new(),
            cleared: BTreeSet::new(),
            unfit: BTreeSet::new(),
            relapsed: Vec::new(),
            gone: Vec::new(),
            held: Vec::new(),
            held_features: 0,
        }
    }

    /// Runs the contents `numbers`, which failed in their first run, again. Those that fail in no
    /// rerun become candidates, which the cleanup may keep.
    pub fn recover(&mut self, numbers: &[usize]) -> Result<(), CleanError> {
        self.cleared.extend(numbers);
        for (number, repeated) in self.repeat(numbers, self.of_recovered())? {
            if self.is_fit(number, &repeated)? {
                self.recovered.insert(number, repeated.ever());
                self.healthy.push(number);
            }
        }
        self.healthy.sort_unstable();
        Ok(())
    }

    /// Returns how many times a content that failed in its first run is run again: as often as
    /// other contents, but at least once, because reruns show which features it reaches.
    fn of_recovered(&self) -> u32 {
        self.repeats.max(2) - 1
    }

    /// Runs each of the contents `numbers` again, `times` times, and returns for each its number
    /// and, over all its runs including the first: the features that every run reached, those that
    /// only some reached, and how the reruns ended.
    fn repeat(
        &mut self,
        numbers: &[usize],
        times: u32,
    ) -> Result<Vec<(usize, Repeated)>, CleanError> {
        let repeated = self.contents.repeat(self.settings, numbers, times)?;
        let repeated = repeated.ok_or(CleanError::Interrupted)?;
        Ok(numbers.iter().copied().zip(repeated).collect())
    }

    /// Returns true if the reruns of the content `number` show that it may be kept: none of them
    /// may have failed. Otherwise records the content as failing, or as unreadable if its file is
    /// gone, and returns false.
    fn is_fit(&mut self, number: usize, repeated: &Repeated) -> Result<bool, CleanError> {
        if repeated.not_read.is_some() {
            self.unfit.insert(number);
            self.gone.push(number);
            return Ok(false);
        }
        // An exit status that may be that of a panic is none, as triage has found.
        let crash_exit = self.settings.target.crash_exit;
        let is_plain = |ended: &Ended| ended.is_exit() && !ended.is_crash(crash_exit);
        let is_cleared = self.cleared.contains(&number) && repeated.ended.iter().all(is_plain);
        if repeated.suspicious && !is_cleared {
            self.unfit.insert(number);
            let id = self.contents.id(number);
            let bad = repeated.ended.iter().find(|ended| !ended.is_exit());
            let ended = bad.or(repeated.ended.last());
            self.relapsed.push(FailingInput {
                path: self.contents.path(number)?,
                content: ContentHash::from_bytes(*id.blake3()),
                size: id.size(),
                ended: ended.copied().unwrap_or(Ended::Exit(0)),
                passed_before: true,
            });
            return Ok(false);
        }
        Ok(true)
    }
}

impl CandidateSource for Candidates<'_> {
    fn len(&self) -> usize {
        self.healthy.len()
    }

    fn bytes(&self, item: usize) -> u64 {
        self.contents.id(self.healthy[item]).size()
    }

    fn first(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<Duration> {
        if let Some((features, time)) = self.held.get(item) {
            into.clear();
            into.extend_from_slice(features);
            return Ok(*time);
        }
        let number = self.healthy[item];
        let seen = self.contents.features(number, into);
        let seen = seen.map_err(|error| io::Error::other(error.to_string()))?;
        if let Some(recovered) = self.recovered.get(&number) {
            into.clear();
            into.extend_from_slice(recovered.as_slice());
        }
        if item == self.held.len() && self.held_features + into.len() <= HELD {
            self.held_features += into.len();
            self.held.push((into[..].into(), seen.time));
        }
        Ok(seen.time)
    }

    fn rerun(&mut self, items: &[usize]) -> Result<Vec<Reruns>, CleanError> {
        let numbers = items.iter().map(|item| self.healthy[*item]);
        let (recovered, others): (Vec<usize>, Vec<usize>) =
            numbers.partition(|number| self.recovered.contains_key(number));
        let mut repeated: BTreeMap<usize, Repeated> = BTreeMap::new();
        repeated.extend(self.repeat(&others, self.repeats.saturating_sub(1))?);
        repeated.extend(self.repeat(&recovered, self.of_recovered())?);
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            let number = self.healthy[*item];
            let repeated = repeated.remove(&number).unwrap_or_default();
            let is_fit = self.is_fit(number, &repeated)?;
            let (mut sometimes, mut steady) = (repeated.sometimes, repeated.each_time);
            // The first run failed, so its features do not count.
            if self.recovered.contains_key(&number) {
                steady = repeated.each_repeat.unwrap_or_default();
                sometimes.retain(|feature, _| !steady.contains(*feature));
            }
            all.push(match is_fit {
                true => Reruns {
                    steady,
                    sometimes,
                    runs: repeated.runs - 1,
                    time: repeated.least,
                },
                false => Reruns {
                    time: repeated.least,
                    ..Reruns::default()
                },
            });
        }
        Ok(all)
    }

    fn run_alone(&mut self, items: &[usize]) -> Result<Option<Vec<Features>>, CleanError> {
        if self.contents.freshness == Freshness::Fresh {
            return Ok(None);
        }
        let numbers: Vec<usize> = items.iter().map(|item| self.healthy[*item]).collect();
        let alone = (self.contents).alone(self.settings, &numbers, self.repeats)?;
        alone.map(Some).ok_or(CleanError::Interrupted)
    }

    fn together(&mut self, items: &[usize]) -> Result<Vec<Option<Features>>, CleanError> {
        let numbers: Vec<usize> = items.iter().map(|item| self.healthy[*item]).collect();
        let found = self.contents.together(self.settings, &numbers)?;
        found.ok_or(CleanError::Interrupted)
    }

    fn run_twice(&mut self, items: &[usize]) -> Result<Option<Vec<Option<Features>>>, CleanError> {
        if self.contents.freshness == Freshness::Fresh {
            return Ok(None);
        }
        let numbers: Vec<usize> = items.iter().map(|item| self.healthy[*item]).collect();
        let found = self.contents.twice(self.settings, &numbers)?;
        found.map(Some).ok_or(CleanError::Interrupted)
    }

    fn repeats(&self) -> bool {
        self.repeats > 1
    }
}
