//! What a worker knows of hangs, and what it lets them cost.
//!
//! A run that is over its limit is handed to the main process, which finds out whether it is a
//! hang, and where; the worker goes on. From then on runs with one of its signatures are stopped
//! early, and counted in its group once that is known. Inputs whose mutants hang often rest while
//! hangs have taken more than their share of the worker's time.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use libafl::corpus::CorpusId;
use libafl::inputs::BytesInput;

use super::wire::{Judged, Judgement};
use crate::exec::{Signature, Stuck};
use crate::store::Kind;
use crate::triage::Key;

/// The least CPU time of the windows by which hangs are recognised.
const SHORTEST: Duration = Duration::from_micros(400);
/// How much longer than most of the corpus a run takes to be looked at.
const FACTOR: u32 = 4;
/// The part of a worker's time that runs may take which do not end: one of so many.
const SHARE: u32 = 12;
/// So much they may take at once.
const CREDIT: Duration = Duration::from_millis(200);
/// Between two hangs without a signature that are handed in.
const PAUSE: Duration = Duration::from_secs(2);
/// Of runs that are known for hangs one of so many is handed in all the same: two kinds of hangs may
/// look alike.
const SAMPLE: u64 = 64;
/// Inputs that have reached something new before they were stopped, and wait for a verdict.
const MOST_WAITING: usize = 64;

/// A place where runs hang, as far as their signatures tell it from others.
struct Place {
    state: State,
    /// Runs that were met there.
    met: u64,
    /// Runs that are not counted in its group yet.
    runs: u64,
    /// The size of the smallest input that was handed in, in bytes.
    least: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The main process looks at it.
    Pending,
    /// It is of this group.
    Named(Kind, Key),
    /// Runs end there by themselves.
    Slow,
}

/// What is to be done about a run that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It is to be handed in, under this number; `first`: it hangs where none has before.
    HandIn {
        /// Counts what this worker hands in.
        number: u64,
        /// Whether it is to be looked at in any case.
        first: bool,
    },
    /// It is to be run on: others like it have ended by themselves.
    RunOn,
    /// Nothing; it is counted.
    Count,
}

/// What a worker knows of hangs.
pub(super) struct Hangs {
    places: Vec<Place>,
    of: HashMap<Signature, usize>,
    known: HashSet<Signature>,
    /// The CPU time of a window.
    window: Duration,
    /// Whether these two have changed since somebody asked.
    changed: bool,
    /// What stopped runs have reached: a bit for each counter.
    reached: Vec<bool>,
    waiting: HashMap<u64, BytesInput>,
    number: u64,
    /// When a hang without a signature was handed in.
    unsigned: Option<Instant>,
    began: Instant,
    /// Time that stopped runs have taken, and how many there were.
    spent: Duration,
    stopped: u32,
    /// The same of all runs.
    ran: Duration,
    runs: u64,
}

impl Hangs {
    /// Nothing is known yet. `before`: how many workers have died in the place of this one.
    pub(super) fn new(before: u32) -> Hangs {
        Hangs {
            places: Vec::new(),
            of: HashMap::new(),
            known: HashSet::new(),
            window: SHORTEST,
            changed: true,
            reached: Vec::new(),
            waiting: HashMap::new(),
            number: u64::from(before) << 32,
            unsigned: None,
            began: Instant::now(),
            spent: Duration::ZERO,
            stopped: 0,
            ran: Duration::ZERO,
            runs: 0,
        }
    }

    /// Learns from the corpus, of which nine in ten take at most `most`, after how long a run is
    /// looked at. `limit`: that on the CPU time of a run.
    pub(super) fn learn_window(&mut self, most: Duration, limit: Duration) {
        let window = most.saturating_mul(FACTOR).max(SHORTEST);
        self.window = window.min(limit / 4);
        self.changed = true;
    }

    /// How long windows are, and the signatures of runs that are stopped with the first one; `None`
    /// where that is as it was when it was last asked for.
    pub(super) fn changed(&mut self) -> Option<(Duration, &HashSet<Signature>)> {
        std::mem::take(&mut self.changed).then_some((self.window, &self.known))
    }

    /// A run on an input of `size` bytes took too long.
    pub(super) fn meet(&mut self, stuck: &Stuck, size: usize) -> Act {
        let known = stuck.signatures.iter().chain(&stuck.known);
        if let Some(at) = known.filter_map(|one| self.of.get(one)).next().copied() {
            return self.meet_again(at, size);
        }
        if stuck.signatures.is_empty() {
            let early = self.unsigned.is_some_and(|last| last.elapsed() < PAUSE);
            self.unsigned = (self.unsigned.filter(|_| early)).or_else(|| Some(Instant::now()));
            return match early {
                true => Act::Count,
                false => self.hand_in(false),
            };
        }
        let at = self.places.len();
        self.places.push(Place {
            state: State::Pending,
            met: 1,
            runs: 0,
            least: size,
        });
        self.know(&stuck.signatures, at);
        self.hand_in(true)
    }

    fn meet_again(&mut self, at: usize, size: usize) -> Act {
        let place = &mut self.places[at];
        if place.state == State::Slow {
            return Act::RunOn;
        }
        place.met += 1;
        let smaller = size < place.least / 2;
        if place.state != State::Pending && (smaller || place.met.is_multiple_of(SAMPLE)) {
            place.least = size.min(place.least);
            return self.hand_in(false);
        }
        place.runs += 1;
        Act::Count
    }

