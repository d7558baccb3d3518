//! The hangs that a worker knows ([`KnownHangs`]).
//!
//! A worker submits an input whose run exceeded its time limit to the main process, which examines
//! whether and where the input hangs; the worker goes on meanwhile. Later runs that show one of the
//! signatures of the submitted run (hashes of the code in which it looped) are stopped early. They
//! are counted in the group of the hang as soon as the group is known.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use libafl::inputs::BytesInput;

use super::messages::{HangVerdict, JudgedHang};
use ddfuzz_exec::{Signature, Stuck};
use ddfuzz_store::Kind;
use ddfuzz_triage::Key;

/// Least CPU time that a run has used before it is compared with the signatures (hashes of the
/// looping code) of known hangs, to stop it early.
const MIN_WINDOW: Duration = Duration::from_micros(100);
/// A run is compared with the signatures (hashes of the looping code) of known hangs after this
/// many times the CPU time within which nine of ten recorded runs ended.
const WINDOW_FACTOR: u32 = 4;
/// Number of the latest runs of corpus inputs whose CPU times are kept. From them the worker learns
/// after which CPU time a run is compared with known hangs.
const MAX_SEEN: usize = 256;
/// Least time between two submissions of hangs without a signature (hash of the looping code) to
/// the main process.
const INDISTINCT_EVERY: Duration = Duration::from_secs(2);
/// Of the runs that were stopped at a known hang, one in this many is submitted to the main process
/// as if the hang were unknown, since two different hangs may have the same signature (hash of the
/// looping code).
const SAMPLE: u64 = 64;
/// Greatest number of sites (places in the program) of hangs that a worker records; hangs at
/// further sites are treated as if they had no signature.
const MAX_SITES: usize = 4096;
/// Greatest number of submitted inputs that a worker keeps until the main process has examined
/// them. It keeps inputs that reached new coverage before they were stopped as hangs.
const MAX_PENDING: usize = 64;

/// A place in the program at which runs of a worker hang. Runs belong to the same site if they show
/// one of its signatures (hashes that identify the place).
struct HangSite {
    state: SiteState,
    /// Number of runs that were stopped as hangs at the site (place in the program) so far.
    met: u64,
    /// How many of the runs stopped as hangs at this site (place in the program) are still to be
    /// reported to the main process, which counts the runs of each group.
    runs: u64,
    /// Size in bytes of the smallest input submitted to the main process whose run hangs at the
    /// site (place in the program).
    least: usize,
}

/// What the main process has found out about a site (a place in the program at which runs seem to
/// hang): whether runs that a worker stops there really hang, and in which group they belong. The
/// main process examines inputs that the worker submits, and reports the result to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SiteState {
    /// The main process has not decided yet whether runs stopped at the site (place in the program)
    /// hang.
    Pending,
    /// Runs stopped at the site (place in the program) hang, and belong to the group with this kind
    /// and major key (hash that identifies a bug).
    Classified(Kind, Key),
    /// Runs stopped at the site (place in the program) are only slow: they end by themselves.
    Slow,
}

/// What a worker does with an input whose run took too long: submits it to be examined, runs it
/// again with more time, or only counts it.
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
    /// The worker counts the run at its site in the program, if the run has one, and drops the
    /// input.
    Count,
}

