//! Orders to minimize entries, carried out where they are given or by a worker of their own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam::channel::{Receiver, Sender};

use crate::campaign::error::CampaignError;
use crate::campaign::settings::Settings;
use crate::minimize::MinimizeError;
use crate::store::{EntryId, Store};

/// What the minimizing worker says of an entry.
pub(super) type Word = (EntryId, Result<(), CampaignError>);

/// The minimizing worker: does as it is told until the orders end.
pub(super) fn minimize_orders(
    store: &Mutex<Store>,
    settings: &Settings,
    stop: &AtomicBool,
    orders: &Receiver<EntryId>,
    word: &Sender<Word>,
) {
    for id in orders {
        let result = minimize_entry(store, settings, stop, &id);
        if word.send((id, result)).is_err() {
            return;
        }
    }
}

/// Minimizes one entry; one whose crash is not seen again stays as it is.
pub(super) fn minimize_entry(
    store: &Mutex<Store>,
    settings: &Settings,
    stop: &AtomicBool,
    id: &EntryId,
) -> Result<(), CampaignError> {
    match settings.minimizing.entry(store, id, stop) {
        Ok(_) => Ok(()),
        Err(CampaignError::Minimize(MinimizeError::NotFailing { .. }))
            if !stop.load(Ordering::Relaxed) =>
        {
            settings.minimizing.give_up(store, id)
        }
        Err(error) => Err(error),
    }
}

/// Whether this is about the target, which the user's Ctrl-C may have reached as well.
pub(super) fn is_of_target(error: &CampaignError) -> bool {
    matches!(
        error,
        CampaignError::Exec(_)
            | CampaignError::Minimize(MinimizeError::Oracle(_) | MinimizeError::NotFailing { .. })
    )
}
