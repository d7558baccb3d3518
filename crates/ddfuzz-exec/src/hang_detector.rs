//! Recognises a run that hangs where an earlier run hung, long before its time limit.
//!
//! A run that hangs passes the same few places of the program again and again. The compiler's
//! coverage counters show which: those that change while the run is observed. The counters that
//! change within a short window of the run's CPU time are hashed to a [`Signature`]; if none
//! changes, because the run sleeps, those above 0 are hashed. A run is stopped as soon as a window
//! has a known signature. Runs that end before their first observation cost nothing.

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Time after which a run is observed for the first time to detect a hang, as a multiple of the
/// time between two observations. Most runs have ended by then; each observation costs one or two
/// context switches.
const FIRST: u32 = 8;
/// Pause between two looks at a process that makes many short runs, as a multiple of the CPU time
/// of one window of hang detection. The pause doubles, up to `DOUBLINGS` times, each time that a
/// look finds another run than the look before, since runs then do end.
const NEXT: u32 = 2;
const DOUBLINGS: u32 = 3;
/// Number of times that the coverage counters of a long run are read in each window of CPU time. A
/// single reading could miss a change, because a counter that has wrapped around may have its old
/// value again.
const LOOKS: u32 = 4;
/// Maximum number of different hang signatures that are collected from one run.
const MOST: usize = 64;
/// Maximum number of windows of CPU time in which hang detection observes one run.
const LONGEST: usize = 512;
/// A run counts as asleep after this time without CPU use, if none of its threads is runnable.
const ASLEEP: Duration = Duration::from_millis(20);

/// Hash of the code that a long run passes within a short window of CPU time, used to recognise
/// hangs: runs of one program that loop in the same code have the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature(u64);

/// What hang detection has observed of a run that took too long: the signatures of the windows of
/// CPU time in which it was observed (hashes of the code that the run passed), its coverage, and
/// the known hang that has one of these signatures, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Signatures of the windows of CPU time in which the run was observed, each once. Those that
    /// occur in the first half of the run only are left out: that code leads to the hang.
    pub signatures: Vec<Signature>,
    /// Signature of the known hang by which ddfuzz recognised and stopped the run; `None` if the
    /// run was stopped at its limits instead.
    pub known: Option<Signature>,
    /// The run's coverage counters (hit counts of edges, one byte each) as they were last read;
    /// empty if the run ended before they were read.
    pub counters: Vec<u8>,
}

/// A process that makes runs, as hang detection observes it from outside: its id, CPU time,
/// coverage counters and whether it sleeps.
pub(crate) trait ObservedProcess {
    /// Returns the id of the observed process; `None` if it is unknown.
    fn process(&self) -> Option<Pid>;

    /// Returns the CPU time of the observed process so far, including earlier runs in it; `None` if
    /// it cannot be read.
    fn cpu(&self) -> Option<Duration>;

    /// Copies the coverage counters of the observed process to `to`. Returns false where that is
    /// impossible.
    fn counters(&self, to: &mut Vec<u8>) -> bool;

    /// Returns true if no thread of the observed process is running or runnable.
    fn sleeps(&self) -> bool;
}

/// Observes long runs of a target and recognises those that hang like a known hang.
#[derive(Default)]
pub(crate) struct HangDetector {
    /// Length of the windows of CPU time in which a run is observed; zero disables hang detection.
    window: Duration,
    known: HashSet<Signature>,
    /// Number of the run that the process was making when hang detection last observed it; `None`
    /// before the first observation. A run counts as long if two successive observations find it.
    met: Option<u64>,
    /// Number of successive observations that each found another run than the previous observation.
    passing: u32,
    /// The current window, an interval of CPU time, in which the run is observed; `None` before the
    /// first one.
    open: Option<Window>,
    /// Number of windows of CPU time that the observed run has completed.
    windows: usize,
    /// Hang signatures of the observed run, each with the number, from 1, of the last window that
    /// had it.
    signatures: Vec<(Signature, usize)>,
    /// Signature of the last completed window of the observed run if it is that of a known hang,
    /// else `None`.
    known_one: Option<Signature>,
    /// The coverage counters of the observed run as they were last read; empty if they were not
    /// read yet.
    counters: Vec<u8>,
}