    fn hand_in(&mut self, first: bool) -> Act {
        let number = self.next_number();
        Act::HandIn { number, first }
    }

    /// The number under which the next one is handed in.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn know(&mut self, signatures: &[Signature], at: usize) {
        self.changed = true;
        let stops = self.places[at].state != State::Slow;
        for signature in signatures {
            match *self.of.entry(*signature).or_insert(at) == at {
                true if stops => self.known.insert(*signature),
                true => self.known.remove(signature),
                false => false,
            };
        }
    }

    /// Keeps the input that was handed in under this number until there is a verdict, where its
    /// run has reached what no stopped run has.
    pub(super) fn keep(&mut self, number: u64, input: &BytesInput, counters: &[u8]) {
        if self.reached.len() < counters.len() {
            self.reached.resize(counters.len(), false);
        }
        let mut new = false;
        for (reached, count) in self.reached.iter_mut().zip(counters) {
            new |= *count > 0 && !*reached;
            *reached |= *count > 0;
        }
        if new && self.waiting.len() < MOST_WAITING {
            self.waiting.insert(number, input.clone());
        }
    }

    /// Hears what the main process has found out; `own`: the number under which this worker has
    /// handed it in. Gives an input that does not hang, but has reached something new.
    pub(super) fn hear(&mut self, judged: &Judged, own: Option<u64>) -> Option<BytesInput> {
        let input = own.and_then(|number| self.waiting.remove(&number));
        let state = match judged.judgement {
            Judgement::Of(kind, major) => State::Named(kind, major),
            Judgement::Ends => State::Slow,
            Judgement::Unknown => {
                self.changed = true;
                for signature in &judged.signatures {
                    self.of.remove(signature);
                    self.known.remove(signature);
                }
                return None;
            }
        };
        let met = judged.signatures.iter().find_map(|one| self.of.get(one));
        let at = met.copied().unwrap_or_else(|| {
            self.places.push(Place {
                state,
                met: 0,
                runs: 0,
                least: judged.size,
            });
            self.places.len() - 1
        });
        let place = &mut self.places[at];
        // What has hung once is a hang, even if another run like it has ended.
        if !matches!(place.state, State::Named(..)) {
            place.state = state;
        }
        self.know(&judged.signatures, at);
        input.filter(|_| state == State::Slow)
    }

    /// Takes the runs that are not counted in their groups yet.
    pub(super) fn take_counts(&mut self) -> Vec<(Kind, Key, u64)> {
        let places = self.places.iter_mut().filter(|place| place.runs > 0);
        let named = places.filter_map(|place| match place.state {
            State::Named(kind, major) => Some((kind, major, std::mem::take(&mut place.runs))),
            State::Pending | State::Slow => None,
        });
        named.collect()
    }

    /// So many runs took so long, the last of which, if `stopped`, was stopped.
    pub(super) fn took(&mut self, runs: usize, time: Duration, stopped: bool) {
        let usual = self.usual() * u32::try_from(runs - usize::from(stopped)).unwrap_or(0);
        self.runs += runs as u64;
        self.ran += time;
        if stopped {
            self.stopped += 1;
            self.spent += time.saturating_sub(usual);
        }
    }

    /// What a run takes that is not stopped.
    fn usual(&self) -> Duration {
        let runs = self.runs.saturating_sub(u64::from(self.stopped));
        let time = self.ran.saturating_sub(self.spent).as_nanos() as u64;
        Duration::from_nanos(time.checked_div(runs).unwrap_or(0))
    }

    /// Whether hangs have taken more than their share.
    pub(super) fn are_over_share(&self) -> bool {
        self.spent > self.began.elapsed() / SHARE + CREDIT
    }

    /// The part of the time of a stage that goes into hangs where `hung` of `runs` hang.
    fn part(&self, runs: u32, hung: u32) -> f64 {
        let stopped = self.spent.as_secs_f64() / f64::from(self.stopped.max(1));
        let hanging = f64::from(hung) * stopped;
        let passing = f64::from(runs - hung.min(runs)) * self.usual().as_secs_f64();
        hanging / (hanging + passing).max(f64::MIN_POSITIVE)
    }
}

/// How often the mutants of each input hang.
#[derive(Default)]
pub(super) struct Proneness {
    /// Of each input: its mutants, and those that hung.
    of: HashMap<CorpusId, (u32, u32)>,
    /// How many were asked for since the least was last looked for, and what it was.
    asked: usize,
    least: f64,
}

impl Proneness {
    /// So many mutants of an input were run, of which so many hung.
    pub(super) fn note(&mut self, id: CorpusId, runs: usize, hung: usize) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (all, of_them) = self.of.entry(id).or_default();
        *all = all.saturating_add(count(runs));
        *of_them = of_them.saturating_add(count(hung));
    }

    /// Whether an input is to rest: hangs have had their share, and there are others whose mutants
    /// hang less often.
    pub(super) fn rests(&mut self, id: CorpusId, hangs: &Hangs) -> bool {
        if !hangs.are_over_share() {
            return false;
        }
        let part = |(runs, hung): &(u32, u32)| hangs.part(*runs, *hung);
        if self.asked == 0 {
            let parts = self.of.values().filter(|(runs, _)| *runs > 0).map(part);
            self.least = parts.fold(1.0, f64::min);
        }
        self.asked = (self.asked + 1) % (self.of.len() + 1);
        let most = (1.0 / f64::from(SHARE)).max(self.least * 2.0);
        self.of.get(&id).map(part).is_some_and(|part| part > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    }
