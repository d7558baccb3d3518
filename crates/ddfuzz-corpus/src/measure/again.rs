//! Runs contents again, to find which features they reach in every run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use super::contents::{Contents, Entry, PathSpool, read_entry};
use super::gather::{self, NotRead, WAITING};
use super::runner::{MANY, Runner, Runners};
use super::{MeasureError, MeasureSettings};
use crate::journal::{self, Observation, RecordPosition};
use crate::{Feature, Features};
use ddfuzz_exec::{Ended, Freshness};
use ddfuzz_model::pool::{TaskPool, Worker, lock};

/// Number of processes of the target among which a small number of inputs is divided, so that
/// several worker threads have work.
const PROCESSES: usize = 4;
/// Least number of inputs that are run in one process of the target (if there are so many), since
/// starting a process costs as much as some runs.
const FEWEST: usize = 64;

/// A list of inputs to run, numbered from 0.
pub trait Inputs: Sync {
    /// Returns the number of inputs to run.
    fn count(&self) -> usize;

    /// Replaces `bytes` by the bytes of the input with the number `number`; fails if the input
    /// cannot be read.
    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead>;
}

impl<B: AsRef<[u8]> + Sync> Inputs for &[B] {
    fn count(&self) -> usize {
        self.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        bytes.clear();
        bytes.extend_from_slice(self[number].as_ref());
        Ok(())
    }
}

/// A list of files as inputs to run; each file is read when it is run.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a>(pub &'a [PathBuf]);

impl Inputs for Files<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        gather::read(&self.0[number], u64::MAX, bytes)
    }
}

/// A callback that is called once per input, with the input's number and what its run did, or why
/// the input could not be read.
pub type Each<'a> =
    dyn FnMut(usize, Result<Observation, NotRead>) -> Result<(), MeasureError> + Send + 'a;

/// Callback that is called for several inputs at once, with the number of each and what its run
/// did, or why it could not be read.
type EachSome<'a> =
    dyn FnMut(Vec<(usize, Result<Observation, NotRead>)>) -> Result<(), MeasureError> + Send + 'a;

/// The order in which inputs are run, and which of them share a process.
pub(super) struct RunOrder<'a> {
    /// Numbers of the inputs to run, in the order in which they are run.
    pub(super) numbers: Vec<u32>,
    /// Number of consecutive inputs that share a process, if runs may share one. The features of an
    /// input then depend on the inputs of its process only, not on workers or earlier calls.
    pub(super) per_process: usize,
    /// Returns true for the number of an input whose run is needed. Other inputs are run only if
    /// they share a process with a needed one.
    pub(super) needed: &'a (dyn Fn(usize) -> bool + Sync),
}

impl<'a> RunOrder<'a> {
    /// Creates the order in which the inputs with these numbers are run. If runs share processes,
    /// each process runs a quarter of the inputs, but at least 64 and at most 128. `needed` returns
    /// true for an input whose run is needed; others are run only if they share a process with such
    /// an input.
    pub(super) fn of(
        numbers: Vec<u32>,
        needed: &'a (dyn Fn(usize) -> bool + Sync),
    ) -> RunOrder<'a> {
        RunOrder {
            per_process: numbers.len().div_ceil(PROCESSES).clamp(FEWEST, MANY),
            numbers,
            needed,
        }
    }

    /// Divides the inputs, in the order in which they are to run, into ranges, and returns those
    /// that contain a needed input. One worker runs the inputs of a range one after another. With
    /// [`Freshness::Shared`] a range has the inputs that share a process. With [`Freshness::Fresh`]
    /// inputs that are not needed are removed first, and the ranges are short, so that each of
    /// `jobs` workers gets some.
    fn parts(&mut self, freshness: Freshness, jobs: usize) -> Vec<Range<usize>> {
        let needed = self.needed;
        let count = match freshness {
            Freshness::Shared => self.per_process,
            Freshness::Fresh => {
                self.numbers.retain(|number| needed(*number as usize));
                // Small ranges, so that a worker with slow inputs does not keep others waiting.
                let fair = self.numbers.len().div_ceil(2 * jobs.max(1));
                fair.clamp(1, MANY)
            }
        };
        let ends = (0..self.numbers.len()).step_by(count);
        let parts = ends.map(|from| from..self.numbers.len().min(from + count));
        let has_needed = |part: &Range<usize>| {
            let mut numbers = self.numbers[part.clone()].iter();
            numbers.any(|number| needed(*number as usize))
        };
        parts.filter(has_needed).collect()
    }
}

