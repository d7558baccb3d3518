//! The contents that may be kept, as what is chosen from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::CleanError;
use super::choose::{CandidateSource, Reruns};
use crate::health::FailingInput;
use crate::measure::{Contents, MeasureSettings, Repeated};
use crate::{Feature, Features};
use ddfuzz_exec::Freshness;
use ddfuzz_minimize::log::ContentHash;

/// Features that are held in memory, at most: those of the first contents, up to 32 MiB. All others
/// are read from the journal each time.
const HELD: usize = 8 << 20;

/// Contents that ended well.
pub(super) struct Candidates<'a> {
    /// All that were measured.
    pub contents: &'a mut Contents,
    /// How they are run.
    pub settings: &'a MeasureSettings<'a>,
    /// How often each of those that are to be kept is run, in all.
    pub repeats: u32,
    /// The numbers of those that may be kept, ascending.
    pub healthy: Vec<usize>,
    /// What those have been seen to reach that did not end well once, and did on each try behind
    /// that. It stands for their first run: what of it does not come each time is found out as
    /// that of others is, when they are chosen.
    pub recovered: BTreeMap<usize, Features>,
    /// The numbers of those that may not be kept after all.
    pub unfit: BTreeSet<usize>,
    /// What did not end well when it was run again.
    pub relapsed: Vec<FailingInput>,
    /// What could not be read again.
    pub gone: Vec<usize>,
    /// What the first items reach, and the time of their runs.
    held: Vec<(Box<[Feature]>, Duration)>,
    /// How many features that is.
    held_features: usize,
}

impl<'a> Candidates<'a> {
    /// The pool of these contents, which are run so often in all.
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
            unfit: BTreeSet::new(),
            relapsed: Vec::new(),
            gone: Vec::new(),
            held: Vec::new(),
            held_features: 0,
        }
    }

    /// Takes these contents in, too, which ended well on each try behind the first.
    pub fn recover(&mut self, numbers: &[usize]) -> Result<(), CleanError> {
        for (number, repeated) in self.repeat(numbers, self.of_recovered())? {
            if self.is_fit(number, &repeated)? {
                self.recovered.insert(number, repeated.ever());
                self.healthy.push(number);
            }
        }
        self.healthy.sort_unstable();
        Ok(())
    }

    /// How often what did not end well the first time is run behind that: at least once, for else
    /// nothing would be known of it.
    fn of_recovered(&self) -> u32 {
        self.repeats.max(2) - 1
    }

    /// Runs these so many times more.
    fn repeat(
        &mut self,
        numbers: &[usize],
        times: u32,
    ) -> Result<Vec<(usize, Repeated)>, CleanError> {
        let repeated = self.contents.repeat(self.settings, numbers, times)?;
        let repeated = repeated.ok_or(CleanError::Interrupted)?;
        Ok(numbers.iter().copied().zip(repeated).collect())
    }

    /// Whether a content ended well each time that it was run again; else notes what it did.
    fn is_fit(&mut self, number: usize, repeated: &Repeated) -> Result<bool, CleanError> {
        if repeated.not_read.is_some() {
            self.unfit.insert(number);
            self.gone.push(number);
            return Ok(false);
        }
        if repeated.suspicious {
            self.unfit.insert(number);
            let id = self.contents.id(number);
            let bad = repeated.ended.iter().find(|ended| !ended.is_exit());
            let ended = bad.or(repeated.ended.last());
            self.relapsed.push(FailingInput {
                path: self.contents.path(number)?,
                content: ContentHash::from_bytes(*id.blake3()),
                size: id.size(),
                ended: ended.copied().unwrap_or(ddfuzz_exec::Ended::Exit(0)),
                again: true,
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

    fn again(&mut self, items: &[usize]) -> Result<Vec<Reruns>, CleanError> {
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
            // The first run did not come back: it says nothing of what is reached.
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

    fn alone(&mut self, items: &[usize]) -> Result<Option<Vec<Features>>, CleanError> {
        if self.contents.freshness() == Freshness::Fresh {
            return Ok(None);
        }
        let numbers: Vec<usize> = items.iter().map(|item| self.healthy[*item]).collect();
        let alone = (self.contents).alone(self.settings, &numbers, self.repeats)?;
        alone.map(Some).ok_or(CleanError::Interrupted)
    }

    fn repeats(&self) -> bool {
        self.repeats > 1
    }
}
