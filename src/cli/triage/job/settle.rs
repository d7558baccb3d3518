//! The last step of a triage: runs the smallest input of each crash variant (pair of major and
//! minor key, the coarse and fine hash of a crash) several times and symbolizes its crash.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::{FileState, TriageJob, TriageState};
use crate::campaign::{Examined, came_once, examined_thrice, may_leak};
use crate::cli::{Failure, signals};
use crate::exec::ExecError;
use crate::files::regular;
use crate::minimize::log::ContentHash;
use crate::pool::{TaskPool, Worker, lock};
use crate::store::{CrashLine, Kind};
use crate::triage::{Keys, Triager, keys};

/// An input to examine (to run several times, and to symbolize its crash), since it is the smallest
/// one of a crash variant (pair of major and minor key, the coarse and fine hash of a crash).
struct SettleTask {
    /// Index of the crash variant (pair of coarse and fine hash of a crash) of which the input is
    /// the smallest one.
    variant: usize,
    /// Index of the file with the input to examine.
    at: usize,
    input: ContentHash,
    /// Record of the crash that an earlier run of the input has shown.
    known: CrashLine,
}

/// The result of a task: the bytes of the input and what examining it has shown; `None` if the file
/// has changed or is gone.
type SettleResult = Option<(Vec<u8>, Examined)>;

/// For each crash variant (pair of major and minor key, the coarse and fine hash of a crash), the
/// files whose inputs show it, the smallest first.
#[derive(Default)]
struct SmallestFiles {
    /// For each crash variant (pair of coarse and fine hash of a crash), by its index: the size in
    /// bytes and the index of each of its files, smallest first. A file whose input turned out to
    /// belong to another variant is removed only when it has become the first one.
    files: BTreeMap<usize, BinaryHeap<Reverse<(u64, usize)>>>,
}

impl SmallestFiles {
    fn of(progress: &TriageState) -> SmallestFiles {
        let mut all = SmallestFiles::default();
        for at in 0..progress.states.len() {
            all.add(progress, at);
        }
        all
    }

    /// Puts the file with the index `at` into the list of a crash variant (pair of coarse and fine
    /// hash of a crash): the one in which its input has crashed, according to `progress`. Returns
    /// the index of that variant; `None` if the input did not crash.
    fn add(&mut self, progress: &TriageState, at: usize) -> Option<usize> {
        let (_, outcome) = progress.outcomes.outcome(&progress.states[at])?;
        let files = self.files.entry(outcome.variant?).or_default();
        files.push(Reverse((outcome.size, at)));
        outcome.variant
    }

    /// Returns the index of the smallest file of the crash variant with the index `variant`; `None`
    /// if the variant has no file any more. First removes files from the variant's list whose
    /// inputs, as is known now, belong to another variant.
    fn least(&mut self, progress: &TriageState, variant: usize) -> Option<usize> {
        let files = self.files.get_mut(&variant)?;
        while let Some(Reverse((_, at))) = files.peek() {
            let outcome = progress.outcomes.outcome(&progress.states[*at]);
            if outcome.is_some_and(|(_, outcome)| outcome.variant == Some(variant)) {
                return Some(*at);
            }
            files.pop();
        }
        None
    }
}

