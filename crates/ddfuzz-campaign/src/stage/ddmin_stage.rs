//! The stage that minimizes what a LibAFL fuzzer finds while it runs, with its settings and
//! statistics.

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

use super::account::Account;
use super::classifier::{Finding, FindingClassifier, FindingOutcome, Seen};
use super::local_desk::LocalDesk;
use super::objective::GroupMetadata;
use super::work::Minimizations;
use crate::campaign_state::lock;
use crate::crash_sink::{CrashSink, KnownKey};
use crate::error::CampaignError;
use crate::minimizing::{Minimizing, Variants};
use crate::schedule::SlippedInputs;
use ddfuzz_exec::{Freshness, Program, Target, Way, find_program, start};
use ddfuzz_minimize::{UnknownSearch, search_by_name};
use ddfuzz_store::{Kind, KnownGroups};

/// What could not be classified is tried again after this time.
const NAMED_AGAIN: Duration = Duration::from_secs(10);

/// A LibAFL [`Stage`] that groups and minimizes the solutions of any fuzzer while it runs.
///
/// Each time it is performed it walks the new solutions, classifies those that no
/// [`GroupObjective`](super::GroupObjective) has classified, and continues a minimization for a
/// slice: at most its share of all time. A new group may take a second at once, which is repaid
/// later, so that an easy one is minimized within a second of its discovery; a hard one waits for
/// its slices. The target runs in executors of the stage's own, in other processes, and never in
/// the fuzzer's executor. All state is in the output directory and in the metadata of the
/// fuzzer's state: whatever ends, the next start goes on by the logs, and what has a result is not
/// minimized again.
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
pub struct DdminStage<D: CrashSink + 'static = LocalDesk, I = BytesInput> {
    // First, so that work has ended before anything else goes.
    minimizations: Minimizations<D>,
    desk: Arc<Mutex<D>>,
    minimizing: Minimizing,
    classifier: FindingClassifier,
    account: Account,
    statistics: Statistics,
    began: Instant,
    /// Solutions are not classified before that; in time since the beginning.
    names_from: Duration,
    trouble: Option<String>,
    inputs: PhantomData<fn(I)>,
}

impl<I> DdminStage<LocalDesk, I> {
    /// A stage with default [`StageSettings`] and its own output directory; an existing one
    /// of the same target is continued. `target` is started here, so that one which does not
    /// run is an error now.
    ///
    /// # Errors
    /// As [`LocalDesk::open`]; when the target cannot be run.
    pub fn open(
        out: impl AsRef<Path>,
        target: Target,
    ) -> Result<DdminStage<LocalDesk, I>, CampaignError> {
        DdminStage::open_with(out, target, StageSettings::default())
    }

    /// The same with other settings.
    ///
    /// # Errors
    /// As [`DdminStage::open`].
    pub fn open_with(
        out: impl AsRef<Path>,
        mut target: Target,
        settings: StageSettings,
    ) -> Result<DdminStage<LocalDesk, I>, CampaignError> {
        if let Program::Path(path) = &mut target.program {
            *path = find_program(path)?;
        }
        let started = start(&target, settings.way, Freshness::Shared)?;
        let way = started.executor.way();
        drop(started);
        let desk = LocalDesk::open(out.as_ref(), &target, way)?
            .muting(settings.muted.clone())
            .varying(settings.variants);
        let minimizing = Minimizing {
            budget_time: settings.budget_time,
            budget_tests: settings.budget_tests,
            log_inputs: settings.log_inputs,
            learn_limit: settings.learn_limit,
            variants: settings.variants,
            ..Minimizing::of_target(target, way, &settings.search)
        };
        DdminStage::new(
            Arc::new(Mutex::new(desk)),
            minimizing,
            settings.share_percent,
        )
    }
}

