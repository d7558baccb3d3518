//! [`DdminStage`], a LibAFL stage that minimizes solutions while fuzzing goes on, with its settings
//! and statistics.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libafl::corpus::{Corpus, CorpusId};
use libafl::events::{Event, EventFirer, EventWithStats, LogSeverity};
use libafl::inputs::{BytesInput, HasTargetBytes, Input};
use libafl::monitors::stats::{AggregatorOps, UserStats, UserStatsValue};
use libafl::stages::{Restartable, Stage};
use libafl::state::{HasExecutions, HasSolutions};
use libafl::{Error, HasMetadata};
use serde::{Deserialize, Serialize};

use super::{
    group_registry::GroupRegistry, objective::GroupMetadata, slices::Minimizations,
    time_budget::TimeBudget,
};
use crate::classifier::{FailedRun, Submission, Suspect, SuspectClassifier};
use crate::lock;
use crate::minimization_order::SlippedInputs;
use crate::{CampaignError, CrashSink, KnownKey, Minimizing, Variants};
use ddfuzz_exec::{Freshness, Program, Target, Way, find_program, start};
use ddfuzz_minimize::{MinimizeError, search_by_name};
use ddfuzz_store::{Kind, KnownGroups};

/// Pause after a failure to read or classify a solution of the fuzzer, before the stage tries
/// again.
const RETRY_CLASSIFYING: Duration = Duration::from_secs(10);

/// A LibAFL [`Stage`] that groups and minimizes the solutions of any fuzzer while it runs.
///
/// Each time the stage is performed, it reads the new solutions, classifies those that no
/// [`GroupObjective`](super::GroupObjective) has classified, and continues a minimization for a
/// time slice, within its share of all time. A new group may take a second at once, which is repaid
/// later, so that an easy group is minimized within a second of its discovery; a hard one waits for
/// slices. The target runs in separate executors of the stage, in other processes, and never in the
/// fuzzer's executor. All state is in the output directory and in the metadata of the fuzzer's
/// state: after any end, the next start continues from the logs, and a group that has a result is
/// not minimized again.
///
/// ```no_run
/// use ddfuzz_campaign::DdminStage;
/// use ddfuzz_exec::{Program, Target};
/// # use libafl_bolts::tuples::tuple_list;
/// # fn stages() -> Result<(), ddfuzz_campaign::CampaignError> {
/// let target = Target::new(Program::Path("./parser".into()));
/// let ddmin = DdminStage::open("ddfuzz-out", target)?;
/// let mut stages = tuple_list!(/* StdMutationalStage::new(mutator), */ ddmin);
/// # let _: &mut (DdminStage<_>, ()) = &mut stages;
/// # Ok(())
/// # }
/// ```
pub struct DdminStage<D: CrashSink + 'static = GroupRegistry, I = BytesInput> {
    // Dropped first, so that the threads have ended before anything else is dropped.
    minimizations: Minimizations<D>,
    sink: Arc<Mutex<D>>,
    minimizing: Minimizing,
    classifier: SuspectClassifier,
    budget: TimeBudget,
    statistics: Statistics,
    began: Instant,
    /// Time since the creation of the stage from which on it may classify solutions again. Above 0
    /// only after a classification has failed.
    classifies_from: Duration,
    /// Time since the creation of the stage from which on it tries again to read solutions that
    /// could not be read.
    reads_again_from: Duration,
    /// Text of the last error that was logged, so that the same error is logged only once. `None`
    /// if no error was logged since a minimization last ended well.
    trouble: Option<String>,
    inputs: PhantomData<fn(I)>,
}

impl<I> DdminStage<GroupRegistry, I> {
    /// Opens a stage with default [`StageSettings`] and a separate output directory `out`; an
    /// existing directory of the same target is continued. Starts `target` once, so that a target
    /// that does not run is reported at once.
    ///
    /// # Errors
    /// As [`GroupRegistry::open`]; when the target cannot be run.
    pub fn open(
        out: impl AsRef<Path>,
        target: Target,
    ) -> Result<DdminStage<GroupRegistry, I>, CampaignError> {
        DdminStage::open_with(out, target, StageSettings::default())
    }

