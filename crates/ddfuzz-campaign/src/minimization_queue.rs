//! Minimizes entries one after the other: all pending ones of an output directory, those that a
//! campaign sends to its minimizing thread, and hangs within a time budget.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender};

use crate::{
    BuildCheck, CampaignError, DiskFullError, Finished, Minimizing, ProgramWatch, Progress, Screen,
    StoreWriter, Variants,
    failures_of_target::FailuresOfTarget,
    lock,
    minimization_order::{PendingEntry, SlippedInputs, is_slip, pending, pending_of_group, size},
};
use ddfuzz_exec::Target;
use ddfuzz_minimize::{MinimizeError, Options};
use ddfuzz_store as store;
use ddfuzz_store::report::GroupView;
use ddfuzz_store::report::size::counted;
use ddfuzz_store::{
    CampaignFile, Entry, EntryId, Group, Kind, KnownGroups, Reader, Store, StoreError,
};

/// After fuzzing, unless the user has set a time limit for each entry, all hangs and memory
/// blow-ups together are minimized for at most the time of the fuzzing divided by this number.
const HANG_DIVISOR: u32 = 5;
/// Least time for which all hangs and memory blow-ups together are minimized after fuzzing, unless
/// the user has set a time limit for each entry.
const MIN_TOTAL: Duration = Duration::from_secs(5);
/// Least remaining time of a time budget that several entries share. If less remains, no further
/// entry of the budget is minimized.
const MIN_ENTRY: Duration = Duration::from_secs(1);

/// Least time budget, after fuzzing, for minimizing all crashes together that were found only
/// during other minimizations. It does not apply if the user has set a time limit for each entry.
const MIN_SLIPPED: Duration = Duration::from_secs(60);

/// Why an entry that was found on another target is not minimized.
const FOREIGN: &str = "the crash does not reproduce with this program, on which it was not found";

/// The reply of the minimizing thread after each entry: the entry, how long its minimization took,
/// and `Ok` or the error that ended it.
pub(crate) type MinimizerReply = (EntryId, Duration, Result<(), CampaignError>);

/// Runs the minimizing thread of a campaign: minimizes each entry that it receives from `queue`,
/// and sends a reply after each entry, until the queue is closed.
pub(crate) fn run_minimizer(
    store: &Mutex<Store>,
    minimizing: &Minimizing,
    stop: &AtomicBool,
    queue: &Receiver<EntryId>,
    reply: &Sender<MinimizerReply>,
) {
    for id in queue {
        let since = Instant::now();
        let result = minimize_entry(store, minimizing, stop, &id, &mut || ());
        if reply.send((id, since.elapsed(), result)).is_err() {
            return;
        }
    }
}

