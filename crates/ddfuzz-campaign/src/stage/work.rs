//! The minimizations of one stage: each runs in slices, on a thread used as a coroutine.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, bounded};

use super::account::{Account, CREDIT};
use crate::campaign_state::lock;
use crate::crash_sink::CrashSink;
use crate::error::CampaignError;
use crate::minimizing::{Finished, Minimizing};
use ddfuzz_minimize::{MinimizeError, Options};
use ddfuzz_store::{EntryId, Kind};

/// At most this many are begun at a time, for each has its own processes. More than one, so that
/// a hard group does not keep easy ones waiting.
const MOST: usize = 4;
/// Between two questions for work where there was none.
const ASKED_EVERY: Duration = Duration::from_millis(50);
/// The same where only groups wait that were given back.
const ASKED_AGAIN: Duration = Duration::from_secs(5);
/// What failed (the target is being rebuilt, the disk is full) is tried again after this time.
const FAILED_FOR: Duration = Duration::from_secs(10);

/// The works of one stage.
pub(super) struct Minimizations<D: CrashSink + 'static> {
    desk: Arc<Mutex<D>>,
    minimizations: Vec<Minimization>,
    /// Those that have had their credit in this process.
    credited: HashSet<EntryId>,
    /// The desk had nothing when it was last asked.
    in_vain: bool,
    /// Nothing is asked for until then; in time since the beginning.
    asks_from: Duration,
    /// Nothing is begun or continued until then.
    rests_until: Duration,
}

impl<D: CrashSink + 'static> Minimizations<D> {
    pub(super) fn new(desk: Arc<Mutex<D>>) -> Minimizations<D> {
        Minimizations {
            desk,
            minimizations: Vec::new(),
            credited: HashSet::new(),
            in_vain: false,
            asks_from: Duration::ZERO,
            rests_until: Duration::ZERO,
        }
    }

    /// A group was handed in: it is asked for at once.
    pub(super) fn expect(&mut self) {
        self.asks_from = Duration::ZERO;
        self.in_vain = false;
    }

    /// Whether there is nothing to work on, as far as the desk was asked.
    pub(super) fn is_idle(&self) -> bool {
        self.minimizations.is_empty() && self.in_vain
    }

    /// Whether no group is begun.
    pub(super) fn is_empty(&self) -> bool {
        self.minimizations.is_empty()
    }

    /// Whether something failed just now.
    pub(super) fn is_resting(&self, now: Duration) -> bool {
        now < self.rests_until
    }

    /// Works for one slice, if the account allows one; gives how a group ended, if one did. `now`:
    /// the time since the beginning.
    pub(super) fn go_on(
        &mut self,
        now: Duration,
        account: &mut Account,
        minimizing: &Minimizing,
    ) -> Result<Option<MinimizationEnd>, CampaignError> {
        if self.is_resting(now) {
            return Ok(None);
        }
        let began = Instant::now();
        let done = self.slice(now, account, minimizing);
        if done.is_err() {
            self.rests_until = now + began.elapsed() + FAILED_FOR;
        }
        done
    }

    fn slice(
        &mut self,
        now: Duration,
        account: &mut Account,
        minimizing: &Minimizing,
    ) -> Result<Option<MinimizationEnd>, CampaignError> {
        let young = |work: &Minimization| !work.credit.is_zero();
        if now >= self.asks_from
            && !self.minimizations.iter().any(young)
            && account.slice(CREDIT).is_some()
        {
            self.claim(now, minimizing)?;
        }
        // A new group first, a hang last; else the one that had the least.
        let order =
            |work: &&mut Minimization| (is_slow(&work.id), work.credit.is_zero(), work.spent);
        let Some(work) = self.minimizations.iter_mut().min_by_key(order) else {
            return Ok(None);
        };
        let hangs = is_slow(&work.id);
        let slice = match hangs {
            true => account.slice_for_hangs(),
            false => account.slice(work.credit),
        };
        let Some(slice) = slice else {
            return Ok(None);
        };
        let began = Instant::now();
        let outcome = work.go_on(slice);
        let taken = began.elapsed();
        work.spend(taken);
        match hangs {
            true => account.spend_on_hangs(taken),
            false => account.spend(taken),
        }
        let id = work.id.clone();
        let Some(outcome) = outcome else {
            return Ok(None);
        };
        self.release(&id, outcome.is_ok())?;
        // It may have slipped into other groups.
        self.expect();
        outcome.map(Some)
    }

    /// Takes over one more group. Where there are enough already, only for one that is new here,
    /// in place of the one that had the most.
    fn claim(&mut self, now: Duration, minimizing: &Minimizing) -> Result<(), CampaignError> {
        self.asks_from = now + ASKED_EVERY;
        let claimed = lock(&self.desk).claim()?;
        self.in_vain = claimed.is_none();
        let Some(id) = claimed else {
            return Ok(());
        };
        let new = !self.credited.contains(&id);
        if self.minimizations.len() >= MOST {
            if !new {
                self.asks_from = now + ASKED_AGAIN;
                return Ok(lock(&self.desk).release(&id, false, Duration::ZERO)?);
            }
            let most = self.minimizations.iter().max_by_key(|work| work.spent);
            if let Some(most) = most.map(|work| work.id.clone()) {
                self.release(&most, false)?;
            }
        }
        // The runs of a hang would use up a credit for nothing.
        let credited = new && !is_slow(&id);
        let work = Minimization::new(
            id.clone(),
            credited,
            Arc::clone(&self.desk),
            minimizing.clone(),
        );
        match work {
            Ok(work) => {
                self.credited.insert(id);
                self.minimizations.push(work);
                Ok(())
            }
            Err(source) => {
                lock(&self.desk).release(&id, false, Duration::ZERO)?;
                Err(CampaignError::NoThread { source })
            }
        }
    }

    /// Ends the work on a group, and gives it back.
    fn release(&mut self, id: &EntryId, ended: bool) -> Result<(), CampaignError> {
        let Some(at) = self.minimizations.iter().position(|work| work.id == *id) else {
            return Ok(());
        };
        let work = self.minimizations.swap_remove(at);
        let spent = work.spent;
        // First: dropping it may still write.
        drop(work);
        Ok(lock(&self.desk).release(id, ended, spent)?)
    }
}

