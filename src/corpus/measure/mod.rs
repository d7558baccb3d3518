//! What each content of a corpus does: files are listed, read and hashed, and each content that
//! the journal does not know is run once.
//!
//! [`measure`] gives [`Contents`], in the order of results. [`Contents::repeat`] and
//! [`run_again`] run some of them once more.
//!
//! Localized here: `tempfile` (the file of paths, `spool.rs`).

mod again;
mod contents;
mod error;
mod ledger;
mod patience;
mod progress;
mod reading;
mod repeat;
mod runner;
mod settings;
mod spool;
mod table;
mod tally;
mod worker;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use self::ledger::{Ledger, lock};
use self::runner::{Runner, Suspicion};
use self::spool::Spool;
use self::table::Table;
use self::worker::{Shared, Worker};
use super::journal::{Journal, JournalIdentity};
use super::listing::Listing;
use crate::exec::Freshness;
use crate::files::FileError;

pub use again::{Each, Files, Inputs, run_again};
pub use contents::Contents;
pub use error::MeasureError;
pub use progress::Progress;
pub use reading::{NotRead, read as read_input};
pub use repeat::Repeated;
pub use settings::Settings;
pub use tally::Tally;

/// The name of the journal in an output directory.
pub const JOURNAL: &str = "clean.journal";
/// The same for runs in processes of their own, where the way lets others share one.
pub const JOURNAL_OF_FRESH: &str = "clean.fresh.journal";

/// Between two looks at how far the workers are.
const LOOK: Duration = Duration::from_millis(100);

/// Runs each content of the inputs at `roots` once, as far as the journal in the output directory
/// `out`, which is there and locked by the caller, does not know what it does. The inputs are only
/// read. `progress` is told ten times a second how far that is.
///
/// # Errors
/// When a root cannot be listed, the target cannot be run, or the journal cannot be written. What
/// cannot be read below the roots is in the [`Tally`].
pub fn measure(
    roots: &[PathBuf],
    out: &Path,
    settings: &Settings<'_>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Contents, MeasureError> {
    let listing = Listing::new(roots, Some(out))?;
    let suspicion = Suspicion::of(settings)?;
    let first = Runner::start(settings, suspicion)?;
    let places = first.places();
    let identity = JournalIdentity::of(settings.target, settings.way, places)?;
    let (mut table, mut repeats) = (Table::default(), HashMap::new());
    let freshness = first.freshness();
    let name = match settings.freshness {
        Freshness::Shared => JOURNAL,
        Freshness::Fresh => JOURNAL_OF_FRESH,
    };
    let (journal, opened) = Journal::open(&out.join(name), &identity, &mut |place, head| {
        if head.round > 0 {
            repeats.insert((head.content, head.round), place);
            return;
        }
        let (number, _) = table.entry(&head.content);
        table.get_mut(number).set_record(place, head.suspicious);
    })?;
    let shared = Shared {
        settings,
        listing: Mutex::new(listing),
        ledger: Mutex::new(Ledger {
            table,
            journal,
            spool: Spool::create(out).map_err(FileError::at("make a file in", out))?,
            tally: Tally::default(),
            progress: Progress::default(),
        }),
        failed: AtomicBool::new(false),
    };
    work(&shared, first, suspicion, progress)?;
    let ledger = finish(shared)?;
    let mut entries = ledger.table.into_entries();
    entries.retain(|entry| entry.path().is_some() && entry.record().is_some());
    entries.sort_unstable_by_key(|entry| entry.content);
    Ok(Contents {
        entries,
        journal: ledger.journal,
        spool: ledger.spool,
        repeats,
        tally: ledger.tally,
        progress: ledger.progress,
        opened,
        places,
        freshness,
        interrupted: settings.stopped(),
    })
}

/// What the workers have written, through to the device, with what the listing has met.
fn finish(shared: Shared<'_>) -> Result<Ledger, FileError> {
    let ledger = shared.ledger.into_inner();
    let mut ledger = ledger.unwrap_or_else(PoisonError::into_inner);
    ledger.journal.sync()?;
    let listing = shared.listing.into_inner();
    let listing = listing.unwrap_or_else(PoisonError::into_inner);
    ledger.tally.listing = listing.into_report();
    Ok(ledger)
}

/// Has all workers work; the first of them has its target already.
fn work(
    shared: &Shared<'_>,
    first: Runner,
    suspicion: Suspicion,
    progress: &mut dyn FnMut(&Progress),
) -> Result<(), MeasureError> {
    let (sender, ends) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut first = Some(first);
        for _ in 0..shared.settings.jobs.max(1) {
            let (own, sender) = (first.take(), sender.clone());
            scope.spawn(move || {
                let runner = match own {
                    Some(runner) => Ok(runner),
                    None => Runner::start(shared.settings, suspicion),
                };
                let done = runner
                    .map_err(MeasureError::from)
                    .and_then(|runner| Worker::new(shared, runner).work());
                if done.is_err() {
                    shared.failed.store(true, Ordering::Relaxed);
                }
                // Whoever listens does so until all have ended.
                let _ = sender.send(done);
            });
        }
        drop(sender);
        let mut result = Ok(());
        loop {
            match ends.recv_timeout(LOOK) {
                Ok(done) => result = result.and(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = lock(&shared.ledger).progress;
            progress(&now);
        }
        result
    })
}
