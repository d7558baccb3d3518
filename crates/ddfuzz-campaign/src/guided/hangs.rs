//! The hangs that a worker knows ([`KnownHangs`]), and how often mutants hang ([`HangRates`]), so
//! that hangs take only a small share of the worker's time.
//!
//! A worker submits an input whose run exceeded its time limit to the main process, which examines
//! whether and where it hangs; the worker goes on. From then on, runs with one of its signatures
//! are stopped early, and counted in its group once that is known. Inputs whose mutants hang often
//! are not mutated while hangs have taken more than their share of the worker's time.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use libafl::{corpus::CorpusId, inputs::BytesInput};

use super::messages::{HangVerdict, JudgedHang};
use ddfuzz_exec::{Signature, Stuck};
use ddfuzz_store::Kind;
use ddfuzz_triage::Key;

/// Least CPU time after which a run is compared with the signatures of known hangs, to stop it
/// early.
const MIN_WINDOW: Duration = Duration::from_micros(100);
/// A run is compared with the signatures of known hangs after this many times the CPU time that
/// most of the last runs took.
const WINDOW_FACTOR: u32 = 4;
/// Number of the last runs of corpus inputs whose CPU times are kept, to learn from them after how
/// long a run may be a hang.
const MAX_SEEN: usize = 256;
/// Runs that are stopped as hangs may take a worker's time divided by this number, plus [`CREDIT`].
const SHARE_DIVISOR: u32 = 16;
/// Time that runs stopped as hangs may take in addition to their share of a worker's time.
const CREDIT: Duration = Duration::from_millis(200);
/// Least time between two submissions of hangs without a signature to the main process.
const INDISTINCT_EVERY: Duration = Duration::from_secs(2);
/// One in so many runs that were stopped at a known hang is submitted to the main process
/// nevertheless, since two different hangs may have the same signature.
const SAMPLE: u64 = 64;
/// Greatest number of changes (first differing byte) recorded for one corpus input, with which some
/// of its mutants have hung.
const MAX_CHANGES: usize = 256;
/// While hangs take more than their share of a worker's time, a mutant is discarded if at least one
/// in so many mutants with the same first differing byte has hung.
const LIKELY_DIVISOR: u32 = 4;
/// Number of mutants that must have been run for a corpus input, before the share of time that its
/// hanging mutants take is compared with that of other inputs.
const MIN_MUTANTS: u32 = 256;
/// Greatest number of additional turns at being mutated that a corpus entry gets at once, in place
/// of entries that are not mutated because their mutants hang.
const MAX_TURNS: usize = 15;
/// Greatest number of sites (places in the program) of hangs that a worker keeps; hangs at further
/// sites are treated like those without a signature.
const MAX_SITES: usize = 4096;
/// Greatest number of inputs that a worker keeps until the main process has examined them, because
/// they reached new coverage before they were stopped as hangs.
const MAX_PENDING: usize = 64;

/// A site (place in the program) at which runs of a worker hang, identified by the runs'
/// signatures.
struct HangSite {
    state: SiteState,
    /// Number of runs that were stopped as hangs at the site so far.
    met: u64,
    /// Number of runs stopped as hangs at the site that the main process was not told to count yet.
    runs: u64,
    /// Size in bytes of the smallest input hanging at the site that was submitted to the main
    /// process.
    least: usize,
}

/// What the main process has told the worker about the runs that are stopped at a site in the
/// program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SiteState {
    /// The main process has not decided yet whether runs stopped at the site hang.
    Pending,
    /// Runs stopped at the site hang, and belong to the group with this kind and major key.
    Classified(Kind, Key),
    /// Runs stopped at the site are only slow: they end by themselves.
    Slow,
}

/// What a worker does with an input whose run took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HangAction {
    /// The worker submits the input to the main process, to be examined.
    Submit {
        /// Number that the worker gives this submission to the main process.
        number: u64,
        /// Whether the run hangs at a site in the program that is new to the worker, so that the
        /// input is examined before others.
        first: bool,
    },
    /// The worker runs the input again within the target's full time limit, since other runs at
    /// this site in the program have ended by themselves.
    RunLonger,
    /// The worker counts the run at its site in the program, if it has one, and does nothing else
    /// with the input.
    Count,
}