impl TriageJob<'_> {
    /// Replaces the stored crash of each crash variant (pair of major and minor key, the coarse and
    /// fine hash of a crash) by the crash of the smallest input of this variant, so that the result
    /// does not depend on which worker thread was first. If that input turns out to be flaky or to
    /// cause another crash, it is recorded under what it shows now, and the next larger input of
    /// the variant is examined.
    pub(super) fn settle(&self, progress: &mut TriageState) -> Result<(), Failure> {
        let mut files = SmallestFiles::of(progress);
        let mut open: BTreeSet<usize> = files.files.keys().copied().collect();
        let (mut examined, triagers) = (HashSet::new(), Mutex::new(Vec::new()));
        loop {
            let mut tasks = Vec::new();
            for variant in std::mem::take(&mut open) {
                let at = files.least(progress, variant);
                tasks.extend(at.and_then(|at| task_of(progress, variant, at)));
            }
            // An input that crashes otherwise each time is examined once for each variant.
            tasks.retain(|task| examined.insert((task.variant, task.input)));
            if tasks.is_empty() {
                return Ok(());
            }
            let results = self.examine_all(&tasks, &triagers)?;
            progress.is_unsettled |= results.len() < tasks.len();
            for (index, result) in results {
                let (task, Some((bytes, result))) = (&tasks[index], result) else {
                    continue;
                };
                let file = (task.at, task.input);
                progress.examined(file, &bytes, &result, &self.found.inputs, true)?;
                let outcome = progress.outcomes.outcome(&FileState::Content(task.input));
                if outcome.is_some_and(|(_, outcome)| outcome.variant != Some(task.variant)) {
                    open.insert(task.variant);
                    open.extend(files.add(progress, task.at));
                }
            }
        }
    }

    /// Examines the inputs of all `tasks` by worker threads, and returns the results by the index
    /// of the task. If the user stops the triage, the results of tasks that were not done are
    /// missing. `triagers`: triagers that were started before and are idle; workers take them and
    /// put them back.
    fn examine_all(
        &self,
        tasks: &[SettleTask],
        triagers: &Mutex<Vec<Triager>>,
    ) -> Result<BTreeMap<usize, SettleResult>, Failure> {
        let goes_on = || !self.stop.load(Ordering::Relaxed);
        let pool = TaskPool::new(self.jobs.min(tasks.len()), &goes_on);
        let work = |worker: &Worker<'_, _, _, Failure>| {
            let mut triager = lock(triagers).pop();
            while let Some((index, task)) = worker.next_task() {
                worker.report((index, self.examine_one(&mut triager, task)?));
            }
            lock(triagers).extend(triager);
            Ok(())
        };
        let mut results = BTreeMap::new();
        pool.run(tasks.iter().enumerate(), work, |report| {
            results.extend(signals::unless_interrupted(report.transpose(), None)?);
            Ok::<_, Failure>(())
        })?;
        Ok(results)
    }

    fn examine_one(
        &self,
        triager: &mut Option<Triager>,
        task: &SettleTask,
    ) -> Result<SettleResult, ExecError> {
        let file = &self.found.inputs[task.at];
        // If the file has changed or is gone, the outcome of its earlier run stays.
        let bytes = regular::read(&file.path, self.max_len).ok();
        let Some(bytes) = bytes.filter(|bytes| ContentHash::of(bytes) == task.input) else {
            return Ok(None);
        };
        let triager = match triager {
            Some(triager) => triager,
            none => none.insert(Triager::of_target(&self.target, self.way)?),
        };
        let leaks = self.leaks || may_leak(file);
        let examined = examined_again(triager, &bytes, leaks, &task.known)?;
        Ok(Some((bytes, examined)))
    }
}

/// Returns the task of examining the file with the index `at`, the smallest one of the crash
/// variant (pair of coarse and fine hash of a crash) with the index `variant`. `None` if the crash
/// of its input is stored already, or if the variant is flaky.
fn task_of(progress: &mut TriageState, variant: usize, at: usize) -> Option<SettleTask> {
    let (input, _) = progress.outcomes.outcome(&progress.states[at])?;
    let directory = progress.directory.as_ref();
    let known = &mut progress.outcomes.variants[variant];
    let is_filed = directory.is_none_or(|directory| directory.has(&known.line, input));
    let is_settled = known.examined == input && is_filed;
    // An earlier call has examined it.
    if is_settled && known.trace.is_none() {
        known.trace = directory.and_then(|directory| directory.trace(&known.line, input));
    }
    (!is_settled && known.line.kind != Kind::Flaky).then(|| SettleTask {
        variant,
        at,
        input,
        known: known.line.clone(),
    })
}

/// Runs an input, which crashed in an earlier run with the keys and the class of `known`, several
/// times, and symbolizes its crash. If it does not crash now, the earlier run still counts, and the
/// crash is flaky. `leaks`: whether to look for memory leaks; if `known` is a leak, this is done in
/// any case.
fn examined_again(
    triager: &mut Triager,
    input: &[u8],
    leaks: bool,
    known: &CrashLine,
) -> Result<Examined, ExecError> {
    let examined = examined_thrice(triager, input, leaks || known.class.is_leak())?;
    let keys = Keys {
        major: known.major,
        minor: known.minor,
        stable: known.stable,
        version: keys::VERSION,
    };
    Ok(came_once(triager, keys, known.class.clone(), examined))
}