/// Whether each run that fails takes all the time, or memory, that it may.
fn is_slow(id: &EntryId) -> bool {
    matches!(id.kind(), Kind::Hang | Kind::Oom)
}

impl<D: CrashSink + 'static> Drop for Minimizations<D> {
    fn drop(&mut self) {
        while let Some(work) = self.minimizations.first() {
            let id = work.id.clone();
            let _ = self.release(&id, false);
        }
    }
}

/// How the minimization of a group ended.
pub(super) type Outcome = Result<MinimizationEnd, CampaignError>;

/// An end without an error.
pub(super) enum MinimizationEnd {
    /// It has a result.
    Minimized(Box<Finished>),
    /// Its crash was not seen again: what was found stands as it is.
    GivenUp,
}

impl MinimizationEnd {
    /// Sizes before and after, in bytes, where it was minimized.
    pub(super) fn sizes(&self) -> Option<(u64, u64)> {
        match self {
            MinimizationEnd::Minimized(finished) => {
                let minimized = &finished.minimized;
                Some((minimized.size_before, minimized.text.len() as u64))
            }
            MinimizationEnd::GivenUp => None,
        }
    }
}

/// A group that is being minimized. It is paused except while [`Minimization::go_on`] waits for it,
/// and then parks after the first line of its log with which the slice is over: between its lines
/// nothing is half done. Its targets are its own; they die with it.
pub(super) struct Minimization {
    pub(super) id: EntryId,
    /// Time that it took, of this claim.
    pub(super) spent: Duration,
    /// Time that it may take at once.
    pub(super) credit: Duration,
    coroutine: Coroutine<Duration, Outcome>,
}

impl Minimization {
    /// The work on a claimed entry, which begins with its first slice.
    pub(super) fn new<D: CrashSink + 'static>(
        id: EntryId,
        new: bool,
        desk: Arc<Mutex<D>>,
        minimizing: Minimizing,
    ) -> std::io::Result<Minimization> {
        let entry = id.clone();
        let body = move |first: Duration, parking: &Yielder<Duration>| {
            minimize(&desk, &minimizing, &entry, first, parking)
        };
        Ok(Minimization {
            id,
            spent: Duration::ZERO,
            credit: if new { CREDIT } else { Duration::ZERO },
            coroutine: Coroutine::new(body)?,
        })
    }

    /// Goes on for about `slice`: one test may last longer. Gives how it ended, if it did.
    pub(super) fn go_on(&mut self, slice: Duration) -> Option<Outcome> {
        match self.coroutine.resume(slice) {
            Slice::Parked => None,
            Slice::Done(outcome) => Some(outcome),
            Slice::Broken => Some(Err(CampaignError::Broken)),
        }
    }

    /// It took so long.
    pub(super) fn spend(&mut self, taken: Duration) {
        self.spent += taken;
        self.credit = self.credit.saturating_sub(taken);
    }
}