/// The hangs that a worker knows by their sites in the program, and the time that they have taken.
pub(super) struct KnownHangs {
    sites: Vec<HangSite>,
    /// For each known signature of a hang, the index of the site (place in the program) to which it
    /// belongs, in the list of known sites.
    of: HashMap<Signature, usize>,
    /// Signatures of known hangs, at which the executor stops runs early.
    known: HashSet<Signature>,
    /// CPU time after which the executor compares a run with the signatures of known hangs, to stop
    /// it early.
    window: Duration,
    /// CPU times of the last runs of corpus inputs, in a ring buffer; its oldest element is the one
    /// at index `next`.
    seen: Vec<Duration>,
    next: usize,
    /// Whether the executor must be told anew after which CPU time, and by which signatures of
    /// known hangs, it stops runs early, because one of both has changed.
    changed: bool,
    /// For each coverage counter, whether a run that was stopped as a hang has reached it.
    reached: Vec<bool>,
    /// Inputs that were submitted as hangs and had reached new coverage, by the number of the
    /// submission; they are run again if they do not hang.
    pending: HashMap<u64, BytesInput>,
    /// Number of the worker's last submission of a hang to the main process; its upper half is the
    /// number of earlier processes of the worker.
    number: u64,
    /// When the worker last submitted a hang without a usable signature, so that it cannot be told
    /// from other hangs; `None` if it never did. Such hangs are submitted every two seconds at
    /// most.
    last_indistinct: Option<Instant>,
    began: Instant,
    /// Time that all runs which were stopped as hangs have taken.
    spent: Duration,
    /// Number of runs of the worker that were stopped as hangs.
    stopped: u32,
    /// Time that all runs of the worker have taken, passing and stopped ones.
    ran: Duration,
    /// Number of all runs of the worker.
    runs: u64,
}

impl KnownHangs {
    /// Creates the state of a worker that knows no hangs yet. `before`: how many earlier processes
    /// of this worker have crashed, so that this process numbers its submissions differently.
    pub(super) fn new(before: u32) -> KnownHangs {
        KnownHangs {
            sites: Vec::new(),
            of: HashMap::new(),
            known: HashSet::new(),
            window: MIN_WINDOW,
            seen: Vec::new(),
            next: 0,
            changed: true,
            reached: Vec::new(),
            pending: HashMap::new(),
            number: u64::from(before) << 32,
            last_indistinct: None,
            began: Instant::now(),
            spent: Duration::ZERO,
            stopped: 0,
            ran: Duration::ZERO,
            runs: 0,
        }
    }

    /// Records the CPU time of a run of a corpus input, from which [`KnownHangs::learn_window`]
    /// learns after how long a run may be a hang.
    pub(super) fn see(&mut self, cpu: Duration) {
        match self.seen.get_mut(self.next) {
            Some(oldest) => *oldest = cpu,
            None => self.seen.push(cpu),
        }
        self.next = (self.next + 1) % MAX_SEEN;
    }

    /// Sets the CPU time after which a run is compared with the known hangs: four times what nine
    /// of ten recorded runs took at most, within 0.1 ms and a quarter of `limit` (the CPU time
    /// limit of a run). Without recorded runs nothing changes.
    pub(super) fn learn_window(&mut self, limit: Duration) {
        let mut seen = self.seen.clone();
        if seen.is_empty() {
            return;
        }
        let at = seen.len() * 9 / 10;
        let (_, most, _) = seen.select_nth_unstable(at);
        let window = most
            .saturating_mul(WINDOW_FACTOR)
            .max(MIN_WINDOW)
            .min(limit / 4);
        self.changed |= window != self.window;
        self.window = window;
    }

    /// Returns the CPU time after which a run is compared with the known hangs, and their
    /// signatures; `None` if neither has changed since the last call.
    pub(super) fn changed(&mut self) -> Option<(Duration, &HashSet<Signature>)> {
        std::mem::take(&mut self.changed).then_some((self.window, &self.known))
    }

