//! Orders to minimize entries, carried out where they are given or by a worker of their own.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender};
use ddfuzz_store as store;

use super::desk::Shelf;
use super::disk_full::Fullness;
use super::error::CampaignError;
use super::ledger::lock;
use super::minimizing::{Minimizing, Variants};
use super::rebuild::{Rebuild, Watch};
use super::schedule::{MetInputs, pending};
use super::screen::{Progress, Screen};
use ddfuzz_minimize::{MinimizeError, Options};
use ddfuzz_store::report::GroupView;
use ddfuzz_store::{Entry, EntryId, Kind, KnownGroups, Reader, Store, StoreError};

/// Hangs are minimized after fuzzing for this fraction of its time: one of so many parts.
const HANGS: u32 = 5;
/// The least time for all of them.
const LEAST: Duration = Duration::from_secs(5);
/// With less time than that none is begun.
const ENOUGH: Duration = Duration::from_secs(1);

/// The reply of the minimizing worker about an entry: how long it took, and how it ended.
pub(crate) type MinimizerReply = (EntryId, Duration, Result<(), CampaignError>);

/// The minimizing worker: minimizes entries until the orders end.
pub(crate) fn minimize_orders(
    store: &Mutex<Store>,
    minimizing: &Minimizing,
    stop: &AtomicBool,
    orders: &Receiver<EntryId>,
    reply: &Sender<MinimizerReply>,
) {
    for id in orders {
        let since = Instant::now();
        let result = minimize_entry(store, minimizing, stop, &id, &mut || ());
        if reply.send((id, since.elapsed(), result)).is_err() {
            return;
        }
    }
}

/// Minimizes the groups of an output directory that are not minimized yet, or not by their smallest
/// inputs, one after the other; with `resume` also those whose budget had ended. Leaks stay as they
/// are, and what a study has found: that is minimized by the call that resumes it.
///
/// # Errors
/// When the target cannot be run, or something cannot be written; what was minimized until then is
/// kept, and the same call goes on.
pub fn minimize_left(
    store: &Mutex<Store>,
    minimizing: &Minimizing,
    known: &KnownGroups,
    resume: bool,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<(), CampaignError> {
    let rebuild = Rebuild {
        store,
        minimizing,
        jobs: minimizing.jobs,
        stop,
    };
    rebuild.begin(&Watch::of(&minimizing.target)?, screen)?;
    let reader = lock(store).reader().clone();
    let (began, mut taken, mut met) = (Instant::now(), HashSet::new(), MetInputs::default());
    let wanted = |major: &str| !reader.is_muted(Kind::Crash, major, known);
    let unfinished = match resume {
        true => unfinished(&reader, known)?,
        false => Vec::new(),
    };
    while !stop.load(Ordering::Relaxed) {
        let mut left = left_to_minimize(&reader, minimizing.variants, known)?;
        left.extend_from_slice(&unfinished);
        let left: Vec<EntryId> = left.into_iter().filter(|id| !taken.contains(id)).collect();
        let progress = |watched: &mut dyn Screen| {
            watched.progress(&Progress {
                time_ms: began.elapsed().as_millis() as u64,
                minimizing: left.len() as u64,
                ..Progress::default()
            });
        };
        progress(screen);
        let Some(id) = left.first() else {
            if met.file_next(store, minimizing, &wanted)? {
                continue;
            }
            return Ok(());
        };
        taken.insert(id.clone());
        let result = minimize_entry(store, minimizing, stop, id, &mut || progress(screen));
        if is_done(result, stop.load(Ordering::Relaxed))?
            && let Some(view) = GroupView::of(&reader, id)?
        {
            screen.minimized(&view);
        }
    }
    Ok(())
}

/// Entries whose minimization a budget has ended.
fn unfinished(reader: &Reader, known: &KnownGroups) -> Result<Vec<EntryId>, StoreError> {
    let mut unfinished = Vec::new();
    for kind in [Kind::Crash, Kind::Hang, Kind::Oom] {
        for group in reader.groups(kind)? {
            let major = group.record.major.short();
            if reader.is_muted(kind, &major, known) {
                continue;
            }
            let entries = reader.entries(kind, &major)?.into_iter();
            let is_unfinished = |entry: &Entry| {
                let ended = entry
                    .minimized
                    .as_ref()
                    .filter(|_| entry.crash.of.is_none());
                ended.is_some_and(store::Minimized::is_unfinished)
            };
            unfinished.extend(entries.filter(is_unfinished).map(|entry| entry.id));
        }
    }
    Ok(unfinished)
}

/// What [`minimize_left`] would minimize next, as far as it is known before.
///
/// # Errors
/// When the directory cannot be read.
pub fn left_to_minimize(
    reader: &Reader,
    variants: Variants,
    known: &KnownGroups,
) -> Result<Vec<EntryId>, StoreError> {
    let mut left = Vec::new();
    for id in pending(reader, variants, true)? {
        let entry = reader.entry(&id)?;
        let is_left = |entry: &Entry| entry.crash.of.is_none() && !entry.crash.class.is_leak();
        if entry.as_ref().is_some_and(is_left) && !reader.is_muted(id.kind(), id.major(), known) {
            left.push(id);
        }
    }
    Ok(left)
}

/// Minimizes one entry; one whose crash is not seen again stays as it is. `watch` is called
/// meanwhile, ten times a second at most.
pub(crate) fn minimize_entry<S: Shelf>(
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
        Err(CampaignError::Minimize(MinimizeError::NotFailing { tries, .. }))
            if !stop.load(Ordering::Relaxed) =>
        {
            minimizing.give_up(store, id, tries)
        }
        Err(error) => Err(error),
    }
}

