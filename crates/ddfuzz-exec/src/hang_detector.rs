//! Recognises a run that hangs where an earlier one hung, long before its time is over.
//!
//! A run that does not end passes the same few places of the program again and again. The
//! compiler's counters tell which: those that change while the run is looked at. What changes
//! within a short window of the run's own CPU time is hashed to a [`Signature`]; of a run that
//! sleeps it is what it has reached. A run is stopped as soon as one of its windows has a known
//! signature. Runs that are over before the first look cost nothing.

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Windows before the first look at a request: most are answered by then. Each look costs a switch of
/// processes, and on a busy machine two.
const FIRST: u32 = 8;
/// Windows between two looks while no run takes long. They double each time that another run is met,
/// this many times.
const NEXT: u32 = 2;
const DOUBLINGS: u32 = 3;
/// Looks of a window: a counter that has come back to its value at one look differs at another.
const LOOKS: u32 = 4;
/// A run with this many signatures, or windows, is not observed any more.
const MOST: usize = 64;
const LONGEST: usize = 512;
/// A run sleeps if it has used no CPU time for this long, and none of its threads is runnable.
const ASLEEP: Duration = Duration::from_millis(20);

/// What a run did within a short window, as a hash: the same for all runs of one program that
/// pass the same places there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature(u64);

/// What was observed of a run that was stopped because it took too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// The signatures of its windows, each once. Those that do not occur in its later half are left
    /// out: they are the way to where it hangs.
    pub signatures: Vec<Signature>,
    /// The known one for which it was stopped; `None` where it was over its limits.
    pub known: Option<Signature>,
    /// The counters of the compiler at the last look.
    pub counters: Vec<u8>,
}

/// The process of a run as it can be observed from outside.
pub(crate) trait ObservedProcess {
    /// Its process id.
    fn process(&self) -> Option<Pid>;

    /// CPU time that it has used so far, for this run and for those before it.
    fn cpu(&self) -> Option<Duration>;

    /// Copies its counters, as many as there are. False where that cannot be done.
    fn counters(&self, to: &mut Vec<u8>) -> bool;

    /// Whether none of its threads runs, or waits for a processor.
    fn sleeps(&self) -> bool;
}

/// Observes runs that take long, and recognises those that hang in a known way.
#[derive(Default)]
pub(crate) struct HangDetector {
    /// The CPU time of a window; nothing is looked at where it is zero.
    window: Duration,
    known: HashSet<Signature>,
    /// The run of the last look. A run takes long if the next look meets it again.
    met: Option<u64>,
    /// How many looks have met another run than the last.
    passing: u32,
    /// The open window of that run.
    open: Option<Window>,
    /// How many windows it has had.
    windows: usize,
    /// Their signatures, and which window had each of them last.
    seen: Vec<(Signature, usize)>,
    known_one: Option<Signature>,
    counters: Vec<u8>,
}

/// A window of a run.
struct Window {
    /// CPU time at its first look and at its last.
    began: Duration,
    looked: Duration,
    /// When the run was last seen to use any, and how many looks ago.
    moved: Instant,
    idle: u32,
    /// Which counters have changed since the first look.
    changed: Vec<bool>,
}

impl HangDetector {
    /// From here on observes runs in windows of this CPU time, and recognises these signatures.
    pub(crate) fn recognise(&mut self, window: Duration, known: &HashSet<Signature>) {
        self.window = window;
        self.known.clone_from(known);
    }

    /// What was seen of the last run, if it was stopped.
    pub(crate) fn take(&mut self) -> Stuck {
        let later = self
            .seen
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

    /// Begins the wait for a request.
    pub(crate) fn begin(&mut self) {
        (self.met, self.passing) = (None, 0);
        self.forget();
    }

    fn forget(&mut self) {
        (self.open, self.windows, self.known_one) = (None, 0, None);
        self.seen.clear();
        self.counters.clear();
    }

    /// How long to wait before the next look; `None` where there is no more.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let looks = !self.window.is_zero() && self.seen.len() < MOST && self.windows < LONGEST;
        looks.then(|| match &self.open {
            // Who does not get a processor is not looked at as often.
            Some(window) => (self.window / LOOKS) * (1 << window.idle.min(6)),
            None => self.window * (NEXT << self.passing.min(DOUBLINGS)),
        })
    }

    /// The same before the first look at a run. There is no early look while no signature is known.
    pub(crate) fn first_pause(&self) -> Option<Duration> {
        let early = !self.window.is_zero() && !self.known.is_empty();
        early.then_some(self.window * FIRST)
    }

    /// Whether the run `run`, which is over its limits, has no signature yet and could get one.
    pub(crate) fn lacks_signature(&self, run: u64) -> bool {
        let begins = !self.window.is_zero() && self.seen.is_empty();
        begins && (self.met != Some(run) || self.open.is_some())
    }

    /// Looks at the run `run`; returns whether it must be stopped.
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

    /// Closes the window and opens the next one; returns whether its signature is known.
    fn close(&mut self, activity: Activity, cpu: Duration) -> bool {
        let Some(window) = &mut self.open else {
            return false;
        };
        let signature = signature(activity, &window.changed, &self.counters);
        window.changed.fill(false);
        (window.began, window.looked, window.moved) = (cpu, cpu, Instant::now());
        window.idle = 0;
        self.windows += 1;
        match self.seen.iter_mut().find(|(seen, _)| *seen == signature) {
            Some((_, last)) => *last = self.windows,
            None => self.seen.push((signature, self.windows)),
        }
        let known = self.known.contains(&signature);
        self.known_one = known.then_some(signature);
        known
    }
}

/// What a run does in a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Activity {
    Running,
    Sleeping,
}

/// The signature of a window: a hash of the changed counters, or of the reached ones where none
/// changed.
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

    /// A process that is made to run.
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

        /// Passes these places in a quarter of a window.
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

    /// The signatures of a run that passes `before`, and then `looping` again and again.
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
        // The window between the two is of both.
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
        // The second look at one run opens a window.
        detector.look(9, &made);
        assert_eq!(detector.pause(), Some(WINDOW / LOOKS));
        detector.begin();
        assert_eq!(detector.pause(), Some(WINDOW * NEXT));
    }
}