    /// Decides what the worker does with an input whose run took too long, and counts the run at
    /// its site in the program; a new site is recorded. `stuck`: the signatures of the run. `size`:
    /// size of the input in bytes.
    pub(super) fn meet(&mut self, stuck: &Stuck, size: usize) -> HangAction {
        let known = stuck.signatures.iter().chain(&stuck.known);
        if let Some(at) = known.filter_map(|one| self.of.get(one)).next().copied() {
            return self.meet_again(at, size);
        }
        if stuck.signatures.is_empty() || self.sites.len() >= MAX_SITES {
            if self
                .last_indistinct
                .is_some_and(|last| last.elapsed() < INDISTINCT_EVERY)
            {
                return HangAction::Count;
            }
            self.last_indistinct = Some(Instant::now());
            return self.submit(false);
        }
        let at = self.sites.len();
        self.sites.push(HangSite {
            state: SiteState::Pending,
            met: 1,
            runs: 0,
            least: size,
        });
        self.assign(&stuck.signatures, at);
        self.submit(true)
    }

    fn meet_again(&mut self, at: usize, size: usize) -> HangAction {
        let site = &mut self.sites[at];
        if site.state == SiteState::Slow {
            return HangAction::RunLonger;
        }
        site.met += 1;
        let smaller = size < site.least / 2;
        if site.state != SiteState::Pending && (smaller || site.met.is_multiple_of(SAMPLE)) {
            site.least = size.min(site.least);
            return self.submit(false);
        }
        site.runs += 1;
        HangAction::Count
    }

    fn submit(&mut self, first: bool) -> HangAction {
        let number = self.next_number();
        HangAction::Submit { number, first }
    }

    /// Returns a new number, for the next submission of a hang to the main process.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Assigns signatures to the site of hangs at index `at`, except those that belong to another
    /// site already. Later runs that show one of them are stopped early, unless runs at the site
    /// are known to end by themselves.
    fn assign(&mut self, signatures: &[Signature], at: usize) {
        self.changed = true;
        let stops = self.sites[at].state != SiteState::Slow;
        for signature in signatures {
            match *self.of.entry(*signature).or_insert(at) == at {
                true if stops => self.known.insert(*signature),
                true => self.known.remove(signature),
                false => false,
            };
        }
    }

    /// Keeps an input that was submitted as a hang under the number `number` until the verdict
    /// about it arrives, if its run has covered what no stopped run had covered before and fewer
    /// than `MAX_PENDING` inputs are kept.
    pub(super) fn keep(&mut self, number: u64, input: &BytesInput, counters: &[u8]) {
        if self.reached.len() < counters.len() {
            self.reached.resize(counters.len(), false);
        }
        let mut new = false;
        for (reached, count) in self.reached.iter_mut().zip(counters) {
            new |= *count > 0 && !*reached;
            *reached |= *count > 0;
        }
        if new && self.pending.len() < MAX_PENDING {
            self.pending.insert(number, input.clone());
        }
    }