/// Minimizes entries of an output directory one after the other, until none is left: entries of
/// groups without a minimized result, and inputs that may give a smaller result than their group
/// has; with `resume` also entries whose minimization was ended by its budget, or whose crash did
/// not occur with another build. First checks all groups if the program was rebuilt. Leaves out
/// failures that were found on another target, groups in `known` (muted), leaks, and crashes that a
/// study has found, which the call that resumes the study minimizes.
///
/// # Errors
/// When the target cannot be run, or a file cannot be written; earlier results are kept, and the
/// same call continues.
pub fn minimize_pending(
    store: &Mutex<Store>,
    minimizing: &Minimizing,
    known: &KnownGroups,
    resume: bool,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<(), CampaignError> {
    let rebuild = BuildCheck {
        store,
        minimizing,
        jobs: minimizing.jobs,
        stop,
    };
    let mut watch = ProgramWatch::of(&minimizing.target)?;
    rebuild.begin(&watch, screen)?;
    let reader = lock(store).reader().clone();
    let (began, mut taken, mut met) = (Instant::now(), HashSet::new(), SlippedInputs::default());
    let mut pending = PendingEntries::new(store, minimizing, known, resume)?;
    let wanted = |major: &str| !reader.is_muted(Kind::Crash, major, known);
    while !stop.load(Ordering::Relaxed) {
        if watch.is_another() && watch.settle(stop)? {
            rebuild.begin(&watch, screen)?;
            taken.clear();
        }
        let left = pending.except(&taken)?;
        let progress = |watched: &mut dyn Screen| {
            watched.progress(&Progress {
                time_ms: began.elapsed().as_millis() as u64,
                minimizing: left.len() as u64,
                ..Progress::default()
            });
        };
        progress(screen);
        let Some(id) = left.first() else {
            match met.file_next(store, minimizing, &wanted) {
                Ok(true) => continue,
                // The run that was to show the crash was abandoned.
                Err(error) if !(stop.load(Ordering::Relaxed) && is_of_target(&error)) => {
                    return Err(error);
                }
                Ok(false) | Err(_) => return Ok(()),
            }
        };
        taken.insert(id.clone());
        let options = Options {
            on_status: Some(Box::new(|_| progress(screen))),
            ..minimizing.options(stop)
        };
        let result = minimize_with(store, minimizing, id, options);
        let stopped = stop.load(Ordering::Relaxed);
        show_result(&reader, minimizing, (id, result), stopped, screen)?;
    }
    Ok(())
}

/// Tells the user how the minimization of the entry `id` has ended. In `result`, `None` stands for
/// a crash that did not happen again. `stopped`: whether the user has stopped the call of ddfuzz.
fn show_result(
    reader: &Reader,
    minimizing: &Minimizing,
    (id, result): (&EntryId, Result<Option<Finished>, CampaignError>),
    stopped: bool,
    screen: &mut dyn Screen,
) -> Result<(), CampaignError> {
    if let Ok(Some(Finished {
        note: Some(note), ..
    })) = &result
    {
        screen.note(note);
    }
    if matches!(result, Ok(None)) && is_foreign(reader, minimizing, id)? {
        screen.note(&format!("not minimized {}: {FOREIGN}", id.major()));
    } else if is_done(result.map(drop), stopped)?
        && let Some(view) = GroupView::of(reader, id)?
    {
        screen.minimized(&view);
    }
    Ok(())
}

/// Returns true if the entry `id` was found on another target than that of `minimizing`. Its crash
/// then does not count as flaky, even if runs of the target of `minimizing` do not show it.
fn is_foreign(reader: &Reader, minimizing: &Minimizing, id: &EntryId) -> Result<bool, StoreError> {
    let failures = FailuresOfTarget::of_target(reader, &minimizing.target)?;
    let entry = reader.entry(id)?;
    Ok(entry.is_some_and(|entry| !failures.can_refute(&entry)))
}

/// The entries of an output directory that are to be minimized. Groups are read again only when the
/// store has changed them, since a directory may have thousands.
struct PendingEntries<'a> {
    store: &'a Mutex<Store>,
    reader: Reader,
    minimizing: &'a Minimizing,
    known: &'a KnownGroups,
    resume: bool,
    failures: FailuresOfTarget,
    /// The store's count of changes of groups at the time when `groups` was read.
    seen: u64,
    /// The campaigns recorded in the output directory, from which `failures` was made.
    campaigns: CampaignFile,
    /// The entries to minimize of each group, by the group's kind and major key (12 hex digits);
    /// groups without entries to minimize are left out.
    groups: BTreeMap<(Kind, String), GroupWork>,
}

/// The entries of one group that are still to be minimized: those never minimized, in order, and
/// those whose minimization is unfinished.
#[derive(Default)]
struct GroupWork {
    /// The entries of the group that are to be minimized next, in order.
    pending: Vec<PendingEntry>,
    /// In a call that resumes minimizations: entries whose minimization was ended by its budget, or
    /// whose crash did not occur with another build. Empty in other calls.
    unfinished: Vec<EntryId>,
}

