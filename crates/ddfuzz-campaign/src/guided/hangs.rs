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

use super::wire::{HangVerdict, JudgedHang};
use ddfuzz_exec::{Signature, Stuck};
use ddfuzz_store::Kind;
use ddfuzz_triage::Key;

/// The least CPU time of the windows by which hangs are recognised.
const SHORTEST: Duration = Duration::from_micros(100);
/// How much longer than most of the corpus a run takes to be looked at.
const FACTOR: u32 = 4;
/// How many runs of the corpus are remembered.
const SEEN: usize = 256;
/// The part of a worker's time that runs may take which do not end: one of so many.
const SHARE: u32 = 16;
/// How much they may take at once.
const CREDIT: Duration = Duration::from_millis(200);
/// Between two hangs that are handed in although no signature tells them from others.
const PAUSE: Duration = Duration::from_secs(2);
/// Of runs that are known for hangs one of so many is handed in all the same: two kinds of hangs
/// may look alike.
const SAMPLE: u64 = 64;
/// Changes of an input that are remembered because a mutant has hung that begins with it.
const MOST_CHANGES: usize = 256;
/// A change by which one in so many mutants has hung is left out while hangs are over their share.
const LIKELY: u32 = 4;
/// Mutants by which it is known how often those of an input hang.
const ENOUGH: u32 = 256;
/// How many turns of resting inputs one that does not rest may get, at most.
const MOST_TURNS: usize = 15;
/// Places that are remembered.
const MOST_PLACES: usize = 4096;
/// Inputs that have reached something new before they were stopped, and wait for a verdict.
const MOST_WAITING: usize = 64;