/// A worker thread of the pool, each of whose tasks is a range of the order in which inputs are
/// run.
type PartWorker<'a> = Worker<'a, Range<usize>, (), MeasureError>;

/// What the worker threads share that run each input of a list once: the inputs, the order of the
/// runs, and the callback that gets the results.
struct RunRound<'a, 'e> {
    inputs: &'a dyn Inputs,
    numbers: Vec<u32>,
    each: Mutex<&'a mut EachSome<'e>>,
}

/// Runs all `inputs` once, in new processes and in an order that depends on `round`, and calls
/// `each` with the result of each run when it has ended. The results are not recorded in the
/// journal. Returns true if all were run, and false if the user stopped the cleanup before.
pub fn run_again(
    settings: &MeasureSettings<'_>,
    inputs: &dyn Inputs,
    round: u32,
    each: &mut Each<'_>,
) -> Result<bool, MeasureError> {
    let order = RunOrder::of(order(inputs.count(), round), &|_| true);
    run_one_by_one(settings, inputs, order, each)
}

/// Runs all `inputs` once, each in a separate process, and calls `each` as runs end. Returns true
/// if all were run, and false if the user stopped the cleanup before.
///
/// # Errors
/// As [`run_again`].
pub fn run_alone(
    settings: &MeasureSettings<'_>,
    inputs: &dyn Inputs,
    each: &mut Each<'_>,
) -> Result<bool, MeasureError> {
    let order = RunOrder {
        per_process: 1,
        ..RunOrder::of((0..inputs.count() as u32).collect(), &|_| true)
    };
    run_one_by_one(settings, inputs, order, each)
}

fn run_one_by_one(
    settings: &MeasureSettings<'_>,
    inputs: &dyn Inputs,
    order: RunOrder<'_>,
    each: &mut Each<'_>,
) -> Result<bool, MeasureError> {
    let each = &mut |told: Vec<_>| told.into_iter().try_for_each(|(at, seen)| each(at, seen));
    run_in_order(settings, inputs, order, each, &mut || {})
}

/// Runs the inputs of `order` by several worker threads, each of which takes a range of successive
/// inputs at a time, and calls `each` with results as runs end. `look` is called ten times a
/// second, to show the progress. Returns true if all were run, and false if the user stopped the
/// cleanup early.
pub(super) fn run_in_order(
    settings: &MeasureSettings<'_>,
    inputs: &dyn Inputs,
    mut order: RunOrder<'_>,
    each: &mut EachSome<'_>,
    look: &mut dyn FnMut(),
) -> Result<bool, MeasureError> {
    let needed = |number: &u32| (order.needed)(*number as usize);
    if !order.numbers.iter().any(needed) {
        return Ok(!settings.stopped());
    }
    let first = Runners::take(settings)?;
    let parts = order.parts(first.freshness(), settings.jobs);
    let jobs = settings.jobs.clamp(1, parts.len());
    let round = RunRound {
        inputs,
        numbers: order.numbers,
        each: Mutex::new(each),
    };
    let first = Mutex::new(Some(first));
    let work = |worker: &PartWorker<'_>| {
        let first = lock(&first).take();
        let mut runner = first.map_or_else(|| Runners::take(settings), Ok)?;
        round.work(&mut runner, worker)?;
        Runners::give_back(settings, runner);
        Ok(())
    };
    let goes_on = || !settings.stopped();
    let done = TaskPool::new(jobs, &goes_on).run(parts.into_iter(), work, |failed| {
        look();
        failed.unwrap_or(Ok(()))
    });
    look();
    done?;
    Ok(!settings.stopped())
}

impl RunRound<'_, '_> {
    fn work(&self, runner: &mut Runner, worker: &PartWorker<'_>) -> Result<(), MeasureError> {
        while let Some(part) = worker.next_task() {
            self.run(runner, &self.numbers[part], worker)?;
        }
        Ok(())
    }