/// Time that hangs and memory blow-ups have when the fuzzing is over, all of them together: each
/// run that fails takes all that it may.
pub(crate) struct HangBudget {
    /// `None`: as much as their budgets say.
    left: Option<Duration>,
}

impl HangBudget {
    /// The budget after so much fuzzing.
    pub(crate) fn after(fuzzed: Duration, minimizing: &Minimizing) -> HangBudget {
        let left = minimizing.hurried;
        HangBudget {
            left: left.then(|| (fuzzed / HANGS).max(LEAST)),
        }
    }

    /// How an entry is minimized; `None` where there is no time for it.
    pub(crate) fn of(&self, id: &EntryId, minimizing: &Minimizing) -> Option<Minimizing> {
        let budget_time = match self.left.filter(|_| HangBudget::is_for(id)) {
            Some(left) if left < ENOUGH => return None,
            Some(left) => Some(
                minimizing
                    .budget_time
                    .map_or(left, |budget| budget.min(left)),
            ),
            None => minimizing.budget_time,
        };
        Some(Minimizing {
            budget_time,
            ..minimizing.clone()
        })
    }

    /// Records the time that an entry took.
    pub(crate) fn spend(&mut self, id: &EntryId, taken: Duration) {
        if let Some(left) = self.left.as_mut().filter(|_| HangBudget::is_for(id)) {
            *left = left.saturating_sub(taken);
        }
    }

    fn is_for(id: &EntryId) -> bool {
        matches!(id.kind(), Kind::Hang | Kind::Oom)
    }
}

/// The note about hangs and memory blow-ups for which there is no time.
pub(crate) fn left_for_later(groups: usize) -> String {
    let (groups, are) = match groups {
        1 => ("1 hang".to_owned(), "is"),
        groups => (format!("{groups} hangs"), "are"),
    };
    format!(
        "{groups} {are} not minimized: that would take longer than a fifth of the fuzzing; \
         --budget-time gives each its own time, and --resume goes on"
    )
}

/// Whether a minimization has ended as one does; not where it was interrupted, nor where it failed
/// by what is no news once the user has `stopped`: a full disk, and what Ctrl-C did to the target.
pub(crate) fn is_done(
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
pub(crate) fn is_of_target(error: &CampaignError) -> bool {
    matches!(
        error,
        CampaignError::Exec(_)
            | CampaignError::Minimize(MinimizeError::Oracle(_) | MinimizeError::NotFailing { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddfuzz_exec::{Program, Target, Way};

    fn minimizing(hurried: bool) -> Minimizing {
        Minimizing {
            hurried,
            budget_time: Some(Duration::from_secs(60)),
            ..Minimizing::of_target(Target::new(Program::Path("/".into())), Way::Command, "full")
        }
    }

    fn entry(kind: Kind) -> EntryId {
        let (key, hash) = ("0".repeat(12), "0".repeat(16));
        EntryId::from_names(kind, &key, &key, &hash).expect("names of an entry")
    }

    fn budget(budget: &HangBudget, kind: Kind, minimizing: &Minimizing) -> Option<u64> {
        let how = budget.of(&entry(kind), minimizing)?;
        how.budget_time.map(|budget| budget.as_secs())
    }

    #[test]
    fn hangs_share_a_part_of_the_time_that_was_fuzzed() {
        let how = minimizing(true);
        let mut hangs = HangBudget::after(Duration::from_secs(100), &how);
        let id = entry(Kind::Hang);
        assert_eq!(budget(&hangs, Kind::Hang, &how), Some(20));
        assert_eq!(budget(&hangs, Kind::Crash, &how), Some(60));
        hangs.spend(&id, Duration::from_secs(12));
        assert_eq!(budget(&hangs, Kind::Oom, &how), Some(8));
        hangs.spend(&id, Duration::from_millis(7_500));
        assert_eq!(budget(&hangs, Kind::Hang, &how), None);
        assert_eq!(budget(&hangs, Kind::Crash, &how), Some(60));
        let short = HangBudget::after(Duration::from_secs(2), &how);
        assert_eq!(budget(&short, Kind::Hang, &how), Some(5));
        let patient = minimizing(false);
        let hangs = HangBudget::after(Duration::from_secs(2), &patient);
        assert_eq!(budget(&hangs, Kind::Hang, &patient), Some(60));
    }
}