/// A place where runs hang, as far as their signatures tell it from others.
struct HangSite {
    state: SiteState,
    /// Runs that were met there.
    met: u64,
    /// Runs that are not counted in its group yet.
    runs: u64,
    /// The size of the smallest input that was handed in, in bytes.
    least: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SiteState {
    /// The main process looks at it.
    Pending,
    /// It is of this group.
    Named(Kind, Key),
    /// Runs end there by themselves.
    Slow,
}

/// What is to be done about a run that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HangAction {
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
    places: Vec<HangSite>,
    of: HashMap<Signature, usize>,
    known: HashSet<Signature>,
    /// The CPU time of a window, and of the last runs of the corpus, the oldest of which is `next`.
    window: Duration,
    seen: Vec<Duration>,
    next: usize,
    /// Whether these two have changed since somebody asked.
    changed: bool,
    /// What stopped runs have reached: a bit for each counter.
    reached: Vec<bool>,
    waiting: HashMap<u64, BytesInput>,
    number: u64,
    /// When a hang was handed in that no signature tells from others.
    handed_in: Option<Instant>,
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
            seen: Vec::new(),
            next: 0,
            changed: true,
            reached: Vec::new(),
            waiting: HashMap::new(),
            number: u64::from(before) << 32,
            handed_in: None,
            began: Instant::now(),
            spent: Duration::ZERO,
            stopped: 0,
            ran: Duration::ZERO,
            runs: 0,
        }
    }

    /// A run of an input of the corpus took this CPU time.
    pub(super) fn see(&mut self, cpu: Duration) {
        match self.seen.get_mut(self.next) {
            Some(oldest) => *oldest = cpu,
            None => self.seen.push(cpu),
        }
        self.next = (self.next + 1) % SEEN;
    }

    /// Learns from these runs after how long one is looked at: when it has taken much longer than
    /// nine in ten. `limit`: that on the CPU time of a run.
    pub(super) fn learn_window(&mut self, limit: Duration) {
        let mut seen = self.seen.clone();
        if seen.is_empty() {
            return;
        }
        let at = seen.len() * 9 / 10;
        let (_, most, _) = seen.select_nth_unstable(at);
        let window = most.saturating_mul(FACTOR).max(SHORTEST).min(limit / 4);
        self.changed |= window != self.window;
        self.window = window;
    }

    /// How long windows are, and the signatures of runs that are stopped with the first one; `None`
    /// where that is as it was when it was last asked for.
    pub(super) fn changed(&mut self) -> Option<(Duration, &HashSet<Signature>)> {
        std::mem::take(&mut self.changed).then_some((self.window, &self.known))
    }

    /// A run on an input of `size` bytes took too long.
    pub(super) fn meet(&mut self, stuck: &Stuck, size: usize) -> HangAction {
        let known = stuck.signatures.iter().chain(&stuck.known);
        if let Some(at) = known.filter_map(|one| self.of.get(one)).next().copied() {
            return self.meet_again(at, size);
        }
        if stuck.signatures.is_empty() || self.places.len() >= MOST_PLACES {
            if self.handed_in.is_some_and(|last| last.elapsed() < PAUSE) {
                return HangAction::Count;
            }
            self.handed_in = Some(Instant::now());
            return self.submit(false);
        }
        let at = self.places.len();
        self.places.push(HangSite {
            state: SiteState::Pending,
            met: 1,
            runs: 0,
            least: size,
        });
        self.know(&stuck.signatures, at);
        self.submit(true)
    }

    fn meet_again(&mut self, at: usize, size: usize) -> HangAction {
        let place = &mut self.places[at];
        if place.state == SiteState::Slow {
            return HangAction::RunOn;
        }
        place.met += 1;
        let smaller = size < place.least / 2;
        if place.state != SiteState::Pending && (smaller || place.met.is_multiple_of(SAMPLE)) {
            place.least = size.min(place.least);
            return self.submit(false);
        }
        place.runs += 1;
        HangAction::Count
    }

    fn submit(&mut self, first: bool) -> HangAction {
        let number = self.next_number();
        HangAction::HandIn { number, first }
    }

    /// The number under which the next one is handed in.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn know(&mut self, signatures: &[Signature], at: usize) {
        self.changed = true;
        let stops = self.places[at].state != SiteState::Slow;
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

    /// Applies a verdict of the main process; `own`: the number under which this worker has
    /// handed it in. Gives an input that does not hang, but has reached something new.
    pub(super) fn apply(&mut self, judged: &JudgedHang, own: Option<u64>) -> Option<BytesInput> {
        let input = own.and_then(|number| self.waiting.remove(&number));
        let state = match judged.verdict {
            HangVerdict::Of(kind, major) => SiteState::Named(kind, major),
            HangVerdict::Ends => SiteState::Slow,
            HangVerdict::Unknown => {
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
            self.places.push(HangSite {
                state,
                met: 0,
                runs: 0,
                least: judged.size,
            });
            self.places.len() - 1
        });
        let place = &mut self.places[at];
        // What has hung once is a hang, even if another run like it has ended.
        if !matches!(place.state, SiteState::Named(..)) {
            place.state = state;
        }
        self.know(&judged.signatures, at);
        input.filter(|_| state == SiteState::Slow)
    }

    /// Takes the runs that are not counted in their groups yet.
    pub(super) fn take_counts(&mut self) -> Vec<(Kind, Key, u64)> {
        let places = self.places.iter_mut().filter(|place| place.runs > 0);
        let named = places.filter_map(|place| match place.state {
            SiteState::Named(kind, major) => Some((kind, major, std::mem::take(&mut place.runs))),
            SiteState::Pending | SiteState::Slow => None,
        });
        named.collect()
    }

    /// Takes the runs whose hang is not classified yet, by the signatures of the place.
    pub(super) fn take_unnamed(&mut self) -> Vec<(Vec<Signature>, u64)> {
        let places = self.places.iter_mut().enumerate();
        let pending =
            places.filter(|(_, place)| place.state == SiteState::Pending && place.runs > 0);
        let taken: Vec<(usize, u64)> = pending
            .map(|(at, place)| (at, std::mem::take(&mut place.runs)))
            .collect();
        let signatures = |at: usize| {
            let of = self.of.iter().filter(|(_, place)| **place == at);
            of.map(|(signature, _)| *signature).collect()
        };
        let taken = taken.into_iter();
        taken.map(|(at, runs)| (signatures(at), runs)).collect()
    }

    /// Counts runs and the time that they took; `stopped`: the last one was stopped.
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
pub(super) struct HangRates {
    of: HashMap<CorpusId, MutantCounts>,
    /// How many were asked for since the least was last looked for, and what it was.
    asked: usize,
    least: f64,
    /// How many have rested since one did not.
    resting: usize,
}

