//! Minimizations that run in time slices: each on its own thread, which runs only during its
//! slices, like a coroutine.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, bounded};

use super::time_budget::{CREDIT, TimeBudget};
use crate::lock;
use crate::minimization_queue::{is_slow, minimize_with};
use crate::{CampaignError, CrashSink, Finished, Minimizing};
use ddfuzz_minimize::Options;
use ddfuzz_store::EntryId;

/// Greatest number of groups that are minimized at a time, since each has its own processes. It is
/// more than one, so that a hard group does not delay easy ones.
const MAX_ACTIVE: usize = 4;
/// Time between two requests to the crash sink for a group to minimize; the next request is not
/// delayed if a new group may have been stored.
const CLAIM_EVERY: Duration = Duration::from_millis(50);
/// Time until the next request for a group, if the last request was useless: [`MAX_ACTIVE`] groups
/// were being minimized, and the crash sink offered a group that this process has minimized before,
/// which was given back at once.
const RECLAIM_EVERY: Duration = Duration::from_secs(5);
/// Pause of all minimizations after a failure (the target is being rebuilt, the disk is full).
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The minimizations that one stage has under way, in time slices: of entries that it has claimed
/// from the crash sink.
pub(super) struct Minimizations<D: CrashSink + 'static> {
    sink: Arc<Mutex<D>>,
    minimizations: Vec<Minimization>,
    /// Entries whose minimization this process has begun before. When they are claimed again, they
    /// get no time credit (time that a new group may take at once).
    credited: HashSet<EntryId>,
    /// Whether the crash sink had no group to minimize when it was last asked.
    none_left: bool,
    /// Time since the stage was made from which on it may ask the crash sink for another group to
    /// minimize.
    claims_from: Duration,
    /// Time since the stage was made up to which no minimization is continued; set after a failure.
    pauses_until: Duration,
}

