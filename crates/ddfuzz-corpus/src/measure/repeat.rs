//! What contents reach each time they are run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::again::{Inputs, Order, order, run_alone, run_in_order};
use super::contents::{Contents, read_entry};
use super::error::MeasureError;
use super::reading::NotRead;
use super::settings::Settings;
use super::spool::Spool;
use super::table::Entry;
use crate::journal::{self, Place, Seen};
use crate::{Feature, Features};
use ddfuzz_exec::Ended;

/// A content that was run several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// What it has reached in each of its runs of which that was told, the one that measured it
    /// among them.
    pub each_time: Features,
    /// The same, without the run that measured it: what it has reached in each of its repeats;
    /// `None` where none has told.
    pub each_repeat: Option<Features>,
    /// What it has reached in some of them only, and in how many of its repeats.
    pub sometimes: BTreeMap<Feature, u32>,
    /// How many runs that is of, with the one that measured it.
    pub runs: u32,
    /// The least CPU time of all its runs.
    pub least: Duration,
    /// How its repeats ended.
    pub ended: Vec<Ended>,
    /// Whether any of them did not end well.
    pub suspicious: bool,
    /// Why it could not be run again, where it could not.
    pub not_read: Option<NotRead>,
}

/// Some of the contents, as inputs.
struct Picked<'a> {
    entries: &'a [Entry],
    spool: &'a Spool,
    numbers: Vec<usize>,
}

impl Inputs for Picked<'_> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        read_entry(&self.entries[self.numbers[number]], self.spool, bytes)
    }
}

impl Contents {
    /// Runs the contents with these numbers so many times more, each time in other processes and
    /// another order, and gives what came of each. Repeats that stand in the journal are not made
    /// again. `None` where it was stopped.
    ///
    /// # Errors
    /// When the target cannot be run, or the journal not be read or written.
    pub fn repeat(
        &mut self,
        settings: &Settings<'_>,
        numbers: &[usize],
        times: u32,
    ) -> Result<Option<Vec<Repeated>>, MeasureError> {
        let mut all = Vec::with_capacity(numbers.len());
        for number in numbers {
            let seen = self.seen(*number)?;
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

    /// Runs those that the journal does not know of in this round.
    fn run_round(
        &mut self,
        settings: &Settings<'_>,
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
        let picked = Picked {
            entries,
            spool,
            numbers: numbers.to_vec(),
        };
        let mut record = Vec::new();
        let mut each = |number: usize, seen: Result<Seen, NotRead>| {
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
            let place = Place {
                at: journal.append(&record)?,
                length: record.len() as u32,
            };
            repeats.insert((content, round), place);
            Ok(())
        };
        let needed = |number: usize| new[number];
        let order = Order::of(order(numbers.len(), round), &needed);
        let each = &mut |told: Vec<_>| told.into_iter().try_for_each(|(at, seen)| each(at, seen));
        run_in_order(settings, &picked, order, each, &mut || {})
    }

    /// What the contents with these numbers reach in each of so many runs, each run in a process of
    /// its own; nothing where one of them did not end well. `None` where it was stopped.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn alone(
        &self,
        settings: &Settings<'_>,
        numbers: &[usize],
        times: u32,
    ) -> Result<Option<Vec<Features>>, MeasureError> {
        let picked = Picked {
            entries: &self.entries,
            spool: &self.spool,
            numbers: numbers.to_vec(),
        };
        let mut all: Vec<Option<Features>> = vec![None; numbers.len()];
        for _ in 0..times.max(1) {
            let whole = run_alone(settings, &picked, &mut |number, seen| {
                let found = match seen {
                    Ok(seen) if !seen.suspicious => seen.features.unwrap_or_default(),
                    _ => Features::default(),
                };
                let before = &mut all[number];
                *before = Some(match before.take() {
                    Some(before) => before.and(&found),
                    None => found,
                });
                Ok(())
            })?;
            if !whole {
                return Ok(None);
            }
        }
        Ok(Some(
            all.into_iter().map(Option::unwrap_or_default).collect(),
        ))
    }

    fn take_repeat(&self, place: Place, repeated: &mut Repeated) -> Result<(), MeasureError> {
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
    /// One more run has reached these.
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

    /// What it has reached in any of its runs.
    pub fn ever(&self) -> Features {
        let sometimes = self.sometimes.keys().copied().collect();
        self.each_time.or(&Features::from_unsorted(sometimes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