    /// Applies a verdict of the main process about a submitted hang. `own`: the number of the
    /// submission if this worker made it, else `None`. Returns the input if it does not hang and
    /// was kept for its new coverage.
    pub(super) fn apply(&mut self, judged: &JudgedHang, own: Option<u64>) -> Option<BytesInput> {
        let input = own.and_then(|number| self.pending.remove(&number));
        let state = match judged.verdict {
            HangVerdict::Of(kind, major) => SiteState::Classified(kind, major),
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
            self.sites.push(HangSite {
                state,
                met: 0,
                runs: 0,
                least: judged.size,
            });
            self.sites.len() - 1
        });
        let site = &mut self.sites[at];
        // A site at which a run has hung stays a hang, even if another run there has ended.
        if !matches!(site.state, SiteState::Classified(..)) {
            site.state = state;
        }
        self.assign(&judged.signatures, at);
        input.filter(|_| state == SiteState::Slow)
    }

    /// Returns, for each site of hangs with a known group, the group (kind and major key) and the
    /// number of runs stopped there since the last call; sites without such runs are left out.
    pub(super) fn take_counts(&mut self) -> Vec<(Kind, Key, u64)> {
        let sites = self.sites.iter_mut().filter(|site| site.runs > 0);
        let named = sites.filter_map(|site| match site.state {
            SiteState::Classified(kind, major) => {
                Some((kind, major, std::mem::take(&mut site.runs)))
            }
            SiteState::Pending | SiteState::Slow => None,
        });
        named.collect()
    }

    /// Returns, for each site of hangs without a verdict, its signatures and the number of runs
    /// stopped there since the last call; sites without such runs are left out.
    pub(super) fn take_unclassified(&mut self) -> Vec<(Vec<Signature>, u64)> {
        let sites = self.sites.iter_mut().enumerate();
        let pending = sites.filter(|(_, site)| site.state == SiteState::Pending && site.runs > 0);
        let taken: Vec<(usize, u64)> = pending
            .map(|(at, site)| (at, std::mem::take(&mut site.runs)))
            .collect();
        let signatures = |at: usize| {
            let of = self.of.iter().filter(|(_, site)| **site == at);
            of.map(|(signature, _)| *signature).collect()
        };
        let taken = taken.into_iter();
        taken.map(|(at, runs)| (signatures(at), runs)).collect()
    }

    /// Records that a batch of `runs` runs took the time `time`. `stopped`: whether its last run
    /// was stopped as a hang.
    pub(super) fn took(&mut self, runs: usize, time: Duration, stopped: bool) {
        let passing = self.mean_pass() * u32::try_from(runs - usize::from(stopped)).unwrap_or(0);
        self.runs += runs as u64;
        self.ran += time;
        if stopped {
            self.stopped += 1;
            self.spent += time.saturating_sub(passing);
        }
    }

    /// Returns the mean wall time of the worker's runs that were not stopped as hangs; 0 without
    /// such runs.
    fn mean_pass(&self) -> Duration {
        let runs = self.runs.saturating_sub(u64::from(self.stopped));
        let time = self.ran.saturating_sub(self.spent).as_nanos() as u64;
        Duration::from_nanos(time.checked_div(runs).unwrap_or(0))
    }

    /// Checks whether runs stopped as hangs have taken more than their share of the worker's time.
    pub(super) fn are_over_share(&self) -> bool {
        self.spent > self.began.elapsed() / SHARE_DIVISOR + CREDIT
    }

    /// Estimates the share, from 0 to 1, of the running time of `runs` mutants that the `hung`
    /// hanging ones of them take, from the mean times of runs that were stopped as hangs and of
    /// other runs.
    fn hang_share(&self, runs: u32, hung: u32) -> f64 {
        let stopped = self.spent.as_secs_f64() / f64::from(self.stopped.max(1));
        let hanging = f64::from(hung) * stopped;
        let passing = f64::from(runs - hung.min(runs)) * self.mean_pass().as_secs_f64();
        hanging / (hanging + passing).max(f64::MIN_POSITIVE)
    }
}

/// How often the mutants of each corpus entry have hung at this worker.
#[derive(Default)]
pub(super) struct HangRates {
    of: HashMap<CorpusId, MutantCounts>,
    /// Number of times that [`HangRates::rests`] was called since it last computed the smallest
    /// share of time that hanging mutants take (`least`).
    asked: usize,
    /// Smallest share of running time, from 0 to 1, that the hanging mutants of a corpus entry
    /// take, among entries with at least `MIN_MUTANTS` mutants; 1 if there are none. It is computed
    /// anew only once in many calls.
    least: f64,
    /// Number of turns at being mutated that corpus entries have given up because their mutants
    /// hang, and that no other entry has got instead yet.
    resting: usize,
}

/// How many mutants of one corpus entry were run, and how many of them hung.
#[derive(Default)]
struct MutantCounts {
    runs: u32,
    hung: u32,
    /// For each change (first byte that differs from the entry) with which a mutant has hung: how
    /// many mutants had it as their first change, and how many of those hung.
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

impl HangRates {
    /// Records that `mutants` of the corpus entry with this id and content were run, and which of
    /// them hung; `hung` has the indices of those.
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