/// The window in which a run is observed: an interval of its CPU time. At the end of the window,
/// its signature is taken from the coverage counters that have changed.
struct Window {
    /// CPU time that the observed process had used when the window began.
    began: Duration,
    /// CPU time that the observed process had used when its coverage counters were last read.
    looked: Duration,
    /// Time of the last observation at which the observed process had used CPU time since its
    /// coverage counters were last read; before the first such observation, the time when the
    /// window began.
    moved: Instant,
    /// Number of observations since the coverage counters of the process were last read at which
    /// the process had used too little CPU time to read them again.
    idle: u32,
    /// For each coverage counter, whether it has changed since the window began.
    changed: Vec<bool>,
}

impl HangDetector {
    /// Starts hang detection: later runs are observed in windows of `window` CPU time each. A run
    /// is stopped if the signature of a window (hash of the code that the run passes in it) is in
    /// `known`, the signatures of known hangs.
    pub(crate) fn recognise(&mut self, window: Duration, known: &HashSet<Signature>) {
        self.window = window;
        self.known.clone_from(known);
    }

    /// Returns the signatures, the known hang and the coverage counters that hang detection has
    /// observed of the last run, and clears them.
    pub(crate) fn take(&mut self) -> Stuck {
        let later = self
            .signatures
            .iter()
            .filter(|(_, last)| last * 2 >= self.windows);
        let stuck = Stuck {
            signatures: later.map(|(signature, _)| *signature).collect(),
            known: self.known_one,
            counters: std::mem::take(&mut self.counters),
        };
        self.begin();
        stuck
    }

    /// Clears what hang detection has observed of earlier runs, before ddfuzz sends the next
    /// request to the target's fork server.
    pub(crate) fn begin(&mut self) {
        (self.met, self.passing) = (None, 0);
        self.forget();
    }

    fn forget(&mut self) {
        (self.open, self.windows, self.known_one) = (None, 0, None);
        self.signatures.clear();
        self.counters.clear();
    }

    /// Returns the time until the observed process is looked at again; `None` if hang detection is
    /// off, or the run has been observed long enough.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let looks =
            !self.window.is_zero() && self.signatures.len() < MOST && self.windows < LONGEST;
        looks.then(|| match &self.open {
            // A process that gets no CPU time is observed less often.
            Some(window) => (self.window / LOOKS) * (1 << window.idle.min(6)),
            None => self.window * (NEXT << self.passing.min(DOUBLINGS)),
        })
    }

    /// Returns the time from a run's start until its first observation; `None` while hang detection
    /// is off or no hang is known, because no run can be recognised early then.
    pub(crate) fn first_pause(&self) -> Option<Duration> {
        let early = !self.window.is_zero() && !self.known.is_empty();
        early.then_some(self.window * FIRST)
    }

    /// Whether the run numbered `run`, which is over its time limit, has no signature yet (hash of
    /// the code in which it loops) but could still get one if it were observed longer.
    pub(crate) fn lacks_signature(&self, run: u64) -> bool {
        let begins = !self.window.is_zero() && self.signatures.is_empty();
        begins && (self.met != Some(run) || self.open.is_some())
    }

    /// Observes the run numbered `run` of `process` once, for hang detection; returns true if the
    /// run hangs like a known hang and must be stopped.
    pub(crate) fn look(&mut self, run: u64, process: &dyn ObservedProcess) -> bool {
        if self.met.replace(run) != Some(run) {
            self.passing += 1;
            self.forget();
            return false;
        }
        let Some(cpu) = process.cpu() else {
            return false;
        };
        let Some(window) = &mut self.open else {
            self.open(cpu, process);
            return false;
        };
        if cpu.saturating_sub(window.looked) < self.window / LOOKS {
            let still = cpu == window.looked && window.moved.elapsed() >= ASLEEP;
            if cpu != window.looked {
                window.moved = Instant::now();
            }
            window.idle += 1;
            return still && process.sleeps() && self.close(Activity::Sleeping, cpu);
        }
        let before = std::mem::take(&mut self.counters);
        if !process.counters(&mut self.counters) {
            self.open = None;
            return false;
        }
        (window.looked, window.moved, window.idle) = (cpu, Instant::now(), 0);
        let pairs = before.iter().zip(&self.counters);
        for (changed, (before, now)) in window.changed.iter_mut().zip(pairs) {
            *changed |= before != now;
        }
        let full = cpu.saturating_sub(window.began) >= self.window;
        full && self.close(Activity::Running, cpu)
    }

    fn open(&mut self, cpu: Duration, process: &dyn ObservedProcess) {
        if process.counters(&mut self.counters) {
            self.open = Some(Window {
                began: cpu,
                looked: cpu,
                moved: Instant::now(),
                idle: 0,
                changed: vec![false; self.counters.len()],
            });
        }
    }

    /// Ends the current window of CPU time, in which the run did `activity`, records the window's
    /// signature, and begins the next window. Returns true if the signature is that of a known
    /// hang.
    fn close(&mut self, activity: Activity, cpu: Duration) -> bool {
        let Some(window) = &mut self.open else {
            return false;
        };
        let signature = signature(activity, &window.changed, &self.counters);
        window.changed.fill(false);
        (window.began, window.looked, window.moved) = (cpu, cpu, Instant::now());
        window.idle = 0;
        self.windows += 1;
        match self
            .signatures
            .iter_mut()
            .find(|(seen, _)| *seen == signature)
        {
            Some((_, last)) => *last = self.windows,
            None => self.signatures.push((signature, self.windows)),
        }
        let known = self.known.contains(&signature);
        self.known_one = known.then_some(signature);
        known
    }
}