impl<D: CrashSink + 'static> Minimizations<D> {
    pub(super) fn new(sink: Arc<Mutex<D>>) -> Minimizations<D> {
        Minimizations {
            sink,
            minimizations: Vec::new(),
            credited: HashSet::new(),
            none_left: false,
            claims_from: Duration::ZERO,
            pauses_until: Duration::ZERO,
        }
    }

    /// Makes the next time slice ask the crash sink for a group to minimize without waiting, since
    /// a new group may have been stored.
    pub(super) fn expect(&mut self) {
        self.claims_from = Duration::ZERO;
        self.none_left = false;
    }

    /// Checks whether no group is being minimized and the crash sink had none when it was last
    /// asked.
    pub(super) fn is_idle(&self) -> bool {
        self.minimizations.is_empty() && self.none_left
    }

    /// Checks whether no group is being minimized at present.
    pub(super) fn is_empty(&self) -> bool {
        self.minimizations.is_empty()
    }

    /// Returns true if no group is minimized at the time `now`, because a minimization has failed
    /// less than 10 seconds before. `now`: time since the stage was made.
    pub(super) fn is_paused(&self, now: Duration) -> bool {
        now < self.pauses_until
    }

    /// Gives one minimization a time slice, if the `budget` permits a slice. Returns its result if
    /// it has ended in the slice, an error if it has failed (all minimizations then pause for 10
    /// seconds), and otherwise `None`. `now`: the time since the stage was made.
    pub(super) fn go_on(
        &mut self,
        now: Duration,
        budget: &mut TimeBudget,
        minimizing: &Minimizing,
    ) -> Option<ThreadResult> {
        if self.is_paused(now) {
            return None;
        }
        let began = Instant::now();
        let done = self.slice(now, budget, minimizing).transpose();
        if done.as_ref().is_some_and(Result::is_err) {
            self.pauses_until = now + began.elapsed() + RETRY_AFTER;
        }
        done
    }

    fn slice(
        &mut self,
        now: Duration,
        budget: &mut TimeBudget,
        minimizing: &Minimizing,
    ) -> Result<Option<Option<(u64, u64)>>, CampaignError> {
        let young = |work: &Minimization| !work.credit.is_zero();
        if now >= self.claims_from
            && !self.minimizations.iter().any(young)
            && budget.slice(CREDIT).is_some()
        {
            self.claim(now, minimizing)?;
        }
        // A new group comes first, a hang last; else the group that has taken the least time.
        let order =
            |work: &&mut Minimization| (is_slow(&work.id), work.credit.is_zero(), work.spent);
        let Some(work) = self.minimizations.iter_mut().min_by_key(order) else {
            return Ok(None);
        };
        let hangs = is_slow(&work.id);
        let slice = match hangs {
            true => budget.slice_for_hangs(),
            false => budget.slice(work.credit),
        };
        let Some(slice) = slice else {
            return Ok(None);
        };
        let began = Instant::now();
        // A single test may last longer than the slice.
        let outcome = match work.coroutine.resume(slice) {
            Slice::Parked => None,
            Slice::Done(outcome) => Some(outcome),
            Slice::Broken => Some(Err(CampaignError::Broken)),
        };
        let taken = began.elapsed();
        work.spent += taken;
        work.credit = work.credit.saturating_sub(taken);
        match hangs {
            true => budget.spend_on_hangs(taken),
            false => budget.spend(taken),
        }
        let id = work.id.clone();
        let Some(outcome) = outcome else {
            return Ok(None);
        };
        self.release(&id, outcome.is_ok())?;
        // It may have found other groups.
        self.expect();
        outcome.map(Some)
    }

    /// Asks the crash sink for one more group, and begins to minimize it. If `MAX_ACTIVE` groups
    /// are being minimized already, a group that is new to this process replaces the one that has
    /// taken the most time; any other group is given back to the sink. `now`: the time since the
    /// stage was made.
    fn claim(&mut self, now: Duration, minimizing: &Minimizing) -> Result<(), CampaignError> {
        self.claims_from = now + CLAIM_EVERY;
        let claimed = lock(&self.sink).claim()?;
        self.none_left = claimed.is_none();
        let Some(id) = claimed else {
            return Ok(());
        };
        let new = !self.credited.contains(&id);
        if self.minimizations.len() >= MAX_ACTIVE {
            if !new {
                self.claims_from = now + RECLAIM_EVERY;
                return Ok(lock(&self.sink).release(&id, false, Duration::ZERO)?);
            }
            let most = self.minimizations.iter().max_by_key(|work| work.spent);
            if let Some(most) = most.map(|work| work.id.clone()) {
                self.release(&most, false)?;
            }
        }
        // A few runs of a hang would use up a credit.
        let credited = new && !is_slow(&id);
        let work = Minimization::new(
            id.clone(),
            credited,
            Arc::clone(&self.sink),
            minimizing.clone(),
        );
        match work {
            Ok(work) => {
                self.credited.insert(id);
                self.minimizations.push(work);
                Ok(())
            }
            Err(source) => {
                lock(&self.sink).release(&id, false, Duration::ZERO)?;
                Err(CampaignError::NoThread { source })
            }
        }
    }

    /// Ends the thread of an entry's minimization and releases the entry to the crash sink; does
    /// nothing if the entry is not being minimized. `ended`: whether the minimization is complete.
    fn release(&mut self, id: &EntryId, ended: bool) -> Result<(), CampaignError> {
        let Some(at) = self.minimizations.iter().position(|work| work.id == *id) else {
            return Ok(());
        };
        let work = self.minimizations.swap_remove(at);
        let spent = work.spent;
        // Dropped before the release, since it may still write.
        drop(work);
        Ok(lock(&self.sink).release(id, ended, spent)?)
    }
}

impl<D: CrashSink + 'static> Drop for Minimizations<D> {
    fn drop(&mut self) {
        while let Some(work) = self.minimizations.first() {
            let id = work.id.clone();
            let _ = self.release(&id, false);
        }
    }
}

/// How a thread that minimizes an entry has ended: with the sizes in bytes of the input before and
/// after, with `None` if the crash did not happen again, or with an error.
pub(super) type ThreadResult = Result<Option<(u64, u64)>, CampaignError>;

