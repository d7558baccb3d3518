//! Limits the time that failing runs (hangs, and crashes of which nothing new is stored) take from
//! a worker: [`FailureTime`] measures this time, and [`FailureRates`] how often the mutants of each
//! input fail. While failing runs have taken more than their small share of the time, inputs whose
//! mutants fail often are not mutated.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use libafl::{corpus::CorpusId, inputs::BytesInput};

/// Runs that are stopped as hangs may take this part of a worker's time (1 divided by the number),
/// plus [`CREDIT`].
const HANG_DIVISOR: u32 = 16;
/// Mutants that will probably fail are not run while crashes without anything new to store have
/// taken more than this part of a worker's time (1 divided by the number), plus [`CREDIT`].
const CRASH_DIVISOR: u32 = 8;
/// Time that failing runs may take in addition to their share of a worker's time.
const CREDIT: Duration = Duration::from_millis(200);
/// Maximum number of changes that are remembered for one corpus input because mutants with them
/// failed. A change is the first byte in which a mutant differs from the input.
const MAX_CHANGES: usize = 256;
/// A mutant counts as likely to fail if at least one in this number of the mutants of the same
/// corpus entry with the same first differing byte has failed. Likely failures are discarded while
/// failing runs have taken more than their share of a worker's time.
const LIKELY_DIVISOR: u32 = 4;
/// Number of mutants of a corpus input that must have been run before the share of its running time
/// that failing mutants take is compared with the shares of other inputs.
const MIN_MUTANTS: u32 = 256;
/// Greatest number of additional turns that a corpus entry gets when it is mutated: turns that
/// other entries gave up because their mutants fail.
const MAX_TURNS: usize = 15;

/// The time that all runs of a worker have taken, and how much of it failing runs have taken.
pub(super) struct FailureTime {
    began: Instant,
    /// Number and time of the runs that were stopped as hangs.
    hangs: Failures,
    /// Number of crashes of which nothing new was stored, and the time that classifying them took.
    crashes: Failures,
    /// Time that all runs of the worker have taken, passing and stopped ones.
    ran: Duration,
    /// Number of all runs of the worker.
    runs: u64,
}

/// Number of failing runs of one kind (hangs or crashes), and the time that they have cost: the run
/// of a hang, or the classification of a crash.
#[derive(Default)]
struct Failures {
    count: u32,
    spent: Duration,
}

impl Failures {
    fn add(&mut self, time: Duration) {
        self.count = self.count.saturating_add(1);
        self.spent += time;
    }
}

impl Default for FailureTime {
    fn default() -> FailureTime {
        FailureTime {
            began: Instant::now(),
            hangs: Failures::default(),
            crashes: Failures::default(),
            ran: Duration::ZERO,
            runs: 0,
        }
    }
}

impl FailureTime {
    /// Counts a batch of `runs` runs that took the wall time `time`. If `stopped` is true, the last
    /// run was stopped as a hang: its time is estimated as `time` less the mean time of a passing
    /// run for each other run of the batch.
    pub(super) fn took(&mut self, runs: usize, time: Duration, stopped: bool) {
        let passing = self.mean_pass() * u32::try_from(runs - usize::from(stopped)).unwrap_or(0);
        self.runs += runs as u64;
        self.ran += time;
        if stopped {
            self.hangs.add(time.saturating_sub(passing));
        }
    }

    /// Adds `time`, the time in which a crash was classified after its run, to the time spent on
    /// crashes. Called only for a crash without anything new to store.
    pub(super) fn classified(&mut self, time: Duration) {
        self.crashes.add(time);
    }

    /// Returns the mean wall time of the worker's runs that were not stopped as hangs; 0 without
    /// such runs.
    fn mean_pass(&self) -> Duration {
        let runs = self.runs.saturating_sub(u64::from(self.hangs.count));
        let time = self.ran.saturating_sub(self.hangs.spent).as_nanos() as u64;
        Duration::from_nanos(time.checked_div(runs).unwrap_or(0))
    }

    /// Checks whether hangs, or crashes without anything new to store, have taken more than their
    /// share of the worker's time.
    pub(super) fn are_over_share(&self) -> bool {
        let elapsed = self.began.elapsed();
        let over = |failures: &Failures, divisor| failures.spent > elapsed / divisor + CREDIT;
        over(&self.hangs, HANG_DIVISOR) || over(&self.crashes, CRASH_DIVISOR)
    }

