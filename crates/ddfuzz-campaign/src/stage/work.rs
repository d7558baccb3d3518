//! The minimization of one group, in slices.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::account::CREDIT;
use super::coroutine::{Coroutine, Parking, Slice};
use crate::desk::Desk;
use crate::error::CampaignError;
use crate::minimizing::{Finished, Minimizing};
use ddfuzz_minimize::{MinimizeError, Options};
use ddfuzz_store::EntryId;

/// How the minimization of a group ended.
pub(super) type Outcome = Result<Ending, CampaignError>;

/// An end without an error.
pub(super) enum Ending {
    /// It has a result.
    Minimized(Box<Finished>),
    /// Its crash was not seen again: what was found stands as it is.
    GivenUp,
}

impl Ending {
    /// Sizes before and after, in bytes, where it was minimized.
    pub(super) fn sizes(&self) -> Option<(u64, u64)> {
        match self {
            Ending::Minimized(finished) => {
                let minimized = &finished.minimized;
                Some((minimized.size_before, minimized.text.len() as u64))
            }
            Ending::GivenUp => None,
        }
    }
}

/// A group that is being minimized. It stands still except while [`Work::go_on`] waits for it, and
/// then parks behind the first line of its log with which the slice is over: between its lines
/// nothing is half done. Its targets are its own; they die with it.
pub(super) struct Work {
    pub(super) id: EntryId,
    /// Time that it took, of this claim.
    pub(super) spent: Duration,
    /// Time that it may take at once.
    pub(super) credit: Duration,
    coroutine: Coroutine<Duration, Outcome>,
}

impl Work {
    /// The work on a claimed entry, which begins with its first slice.
    pub(super) fn new<D: Desk + 'static>(
        id: EntryId,
        new: bool,
        desk: Arc<Mutex<D>>,
        minimizing: Minimizing,
    ) -> std::io::Result<Work> {
        let entry = id.clone();
        let body = move |first: Duration, parking: &Parking<Duration>| {
            minimize(&desk, &minimizing, &entry, first, parking)
        };
        Ok(Work {
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

fn minimize<D: Desk>(
    desk: &Mutex<D>,
    minimizing: &Minimizing,
    id: &EntryId,
    first: Duration,
    parking: &Parking<Duration>,
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
        Ok(finished) => Ok(Ending::Minimized(Box::new(finished))),
        Err(CampaignError::Minimize(MinimizeError::NotFailing { tries, .. }))
            if !stop.load(Ordering::Relaxed) =>
        {
            minimizing.give_up(desk, id, tries)?;
            Ok(Ending::GivenUp)
        }
        Err(error) => Err(error),
    }
}