    /// Opens a stage as [`DdminStage::open`] does, with other settings.
    ///
    /// # Errors
    /// As [`DdminStage::open`]; when no search has the name given in the settings.
    pub fn open_with(
        out: impl AsRef<Path>,
        mut target: Target,
        settings: StageSettings,
    ) -> Result<DdminStage<GroupRegistry, I>, CampaignError> {
        search_by_name(&settings.search, b"x").map_err(MinimizeError::from)?;
        if let Program::Path(path) = &mut target.program {
            *path = find_program(path)?;
        }
        let started = start(&target, settings.way, Freshness::Shared)?;
        let way = started.executor.way();
        drop(started);
        let sink = GroupRegistry::open(out.as_ref(), &target, way)?
            .with_muted(settings.muted.clone())
            .with_variants(settings.variants);
        let minimizing = Minimizing {
            budget_time: settings.budget_time,
            budget_tests: settings.budget_tests,
            log_inputs: settings.log_inputs,
            learn_limit: settings.learn_limit,
            variants: settings.variants,
            ..Minimizing::of_target(target, way, &settings.search)
        };
        DdminStage::new(
            Arc::new(Mutex::new(sink)),
            minimizing,
            settings.share_percent,
        )
    }
}

impl<D: CrashSink + 'static, I> DdminStage<D, I> {
    /// Creates a stage that minimizes the groups of `sink`, in at most `share_percent` percent of
    /// the time (more than 100 counts as 100; 0 minimizes nothing).
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn new(
        sink: Arc<Mutex<D>>,
        minimizing: Minimizing,
        share_percent: u8,
    ) -> Result<DdminStage<D, I>, CampaignError> {
        Ok(DdminStage {
            minimizations: Minimizations::new(Arc::clone(&sink)),
            classifier: SuspectClassifier::new(&minimizing.target, minimizing.way)?,
            sink,
            minimizing,
            budget: TimeBudget::new(share_percent),
            statistics: Statistics::default(),
            began: Instant::now(),
            classifies_from: Duration::ZERO,
            reads_again_from: Duration::ZERO,
            trouble: None,
            inputs: PhantomData,
        })
    }

    /// Returns the crash sink (which stores crashes) of the stage, to be shared with a
    /// [`GroupObjective`](super::GroupObjective).
    pub fn sink(&self) -> Arc<Mutex<D>> {
        Arc::clone(&self.sink)
    }

    /// Returns the target and the settings with which the stage minimizes.
    pub fn minimizing(&self) -> &Minimizing {
        &self.minimizing
    }

    /// Returns two times: the time that the stage has spent on classifying and minimizing, and the
    /// time since the stage was made.
    pub fn used(&self) -> (Duration, Duration) {
        self.budget.used()
    }

    /// Returns the number of entries (stored crashes) that the stage has minimized, or given up
    /// because their crash did not happen again.
    pub fn minimized(&self) -> u64 {
        self.statistics.minimized
    }

    /// Classifies one solution of the fuzzer, by running `input` again, and submits it to the crash
    /// sink with the `name` and the number of the run (`run`) that the fuzzer gave it.
    fn submit(&mut self, input: &[u8], name: &str, run: u64) -> Result<(), CampaignError> {
        let suspect = Suspect {
            input,
            run,
            name,
            // LibAFL does not record it; a solution that is dropped stays in its files.
            ended: None,
            observed: FailedRun::default(),
        };
        if let Submission::Stored(..) = self.classifier.submit(&self.sink, &suspect)? {
            self.minimizations.expect();
            self.statistics.change();
        }
        Ok(())
    }

    /// Continues the minimization of one group for one time slice, if the time budget permits a
    /// slice. `now`: the time since the stage was made.
    fn minimize(&mut self, now: Duration) -> Result<(), CampaignError> {
        let minimizations = &mut self.minimizations;
        if let Some(ended) = minimizations.go_on(now, &mut self.budget, &self.minimizing) {
            self.statistics.end(ended?);
            self.trouble = None;
        }
        Ok(())
    }
}