/// The mutants of one input.
#[derive(Default)]
struct MutantCounts {
    runs: u32,
    hung: u32,
    /// The same of those that begin to differ from it in this byte, of those changes that have
    /// hung.
    changes: HashMap<Change, (u32, u32)>,
}

/// Where a mutant begins to differ, and its byte there; `None` where it ends.
type Change = (usize, Option<u8>);

fn change(input: &[u8], mutant: &[u8]) -> Change {
    let same = input
        .iter()
        .zip(mutant)
        .take_while(|(one, other)| one == other);
    let at = same.count();
    (at, mutant.get(at).copied())
}

impl HangRates {
    /// Counts the mutants of an input that were run, and those of them that hung.
    pub(super) fn note(
        &mut self,
        (id, input): (CorpusId, &[u8]),
        mutants: &[BytesInput],
        hung: &[usize],
    ) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let record = self.of.entry(id).or_default();
        record.runs = record.runs.saturating_add(count(mutants.len()));
        record.hung = record.hung.saturating_add(count(hung.len()));
        let change = |at: usize| change(input, mutants[at].as_ref());
        for at in hung {
            if record.changes.len() < MOST_CHANGES {
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

    /// Whether a mutant is likely to hang: many have that have begun to differ as it does.
    pub(super) fn may_hang(&self, id: CorpusId, input: &[u8], mutant: &[u8]) -> bool {
        let record = self.of.get(&id).filter(|record| !record.changes.is_empty());
        let met = record.and_then(|record| record.changes.get(&change(input, mutant)));
        met.is_some_and(|(runs, hung)| hung.saturating_mul(LIKELY) >= *runs)
    }

    /// Whether an input is to rest: hangs have had their share, and there are others whose mutants
    /// hang less often.
    pub(super) fn rests(&mut self, id: CorpusId, hangs: &Hangs) -> bool {
        if !hangs.are_over_share() {
            return false;
        }
        let part = |record: &MutantCounts| hangs.part(record.runs, record.hung);
        if self.asked == 0 {
            let known = self.of.values().filter(|record| record.runs >= ENOUGH);
            self.least = known.map(part).fold(1.0, f64::min);
        }
        self.asked = (self.asked + 1) % (self.of.len() + 1);
        let most = (1.0 / f64::from(SHARE)).max(self.least * 1.5);
        let rests = self.of.get(&id).map(part).is_some_and(|part| part > most);
        self.resting += usize::from(rests);
        rests
    }

    /// How many turns an input gets at once that does not rest: also some of those of the inputs
    /// that do.
    pub(super) fn turns(&mut self) -> usize {
        1 + std::mem::take(&mut self.resting).min(MOST_TURNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(number: u64) -> Signature {
        serde_json::from_value(number.into()).unwrap()
    }

    /// A run that was over its limit, with these signatures.
    fn over(signatures: &[u64]) -> Stuck {
        Stuck {
            signatures: signatures.iter().copied().map(signature).collect(),
            known: None,
            counters: vec![1, 0, 7],
        }
    }

    /// One that was stopped early.
    fn stopped(number: u64) -> Stuck {
        Stuck {
            signatures: Vec::new(),
            known: Some(signature(number)),
            counters: Vec::new(),
        }
    }

    fn judged(signatures: &[u64], number: u64, verdict: HangVerdict) -> JudgedHang {
        JudgedHang {
            from: (1, number),
            signatures: signatures.iter().copied().map(signature).collect(),
            size: 40,
            verdict,
        }
    }

    fn known(hangs: &mut Hangs) -> Vec<Signature> {
        let mut known: Vec<Signature> = hangs.known.iter().copied().collect();
        known.sort();
        known
    }

    #[test]
    fn a_place_is_handed_in_once_and_its_hangs_are_counted_when_it_has_a_name() {
        let mut hangs = Hangs::new(0);
        let first = HangAction::HandIn {
            number: 1,
            first: true,
        };
        assert_eq!(hangs.meet(&over(&[3, 4]), 40), first);
        // It need not be waited for, although it is not classified yet.
        assert_eq!(known(&mut hangs), [signature(3), signature(4)]);
        assert_eq!(hangs.meet(&stopped(4), 40), HangAction::Count);
        assert_eq!(hangs.meet(&over(&[4, 9]), 5), HangAction::Count);
        assert_eq!(hangs.take_counts(), []);
        // A worker that ends before it has a name leaves its count to others.
        let (mut signatures, runs) = hangs.take_unnamed().remove(0);
        signatures.sort();
        assert_eq!((signatures, runs), (vec![signature(3), signature(4)], 2));
        assert_eq!(hangs.take_unnamed(), []);
        assert_eq!(hangs.meet(&stopped(4), 40), HangAction::Count);
        let of = (Kind::Hang, Key::of([&b"loop"[..]]));
        hangs.apply(&judged(&[3, 4], 1, HangVerdict::Of(of.0, of.1)), Some(1));
        assert_eq!(hangs.take_counts(), [(of.0, of.1, 1)]);
        assert_eq!(
            (hangs.take_counts(), hangs.take_unnamed()),
            (vec![], vec![])
        );
        // Another place is another one.
        assert!(matches!(
            hangs.meet(&over(&[5]), 40),
            HangAction::HandIn { first: true, .. }
        ));
    }

    #[test]
    fn samples_and_much_smaller_inputs_of_a_known_place_are_handed_in() {
        let mut hangs = Hangs::new(0);
        hangs.apply(
            &judged(
                &[3],
                1,
                HangVerdict::Of(Kind::Hang, Key::of([&b"loop"[..]])),
            ),
            None,
        );
        let acts: Vec<HangAction> = (0..SAMPLE * 2)
            .map(|_| hangs.meet(&stopped(3), 40))
            .collect();
        let handed = |act: &&HangAction| matches!(act, HangAction::HandIn { first: false, .. });
        assert_eq!(acts.iter().filter(handed).count(), 2);
        assert!(matches!(
            hangs.meet(&stopped(3), 19),
            HangAction::HandIn { .. }
        ));
        assert_eq!(hangs.meet(&stopped(3), 19), HangAction::Count);
        let counted: u64 = hangs.take_counts().iter().map(|(_, _, runs)| runs).sum();
        // Those that were handed in are counted by the process that classifies them.
        assert_eq!(counted, SAMPLE * 2 - 2 + 1);
    }

    #[test]
    fn where_runs_end_by_themselves_nothing_is_stopped_and_what_they_reach_is_kept() {
        let mut hangs = Hangs::new(0);
        let HangAction::HandIn { number, .. } = hangs.meet(&over(&[3]), 40) else {
            panic!("it is new");
        };
        let input = BytesInput::new(b"slow".to_vec());
        hangs.keep(number, &input, &over(&[3]).counters);
        let ends = judged(&[3], number, HangVerdict::Ends);
        assert_eq!(hangs.apply(&ends, Some(number)), Some(input));
        assert_eq!(known(&mut hangs), []);
        assert_eq!(hangs.meet(&over(&[3]), 40), HangAction::RunOn);
        // Once one has hung there it is a hang.
        hangs.apply(
            &judged(
                &[3],
                9,
                HangVerdict::Of(Kind::Hang, Key::of([&b"loop"[..]])),
            ),
            None,
        );
        assert_eq!(known(&mut hangs), [signature(3)]);
    }

    #[test]
    fn what_could_not_be_examined_is_new_again() {
        let mut hangs = Hangs::new(0);
        let act = hangs.meet(&over(&[3]), 40);
        assert!(matches!(act, HangAction::HandIn { number: 1, .. }));
        hangs.apply(&judged(&[3], 1, HangVerdict::Unknown), Some(1));
        assert!(matches!(
            hangs.meet(&over(&[3]), 40),
            HangAction::HandIn { first: true, .. }
        ));
    }

    #[test]
    fn hangs_that_nothing_tells_apart_are_handed_in_now_and_then() {
        let mut hangs = Hangs::new(0);
        assert!(matches!(
            hangs.meet(&over(&[]), 40),
            HangAction::HandIn { first: false, .. }
        ));
        assert_eq!(hangs.meet(&over(&[]), 40), HangAction::Count);
    }

    #[test]
    fn a_window_is_much_longer_than_what_most_of_the_corpus_takes() {
        let mut hangs = Hangs::new(0);
        let limit = Duration::from_millis(50);
        let window = |hangs: &mut Hangs| hangs.changed().map(|(window, _)| window);
        assert_eq!(window(&mut hangs), Some(SHORTEST));
        for micros in 0..200 {
            hangs.see(Duration::from_micros(micros));
        }
        hangs.learn_window(limit);
        assert_eq!(
            window(&mut hangs),
            Some(Duration::from_micros(180) * FACTOR)
        );
        hangs.learn_window(limit);
        assert_eq!(window(&mut hangs), None);
        for _ in 0..SEEN {
            hangs.see(Duration::from_millis(30));
        }
        hangs.learn_window(limit);
        assert_eq!(window(&mut hangs), Some(limit / 4));
    }

    /// Lets 100 runs of 10 µs each pass for each hang of 10 ms, long enough ago.
    fn hanging() -> Hangs {
        let mut hangs = Hangs::new(0);
        hangs.took(1000, Duration::from_millis(10), false);
        for _ in 0..100 {
            hangs.took(101, Duration::from_millis(11), true);
        }
        hangs
    }

    #[test]
    fn inputs_whose_mutants_hang_rest_while_hangs_are_over_their_share() {
        let (mut hangs, mut hang_rates) = (hanging(), HangRates::default());
        assert!(hangs.are_over_share());
        let mutants = vec![BytesInput::new(b"x".to_vec()); 1000];
        let (prone, steady) = (CorpusId::from(1_usize), CorpusId::from(2_usize));
        hang_rates.note((prone, b"a"), &mutants, &[7, 9]);
        hang_rates.note((steady, b"a"), &mutants, &[]);
        assert!(hang_rates.rests(prone, &hangs) && !hang_rates.rests(steady, &hangs));
        assert_eq!((hang_rates.turns(), hang_rates.turns()), (2, 1));
        // One of which nothing is known does not rest.
        assert!(!hang_rates.rests(CorpusId::from(3_usize), &hangs));
        hangs.spent = Duration::ZERO;
        assert!(!hang_rates.rests(prone, &hangs));
    }

    #[test]
    fn where_all_inputs_hang_those_go_on_that_hang_least() {
        let (hangs, mut hang_rates) = (hanging(), HangRates::default());
        let mutants = vec![BytesInput::new(b"x".to_vec()); 1000];
        let all: Vec<CorpusId> = (1..=3_usize).map(CorpusId::from).collect();
        for (hung, id) in [400, 100, 90].into_iter().zip(&all) {
            let hung: Vec<usize> = (0..hung).collect();
            hang_rates.note((*id, b"a"), &mutants, &hung);
        }
        let rests: Vec<bool> = all.iter().map(|id| hang_rates.rests(*id, &hangs)).collect();
        assert_eq!(rests, [false; 3], "all of them hang nearly all of the time");
        let mut hang_rates = HangRates::default();
        for (hung, id) in [40, 1, 1].into_iter().zip(&all) {
            let hung: Vec<usize> = (0..hung).collect();
            hang_rates.note((*id, b"a"), &mutants, &hung);
        }
        let rests: Vec<bool> = all.iter().map(|id| hang_rates.rests(*id, &hangs)).collect();
        assert_eq!(rests, [true, false, false]);
    }

    #[test]
    fn mutants_that_begin_as_those_which_hung_are_likely_to_hang() {
        let mut hang_rates = HangRates::default();
        let (id, input) = (CorpusId::from(1_usize), &b"TLVS\x03abc"[..]);
        let mutant = |bytes: &[u8]| BytesInput::new(bytes.to_vec());
        let mutants = [
            mutant(b"TLVS\0abc"),
            mutant(b"TLVS\x07abc"),
            mutant(b"TLVS\x03ab"),
        ];
        hang_rates.note((id, input), &mutants, &[0]);
        assert!(hang_rates.may_hang(id, input, b"TLVS\0xyz"));
        assert!(!hang_rates.may_hang(id, input, b"TLVS\x07xyz"));
        assert!(!hang_rates.may_hang(id, input, b"TLVS\x03ab"));
        assert!(!hang_rates.may_hang(CorpusId::from(2_usize), input, b"TLVS\0xyz"));
        // Where most of them pass after all, it was not that change.
        let passing = vec![mutant(b"TLVS\0abd"); 9];
        hang_rates.note((id, input), &passing, &[]);
        assert!(!hang_rates.may_hang(id, input, b"TLVS\0xyz"));
    }
}
