//! Runs inputs again, in other processes and in another order.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::error::MeasureError;
use super::reading::{self, NotRead};
use super::runner::{Runner, Suspicion};
use super::settings::Settings;
use super::side_by_side::side_by_side;
use super::worker::WAITING;
use crate::corpus::journal::Seen;
use crate::corpus::lock::lock;

/// Inputs that are numbered from 0.
pub trait Inputs: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Puts the bytes of one into `bytes`.
    ///
    /// # Errors
    /// When they are not to be had.
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

/// Files, as they are when they are read.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a>(pub &'a [PathBuf]);

impl Inputs for Files<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        reading::read(&self.0[number], u64::MAX, bytes)
    }
}

/// What is told of each input by its number: what was seen of it, or why it could not be read.
pub type Each<'a> = dyn FnMut(usize, Result<Seen, NotRead>) -> Result<(), MeasureError> + Send + 'a;

/// The same of some inputs, as they are done.
type EachSome<'a> =
    dyn FnMut(Vec<(usize, Result<Seen, NotRead>)>) -> Result<(), MeasureError> + Send + 'a;

/// What workers share.
struct Round<'a, 'e> {
    settings: &'a Settings<'a>,
    inputs: &'a dyn Inputs,
    order: Vec<u32>,
    next: AtomicUsize,
    failed: AtomicBool,
    each: Mutex<&'a mut EachSome<'e>>,
}

/// Runs all `inputs` once, by processes that are started for it, and in an order that belongs to
/// `round`; tells `each` of them, in whatever order they are done. No journal is asked. False where
/// it was stopped before all were run.
///
/// # Errors
/// When the target cannot be run, and what `each` gives.
pub fn run_again(
    settings: &Settings<'_>,
    inputs: &dyn Inputs,
    round: u32,
    each: &mut Each<'_>,
) -> Result<bool, MeasureError> {
    let order = order(inputs.count(), round);
    let each = &mut |told: Vec<_>| told.into_iter().try_for_each(|(at, seen)| each(at, seen));
    run_in_order(settings, None, inputs, order, each, &mut || {})
}

/// The same, in that order; `first` is a target that one of the workers takes. `look` is called ten
/// times a second.
pub(super) fn run_in_order(
    settings: &Settings<'_>,
    first: Option<Runner>,
    inputs: &dyn Inputs,
    order: Vec<u32>,
    each: &mut EachSome<'_>,
    look: &mut dyn FnMut(),
) -> Result<bool, MeasureError> {
    if order.is_empty() {
        return Ok(!settings.stopped());
    }
    let suspicion = Suspicion::of(settings)?;
    let jobs = settings.jobs.clamp(1, order.len());
    let round = Round {
        settings,
        inputs,
        order,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        each: Mutex::new(each),
    };
    let first = Mutex::new(first);
    let worker = || {
        let first = lock(&first).take();
        let runner = first.map_or_else(|| Runner::start(settings, suspicion), Ok)?;
        round.work(runner)
    };
    side_by_side(jobs, &round.failed, &worker, look)?;
    Ok(!settings.stopped())
}

impl Round<'_, '_> {
    fn goes_on(&self) -> bool {
        !self.settings.stopped() && !self.failed.load(Ordering::Relaxed)
    }

    fn work(&self, mut runner: Runner) -> Result<(), MeasureError> {
        while self.goes_on() {
            // None of them waits long for its turn behind slow ones.
            let fair = self.order.len().div_ceil(2 * self.settings.jobs.max(1));
            let many = runner.many().min(fair).max(1);
            let first = self.next.fetch_add(many, Ordering::Relaxed);
            let Some(rest) = self.order.get(first..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            self.run(&mut runner, &rest[..rest.len().min(many)])?;
        }
        Ok(())
    }

    fn run(&self, runner: &mut Runner, mut numbers: &[u32]) -> Result<(), MeasureError> {
        while !numbers.is_empty() && self.goes_on() {
            let mut told = Vec::with_capacity(numbers.len());
            let waiting = self.read_some(&mut numbers, &mut told);
            let inputs: Vec<&[u8]> = waiting.iter().map(|(_, bytes)| &bytes[..]).collect();
            let mut done = 0;
            while done < inputs.len() && self.goes_on() {
                done += runner.run_some(&inputs[done..], &mut |number, seen| {
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

    /// Reads the first of `numbers`, as many as may be in a worker's hands, and takes them off; what
    /// cannot be read is told.
    fn read_some(
        &self,
        numbers: &mut &[u32],
        told: &mut Vec<(usize, Result<Seen, NotRead>)>,
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

/// The numbers below `count` in an order that belongs to `round`.
fn order(count: usize, round: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_key(|number| mixed(u64::from(round) << 32 | u64::from(*number)));
    order
}

/// A number that looks like chance (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
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
}