/// Why a solution of the fuzzer was not processed: no time is left, it cannot be read, or runs
/// cannot be classified.
enum Trouble {
    /// The time budget has no time left to classify the solution.
    NoTime,
    /// The solution cannot be read, for this reason; other solutions are not concerned.
    Reading(CampaignError),
    /// The solution cannot be classified, for this reason, which prevents the classification of all
    /// solutions.
    Classifying(CampaignError),
}

/// What a stage has to do with the next solution of the fuzzer: nothing, or classify it.
enum SolutionStep<I> {
    /// The solution needs nothing: the objective stored it in the output directory when the fuzzer
    /// found it.
    Stored,
    /// The solution is still to be classified: its input, and LibAFL's number of runs when it was
    /// found.
    Unclassified(I, u64),
}

impl<D: CrashSink + 'static, I: HasTargetBytes + Input> DdminStage<D, I> {
    /// Reads the fuzzer's solutions that the stage has not processed yet, and classifies those that
    /// the objective has not stored. The outer error is an error of LibAFL. The inner error says
    /// what was left undone: a solution was not classified, because the time budget is used up or
    /// runs cannot be classified (the solutions after it then were not tried); or a solution could
    /// not be read, which is tried again later.
    fn read_solutions<S>(&mut self, state: &mut S) -> Result<Result<(), Trouble>, Error>
    where
        S: HasSolutions<I> + HasMetadata,
    {
        let mut unread = Ok(());
        let cursor = state.metadata_or_insert_with(SolutionCursor::default);
        if self.began.elapsed() >= self.reads_again_from {
            for id in std::mem::take(&mut cursor.unread) {
                unread = self.read_solution(state, id)?.and(unread);
                if matches!(unread, Err(Trouble::NoTime | Trouble::Classifying(_))) {
                    state.metadata_mut::<SolutionCursor>()?.unread.push(id);
                }
            }
            self.reads_again_from = self.began.elapsed() + RETRY_CLASSIFYING;
        }
        loop {
            let cursor = state.metadata::<SolutionCursor>()?;
            let Some(id) = cursor.next(state.solutions()) else {
                return Ok(unread);
            };
            match self.read_solution(state, id)? {
                Err(trouble @ Trouble::Reading(_)) => unread = Err(trouble),
                Err(trouble) => return Ok(Err(trouble)),
                Ok(()) => {}
            }
            state.metadata_mut::<SolutionCursor>()?.pass(id);
        }
    }

    /// Reads one solution of the fuzzer, and classifies it if the objective has not stored it. A
    /// solution that cannot be read is kept for later.
    fn read_solution<S>(
        &mut self,
        state: &mut S,
        id: CorpusId,
    ) -> Result<Result<(), Trouble>, Error>
    where
        S: HasSolutions<I> + HasMetadata,
    {
        match solution_at(state.solutions(), id) {
            Err(error) if is_removed(&error) => Ok(Ok(())),
            Err(error) => {
                state.metadata_mut::<SolutionCursor>()?.unread.push(id);
                let source = std::io::Error::other(error.to_string());
                let what = format!("cannot read solution {id} of the fuzzer");
                let error = CampaignError::System { what, source };
                Ok(Err(Trouble::Reading(error)))
            }
            Ok(SolutionStep::Stored) => {
                self.minimizations.expect();
                self.statistics.change();
                Ok(Ok(()))
            }
            Ok(SolutionStep::Unclassified(input, run)) => {
                if !self.budget.may_classify(!self.minimizations.is_empty()) {
                    return Ok(Err(Trouble::NoTime));
                }
                let began = Instant::now();
                let name = input.generate_name(Some(id));
                let done = self.submit(&input.target_bytes(), &name, run);
                self.budget.spend_on_classifying(began.elapsed());
                Ok(done.map_err(Trouble::Classifying))
            }
        }
    }

    /// Classifies, after fuzzing, all remaining solutions and minimizes all remaining groups, each
    /// within its own budget; the stage's share of the time is not limited any more. Ends early
    /// when `stop` turns true, and after a failure, which it logs through the event manager.
    ///
    /// # Errors
    /// Those of LibAFL.
    pub fn finish<EM, S>(
        &mut self,
        state: &mut S,
        manager: &mut EM,
        stop: &AtomicBool,
    ) -> Result<(), Error>
    where
        EM: EventFirer<I, S>,
        S: HasSolutions<I> + HasMetadata + HasExecutions,
    {
        self.budget.set_unlimited();
        self.minimizations.expect();
        self.reads_again_from = Duration::ZERO;
        let mut met = SlippedInputs::default();
        while !stop.load(Ordering::Relaxed) {
            let mut done = self.walk_solutions(state, manager)?;
            if done.is_ok() && self.minimizations.is_idle() {
                match met.file_next(&*self.sink, &self.minimizing, &|_| true) {
                    Ok(false) => break,
                    filed => done = filed.map(drop),
                }
            }
            if done.is_ok() {
                self.minimizations.expect();
                done = self.minimize(self.began.elapsed());
            }
            let failed = done.is_err();
            self.log_error(done, state, manager)?;
            if failed || self.minimizations.is_paused(self.began.elapsed()) {
                break;
            }
        }
        self.budget.pass(self.began.elapsed());
        Ok(())
    }

    /// Reads and classifies the fuzzer's solutions that the stage has not processed yet. Logs the
    /// error of a solution that cannot be read, and continues with the others. The inner error is
    /// the failure to classify a solution; the outer one is an error of LibAFL.
    fn walk_solutions<EM, S>(
        &mut self,
        state: &mut S,
        manager: &mut EM,
    ) -> Result<Result<(), CampaignError>, Error>
    where
        EM: EventFirer<I, S>,
        S: HasSolutions<I> + HasMetadata + HasExecutions,
    {
        match self.read_solutions(state)? {
            Ok(()) | Err(Trouble::NoTime) => Ok(Ok(())),
            Err(Trouble::Classifying(error)) => Ok(Err(error)),
            Err(Trouble::Reading(error)) => {
                self.log_error(Err(error), state, manager)?;
                Ok(Ok(()))
            }
        }
    }

    /// Logs an error of the stage (if `done` is an error) as a warning through LibAFL's event
    /// manager, unless the last logged error was the same. Fails only if logging fails.
    fn log_error<EM, S>(
        &mut self,
        done: Result<(), CampaignError>,
        state: &mut S,
        manager: &mut EM,
    ) -> Result<(), Error>
    where
        EM: EventFirer<I, S>,
        S: HasExecutions,
    {
        let Err(error) = done else {
            return Ok(());
        };
        let trouble =
            format!("ddfuzz: {error}; the minimization is tried again, and fuzzing continues");
        if self.trouble.as_ref() != Some(&trouble) {
            manager.log(state, LogSeverity::Warn, trouble.clone())?;
            self.trouble = Some(trouble);
        }
        Ok(())
    }
}