impl<D: CrashSink + 'static, I> DdminStage<D, I> {
    /// A stage that takes its work from `desk`, and at most `share_percent` of the time.
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn new(
        desk: Arc<Mutex<D>>,
        minimizing: Minimizing,
        share_percent: u8,
    ) -> Result<DdminStage<D, I>, CampaignError> {
        Ok(DdminStage {
            minimizations: Minimizations::new(Arc::clone(&desk)),
            classifier: FindingClassifier::new(&minimizing.target, minimizing.way)?,
            desk,
            minimizing,
            account: Account::new(share_percent),
            statistics: Statistics::default(),
            began: Instant::now(),
            names_from: Duration::ZERO,
            trouble: None,
            inputs: PhantomData,
        })
    }

    /// Its desk, for a [`GroupObjective`](super::GroupObjective) beside it.
    pub fn desk(&self) -> Arc<Mutex<D>> {
        Arc::clone(&self.desk)
    }

    /// What it minimizes, and how.
    pub fn minimizing(&self) -> &Minimizing {
        &self.minimizing
    }

    /// Time that it has taken, of the time since it was made.
    pub fn used(&self) -> (Duration, Duration) {
        self.account.used()
    }

    /// Groups that it has minimized, or given up.
    pub fn minimized(&self) -> u64 {
        self.statistics.minimized
    }

    /// Classifies one solution and hands it in.
    fn submit(&mut self, input: &[u8], name: &str, run: u64) -> Result<(), CampaignError> {
        let finding = Finding {
            input,
            run,
            name,
            // LibAFL does not say it of solutions; they are in its own files all the same.
            ended: None,
            seen: Seen::default(),
        };
        if let FindingOutcome::Filed(_) = self.classifier.take(&self.desk, &finding)? {
            self.minimizations.expect();
            self.statistics.change();
        }
        Ok(())
    }

    /// One slice.
    fn minimize(&mut self, now: Duration) -> Result<(), CampaignError> {
        let minimizations = &mut self.minimizations;
        if let Some(ending) = minimizations.go_on(now, &mut self.account, &self.minimizing)? {
            self.statistics.end(ending.sizes());
            self.trouble = None;
        }
        Ok(())
    }
}

/// What the walk finds after the cursor.
enum SolutionStep<I> {
    /// A solution that was handed in when it was found.
    HandedIn,
    /// One to be classified.
    Unnamed(I, u64),
}

impl<D: CrashSink + 'static, I: HasTargetBytes + Input> DdminStage<D, I> {
    /// Walks the new solutions, as far as there is time to classify them.
    fn walk<S>(&mut self, state: &mut S) -> Result<Result<(), CampaignError>, Error>
    where
        S: HasSolutions<I> + HasMetadata,
    {
        loop {
            let cursor = *state.metadata_or_insert_with(SolutionCursor::default);
            let Some(id) = cursor.next(state.solutions()) else {
                return Ok(Ok(()));
            };
            match walked(state.solutions(), id) {
                // Somebody has taken its file away.
                Err(_) => {}
                Ok(SolutionStep::HandedIn) => {
                    self.minimizations.expect();
                    self.statistics.change();
                }
                Ok(SolutionStep::Unnamed(input, run)) => {
                    if !self.account.may_name(!self.minimizations.is_empty()) {
                        return Ok(Ok(()));
                    }
                    let began = Instant::now();
                    let name = input.generate_name(Some(id));
                    let done = self.submit(&input.target_bytes(), &name, run);
                    self.account.spend_on_naming(began.elapsed());
                    if done.is_err() {
                        return Ok(done);
                    }
                }
            }
            state.metadata_mut::<SolutionCursor>()?.pass(id);
        }
    }

    /// Classifies all solutions and minimizes all groups that are left, each within its budget,
    /// taking all the time there is: for the end of the fuzzing. Ends early when `stop` turns true,
    /// and where something fails, which the event manager is told.
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
        self.account.take_all();
        self.minimizations.expect();
        let mut met = SlippedInputs::default();
        while !stop.load(Ordering::Relaxed) {
            let mut done = self.walk(state)?;
            if done.is_ok() && self.minimizations.is_idle() {
                match met.file_next(&*self.desk, &self.minimizing, &|_| true) {
                    Ok(false) => break,
                    filed => done = filed.map(drop),
                }
            }
            if done.is_ok() {
                self.minimizations.expect();
                done = self.minimize(self.began.elapsed());
            }
            let failed = done.is_err();
            self.tell_trouble(done, state, manager)?;
            if failed || self.minimizations.is_resting(self.began.elapsed()) {
                break;
            }
        }
        self.account.pass(self.began.elapsed());
        Ok(())
    }

    /// Says what went wrong, once.
    fn tell_trouble<EM, S>(
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

fn walked<I: Clone>(solutions: &impl Corpus<I>, id: CorpusId) -> Result<SolutionStep<I>, Error> {
    let mut testcase = solutions.get(id)?.borrow_mut();
    if testcase.has_metadata::<GroupMetadata>() {
        return Ok(SolutionStep::HandedIn);
    }
    let run = *testcase.executions();
    let input = testcase.load_input(solutions)?.clone();
    Ok(SolutionStep::Unnamed(input, run))
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
        self.account.pass(now);
        if now >= self.names_from {
            let walked = self.walk(state)?;
            if walked.is_err() {
                self.names_from = now + NAMED_AGAIN;
            }
            self.tell_trouble(walked, state, manager)?;
        }
        let minimized = self.minimize(now);
        self.tell_trouble(minimized, state, manager)?;
        self.account.pass(self.began.elapsed());
        if self.statistics.is_due(now) {
            let known = lock(&self.desk).known();
            let used = self.account.used();
            if let Ok(known) = known {
                (self.statistics).tell(now, &known, used, state, manager)?;
            }
        }
        Ok(())
    }
}

