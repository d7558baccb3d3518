//! All contents of a corpus, before they are run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::again::{Inputs, Order, run_in_order};
use super::contents::{Contents, read_entry};
use super::error::MeasureError;
use super::held::Held;
use super::journal_of;
use super::ledger::{Ledger, Ran};
use super::progress::Progress;
use super::reading::NotRead;
use super::runner::{Runners, Suspicion};
use super::settings::Settings;
use super::side_by_side::side_by_side;
use super::spool::Spool;
use super::table::Entry;
use super::worker::{Shared, Worker};
use crate::journal::{self, Journal, JournalIdentity, Place};
use crate::listing::Listing;
use crate::lock::lock;
use ddfuzz_exec::Freshness;
use ddfuzz_model::files::FileError;

/// The contents of a corpus, each once, and a target to run them.
pub struct Gathered {
    ledger: Ledger,
    out: PathBuf,
    places: Option<usize>,
    freshness: Freshness,
}

/// Lists, reads and hashes the inputs at `roots`, which are only read. Nothing is written to the
/// output directory `out`, which is there and locked by the caller. `progress` is told ten times a
/// second how far that is.
///
/// # Errors
/// When a root cannot be listed, or the target not be started. What cannot be read below the roots
/// is in the tally of the [`Contents`].
pub fn gather(
    roots: &[PathBuf],
    out: &Path,
    settings: &Settings<'_>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Gathered, MeasureError> {
    let listing = Listing::new(roots, Some(out))?;
    let suspicion = Suspicion::of(settings)?;
    let runner = Runners::take(settings, suspicion)?;
    let (places, freshness) = (runner.places(), runner.freshness());
    Runners::give_back(settings, runner);
    let spool = Spool::create(out).map_err(FileError::at("make a file in", out))?;
    let shared = Shared {
        settings,
        listing: Mutex::new(listing),
        ledger: Mutex::new(Ledger::new(spool)),
        failed: AtomicBool::new(false),
    };
    let worker = || Worker::new(&shared).work();
    side_by_side(settings.jobs, &shared.failed, &worker, &mut || {
        let now = lock(&shared.ledger).progress;
        progress(&now);
    })?;
    let listing = shared.listing.into_inner();
    let ledger = shared.ledger.into_inner();
    let mut ledger = ledger.unwrap_or_else(PoisonError::into_inner);
    let listing = listing.unwrap_or_else(PoisonError::into_inner);
    ledger.tally.listing = listing.into_report();
    Ok(Gathered {
        ledger,
        out: out.to_owned(),
        places,
        freshness,
    })
}

impl Gathered {
    /// How many contents there are.
    pub fn len(&self) -> usize {
        self.ledger.table.entries().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs each content once, as far as the journal in the output directory does not know what it
    /// does.
    ///
    /// # Errors
    /// When the target cannot be run, or the journal cannot be read or written.
    pub fn run(
        self,
        settings: &Settings<'_>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Contents, MeasureError> {
        let mut ledger = self.ledger;
        let (places, freshness) = (self.places, self.freshness);
        let identity = JournalIdentity::of(settings.target, settings.way, places)?;
        let mut repeats = HashMap::new();
        let path = self.out.join(journal_of(settings.freshness));
        let table = &mut ledger.table;
        let (mut journal, opened) = Journal::open(&path, &identity, &mut |place, head| {
            if head.round > 0 {
                repeats.insert((head.content, head.round), place);
            } else if let Some(number) = table.find(&head.content) {
                table.get_mut(number).set_record(place, head.suspicious);
            }
        })?;
        ledger.count_known();
        let ran = run_unknown(settings, &ledger, &mut journal, progress)?;
        journal.sync()?;
        ledger.take(ran);
        let Ledger {
            table,
            spool,
            tally,
            progress,
            ..
        } = ledger;
        let mut entries = table.into_entries();
        entries.retain(|entry| entry.path().is_some() && entry.record().is_some());
        entries.sort_unstable_by_key(|entry| entry.content);
        Ok(Contents {
            entries,
            journal,
            spool,
            repeats,
            tally,
            progress,
            opened,
            places,
            freshness,
            interrupted: settings.stopped(),
        })
    }
}

/// Runs the contents without a record, and those that share a process with them: in the order of
/// results, so that what a content reaches does not depend on the order of a directory.
fn run_unknown(
    settings: &Settings<'_>,
    ledger: &Ledger,
    journal: &mut Journal,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Ran, MeasureError> {
    let entries = ledger.table.entries();
    let mut numbers: Vec<usize> = (0..entries.len()).collect();
    numbers.sort_unstable_by_key(|number| entries[*number].content);
    let is_unknown = |at: usize| entries[numbers[at]].record().is_none();
    let inputs = Unrun::of(ledger, entries, &numbers);
    let now = Mutex::new(ledger.progress);
    let (mut ran, mut records, mut parts) = (Ran::default(), Vec::new(), Vec::new());
    let order = Order::of((0..numbers.len() as u32).collect(), &is_unknown);
    let each = &mut |told: Vec<(usize, Result<journal::Seen, NotRead>)>| {
        for (at, seen) in told.into_iter().filter(|(at, _)| is_unknown(*at)) {
            let number = numbers[at];
            let seen = match seen {
                Ok(seen) => seen,
                Err(why) => {
                    ran.lost.push((number, why));
                    continue;
                }
            };
            let from = records.len();
            journal::encode(&mut records, &entries[number].content, 0, &seen);
            parts.push((number, from, records.len() - from, seen.suspicious));
        }
        let start = journal.append(&records)?;
        let mut now = lock(&now);
        for (number, from, length, suspicious) in parts.drain(..) {
            let place = Place {
                at: start + from as u64,
                length: length as u32,
            };
            now.runs += 1;
            now.suspicious += u64::from(suspicious);
            ran.records.push((number, place, suspicious));
        }
        records.clear();
        Ok(())
    };
    run_in_order(settings, &inputs, order, each, &mut || {
        let now = *lock(&now);
        progress(&now);
    })?;
    Ok(ran)
}

/// Contents that are to be run.
struct Unrun<'a> {
    entries: &'a [Entry],
    spool: &'a Spool,
    held: &'a Held,
    numbers: &'a [usize],
}

impl Unrun<'_> {
    fn of<'a>(ledger: &'a Ledger, entries: &'a [Entry], numbers: &'a [usize]) -> Unrun<'a> {
        Unrun {
            entries,
            spool: &ledger.spool,
            held: &ledger.held,
            numbers,
        }
    }
}

impl Inputs for Unrun<'_> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
        let number = self.numbers[number];
        match self.held.get(number) {
            Some(held) => {
                bytes.clear();
                bytes.extend_from_slice(held);
                Ok(())
            }
            None => read_entry(&self.entries[number], self.spool, bytes),
        }
    }
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let contents = self.len();
        f.debug_struct("Gathered")
            .field("out", &self.out)
            .field("contents", &contents)
            .finish_non_exhaustive()
    }
}