    /// Returns an estimate of the share, from 0 to 1, that the `failed` failing mutants have of the
    /// running time of all `runs` mutants. The estimate uses the mean times of failing and of
    /// passing runs of the worker.
    fn failing_share(&self, runs: u32, failed: u32) -> f64 {
        let spent = (self.hangs.spent + self.crashes.spent).as_secs_f64();
        let count = self.hangs.count.saturating_add(self.crashes.count);
        let failing = f64::from(failed) * spent / f64::from(count.max(1));
        let passing = f64::from(runs - failed.min(runs)) * self.mean_pass().as_secs_f64();
        failing / (failing + passing).max(f64::MIN_POSITIVE)
    }
}

/// How often the mutants of each corpus entry have failed at this worker. A mutant fails if it
/// hangs, or crashes and nothing new is stored of the crash.
#[derive(Default)]
pub(super) struct FailureRates {
    of: HashMap<CorpusId, MutantCounts>,
    /// Number of times that [`FailureRates::rests`] was called since `least` was last computed; 0
    /// makes the next call compute it.
    asked: usize,
    /// Of all corpus entries with at least `MIN_MUTANTS` mutants, the least share of an entry's
    /// running time (0 to 1) that its failing mutants take; 1 if there is no such entry. It is
    /// computed once in many calls.
    least: f64,
    /// Number of turns that corpus entries have given up because their mutants fail, and that were
    /// not given to another entry yet. An entry is mutated once in each turn.
    resting: usize,
}

/// How many mutants of one corpus entry were run, and how many of them failed.
#[derive(Default)]
struct MutantCounts {
    runs: u32,
    failed: u32,
    /// For each first change (position and value of the first byte that differs from the entry)
    /// with which a mutant has failed: how many mutants with the same first change were run since,
    /// and how many of them failed.
    changes: HashMap<Change, (u32, u32)>,
}

/// The first change of a mutant: index of the first byte that differs from the corpus entry, and
/// the mutant's byte there; `None` as the byte if the mutant ends there.
type Change = (usize, Option<u8>);

fn change(input: &[u8], mutant: &[u8]) -> Change {
    let same = input
        .iter()
        .zip(mutant)
        .take_while(|(one, other)| one == other);
    let at = same.count();
    (at, mutant.get(at).copied())
}

