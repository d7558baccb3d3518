//! What contents reach each time they are run.

use std::time::Duration;

use super::again::{Inputs, run_again};
use super::contents::{Contents, read_entry};
use super::error::MeasureError;
use super::reading::NotRead;
use super::settings::Settings;
use super::spool::Spool;
use super::table::Entry;
use crate::corpus::Features;
use crate::corpus::journal::{self, Place};
use crate::exec::Ended;

/// A content that was run several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// What it has reached in each of its runs of which that was told, the one that measured it
    /// among them.
    pub each_time: Features,
    /// The same, without the run that measured it: what it has reached in each of its repeats;
    /// `None` where none has told.
    pub each_repeat: Option<Features>,
    /// What it has reached in any of them.
    pub ever: Features,
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
                each_time: features.clone(),
                ever: features,
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
        let new = |place: &usize| {
            let content = entries[numbers[*place]].content;
            all[*place].not_read.is_none() && !repeats.contains_key(&(content, round))
        };
        let places: Vec<usize> = (0..numbers.len()).filter(new).collect();
        let picked = Picked {
            entries,
            spool,
            numbers: places.iter().map(|place| numbers[*place]).collect(),
        };
        let mut record = Vec::new();
        run_again(settings, &picked, round, &mut |number, seen| {
            let seen = match seen {
                Ok(seen) => seen,
                Err(why) => {
                    all[places[number]].not_read = Some(why);
                    return Ok(());
                }
            };
            let content = entries[picked.numbers[number]].content;
            record.clear();
            journal::encode(&mut record, &content, round, &seen);
            let place = Place {
                at: journal.append(&record)?,
                length: record.len() as u32,
            };
            repeats.insert((content, round), place);
            Ok(())
        })
    }

    fn take_repeat(&self, place: Place, repeated: &mut Repeated) -> Result<(), MeasureError> {
        let (_, seen) = self.journal.read(place)?;
        repeated.ended.push(seen.ended);
        repeated.least = repeated.least.min(seen.time);
        repeated.suspicious |= seen.suspicious;
        if let Some(features) = &seen.features {
            repeated.each_time = repeated.each_time.and(features);
            repeated.each_repeat = Some(match repeated.each_repeat.take() {
                Some(before) => before.and(features),
                None => features.clone(),
            });
            repeated.ever = repeated.ever.or(features);
        }
        Ok(())
    }
}
