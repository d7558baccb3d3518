//! Orders to minimize entries, carried out where they are given or by a worker of their own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender};

use super::error::CampaignError;
use super::minimizing::Minimizing;
use super::room::Fullness;
use super::shelf::Shelf;
use crate::minimize::{MinimizeError, Options};
use crate::store::{EntryId, Store};

/// What the minimizing worker says of an entry: how long it took, and how it ended.
pub(in crate::campaign) type Word = (EntryId, Duration, Result<(), CampaignError>);

/// The minimizing worker: does as it is told until the orders end.
pub(in crate::campaign) fn minimize_orders(
    store: &Mutex<Store>,
    minimizing: &Minimizing,
    stop: &AtomicBool,
    orders: &Receiver<EntryId>,
    word: &Sender<Word>,
) {
    for id in orders {
        let since = Instant::now();
        let result = minimize_entry(store, minimizing, stop, &id, &mut || ());
        if word.send((id, since.elapsed(), result)).is_err() {
            return;
        }
    }
}

/// Minimizes one entry; one whose crash is not seen again stays as it is. `watch` is called
/// meanwhile, ten times a second at most.
pub(in crate::campaign) fn minimize_entry<S: Shelf>(
    store: &Mutex<S>,
    minimizing: &Minimizing,
    stop: &AtomicBool,
    id: &EntryId,
    watch: &mut dyn FnMut(),
) -> Result<(), CampaignError> {
    let options = Options {
        on_standing: Some(Box::new(|_| watch())),
        ..minimizing.options(stop)
    };
    match minimizing.entry_with(store, id, options) {
        Ok(_) => Ok(()),
        Err(CampaignError::Minimize(MinimizeError::NotFailing { .. }))
            if !stop.load(Ordering::Relaxed) =>
        {
            minimizing.give_up(store, id)
        }
        Err(error) => Err(error),
    }
}

/// Whether a minimization has ended as one does; not where it was interrupted, nor where it failed
/// by what is no news once the user has `stopped`: a full disk, and what Ctrl-C did to the target.
pub(in crate::campaign) fn is_done(
    result: Result<(), CampaignError>,
    stopped: bool,
) -> Result<bool, CampaignError> {
    match result {
        Ok(()) => Ok(true),
        Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => Ok(false),
        Err(error) if stopped && (error.full_at().is_some() || is_of_target(&error)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether this is about the target, which the user's Ctrl-C may have reached as well.
pub(in crate::campaign) fn is_of_target(error: &CampaignError) -> bool {
    matches!(
        error,
        CampaignError::Exec(_)
            | CampaignError::Minimize(MinimizeError::Oracle(_) | MinimizeError::NotFailing { .. })
    )
}