impl<'a> PendingEntries<'a> {
    fn new(
        store: &'a Mutex<Store>,
        minimizing: &'a Minimizing,
        known: &'a KnownGroups,
        resume: bool,
    ) -> Result<PendingEntries<'a>, StoreError> {
        let (reader, campaigns, seen) = {
            let store = lock(store);
            let (seen, _) = store.changed_since(0);
            (store.reader().clone(), store.campaigns().clone(), seen)
        };
        let mut all = PendingEntries {
            failures: FailuresOfTarget::of_target(&reader, &minimizing.target)?,
            store,
            reader,
            minimizing,
            known,
            resume,
            seen,
            campaigns,
            groups: BTreeMap::new(),
        };
        all.read_all()?;
        Ok(all)
    }

    fn read_all(&mut self) -> Result<(), StoreError> {
        self.groups.clear();
        for kind in [Kind::Crash, Kind::Hang, Kind::Oom] {
            for group in self.reader.groups(kind)? {
                self.read(&group)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, group: &Group) -> Result<(), StoreError> {
        let work = self.work_of(group)?;
        let name = (group.kind, group.record.major.short());
        match work.pending.is_empty() && work.unfinished.is_empty() {
            true => self.groups.remove(&name),
            false => self.groups.insert(name, work),
        };
        Ok(())
    }

    fn work_of(&self, group: &Group) -> Result<GroupWork, StoreError> {
        let (reader, failures) = (&self.reader, &self.failures);
        let mut pending =
            pending_of_group(reader, failures, self.minimizing.variants, true, group)?;
        let unfinished = match self.resume {
            true => unfinished(reader, failures, group)?,
            false => Vec::new(),
        };
        if pending.is_empty() && unfinished.is_empty() {
            return Ok(GroupWork::default());
        }
        if reader.is_muted(group.kind, &group.record.major.short(), self.known) {
            return Ok(GroupWork::default());
        }
        retain_minimizable(reader, &mut pending, |(.., id)| id)?;
        Ok(GroupWork {
            pending,
            unfinished,
        })
    }

    /// Reads the groups that have changed since the last call again. Returns the entries to
    /// minimize, except those in `taken`: the most urgent first, and last those whose unfinished
    /// minimization is resumed.
    fn except(&mut self, taken: &HashSet<EntryId>) -> Result<Vec<EntryId>, StoreError> {
        let (changed, campaigns) = {
            let store = lock(self.store);
            let is_same = *store.campaigns() == self.campaigns;
            let campaigns = (!is_same).then(|| store.campaigns().clone());
            let (seen, changed) = store.changed_since(self.seen);
            self.seen = seen;
            (changed, campaigns)
        };
        if let Some(campaigns) = campaigns {
            self.campaigns = campaigns;
            self.failures = FailuresOfTarget::of_target(&self.reader, &self.minimizing.target)?;
            self.read_all()?;
        } else {
            for (kind, major) in changed {
                match self.reader.group(kind, &major)? {
                    Some(group) if kind != Kind::Flaky => self.read(&group)?,
                    _ => drop(self.groups.remove(&(kind, major))),
                }
            }
        }
        let mut pending: Vec<&PendingEntry> = (self.groups.values())
            .flat_map(|group| &group.pending)
            .collect();
        pending.sort();
        let unfinished = self.groups.values().flat_map(|group| &group.unfinished);
        let all = pending.into_iter().map(|(.., id)| id).chain(unfinished);
        Ok(all.filter(|id| !taken.contains(id)).cloned().collect())
    }
}

/// Returns the entries of a group that a call with `--resume` minimizes again: those whose
/// minimization was cut short by its budget, and those whose minimization was given up because the
/// crash did not occur again with another build. Leaves out entries found by a study or on another
/// target. Returns none if the group did not fail any more when it was checked with the last build.
fn unfinished(
    reader: &Reader,
    failures: &FailuresOfTarget,
    group: &Group,
) -> Result<Vec<EntryId>, StoreError> {
    let major = group.record.major.short();
    if failures.is_gone(group.kind, &major) {
        return Ok(Vec::new());
    }
    let entries = reader.entries(group.kind, &major)?.into_iter();
    let is_unfinished = |entry: &Entry| {
        if !failures.include(entry) {
            return false;
        }
        let ended = entry
            .minimized
            .as_ref()
            .filter(|_| entry.crash.of.is_none());
        // One that was given up may crash again, with another build.
        let may_crash =
            |ended: &store::Minimized| ended.given_up.is_some() && ended.flaky.is_none();
        ended.is_some_and(|ended| ended.is_unfinished() || may_crash(ended))
    };
    Ok(entries
        .filter(is_unfinished)
        .map(|entry| entry.id)
        .collect())
}

/// Returns the entries that [`minimize_pending`] would minimize on `target` if it were called
/// without `resume`, the most urgent first. Groups in `known` (muted) are left out. Each
/// minimization may add further entries.
///
/// # Errors
/// When the directory cannot be read.
pub fn pending_entries(
    reader: &Reader,
    target: &Target,
    variants: Variants,
    known: &KnownGroups,
) -> Result<Vec<EntryId>, StoreError> {
    let failures = FailuresOfTarget::of_target(reader, target)?;
    let mut left = pending(reader, &failures, variants, true)?;
    left.retain(|id| !reader.is_muted(id.kind(), id.major(), known));
    retain_minimizable(reader, &mut left, |id| id)?;
    Ok(left)
}

/// Removes from `entries` those that calls on one target do not minimize: leaks, crashes that a
/// study has found, and entries that no longer exist. `id` returns the id of an element of
/// `entries`. Fails if an entry cannot be read.
fn retain_minimizable<T>(
    reader: &Reader,
    entries: &mut Vec<T>,
    id: impl Fn(&T) -> &EntryId,
) -> Result<(), StoreError> {
    let mut failed = Ok(());
    entries.retain(|one| match reader.entry(id(one)) {
        Ok(entry) => {
            entry.is_some_and(|entry| entry.crash.of.is_none() && !entry.crash.class.is_leak())
        }
        Err(error) => {
            failed = Err(error);
            false
        }
    });
    failed
}

/// Minimizes one entry with the settings `minimizing`. If its crash does not happen again, records
/// this for the entry and returns `Ok`. Calls `watch` at most ten times a second during the
/// minimization.
pub(crate) fn minimize_entry<S: StoreWriter>(
    store: &Mutex<S>,
    minimizing: &Minimizing,
    stop: &AtomicBool,
    id: &EntryId,
    watch: &mut dyn FnMut(),
) -> Result<(), CampaignError> {
    let options = Options {
        on_status: Some(Box::new(|_| watch())),
        ..minimizing.options(stop)
    };
    minimize_with(store, minimizing, id, options).map(drop)
}

/// Minimizes one entry with these options and returns the result; `None` if its crash did not
/// happen again, which is recorded if the entry was found on this target. If the program was
/// rebuilt meanwhile, records nothing and returns the error of an interruption, since the groups
/// are first to be checked with the new build.
pub(crate) fn minimize_with<S: StoreWriter>(
    store: &Mutex<S>,
    minimizing: &Minimizing,
    id: &EntryId,
    options: Options<'_>,
) -> Result<Option<Finished>, CampaignError> {
    let stop = options.stop;
    let found = match minimizing.search_entry(store, id, options) {
        Ok(found) => Ok(found),
        Err(CampaignError::Minimize(MinimizeError::NotFailing { tries, .. }))
            if !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) =>
        {
            Err(tries)
        }
        Err(error) => return Err(error),
    };
    if minimizing.is_rebuilt(store)? {
        let entry = lock(store).reader().entry(id)?;
        let (size, executed) = match &found {
            Ok(Finished { minimized, .. }) => {
                (minimized.text.len() as u64, minimized.counts.executed)
            }
            Err(_) => (entry.as_ref().map_or(0, size), 0),
        };
        return Err(MinimizeError::interrupted(size, executed).into());
    }
    match found {
        Ok(mut found) => {
            minimizing.record_result(store, id, &mut found, stop)?;
            Ok(Some(found))
        }
        Err(tries) => {
            minimizing.give_up(store, id, tries)?;
            Ok(None)
        }
    }
}