    /// Checks whether a mutant of the corpus entry `id` is likely to hang: true if a quarter or
    /// more of the entry's mutants with the same first differing byte did.
    pub(super) fn may_hang(&self, id: CorpusId, input: &[u8], mutant: &[u8]) -> bool {
        let record = self.of.get(&id).filter(|record| !record.changes.is_empty());
        let met = record.and_then(|record| record.changes.get(&change(input, mutant)));
        met.is_some_and(|(runs, hung)| hung.saturating_mul(LIKELY_DIVISOR) >= *runs)
    }

    /// Checks whether the corpus entry `id` is not to be mutated now: hangs have taken more than
    /// their share of the worker's time, and the entry's mutants hang clearly more than those of
    /// the best entry. If so, counts the turn at being mutated that the entry gives up.
    pub(super) fn rests(&mut self, id: CorpusId, hangs: &KnownHangs) -> bool {
        if !hangs.are_over_share() {
            return false;
        }
        let part = |record: &MutantCounts| hangs.hang_share(record.runs, record.hung);
        if self.asked == 0 {
            let known = self.of.values().filter(|record| record.runs >= MIN_MUTANTS);
            self.least = known.map(part).fold(1.0, f64::min);
        }
        self.asked = (self.asked + 1) % (self.of.len() + 1);
        let most = (1.0 / f64::from(SHARE_DIVISOR)).max(self.least * 1.5);
        let rests = self.of.get(&id).map(part).is_some_and(|part| part > most);
        self.resting += usize::from(rests);
        rests
    }