impl<D: CrashSink + 'static, I, S> Restartable<S> for DdminStage<D, I> {
    fn should_restart(&mut self, _state: &mut S) -> Result<bool, Error> {
        // The target does not run in this process: nothing of it can be what killed it.
        Ok(true)
    }

    fn clear_progress(&mut self, _state: &mut S) -> Result<(), Error> {
        Ok(())
    }
}

/// How a [`DdminStage`] minimizes. The default takes at most 20 % of the time,
/// and 60 s for one group, by the search `full`.
#[derive(Clone, Debug)]
pub struct StageSettings {
    pub(super) share_percent: u8,
    pub(super) budget_time: Option<Duration>,
    pub(super) budget_tests: Option<u64>,
    pub(super) search: String,
    pub(super) way: Option<Way>,
    pub(super) learn_limit: bool,
    pub(super) log_inputs: bool,
    pub(super) muted: KnownGroups,
    pub(super) variants: Variants,
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

impl StageSettings {
    /// Takes at most this share of the time; more than 100 is 100, and 0 minimizes nothing.
    #[must_use]
    pub fn share_percent(mut self, share: u8) -> StageSettings {
        self.share_percent = share.min(100);
        self
    }

    /// Longest time for one group, in which it is worked on; `None`: until it is done.
    #[must_use]
    pub fn budget_time(mut self, time: Option<Duration>) -> StageSettings {
        self.budget_time = time;
        self
    }

    /// Most executed tests for one group; `None`: as many as it takes.
    #[must_use]
    pub fn budget_tests(mut self, tests: Option<u64>) -> StageSettings {
        self.budget_tests = tests;
        self
    }

    /// Minimizes by the search of this name.
    ///
    /// # Errors
    /// When there is none; the error names those that there are.
    pub fn search(mut self, name: &str) -> Result<StageSettings, UnknownSearch> {
        search_by_name(name, b"x")?;
        name.clone_into(&mut self.search);
        Ok(self)
    }

    /// Runs the target in this way, and not in the fastest that works.
    #[must_use]
    pub fn way(mut self, way: Way) -> StageSettings {
        self.way = Some(way);
        self
    }

    /// Whether the limit on the time of tests is learned from the runs of the input (the default),
    /// and not that of the target throughout.
    #[must_use]
    pub fn learn_limit(mut self, learn: bool) -> StageSettings {
        self.learn_limit = learn;
        self
    }

    /// Whether candidates are written into the logs, which makes them large.
    #[must_use]
    pub fn log_inputs(mut self, log: bool) -> StageSettings {
        self.log_inputs = log;
        self
    }

    /// How many further minor keys of a group are minimized, when nothing else waits.
    #[must_use]
    pub fn variants(mut self, variants: Variants) -> StageSettings {
        self.variants = variants;
        self
    }

    /// Groups that are counted and stored, and not minimized.
    #[must_use]
    pub fn muting(mut self, muted: KnownGroups) -> StageSettings {
        self.muted = muted;
        self
    }
}

/// Between two reports.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// The counts of one stage.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// Groups of this stage that have ended.
    pub(super) minimized: u64,
    /// Sizes of the last one, before and after, in bytes.
    pub(super) last: Option<(u64, u64)>,
    changed: bool,
    told: Option<Duration>,
}

impl Statistics {
    /// A group has ended; `sizes`: before and after, where it was minimized.
    pub(super) fn end(&mut self, sizes: Option<(u64, u64)>) {
        self.minimized += 1;
        self.last = sizes.or(self.last);
        self.changed = true;
    }

    /// Something was handed in.
    pub(super) fn change(&mut self) {
        self.changed = true;
    }

    /// Whether it is time to tell. `now`: the time since the beginning.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let recent = |told: Duration| now.saturating_sub(told) < TOLD_EVERY;
        self.changed && !self.told.is_some_and(recent)
    }

    /// Tells it through the event manager, by `ddmin_groups`, `ddmin_minimized`, `ddmin_share` and
    /// `ddmin_last`.
    pub(super) fn tell<EM, I, S>(
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
        self.told = Some(now);
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

/// The last solution that the stage has seen. It is metadata of the fuzzer's state, and so is
/// where the solutions are after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolutionCursor {
    last: Option<CorpusId>,
}

libafl_bolts::impl_serdeany!(SolutionCursor);

impl SolutionCursor {
    /// The solution after it, be its own still there or not.
    pub fn next<I>(&self, solutions: &impl Corpus<I>) -> Option<CorpusId> {
        match self.last {
            None => solutions.first(),
            Some(last) if solutions.get(last).is_ok() => solutions.next(last),
            Some(last) => solutions.ids().find(|id| id.0 > last.0),
        }
    }

    /// That solution was seen.
    pub fn pass(&mut self, id: CorpusId) {
        self.last = Some(id);
    }
}