    /// Runs the inputs `numbers` in the order given, and ends the target's process after the last
    /// one, so that later inputs get a new process. Stops early if `worker` is told to end.
    fn run(
        &self,
        runner: &mut Runner,
        mut numbers: &[u32],
        worker: &PartWorker<'_>,
    ) -> Result<(), MeasureError> {
        while !numbers.is_empty() && worker.goes_on() {
            let mut told = Vec::with_capacity(numbers.len());
            let waiting = self.read_some(&mut numbers, &mut told);
            let inputs: Vec<&[u8]> = waiting.iter().map(|(_, bytes)| &bytes[..]).collect();
            let mut done = 0;
            while done < inputs.len() && worker.goes_on() {
                let ends = numbers.is_empty();
                done += runner.run_some(&inputs[done..], ends, &mut |number, seen| {
                    told.push((waiting[done + number].0, Ok(seen)));
                })?;
                lock(&self.each)(std::mem::take(&mut told))?;
            }
            if !told.is_empty() {
                lock(&self.each)(told)?;
            }
        }
        Ok(())
    }

    /// Removes numbers of inputs from the front of `numbers`, and returns them with the bytes of
    /// the inputs, until these reach the memory limit of a worker. For each input that cannot be
    /// read, adds the number and the reason to `told` instead.
    fn read_some(
        &self,
        numbers: &mut &[u32],
        told: &mut Vec<(usize, Result<Observation, NotRead>)>,
    ) -> Vec<(usize, Vec<u8>)> {
        let (mut waiting, mut size) = (Vec::new(), 0);
        while size < WAITING
            && let Some((first, rest)) = numbers.split_first()
        {
            let (number, mut bytes) = (*first as usize, Vec::new());
            *numbers = rest;
            match self.inputs.read(number, &mut bytes) {
                Ok(()) => {
                    size += bytes.len();
                    waiting.push((number, bytes));
                }
                Err(why) => told.push((number, Err(why))),
            }
        }
        waiting
    }
}

/// Returns the numbers below `count`, in a pseudo-random order that depends on `round`.
pub(super) fn order(count: usize, round: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_key(|number| mixed(u64::from(round) << 32 | u64::from(*number)));
    order
}

/// Returns a pseudo-random number that `number` determines (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// What all runs of one content reached, and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// Features that all runs of the content reached, including the first; runs for which no
    /// coverage was reported are ignored.
    pub each_time: Features,
    /// Features that every rerun of the content reached, even if the first run did not; `None` if
    /// no rerun reported coverage.
    pub each_repeat: Option<Features>,
    /// Features that some runs of the content reached and others did not, each with the number of
    /// reruns that reached it.
    pub sometimes: BTreeMap<Feature, u32>,
    /// Number of runs of the content: the first one, and the reruns that reported coverage.
    pub runs: u32,
    /// The shortest CPU time of all runs of the content.
    pub least: Duration,
    /// How each rerun of the content ended, in order.
    pub ended: Vec<Ended>,
    /// Whether any rerun of the content may have failed (crash, hang or out of memory).
    pub suspicious: bool,
    /// Why the content could not be run again; `None` if it could.
    pub not_read: Option<NotRead>,
}

/// Contents of a corpus, selected by their numbers, as a list of inputs to run.
struct SelectedContents<'a> {
    entries: &'a [Entry],
    spool: &'a PathSpool,
    numbers: Vec<usize>,
}

impl Inputs for SelectedContents<'_> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        read_entry(&self.entries[self.numbers[number]], self.spool, bytes)
    }
}

impl Contents {
    /// Runs the contents with the indices `numbers` `times` more times, each time in other
    /// processes and in another order, and returns the results of all their runs, including the
    /// first. Reruns that are in the journal are not repeated. `None` if the user stopped the
    /// cleanup.
    pub fn repeat(
        &mut self,
        settings: &MeasureSettings<'_>,
        numbers: &[usize],
        times: u32,
    ) -> Result<Option<Vec<Repeated>>, MeasureError> {
        let mut all = Vec::with_capacity(numbers.len());
        for number in numbers {
            let seen = self.first_run(*number)?;
            let features = seen.features.unwrap_or_default();
            all.push(Repeated {
                least: seen.time,
                each_time: features,
                runs: 1,
                ..Repeated::default()
            });
        }
        for round in 1..=times {
            if !self.run_round(settings, numbers, round, &mut all)? {
                return Ok(None);
            }
            for (number, repeated) in numbers.iter().zip(&mut all) {
                let known = self.repeats.get(&(self.id(*number), round));
                if let Some(place) = known.copied() {
                    self.take_repeat(place, repeated)?;
                }
            }
        }
        Ok(Some(all))
    }