/// Returns true if `error`, from reading a solution, means that the solution is gone: it was
/// removed from the corpus, or its file was. Returns false for errors that may not occur again,
/// such as too many open files.
fn is_removed(error: &Error) -> bool {
    match error {
        Error::KeyNotFound(..) => true,
        Error::OsError(error, ..) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Reads the fuzzer's solution with the id `id` in LibAFL's corpus. Returns that it is stored in
/// the output directory already, or otherwise its input.
fn solution_at<I: Clone>(
    solutions: &impl Corpus<I>,
    id: CorpusId,
) -> Result<SolutionStep<I>, Error> {
    let mut testcase = solutions.get(id)?.borrow_mut();
    if testcase.has_metadata::<GroupMetadata>() {
        return Ok(SolutionStep::Stored);
    }
    let run = *testcase.executions();
    let input = testcase.load_input(solutions)?.clone();
    Ok(SolutionStep::Unclassified(input, run))
}

impl<D, E, EM, I, S, Z> Stage<E, EM, S, Z> for DdminStage<D, I>
where
    D: CrashSink + 'static,
    EM: EventFirer<I, S>,
    I: HasTargetBytes + Input,
    S: HasSolutions<I> + HasMetadata + HasExecutions,
{
    fn perform(
        &mut self,
        _fuzzer: &mut Z,
        _executor: &mut E,
        state: &mut S,
        manager: &mut EM,
    ) -> Result<(), Error> {
        let now = self.began.elapsed();
        self.budget.pass(now);
        if now >= self.classifies_from {
            let walked = self.walk_solutions(state, manager)?;
            if walked.is_err() {
                self.classifies_from = now + RETRY_CLASSIFYING;
            }
            self.log_error(walked, state, manager)?;
        }
        let minimized = self.minimize(now);
        self.log_error(minimized, state, manager)?;
        self.budget.pass(self.began.elapsed());
        if self.statistics.is_due(now) {
            let known = lock(&self.sink).known();
            let used = self.budget.used();
            if let Ok(known) = known {
                (self.statistics).report(now, &known, used, state, manager)?;
            }
        }
        Ok(())
    }
}

impl<D: CrashSink + 'static, I, S> Restartable<S> for DdminStage<D, I> {
    fn should_restart(&mut self, _state: &mut S) -> Result<bool, Error> {
        // The target runs in other processes, so the stage cannot be why this one crashed.
        Ok(true)
    }

    fn clear_progress(&mut self, _state: &mut S) -> Result<(), Error> {
        Ok(())
    }
}

/// The settings of a [`DdminStage`]: how it minimizes. By default it takes at most 20 % of the
/// time, and 60 s for one group, and uses the search `full`.
#[derive(Clone, Debug)]
pub struct StageSettings {
    /// Greatest share of all time that the stage takes for classifying and minimizing, in percent;
    /// 0 minimizes nothing.
    pub share_percent: u8,
    /// Greatest time for the minimization of one entry; `None` sets no limit.
    pub budget_time: Option<Duration>,
    /// Greatest number of executed tests (runs of candidates) for the minimization of one entry;
    /// `None` sets no limit.
    pub budget_tests: Option<u64>,
    /// Name of the search (algorithm of delta debugging) that minimizes.
    pub search: String,
    /// How the target is executed; `None` chooses the fastest way that works.
    pub way: Option<Way>,
    /// Whether the time limit of a test is learned from the first runs of the minimized input; if
    /// false, it is the target's limit.
    pub learn_limit: bool,
    /// Whether the logs of minimizations contain the bytes of each candidate, which makes them
    /// large.
    pub log_inputs: bool,
    /// Groups that the user has muted: their runs are counted and their inputs stored, but they are
    /// not minimized.
    pub muted: KnownGroups,
    /// How many further minor keys (finer hashes of crashes) of a group are minimized when no other
    /// group is left.
    pub variants: Variants,
}

impl Default for StageSettings {
    fn default() -> StageSettings {
        StageSettings {
            share_percent: 20,
            budget_time: Some(Duration::from_secs(60)),
            budget_tests: None,
            search: "full".to_owned(),
            way: None,
            learn_limit: true,
            log_inputs: false,
            muted: KnownGroups::default(),
            variants: Variants::Plain,
        }
    }
}

/// Least time between two reports of statistics to LibAFL's event manager.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// The statistics of one stage for LibAFL's monitors, and when they were last reported. A report
/// also has the number of groups and the stage's share of the time, which the caller of
/// [`Statistics::report`] passes.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// Number of entries that were minimized, or given up because their crash did not happen again.
    pub(super) minimized: u64,
    /// Sizes in bytes of the last minimized input, before and after its minimization; `None` if
    /// none was minimized yet.
    pub(super) last: Option<(u64, u64)>,
    /// Whether a value of the statistics has changed since the last report to LibAFL.
    changed: bool,
    /// When the last report of the statistics was sent, as time since the stage was made; `None`
    /// before the first.
    reported: Option<Duration>,
}