/// The running minimization of one entry. Its thread runs only during its time slices. When a slice
/// is over, the thread parks after the next line that it writes to the log, where no step is half
/// done. The minimization has separate processes of the target, which end with it.
struct Minimization {
    id: EntryId,
    /// Time that the minimization has taken since the entry was claimed.
    spent: Duration,
    /// Time credit: the time that the minimization of a new group may still take at once, before it
    /// has to wait for its share of the time.
    credit: Duration,
    coroutine: Coroutine<Duration, ThreadResult>,
}

impl Minimization {
    /// Creates the minimization of the claimed entry `id`, whose thread first runs in its first
    /// time slice. `new`: whether the minimization gets [`CREDIT`], the time that a new group may
    /// take at once.
    fn new<D: CrashSink + 'static>(
        id: EntryId,
        new: bool,
        sink: Arc<Mutex<D>>,
        minimizing: Minimizing,
    ) -> std::io::Result<Minimization> {
        let entry = id.clone();
        let body = move |first: Duration, parking: &Yielder<Duration>| {
            minimize(&sink, &minimizing, &entry, first, parking)
        };
        Ok(Minimization {
            id,
            spent: Duration::ZERO,
            credit: if new { CREDIT } else { Duration::ZERO },
            coroutine: Coroutine::new(body)?,
        })
    }
}

/// Minimizes the entry `id` on the thread of a coroutine, and uses `parking` to suspend the thread
/// whenever a time slice is over. `first`: length of the first slice. Returns how the minimization
/// has ended.
fn minimize<D: CrashSink>(
    sink: &Mutex<D>,
    minimizing: &Minimizing,
    id: &EntryId,
    first: Duration,
    parking: &Yielder<Duration>,
) -> ThreadResult {
    let stop = AtomicBool::new(false);
    let suspended = AtomicU64::new(0);
    let mut until = Instant::now() + first;
    let on_line = |_: &_| {
        let now = Instant::now();
        if now < until || stop.load(Ordering::Relaxed) {
            return;
        }
        match parking.park() {
            Some(slice) => {
                let resumed = Instant::now();
                let still = resumed.duration_since(now).as_micros();
                let still = u64::try_from(still).unwrap_or(u64::MAX);
                suspended.fetch_add(still, Ordering::Relaxed);
                until = resumed + slice;
            }
            None => stop.store(true, Ordering::Relaxed),
        }
    };
    let options = Options {
        callback_us: Some(&suspended),
        on_line: Box::new(on_line),
        ..minimizing.options(&stop)
    };
    let finished = minimize_with(sink, minimizing, id, options)?;
    Ok(finished
        .map(|Finished { minimized, .. }| (minimized.size_before, minimized.text.len() as u64)))
}

/// The result of resuming a coroutine: parked, returned, or panicked.
#[derive(Debug, PartialEq, Eq)]
enum Slice<T> {
    /// The coroutine has parked (suspended itself), and can be resumed.
    Parked,
    /// The coroutine has returned this value, and has ended.
    Done(T),
    /// The coroutine has panicked, and the panic was printed on stderr.
    Broken,
}

enum Event<T> {
    Parked,
    Done(T),
}

/// A coroutine: a computation on a separate thread that runs only while
/// [`resume`](Coroutine::resume) waits for it, until it parks or returns. Dropping the coroutine
/// ends the thread, after the thread has dropped its values.
struct Coroutine<O, T> {
    /// Sends the argument of each resumption to the coroutine's thread; `None` after the coroutine
    /// has ended.
    resumes: Option<Sender<O>>,
    events: Receiver<Event<T>>,
    thread: Option<JoinHandle<()>>,
}

/// The handle by which the body of a coroutine parks (suspends itself) until it is resumed.
struct Yielder<O> {
    resumes: Receiver<O>,
    /// Tells the owner of the coroutine that the coroutine parks; returns false if the coroutine is
    /// being dropped.
    park: Box<dyn Fn() -> bool + Send>,
}

impl<O> Yielder<O> {
    /// Pauses the coroutine until it is resumed, and returns the argument of the resumption; `None`
    /// if the coroutine is being dropped and must return.
    fn park(&self) -> Option<O> {
        if !(self.park)() {
            return None;
        }
        self.resumes.recv().ok()
    }
}