/// What an observed run did in a window of time: whether it computed or slept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Activity {
    Running,
    Sleeping,
}

/// Computes the hang signature of a window of CPU time. It is a hash of `activity` (whether the run
/// computed or slept) and of the indices of the coverage counters that changed in the window; if
/// none changed, of the counters above 0.
fn signature(activity: Activity, changed: &[bool], counters: &[u8]) -> Signature {
    let mut hasher = DefaultHasher::new();
    activity.hash(&mut hasher);
    let moving = changed.iter().any(|changed| *changed);
    moving.hash(&mut hasher);
    match moving {
        true => places(changed, |changed| *changed).for_each(|at| at.hash(&mut hasher)),
        false => places(counters, |count| *count > 0).for_each(|at| at.hash(&mut hasher)),
    }
    Signature(hasher.finish())
}

fn places<T>(all: &[T], is: impl Fn(&T) -> bool) -> impl Iterator<Item = usize> {
    (all.iter().enumerate()).filter_map(move |(at, one)| is(one).then_some(at))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const WINDOW: Duration = Duration::from_micros(400);

    /// A simulated process for tests of hang detection, whose CPU time and coverage counters a test
    /// sets.
    #[derive(Default)]
    struct Made {
        cpu: Cell<Duration>,
        counters: RefCell<Vec<u8>>,
        sleeps: bool,
    }

    impl Made {
        fn new() -> Made {
            Made {
                counters: RefCell::new(vec![0; 40]),
                ..Made::default()
            }
        }

        /// Advances the simulated process by a quarter of a window of CPU time, in which it
        /// increments the coverage counters with the indices `places`.
        fn pass(&self, places: &[usize]) {
            self.cpu.set(self.cpu.get() + WINDOW / 4);
            for place in places {
                let count = &mut self.counters.borrow_mut()[*place];
                *count = count.wrapping_add(77);
            }
        }
    }

    impl ObservedProcess for Made {
        fn process(&self) -> Option<Pid> {
            None
        }

        fn cpu(&self) -> Option<Duration> {
            Some(self.cpu.get())
        }

        fn counters(&self, to: &mut Vec<u8>) -> bool {
            to.clone_from(&self.counters.borrow());
            true
        }

        fn sleeps(&self) -> bool {
            self.sleeps
        }
    }

    /// Returns the hang signatures of a simulated run, for tests: it increments the coverage
    /// counters `before` once, and those in `looping` again and again, for about `windows` windows
    /// of time.
    fn signatures(before: &[usize], looping: &[usize], windows: usize) -> Vec<Signature> {
        let (made, mut detector) = (Made::new(), HangDetector::default());
        detector.recognise(WINDOW, &HashSet::new());
        detector.begin();
        made.pass(before);
        for _ in 0..4 * windows + 2 {
            assert!(!detector.look(1, &made));
            made.pass(looping);
        }
        detector.take().signatures
    }

    #[test]
    fn a_loop_has_one_signature_by_whatever_path_it_was_reached() {
        let one = signatures(&[1, 2, 3], &[10, 11], 5);
        assert_eq!(one.len(), 1);
        assert_eq!(signatures(&[1, 7, 9, 12], &[10, 11], 9), one);
        assert_ne!(signatures(&[1, 2, 3], &[10, 12], 5), one);
    }

    #[test]
    fn a_known_signature_stops_a_run_with_its_first_window() {
        let (made, mut detector) = (Made::new(), HangDetector::default());
        let known = signatures(&[], &[10, 11], 2).into_iter().collect();
        detector.recognise(WINDOW, &known);
        detector.begin();
        assert_eq!(detector.first_pause(), Some(WINDOW * FIRST));
        let stopped = (0..9).find(|_| {
            made.pass(&[10, 11]);
            detector.look(4, &made)
        });
        assert_eq!(stopped, Some(5));
        assert!(detector.take().known.is_some());
        assert_eq!(detector.take(), Stuck::default());
    }

    #[test]
    fn the_way_to_a_loop_is_no_sign_of_it() {
        let (made, mut detector) = (Made::new(), HangDetector::default());
        detector.recognise(WINDOW, &HashSet::new());
        detector.begin();
        for look in 0..50 {
            made.pass(if look < 20 { &[5, 6] } else { &[10, 11] });
            detector.look(1, &made);
        }
        // One window covers parts of both phases.
        let seen = detector.take().signatures;
        assert!(!seen.contains(&signatures(&[], &[5, 6], 1)[0]), "{seen:?}");
        assert!(seen.contains(&signatures(&[], &[10, 11], 1)[0]), "{seen:?}");
    }

    #[test]
    fn windows_do_not_reach_from_one_run_into_the_next() {
        let (made, mut detector) = (Made::new(), HangDetector::default());
        let known = signatures(&[], &[10, 11], 2).into_iter().collect();
        detector.recognise(WINDOW, &known);
        detector.begin();
        for run in 0..50 {
            made.pass(&[10, 11]);
            assert!(!detector.look(run / 5, &made));
        }
        assert!(detector.take().signatures.is_empty());
    }

    #[test]
    fn a_counter_that_comes_back_to_its_value_at_one_look_counts_all_the_same() {
        let (made, mut detector) = (Made::new(), HangDetector::default());
        detector.recognise(WINDOW, &HashSet::new());
        detector.begin();
        detector.look(1, &made);
        detector.look(1, &made);
        for look in 0..8 {
            made.pass(if look % 4 == 2 { &[10] } else { &[10, 11] });
            detector.look(1, &made);
        }
        assert_eq!(detector.take().signatures, signatures(&[], &[10, 11], 2));
    }

    #[test]
    fn a_sleeper_is_told_by_what_it_has_reached() {
        let asleep = |reached: &[usize]| {
            let mut made = Made::new();
            made.pass(reached);
            made.sleeps = true;
            let mut detector = HangDetector::default();
            detector.recognise(WINDOW, &HashSet::new());
            detector.begin();
            detector.look(1, &made);
            detector.look(1, &made);
            std::thread::sleep(ASLEEP);
            detector.look(1, &made);
            detector.take().signatures
        };
        assert_eq!(asleep(&[1, 2]).len(), 1);
        assert_eq!(asleep(&[1, 2]), asleep(&[1, 2]));
        assert_ne!(asleep(&[1, 2]), asleep(&[1, 3]));
        let running = signatures(&[1, 2], &[], 1);
        assert_ne!(asleep(&[1, 2]), running);
    }

    #[test]
    fn nothing_is_looked_at_before_anybody_asks() {
        let detector = HangDetector::default();
        assert_eq!((detector.pause(), detector.first_pause()), (None, None));
        let mut detector = HangDetector::default();
        detector.recognise(WINDOW, &HashSet::new());
        assert_eq!(detector.first_pause(), None);
        assert_eq!(detector.pause(), Some(WINDOW * NEXT));
    }

    #[test]
    fn while_runs_pass_it_is_looked_less_and_less_often() {
        let (made, mut detector) = (Made::new(), HangDetector::default());
        detector.recognise(WINDOW, &HashSet::new());
        detector.begin();
        let pauses = (1..=9).map(|run| {
            detector.look(run, &made);
            detector.pause().unwrap().as_nanos() / WINDOW.as_nanos()
        });
        let pauses: Vec<u128> = pauses.collect();
        assert_eq!(pauses, [4, 8, 16, 16, 16, 16, 16, 16, 16]);
        // The second look at a run opens a window.
        detector.look(9, &made);
        assert_eq!(detector.pause(), Some(WINDOW / LOOKS));
        detector.begin();
        assert_eq!(detector.pause(), Some(WINDOW * NEXT));
    }
}