    /// Runs the contents `numbers` again, as their rerun with the number `round`, and records these
    /// runs in the journal; contents whose rerun is in the journal already are left out. For a
    /// content that could not be read, stores the reason in `all`. Returns false if the user
    /// stopped the cleanup, and else true.
    fn run_round(
        &mut self,
        settings: &MeasureSettings<'_>,
        numbers: &[usize],
        round: u32,
        all: &mut [Repeated],
    ) -> Result<bool, MeasureError> {
        let Contents {
            entries,
            spool,
            journal,
            repeats,
            ..
        } = self;
        let is_new = |place: usize| {
            let content = entries[numbers[place]].content;
            all[place].not_read.is_none() && !repeats.contains_key(&(content, round))
        };
        let new: Vec<bool> = (0..numbers.len()).map(is_new).collect();
        let picked = SelectedContents {
            entries,
            spool,
            numbers: numbers.to_vec(),
        };
        let mut record = Vec::new();
        let mut each = |number: usize, seen: Result<Observation, NotRead>| {
            let seen = match seen {
                _ if !new[number] => return Ok(()),
                Ok(seen) => seen,
                Err(why) => {
                    all[number].not_read = Some(why);
                    return Ok(());
                }
            };
            let content = entries[numbers[number]].content;
            record.clear();
            journal::encode(&mut record, &content, round, &seen);
            let place = RecordPosition {
                at: journal.append(&record)?,
                length: record.len() as u32,
            };
            repeats.insert((content, round), place);
            Ok(())
        };
        let needed = |number: usize| new[number];
        let order = RunOrder::of(order(numbers.len(), round), &needed);
        run_one_by_one(settings, &picked, order, &mut each)
    }

    /// Runs contents `times` times, at least once, each time in a separate process. Returns for
    /// each the features that every run reached; the empty set if a run may have failed or the file
    /// could not be read. `None` if the user stopped the cleanup.
    pub fn alone(
        &self,
        settings: &MeasureSettings<'_>,
        numbers: &[usize],
        times: u32,
    ) -> Result<Option<Vec<Features>>, MeasureError> {
        let mut all: Vec<Option<Features>> = vec![None; numbers.len()];
        for _ in 0..times.max(1) {
            let Some(found) = self.run_unrecorded(settings, numbers.to_vec(), 1)? else {
                return Ok(None);
            };
            for (before, found) in all.iter_mut().zip(found) {
                let found = found.unwrap_or_default();
                *before = Some(match before.take() {
                    Some(before) => before.and(&found),
                    None => found,
                });
            }
        }
        Ok(Some(
            all.into_iter().map(Option::unwrap_or_default).collect(),
        ))
    }

    /// Runs each content whose number is in `numbers` once, in this order, in processes that many
    /// contents share. Returns the features of each run: `None` for a run that may have failed, and
    /// for a file that could not be read; `None` for all if the user stopped the cleanup.
    pub fn together(
        &self,
        settings: &MeasureSettings<'_>,
        numbers: &[usize],
    ) -> Result<Option<Vec<Option<Features>>>, MeasureError> {
        self.run_unrecorded(settings, numbers.to_vec(), MANY)
    }

    /// Runs each content twice in succession, in processes that many contents share. Returns the
    /// features of each second run; `None` for a run that may have failed, and for a file that
    /// could not be read. `None` for all if the user stopped the cleanup.
    pub fn twice(
        &self,
        settings: &MeasureSettings<'_>,
        numbers: &[usize],
    ) -> Result<Option<Vec<Option<Features>>>, MeasureError> {
        let pairs = numbers.iter().flat_map(|number| [*number; 2]).collect();
        let found = self.run_unrecorded(settings, pairs, MANY.next_multiple_of(2))?;
        Ok(found.map(|found| found.into_iter().skip(1).step_by(2).collect()))
    }