/// The hangs that a worker knows by their sites in the program.
pub(super) struct KnownHangs {
    sites: Vec<HangSite>,
    /// For each known signature of a hang, the index of the site (place in the program) to which it
    /// belongs, in the list of known sites.
    of: HashMap<Signature, usize>,
    /// Signatures (hashes of places in the program) of known hangs. The executor stops a run early
    /// when the run shows one of them.
    known: HashSet<Signature>,
    /// CPU time after which the executor compares a run with the signatures (hashes of the looping
    /// code) of known hangs, to stop it early.
    window: Duration,
    /// CPU times of the last runs of corpus inputs, in a ring buffer whose oldest element is at
    /// index `next`.
    corpus_times: Vec<Duration>,
    next: usize,
    /// Whether the executor's settings for stopping runs early are out of date: the CPU time, or
    /// the signatures (hashes of the looping code) of known hangs, have changed.
    changed: bool,
    /// For each coverage counter, whether a run that was stopped as a hang has reached it.
    reached: Vec<bool>,
    /// Inputs that were submitted as hangs and had reached new coverage, by the number of the
    /// submission; they are run again if they do not hang.
    pending: HashMap<u64, BytesInput>,
    /// Number of the worker's last submission of a hang to the main process; its upper half is the
    /// number of earlier processes of the worker.
    number: u64,
    /// When the worker last submitted a hang without a usable signature (hash of the looping code);
    /// `None` if it never did. Such hangs cannot be told from each other, so they are submitted
    /// every two seconds at most.
    last_indistinct: Option<Instant>,
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
            corpus_times: Vec::new(),
            next: 0,
            changed: true,
            reached: Vec::new(),
            pending: HashMap::new(),
            number: u64::from(before) << 32,
            last_indistinct: None,
        }
    }

    /// Records the CPU time of a run of a corpus input. From these times
    /// [`KnownHangs::learn_window`] learns after which CPU time a run is compared with known hangs.
    pub(super) fn see(&mut self, cpu: Duration) {
        match self.corpus_times.get_mut(self.next) {
            Some(oldest) => *oldest = cpu,
            None => self.corpus_times.push(cpu),
        }
        self.next = (self.next + 1) % MAX_SEEN;
    }

    /// Sets the CPU time after which a run is compared with the known hangs: four times the time
    /// within which nine of ten recorded runs ended, but at least 0.1 ms, and at most a quarter of
    /// `limit`, the CPU time limit of a run. Without recorded runs nothing changes.
    pub(super) fn learn_window(&mut self, limit: Duration) {
        let mut seen = self.corpus_times.clone();
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
    /// signatures (hashes of the looping code); `None` if neither has changed since the last call.
    pub(super) fn changed(&mut self) -> Option<(Duration, &HashSet<Signature>)> {
        std::mem::take(&mut self.changed).then_some((self.window, &self.known))
    }

    /// Returns what the worker has to do with an input whose run took too long, which depends on
    /// the state of its site (the place in the program where it hangs). Counts the run at the site,
    /// and records a new site. `stuck`: the signatures of the run. `size`: size of the input in
    /// bytes.
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

    /// Returns a number that this worker has not used yet, for its next submission of a hang to the
    /// main process.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Assigns `signatures` (hashes of the looping code) to the site (place in the program) of
    /// hangs at index `at` in the list of sites, except signatures that belong to another site
    /// already. Later runs that show one of the assigned signatures are stopped early, unless runs
    /// at the site are known to end by themselves.
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

    /// Keeps `input`, submitted as a hang under the number `number`, until the verdict about it
    /// arrives, if its run (with the coverage `counters`) has covered anything that no earlier
    /// stopped run had covered. Does not keep it if `MAX_PENDING` inputs are kept already.
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

    /// Applies the main process's verdict about a suspected hang: runs that stop at the same site
    /// (place in the program) then count as hangs of the verdict's group, or as slow. If the main
    /// process could not find out whether the input hangs, the site is forgotten. `own`: number of
    /// the submission if this worker made it, otherwise `None`. Returns the input of this
    /// submission if the worker has kept it and its site counts as slow.
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

    /// Returns, for each site (place in the program) of hangs with a known group, the group (kind
    /// and major key) and the number of runs stopped there since the last call; sites without such
    /// runs are left out.
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

    /// Returns, for each site (place in the program) of hangs without a verdict, its signatures
    /// (hashes of the looping code) and the number of runs stopped there since the last call; sites
    /// without such runs are left out.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(number: u64) -> Signature {
        serde_json::from_value(number.into()).unwrap()
    }

    /// Makes a run that has exceeded its time limit, with signatures of hangs made from the numbers
    /// `signatures`, for tests.
    fn over(signatures: &[u64]) -> Stuck {
        Stuck {
            signatures: signatures.iter().copied().map(signature).collect(),
            known: None,
            counters: vec![1, 0, 7],
        }
    }

    /// Makes what hang detection observes of a run that is stopped early, because it shows the
    /// signature of the known hang with the number `number`.
    fn stopped(number: u64) -> Stuck {
        Stuck {
            signatures: Vec::new(),
            known: Some(signature(number)),
            counters: Vec::new(),
        }
    }

    /// Makes the verdict of the main process about the submission `number` with these signatures,
    /// for tests.
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
}