/// Kinds of entries that share a time budget after fuzzing: hangs and memory blow-ups, and crashes
/// that were found only during minimizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Budgeted {
    /// Hangs and memory blow-ups: each of their failing runs takes all its permitted time or
    /// memory.
    Slow,
    /// Crashes that were found only during minimizations. Minimizing one may find further ones: a
    /// program with a damaged stack jumps to another place for each candidate.
    Slipped,
}

impl Budgeted {
    fn of(id: &EntryId, slipped: bool) -> Option<Budgeted> {
        match is_slow(id) {
            true => Some(Budgeted::Slow),
            false => slipped.then_some(Budgeted::Slipped),
        }
    }
}

/// Returns true if the entry `id` was found only by chance, as a slip of a minimization; false also
/// if it cannot be read.
pub(crate) fn is_slipped(reader: &Reader, id: &EntryId) -> bool {
    let entry = reader.entry(id).ok().flatten();
    entry.is_some_and(|entry| is_slip(entry.crash.found.as_ref()))
}

/// Time budgets for minimization after fuzzing: one for all hangs and memory blow-ups together, and
/// one for all crashes that were found only during minimizations.
pub(crate) struct RestBudget {
    /// Time left of the two budgets: first for hangs and memory blow-ups, second for crashes that
    /// were found only during minimizations. `None` if the user has set a time limit for each
    /// entry, which then is the only limit.
    left: Option<[Duration; 2]>,
    /// Entries that were not minimized because no time was left: first hangs and memory blow-ups,
    /// second crashes that were found only during minimizations.
    refused: [HashSet<EntryId>; 2],
}