impl FailureRates {
    /// Records that `mutants` of the corpus entry with this `id` and the content `input` were run.
    /// `failed` holds the indices, in `mutants`, of those that failed.
    pub(super) fn note(
        &mut self,
        (id, input): (CorpusId, &[u8]),
        mutants: &[BytesInput],
        failed: &[usize],
    ) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let record = self.of.entry(id).or_default();
        record.runs = record.runs.saturating_add(count(mutants.len()));
        record.failed = record.failed.saturating_add(count(failed.len()));
        let change = |at: usize| change(input, mutants[at].as_ref());
        for at in failed {
            if record.changes.len() < MAX_CHANGES {
                record.changes.entry(change(*at)).or_default().1 += 1;
            }
        }
        if record.changes.is_empty() {
            return;
        }
        for at in 0..mutants.len() {
            if let Some((runs, _)) = record.changes.get_mut(&change(at)) {
                *runs = runs.saturating_add(1);
            }
        }
    }

    /// Checks whether `mutant`, made from the corpus entry `id` with the content `input`, is likely
    /// to fail: true if at least a quarter of the entry's mutants with the same first differing
    /// byte failed; false if fewer failed, or none was seen to fail yet.
    pub(super) fn may_fail(&self, id: CorpusId, input: &[u8], mutant: &[u8]) -> bool {
        let record = self.of.get(&id).filter(|record| !record.changes.is_empty());
        let met = record.and_then(|record| record.changes.get(&change(input, mutant)));
        met.is_some_and(|(runs, failed)| failed.saturating_mul(LIKELY_DIVISOR) >= *runs)
    }

    /// Returns true if the corpus entry `id` is not to be mutated in this turn, and counts the turn
    /// as given up. True if failing runs have taken more than their share of the worker's time, and
    /// the share that failing mutants have of the entry's running time is more than a sixteenth and
    /// more than 1.5 times the smallest such share of all entries.
    pub(super) fn rests(&mut self, id: CorpusId, time: &FailureTime) -> bool {
        if !time.are_over_share() {
            return false;
        }
        let part = |record: &MutantCounts| time.failing_share(record.runs, record.failed);
        if self.asked == 0 {
            let known = self.of.values().filter(|record| record.runs >= MIN_MUTANTS);
            self.least = known.map(part).fold(1.0, f64::min);
        }
        self.asked = (self.asked + 1) % (self.of.len() + 1);
        let most = (1.0 / f64::from(HANG_DIVISOR)).max(self.least * 1.5);
        let rests = self.of.get(&id).map(part).is_some_and(|part| part > most);
        self.resting += usize::from(rests);
        rests
    }

    /// Returns how many times in a row the next corpus entry is mutated: once, and once more for
    /// each turn that other entries gave up because their mutants fail, at most 15 times more.
    pub(super) fn turns(&mut self) -> usize {
        1 + std::mem::take(&mut self.resting).min(MAX_TURNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the times of a worker for tests: 100 hangs of 10 ms each, and 100 passing runs of 10
    /// µs for each hang.
    fn hanging() -> FailureTime {
        let mut time = FailureTime::default();
        time.took(1000, Duration::from_millis(10), false);
        for _ in 0..100 {
            time.took(101, Duration::from_millis(11), true);
        }
        time
    }

    #[test]
    fn inputs_whose_mutants_hang_rest_while_hangs_are_over_their_share() {
        let (mut time, mut rates) = (hanging(), FailureRates::default());
        assert!(time.are_over_share());
        let mutants = vec![BytesInput::new(b"x".to_vec()); 1000];
        let (prone, steady) = (CorpusId::from(1_usize), CorpusId::from(2_usize));
        rates.note((prone, b"a"), &mutants, &[7, 9]);
        rates.note((steady, b"a"), &mutants, &[]);
        assert!(rates.rests(prone, &time) && !rates.rests(steady, &time));
        assert_eq!((rates.turns(), rates.turns()), (2, 1));
        // One of which nothing is known does not rest.
        assert!(!rates.rests(CorpusId::from(3_usize), &time));
        time.hangs.spent = Duration::ZERO;
        assert!(!rates.rests(prone, &time));
    }

    #[test]
    fn where_all_inputs_hang_those_go_on_that_hang_least() {
        let (time, mut rates) = (hanging(), FailureRates::default());
        let mutants = vec![BytesInput::new(b"x".to_vec()); 1000];
        let all: Vec<CorpusId> = (1..=3_usize).map(CorpusId::from).collect();
        for (hung, id) in [400, 100, 90].into_iter().zip(&all) {
            let hung: Vec<usize> = (0..hung).collect();
            rates.note((*id, b"a"), &mutants, &hung);
        }
        let rests: Vec<bool> = all.iter().map(|id| rates.rests(*id, &time)).collect();
        assert_eq!(rests, [false; 3], "all of them hang nearly all of the time");
        let mut rates = FailureRates::default();
        for (hung, id) in [40, 1, 1].into_iter().zip(&all) {
            let hung: Vec<usize> = (0..hung).collect();
            rates.note((*id, b"a"), &mutants, &hung);
        }
        let rests: Vec<bool> = all.iter().map(|id| rates.rests(*id, &time)).collect();
        assert_eq!(rests, [true, false, false]);
    }

    #[test]
    fn mutants_that_begin_as_those_which_hung_are_likely_to_hang() {
        let mut rates = FailureRates::default();
        let (id, input) = (CorpusId::from(1_usize), &b"TLVS\x03abc"[..]);
        let mutant = |bytes: &[u8]| BytesInput::new(bytes.to_vec());
        let mutants = [
            mutant(b"TLVS\0abc"),
            mutant(b"TLVS\x07abc"),
            mutant(b"TLVS\x03ab"),
        ];
        rates.note((id, input), &mutants, &[0]);
        assert!(rates.may_fail(id, input, b"TLVS\0xyz"));
        assert!(!rates.may_fail(id, input, b"TLVS\x07xyz"));
        assert!(!rates.may_fail(id, input, b"TLVS\x03ab"));
        assert!(!rates.may_fail(CorpusId::from(2_usize), input, b"TLVS\0xyz"));
        // Where most of them pass after all, it was not that change.
        let passing = vec![mutant(b"TLVS\0abd"); 9];
        rates.note((id, input), &passing, &[]);
        assert!(!rates.may_fail(id, input, b"TLVS\0xyz"));
    }

    #[test]
    fn crashes_that_are_known_have_a_share_of_their_own() {
        let mut time = FailureTime::default();
        time.took(1000, Duration::from_millis(10), false);
        time.classified(CREDIT / 2);
        assert!(!time.are_over_share());
        time.classified(CREDIT + Duration::from_secs(3600));
        assert!(time.are_over_share());
        // Ten mutants of a thousand that take all of the time.
        assert!(time.failing_share(1000, 10) > 0.99);
    }
}