fn minimize<D: CrashSink>(
    desk: &Mutex<D>,
    minimizing: &Minimizing,
    id: &EntryId,
    first: Duration,
    parking: &Yielder<Duration>,
) -> Outcome {
    let stop = AtomicBool::new(false);
    let stood_still = AtomicU64::new(0);
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
                stood_still.fetch_add(still, Ordering::Relaxed);
                until = resumed + slice;
            }
            None => stop.store(true, Ordering::Relaxed),
        }
    };
    let options = Options {
        stood_still: Some(&stood_still),
        on_line: Box::new(on_line),
        ..minimizing.options(&stop)
    };
    match minimizing.entry_with(desk, id, options) {
        Ok(finished) => Ok(MinimizationEnd::Minimized(Box::new(finished))),
        Err(CampaignError::Minimize(MinimizeError::NotFailing { tries, .. }))
            if !stop.load(Ordering::Relaxed) =>
        {
            minimizing.give_up(desk, id, tries)?;
            Ok(MinimizationEnd::GivenUp)
        }
        Err(error) => Err(error),
    }
}

/// The result of a slice.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slice<T> {
    /// It has parked, and can be resumed.
    Parked,
    /// It is complete.
    Done(T),
    /// It has panicked, and the panic is on stderr.
    Broken,
}

enum Message<T> {
    Parked,
    Done(T),
}

/// A computation that is handed the processor by [`resume`](Coroutine::resume), and hands it back
/// by parking. Strictly one of both runs at a time. Dropping it ends the thread: whatever it holds
/// is dropped there before.
pub(super) struct Coroutine<O, T> {
    /// `None` after its end.
    orders: Option<Sender<O>>,
    words: Receiver<Message<T>>,
    thread: Option<JoinHandle<()>>,
}

/// By what a coroutine parks.
pub(super) struct Yielder<O> {
    orders: Receiver<O>,
    /// Whether it is there to be told is what the owner drops first.
    park: Box<dyn Fn() -> bool + Send>,
}

impl<O> Yielder<O> {
    /// Hands the processor back until it is resumed, with what the owner says then; `None`: never
    /// again, the coroutine has to come to its end.
    pub(super) fn park(&self) -> Option<O> {
        if !(self.park)() {
            return None;
        }
        self.orders.recv().ok()
    }
}

impl<O: Send + 'static, T: Send + 'static> Coroutine<O, T> {
    /// A coroutine that begins `body` when it is first resumed. `body` has to come to its end
    /// where parking gives `None`; one that is dropped before it began is not begun.
    pub(super) fn new(
        body: impl FnOnce(O, &Yielder<O>) -> T + Send + 'static,
    ) -> io::Result<Coroutine<O, T>> {
        let (order, orders) = bounded::<O>(1);
        let (word, words) = bounded::<Message<T>>(1);
        let parked = word.clone();
        let parking = Yielder {
            orders,
            park: Box::new(move || parked.send(Message::Parked).is_ok()),
        };
        let thread = Builder::new().name("ddmin".to_owned()).spawn(move || {
            if let Ok(first) = parking.orders.recv() {
                let done = body(first, &parking);
                // The receiver is gone where the owner has dropped it.
                let _ = word.send(Message::Done(done));
            }
        })?;
        Ok(Coroutine {
            orders: Some(order),
            words,
            thread: Some(thread),
        })
    }

    /// Lets it run until it parks or ends, and waits for that.
    pub(super) fn resume(&mut self, order: O) -> Slice<T> {
        let Some(orders) = &self.orders else {
            return Slice::Broken;
        };
        let said = orders
            .send(order)
            .ok()
            .and_then(|()| self.words.recv().ok());
        match said {
            Some(Message::Parked) => return Slice::Parked,
            Some(Message::Done(done)) => {
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
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It may want to park once more before it ends.
            while self.words.recv().is_ok() {}
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

    /// Counts that it was dropped.
    struct Held(Arc<AtomicU32>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn dropped_in_the_midst_it_ends_and_lets_go_of_what_it_holds() {
        let dropped = Arc::new(AtomicU32::new(0));
        let held = Held(Arc::clone(&dropped));
        let mut coroutine = Coroutine::new(move |(), parking| {
            let held = held;
            // Parks again although it was told to end.
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
        let held = Held(Arc::clone(&dropped));
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