impl<O: Send + 'static, T: Send + 'static> Coroutine<O, T> {
    /// Creates a coroutine that calls `body` on a new thread at its first resumption. `body` must
    /// return when parking returns `None`. If the coroutine is dropped before its first resumption,
    /// `body` is never called.
    fn new(body: impl FnOnce(O, &Yielder<O>) -> T + Send + 'static) -> io::Result<Coroutine<O, T>> {
        let (resume, resumes) = bounded::<O>(1);
        let (event, events) = bounded::<Event<T>>(1);
        let parked = event.clone();
        let parking = Yielder {
            resumes,
            park: Box::new(move || parked.send(Event::Parked).is_ok()),
        };
        let thread = Builder::new().name("ddmin".to_owned()).spawn(move || {
            if let Ok(first) = parking.resumes.recv() {
                let done = body(first, &parking);
                // The receiver is gone where the owner has dropped it.
                let _ = event.send(Event::Done(done));
            }
        })?;
        Ok(Coroutine {
            resumes: Some(resume),
            events,
            thread: Some(thread),
        })
    }

    /// Passes `argument` to the coroutine, lets it run, and waits until it parks, returns or
    /// panics. After its end the result is always [`Slice::Broken`].
    fn resume(&mut self, argument: O) -> Slice<T> {
        let Some(resumes) = &self.resumes else {
            return Slice::Broken;
        };
        let event = resumes
            .send(argument)
            .ok()
            .and_then(|()| self.events.recv().ok());
        match event {
            Some(Event::Parked) => return Slice::Parked,
            Some(Event::Done(done)) => {
                self.end();
                return Slice::Done(done);
            }
            None => {}
        }
        self.end();
        Slice::Broken
    }
}

impl<O, T> Coroutine<O, T> {
    fn end(&mut self) {
        self.resumes = None;
        if let Some(thread) = self.thread.take() {
            // The body may park once more before it returns.
            while self.events.recv().is_ok() {}
            let _ = thread.join();
        }
    }
}

impl<O, T> Drop for Coroutine<O, T> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_runs_only_while_it_is_waited_for() {
        let steps = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&steps);
        let mut coroutine = Coroutine::new(move |first: u32, parking| {
            let mut sum = first;
            while let Some(more) = parking.park() {
                theirs.fetch_add(1, Ordering::SeqCst);
                sum += more;
                if sum > 10 {
                    return Some(sum);
                }
            }
            None
        })
        .unwrap();
        assert_eq!(coroutine.resume(1), Slice::Parked);
        assert_eq!(steps.load(Ordering::SeqCst), 0);
        assert_eq!(coroutine.resume(4), Slice::Parked);
        assert_eq!(steps.load(Ordering::SeqCst), 1);
        assert_eq!(coroutine.resume(6), Slice::Done(Some(11)));
        assert_eq!(coroutine.resume(6), Slice::Broken);
    }

    /// A value for tests that counts how many such values were dropped.
    struct DropCounter(Arc<AtomicU32>);

    impl Drop for DropCounter {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn dropped_in_the_midst_it_ends_and_lets_go_of_what_it_holds() {
        let dropped = Arc::new(AtomicU32::new(0));
        let held = DropCounter(Arc::clone(&dropped));
        let mut coroutine = Coroutine::new(move |(), parking| {
            let held = held;
            // Parks again although the owner is dropping it.
            while parking.park().is_some() {}
            assert!(parking.park().is_none());
            drop(held);
        })
        .unwrap();
        assert_eq!(coroutine.resume(()), Slice::Parked);
        drop(coroutine);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn dropped_before_its_beginning_it_does_nothing() {
        let dropped = Arc::new(AtomicU32::new(0));
        let held = DropCounter(Arc::clone(&dropped));
        let coroutine = Coroutine::new(move |(), _| {
            let _held = held;
            panic!("it was not to begin");
        })
        .unwrap();
        drop(coroutine);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_panic_is_no_end_of_the_owner() {
        let mut coroutine: Coroutine<(), ()> =
            Coroutine::new(|(), _| std::panic::resume_unwind(Box::new(()))).unwrap();
        assert_eq!(coroutine.resume(()), Slice::Broken);
        assert_eq!(coroutine.resume(()), Slice::Broken);
    }
}