impl RestBudget {
    /// Creates the time budgets for minimizing the remaining entries after the time `fuzzed` of
    /// fuzzing. Hangs and memory blow-ups together get a fifth of `fuzzed`, at least 5 seconds;
    /// crashes found only during minimizations together get as long as `fuzzed`, at least a minute.
    /// There is no limit if the user has set a time limit for each entry (`minimizing` is not
    /// hurried).
    pub(crate) fn after(fuzzed: Duration, minimizing: &Minimizing) -> RestBudget {
        let slow = (fuzzed / HANG_DIVISOR).max(MIN_TOTAL);
        RestBudget {
            left: (minimizing.hurried).then(|| [slow, fuzzed.max(MIN_SLIPPED)]),
            refused: Default::default(),
        }
    }

    /// Returns the settings for minimizing the entry `id`: `minimizing`, with the time limited to
    /// the rest of the budget that the entry shares with others, if it shares one. `slipped`:
    /// whether the entry was found only during a minimization. Returns `None` if less than a second
    /// of the budget is left; the entry is then not minimized, and [`notes`](RestBudget::notes)
    /// counts it.
    pub(crate) fn of(
        &mut self,
        id: &EntryId,
        slipped: bool,
        minimizing: &Minimizing,
    ) -> Option<Minimizing> {
        let of = self.left.zip(Budgeted::of(id, slipped));
        let budget_time = match of.map(|(left, of)| (left[of as usize], of)) {
            Some((left, of)) if left < MIN_ENTRY => {
                self.refused[of as usize].insert(id.clone());
                return None;
            }
            Some((left, _)) => Some(
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

    /// Subtracts the time `taken` by the minimization of an entry from the budget that the entry
    /// shares with others, if it shares one. `slipped`: whether the entry was found only by chance
    /// during a minimization.
    pub(crate) fn spend(&mut self, id: &EntryId, slipped: bool, taken: Duration) {
        let of = Budgeted::of(id, slipped);
        if let Some((left, of)) = self.left.as_mut().zip(of) {
            left[of as usize] = left[of as usize].saturating_sub(taken);
        }
    }

    /// Returns notes that tell the user how many entries are not minimized because no time was
    /// left: hangs and memory blow-ups, and crashes that were found only during minimizations.
    pub(crate) fn notes(&self) -> Vec<String> {
        let [slow, slipped] = &self.refused;
        let slipped = slipped.len();
        let are = |count: usize| if count == 1 { "is" } else { "are" };
        let mut notes = Vec::new();
        for (kind, noun) in [(Kind::Hang, "hang"), (Kind::Oom, "out-of-memory failure")] {
            let count = slow.iter().filter(|id| id.kind() == kind).count();
            if count > 0 {
                notes.push(format!(
                    "{} {} not minimized: that would take longer than a fifth of the fuzzing; \
                     --budget-time gives each its own time, and --resume goes on",
                    counted(count as u64, noun),
                    are(count)
                ));
            }
        }
        if slipped > 0 {
            notes.push(format!(
                "{} that only minimizations have met {} not minimized: that would take longer than \
                 the fuzzing; --budget-time gives each its own time, and `ddfuzz min` with the \
                 output directory goes on",
                counted(slipped as u64, "input"),
                are(slipped)
            ));
        }
        notes
    }
}

/// Returns true if the entry is a hang or a memory blow-up: each of its failing runs takes all the
/// permitted time or memory.
pub(crate) fn is_slow(id: &EntryId) -> bool {
    matches!(id.kind(), Kind::Hang | Kind::Oom)
}

/// Returns true if `result` says that a minimization is complete, and false if it was interrupted.
/// After Ctrl-C (`stopped`), the errors of a full disk and of a target that cannot run also count
/// as interruptions. Any other error is returned as it is.
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

/// Returns true if `error` says that the target cannot be run or its crash does not happen again,
/// which Ctrl-C or a rebuild of the program may have caused.
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

    /// Returns the time limit in seconds for the minimization of an entry that a run has found;
    /// `None` if the entry is not minimized, because too little time is left.
    fn budget(budget: &mut RestBudget, kind: Kind, minimizing: &Minimizing) -> Option<u64> {
        let how = budget.of(&entry(kind), false, minimizing)?;
        how.budget_time.map(|budget| budget.as_secs())
    }

    #[test]
    fn hangs_share_a_part_of_the_time_that_was_fuzzed() {
        let how = minimizing(true);
        let mut rest = RestBudget::after(Duration::from_secs(100), &how);
        let id = entry(Kind::Hang);
        assert_eq!(budget(&mut rest, Kind::Hang, &how), Some(20));
        assert_eq!(budget(&mut rest, Kind::Crash, &how), Some(60));
        rest.spend(&id, false, Duration::from_secs(12));
        assert_eq!(budget(&mut rest, Kind::Oom, &how), Some(8));
        assert!(rest.notes().is_empty());
        rest.spend(&id, false, Duration::from_millis(7_500));
        assert_eq!(budget(&mut rest, Kind::Hang, &how), None);
        assert_eq!(budget(&mut rest, Kind::Crash, &how), Some(60));
        // Each entry counts once.
        assert_eq!(budget(&mut rest, Kind::Hang, &how), None);
        assert!(rest.notes()[0].starts_with("1 hang is not"));
        assert_eq!(budget(&mut rest, Kind::Oom, &how), None);
        assert!(rest.notes()[0].starts_with("1 hang is not"));
        assert!(rest.notes()[1].starts_with("1 out-of-memory failure is not"));
        let mut short = RestBudget::after(Duration::from_secs(2), &how);
        assert_eq!(budget(&mut short, Kind::Hang, &how), Some(5));
        let patient = minimizing(false);
        let mut rest = RestBudget::after(Duration::from_secs(2), &patient);
        assert_eq!(budget(&mut rest, Kind::Hang, &patient), Some(60));
    }

    #[test]
    fn crashes_that_only_minimizations_meet_share_the_time_that_was_fuzzed() {
        let (how, id) = (minimizing(true), entry(Kind::Crash));
        let mut rest = RestBudget::after(Duration::from_secs(90), &how);
        let limit = |rest: &mut RestBudget| {
            let how = rest.of(&id, true, &how)?;
            how.budget_time.map(|budget| budget.as_secs())
        };
        assert_eq!(limit(&mut rest), Some(60));
        rest.spend(&id, true, Duration::from_secs(50));
        assert_eq!(limit(&mut rest), Some(40));
        rest.spend(&id, true, Duration::from_secs(40));
        assert_eq!(limit(&mut rest), None);
        assert!(rest.notes()[0].starts_with("1 input that only minimizations have met is not"));
        // Those that runs have found are minimized all the same.
        assert_eq!(budget(&mut rest, Kind::Crash, &how), Some(60));
        let mut short = RestBudget::after(Duration::from_secs(1), &how);
        short.spend(&id, true, Duration::from_secs(30));
        assert_eq!(limit(&mut short), Some(30));
    }
}