    /// Runs contents in the order of `numbers`, up to `per_process` of them in one process. Returns
    /// the features of each run, which the journal does not record; `None` for a run that may have
    /// failed, and for a file that could not be read. `None` for all if the user stopped the
    /// cleanup.
    fn run_unrecorded(
        &self,
        settings: &MeasureSettings<'_>,
        numbers: Vec<usize>,
        per_process: usize,
    ) -> Result<Option<Vec<Option<Features>>>, MeasureError> {
        let mut all = vec![None; numbers.len()];
        let order = RunOrder {
            per_process,
            numbers: (0..numbers.len() as u32).collect(),
            needed: &|_| true,
        };
        let picked = SelectedContents {
            entries: &self.entries,
            spool: &self.spool,
            numbers,
        };
        let whole = run_one_by_one(settings, &picked, order, &mut |number, seen| {
            all[number] = match seen {
                Ok(seen) if !seen.suspicious => seen.features,
                _ => None,
            };
            Ok(())
        })?;
        Ok(whole.then_some(all))
    }

    fn take_repeat(
        &self,
        place: RecordPosition,
        repeated: &mut Repeated,
    ) -> Result<(), MeasureError> {
        let (_, seen) = self.journal.read(place)?;
        repeated.ended.push(seen.ended);
        repeated.least = repeated.least.min(seen.time);
        repeated.suspicious |= seen.suspicious;
        if let Some(features) = &seen.features {
            repeated.note(features);
            repeated.each_repeat = Some(match repeated.each_repeat.take() {
                Some(before) => before.and(features),
                None => features.clone(),
            });
        }
        Ok(())
    }
}

impl Repeated {
    /// Updates the sets of features that all and that some runs reached, by the features of one
    /// more rerun.
    fn note(&mut self, features: &Features) {
        for lost in self.each_time.less(features).as_slice() {
            self.sometimes.insert(*lost, self.runs - 1);
        }
        self.each_time = self.each_time.and(features);
        for found in features.less(&self.each_time).as_slice() {
            *self.sometimes.entry(*found).or_insert(0) += 1;
        }
        self.runs += 1;
    }

    /// Returns the features that at least one run of the content reached.
    pub fn ever(&self) -> Features {
        let sometimes = self.sometimes.keys().copied().collect();
        self.each_time.or(&Features::from_unsorted(sometimes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_an_order_of_its_own() {
        let (first, second) = (order(1000, 1), order(1000, 2));
        assert_ne!(first, second);
        assert_eq!(first, order(1000, 1));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
        assert_ne!(first, sorted);
    }

    #[test]
    fn who_shares_a_process_does_not_depend_on_what_is_needed_or_on_workers() {
        let needed = |number: usize| number == 37 || number == 299;
        let mut some = RunOrder::of((0..300).collect(), &needed);
        assert_eq!(some.parts(Freshness::Shared, 1), [0..75, 225..300]);
        assert_eq!(some.parts(Freshness::Shared, 7), [0..75, 225..300]);
        assert_eq!(RunOrder::of((0..9000).collect(), &needed).per_process, MANY);
        assert_eq!(some.parts(Freshness::Fresh, 1), [0..1, 1..2]);
        assert_eq!(some.numbers, [37, 299]);
    }

    #[test]
    fn repeats_that_reach_a_feature_are_counted_where_it_does_not_come_each_time() {
        let set = |all: &[u32]| Features::from_unsorted(all.iter().copied().map(Feature).collect());
        let mut repeated = Repeated {
            each_time: set(&[1, 2, 3]),
            runs: 1,
            ..Repeated::default()
        };
        repeated.note(&set(&[1, 2, 4]));
        repeated.note(&set(&[1, 3, 4]));
        assert_eq!(repeated.each_time, set(&[1]));
        let counts = [(2, 1), (3, 1), (4, 2)].map(|(feature, runs)| (Feature(feature), runs));
        assert_eq!(repeated.sometimes, BTreeMap::from(counts));
        assert_eq!((repeated.runs, repeated.ever()), (3, set(&[1, 2, 3, 4])));
    }
}