impl Statistics {
    /// Counts an entry whose minimization has ended. `sizes`: size of its input in bytes, before
    /// and after; `None` if its crash did not happen again.
    pub(super) fn end(&mut self, sizes: Option<(u64, u64)>) {
        self.minimized += 1;
        self.last = sizes.or(self.last);
        self.changed = true;
    }

    /// Marks the statistics as changed, because a crash was stored, so that the next report is
    /// sent.
    pub(super) fn change(&mut self) {
        self.changed = true;
    }

    /// Checks whether a report of the statistics is due. `now`: the time since the stage was made.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let recent = |last: Duration| now.saturating_sub(last) < REPORT_EVERY;
        // The share of the time falls while nothing else changes.
        (self.changed || self.reported.is_some()) && !self.reported.is_some_and(recent)
    }

    /// Sends the statistics to LibAFL's event manager, at the time `now` since the stage was made:
    /// `ddmin_groups` (number of groups in `known`), `ddmin_minimized` (entries minimized),
    /// `ddmin_share` (`spent`, the time used by the stage, as a share of `passed`) and `ddmin_last`
    /// (sizes of the last minimized input).
    pub(super) fn report<EM, I, S>(
        &mut self,
        now: Duration,
        known: &[KnownKey],
        (spent, passed): (Duration, Duration),
        state: &mut S,
        manager: &mut EM,
    ) -> Result<(), Error>
    where
        EM: EventFirer<I, S>,
        S: HasExecutions,
    {
        self.changed = false;
        self.reported = Some(now);
        let groups: BTreeSet<_> = (known.iter())
            .filter(|key| key.kind != Kind::Flaky)
            .map(|key| (key.kind, key.major))
            .collect();
        let share = spent.as_secs_f64() / passed.as_secs_f64().max(f64::EPSILON);
        let mut values = vec![
            ("ddmin_groups", UserStatsValue::Number(groups.len() as u64)),
            ("ddmin_minimized", UserStatsValue::Number(self.minimized)),
            ("ddmin_share", UserStatsValue::Percent(share)),
        ];
        if let Some((before, after)) = self.last {
            let sizes = format!("{before} to {after} bytes");
            values.push(("ddmin_last", UserStatsValue::String(Cow::Owned(sizes))));
        }
        for (name, value) in values {
            let operation = match value {
                UserStatsValue::Number(_) if name == "ddmin_minimized" => AggregatorOps::Sum,
                UserStatsValue::Percent(_) => AggregatorOps::Avg,
                UserStatsValue::Number(_) => AggregatorOps::Max,
                _ => AggregatorOps::None,
            };
            let event = Event::UpdateUserStats {
                name: Cow::Borrowed(name),
                value: UserStats::new(value, operation),
                phantom: PhantomData,
            };
            let executions = *state.executions();
            manager.fire(state, EventWithStats::with_current_time(event, executions))?;
        }
        Ok(())
    }
}

/// The last of the fuzzer's solutions that the stage has processed, and earlier solutions that
/// could not be read. The cursor is metadata of the fuzzer's state, so it is restored together with
/// the solutions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolutionCursor {
    last: Option<CorpusId>,
    /// Ids of solutions that could not be read, which the stage tries to read again later.
    #[serde(default)]
    unread: Vec<CorpusId>,
}

libafl_bolts::impl_serdeany!(SolutionCursor);

impl SolutionCursor {
    /// Returns the id of the first solution that is not processed yet: the first one after the
    /// cursor, even if the solution at the cursor was removed; `None` if all were processed.
    pub fn next<I>(&self, solutions: &impl Corpus<I>) -> Option<CorpusId> {
        match self.last {
            None => solutions.first(),
            Some(last) if solutions.get(last).is_ok() => solutions.next(last),
            Some(last) => solutions.ids().find(|id| id.0 > last.0),
        }
    }

    /// Records that the stage has processed the fuzzer's solution `id`; the stage then continues
    /// with the solutions after it.
    pub fn pass(&mut self, id: CorpusId) {
        self.last = Some(id);
    }
}