    /// Returns how many turns at being mutated the next corpus entry gets at once: one, and up to
    /// 15 that other entries have given up because their mutants hang.
    pub(super) fn turns(&mut self) -> usize {
        1 + std::mem::take(&mut self.resting).min(MAX_TURNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(number: u64) -> Signature {
        serde_json::from_value(number.into()).unwrap()
    }

    /// A run over its limit, with these signatures.
    fn over(signatures: &[u64]) -> Stuck {
        Stuck {
            signatures: signatures.iter().copied().map(signature).collect(),
            known: None,
            counters: vec![1, 0, 7],
        }
    }

    /// A run that was stopped early at a known signature.
    fn stopped(number: u64) -> Stuck {
        Stuck {
            signatures: Vec::new(),
            known: Some(signature(number)),
            counters: Vec::new(),
        }
    }

    /// The verdict about the submission `number`, with these signatures.
    fn judged(signatures: &[u64], number: u64, verdict: HangVerdict) -> JudgedHang {
        JudgedHang {
            from: (1, number),
            signatures: signatures.iter().copied().map(signature).collect(),
            size: 40,
            verdict,
        }
    }

    fn key() -> Key {
        Key::of([&b"loop"[..]])
    }

    fn known(hangs: &mut KnownHangs) -> Vec<Signature> {
        let mut known: Vec<Signature> = hangs.known.iter().copied().collect();
        known.sort();
        known
    }

    fn submit(number: u64, first: bool) -> HangAction {
        HangAction::Submit { number, first }
    }

    #[test]
    fn a_site_is_submitted_once_and_its_hangs_are_counted_when_it_is_classified() {
        let mut hangs = KnownHangs::new(0);
        assert_eq!(hangs.meet(&over(&[3, 4]), 40), submit(1, true));
        // Its runs are stopped early before it is classified.
        assert_eq!(known(&mut hangs), [signature(3), signature(4)]);
        assert_eq!(hangs.meet(&stopped(4), 40), HangAction::Count);
        assert_eq!(hangs.meet(&over(&[4, 9]), 5), HangAction::Count);
        assert_eq!(hangs.take_counts(), []);
        // A worker that ends before the verdict leaves its count to others.
        let (mut signatures, runs) = hangs.take_unclassified().remove(0);
        signatures.sort();
        assert_eq!((signatures, runs), (vec![signature(3), signature(4)], 2));
        assert_eq!(hangs.take_unclassified(), []);
        assert_eq!(hangs.meet(&stopped(4), 40), HangAction::Count);
        let verdict = HangVerdict::Of(Kind::Hang, key());
        hangs.apply(&judged(&[3, 4], 1, verdict), Some(1));
        assert_eq!(hangs.take_counts(), [(Kind::Hang, key(), 1)]);
        let left = (hangs.take_counts(), hangs.take_unclassified());
        assert_eq!(left, (vec![], vec![]));
        assert_eq!(hangs.meet(&over(&[5]), 40), submit(2, true));
    }

    #[test]
    fn samples_and_much_smaller_inputs_of_a_known_site_are_submitted() {
        let mut hangs = KnownHangs::new(0);
        let verdict = HangVerdict::Of(Kind::Hang, key());
        hangs.apply(&judged(&[3], 1, verdict), None);
        let actions = (0..SAMPLE * 2).map(|_| hangs.meet(&stopped(3), 40));
        let submitted = actions.filter(|action| *action != HangAction::Count);
        assert!(submitted.eq([submit(1, false), submit(2, false)]));
        assert_eq!(hangs.meet(&stopped(3), 19), submit(3, false));
        assert_eq!(hangs.meet(&stopped(3), 19), HangAction::Count);
        // The process that classifies the submitted runs counts them.
        let counts = hangs.take_counts();
        assert_eq!(counts, [(Kind::Hang, key(), SAMPLE * 2 - 2 + 1)]);
    }

    #[test]
    fn where_runs_end_by_themselves_nothing_is_stopped_and_what_they_reach_is_kept() {
        let mut hangs = KnownHangs::new(0);
        assert_eq!(hangs.meet(&over(&[3]), 40), submit(1, true));
        let input = BytesInput::new(b"slow".to_vec());
        hangs.keep(1, &input, &over(&[3]).counters);
        let ends = judged(&[3], 1, HangVerdict::Ends);
        assert_eq!(hangs.apply(&ends, Some(1)), Some(input));
        assert_eq!(known(&mut hangs), []);
        assert_eq!(hangs.meet(&over(&[3]), 40), HangAction::RunLonger);
        // Once a run has hung at the site, it is a hang.
        let verdict = HangVerdict::Of(Kind::Hang, key());
        hangs.apply(&judged(&[3], 9, verdict), None);
        assert_eq!(known(&mut hangs), [signature(3)]);
    }

    #[test]
    fn what_could_not_be_examined_is_new_again() {
        let mut hangs = KnownHangs::new(0);
        assert_eq!(hangs.meet(&over(&[3]), 40), submit(1, true));
        hangs.apply(&judged(&[3], 1, HangVerdict::Unknown), Some(1));
        assert_eq!(hangs.meet(&over(&[3]), 40), submit(2, true));
    }

    #[test]
    fn hangs_without_a_signature_are_submitted_now_and_then() {
        let mut hangs = KnownHangs::new(0);
        assert_eq!(hangs.meet(&over(&[]), 40), submit(1, false));
        assert_eq!(hangs.meet(&over(&[]), 40), HangAction::Count);
    }

    #[test]
    fn a_window_is_much_longer_than_what_most_of_the_corpus_takes() {
        let mut hangs = KnownHangs::new(0);
        let limit = Duration::from_millis(50);
        let window = |hangs: &mut KnownHangs| hangs.changed().map(|(window, _)| window);
        assert_eq!(window(&mut hangs), Some(MIN_WINDOW));
        for micros in 0..200 {
            hangs.see(Duration::from_micros(micros));
        }
        hangs.learn_window(limit);
        assert_eq!(
            window(&mut hangs),
            Some(Duration::from_micros(180) * WINDOW_FACTOR)
        );
        hangs.learn_window(limit);
        assert_eq!(window(&mut hangs), None);
        for _ in 0..MAX_SEEN {
            hangs.see(Duration::from_millis(30));
        }
        hangs.learn_window(limit);
        assert_eq!(window(&mut hangs), Some(limit / 4));
    }

    /// Records 100 hangs of 10 ms, with 100 passing runs of 10 µs for each.
    fn hanging() -> KnownHangs {
        let mut hangs = KnownHangs::new(0);
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
