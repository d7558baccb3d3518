//! A worker process: a fuzzer of LibAFL's parts on our executor, the inputs that it begins with,
//! and the worker that only minimizes (`--minimize worker`).

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libafl::corpus::{Corpus, InMemoryCorpus, Testcase};
use libafl::events::{LlmpEventManager, ProgressReporter, SendExiting};
use libafl::executors::{ExitKind, HasObservers};
use libafl::feedbacks::{Feedback, MapFeedbackMetadata, MaxMapFeedback, StateInitializer};
use libafl::fuzzer::{ExecutionProcessor, Fuzzer, StdFuzzer};
use libafl::inputs::BytesInput;
use libafl::mutators::{HavocScheduledMutator, Tokens, havoc_mutations, tokens_mutations};
use libafl::observers::{ExplicitTracking, HitcountsMapObserver, StdMapObserver};
use libafl::schedulers::powersched::PowerSchedule;
use libafl::schedulers::{IndexesLenTimeMinimizerScheduler, StdWeightedScheduler};
use libafl::stages::calibrate::UnstableEntriesMetadata;
use libafl::stages::{CalibrationStage, IfStage};
use libafl::state::{HasCorpus, HasMaxSize, StdState};
use libafl::{Error, HasMetadata, HasNamedMetadata, feedback_and_fast};
use libafl_bolts::Named;
use libafl_bolts::rands::StdRand;
use libafl_bolts::shmem::UnixShMem;
use libafl_bolts::tuples::{Merge, tuple_list};

use super::compare::CompareStage;
use super::evaluate::{AfterHang, BatchStage, Power, ReportStage, apply_verdicts, evaluate};
use super::executor::{EDGES, EndObserver, TargetExecutor, fail};
use super::process::{UnlinkedShMem, exit};
use super::remote::{HeartbeatTimer, Remote};
use super::wire::Heartbeat;
use crate::orders::minimize_entry;
use crate::{
    CampaignError, CrashSink, DdminStage, DiskFullError, GroupObjective, Passed, Plan, Settings,
    Share, When,
};
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::Reader;

/// Between two updates of the status.
const LOOK: Duration = Duration::from_millis(100);
/// Between two messages to the monitors.
const REPORT: Duration = Duration::from_secs(5);

/// Mutations of one mutant: 2 to the power of at most this. LibAFL's own 7 makes 36 of them on
/// average, which takes longer than most targets run, and leaves little of a short input.
const STACK: usize = 3;

/// The settings of a worker.
pub(super) struct WorkerSettings<'a> {
    pub(super) settings: &'a Settings,
    /// The output directory.
    pub(super) root: PathBuf,
    /// Where the hub listens.
    pub(super) socket: PathBuf,
    /// The greatest length of an input, in bytes.
    pub(super) max_len: u64,
    /// Runs of the campaign before this launch.
    pub(super) run_before: u64,
}

impl WorkerSettings<'_> {
    /// How many fuzz.
    fn fuzzers(&self) -> usize {
        self.settings.jobs.max(1)
    }

    /// How many workers there are: those that fuzz, and one that minimizes where there is one.
    pub(super) fn workers(&self) -> usize {
        self.fuzzers() + usize::from(self.settings.when == When::Worker)
    }

    /// Where the random numbers of worker number `worker` begin. One that goes on in the place of
    /// another, or with a campaign, must not make the same mutants again.
    fn seed(&self, worker: usize, before: u32) -> u64 {
        let begun = self.run_before.wrapping_add(u64::from(before) << 32);
        let begun = begun.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seed = self.settings.seed.wrapping_add(worker as u64);
        seed.wrapping_add(begun)
    }

    /// The words of the dictionaries.
    fn tokens(&self) -> Tokens {
        let words = self.settings.words.all().iter().map(|word| &word.bytes);
        Tokens::from(words.cloned().collect::<Vec<_>>())
    }
}

/// The life of a worker, at the end of which its process ends. `before`: how many have died in its
/// place.
pub(super) fn run(
    brief: &WorkerSettings<'_>,
    mut manager: Manager,
    worker: usize,
    before: u32,
) -> ! {
    let socket = (&brief.socket, &brief.root);
    let Ok(remote) = Remote::connect(socket.0, socket.1, worker) else {
        exit(1)
    };
    let fuzzed = catch_unwind(AssertUnwindSafe(|| match worker > brief.fuzzers() {
        true => only_minimize(brief.settings, &remote, &mut manager),
        false => {
            let seed = brief.seed(worker, before);
            work(brief, &remote, &mut manager, (seed, before))
        }
    }));
    // A main process that cannot be reached has ended, and this process ends with it.
    match fuzzed {
        Ok(Ok(()) | Err(Error::ShuttingDown)) => exit(0),
        Ok(Err(error)) => {
            drop(remote.fail(&error.to_string()));
            exit(0)
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("it does not say why");
            drop(remote.note(&format!("a worker has panicked: {text}")));
            exit(101)
        }
    }
}

/// Fuzzes with random numbers from `seed` until it is told to end. `before`: how many have died in
/// its place.
fn work(
    brief: &WorkerSettings<'_>,
    remote: &Remote,
    manager: &mut Manager,
    (seed, before): (u64, u32),
) -> Result<(), Error> {
    let Settings { minimizing, .. } = brief.settings;
    let (target, way) = (&minimizing.target, minimizing.way);
    let mut executor = started(brief, remote, before)?;
    let desk = Arc::new(Mutex::new(remote.clone()));
    let mut objective = GroupObjective::new(Arc::clone(&desk), target, way)
        .map_err(|error| fail(&error))?
        .seeing(executor.sight())
        .filing_unnamed();
    let ddmin = DdminStage::new(desk, minimizing.clone(), percent(brief.settings.share))
        .map_err(|error| fail(&error))?;

    let map = executor.map().clone();
    let observers = executor.observers();
    let coverage = MaxMapFeedback::new(&observers[&map]);
    let calibration = CalibrationStage::new(&coverage);
    let mut feedback = feedback_and_fast!(Passed, coverage, CorpusFeedback::new(remote.clone()));
    let mut state = StdState::new(
        StdRand::with_seed(seed),
        InMemoryCorpus::<BytesInput>::new(),
        InMemoryCorpus::new(),
        &mut feedback,
        &mut objective,
    )?;
    state.set_max_size(usize::try_from(brief.max_len).unwrap_or(usize::MAX));
    state.add_metadata(brief.tokens());
    let power = Some(PowerSchedule::explore());
    let scheduler = IndexesLenTimeMinimizerScheduler::new(
        &observers[&map],
        StdWeightedScheduler::with_schedule(&mut state, &observers[&map], power),
    );
    let mut fuzzer = StdFuzzer::new(scheduler, feedback, objective);
    load(brief, &mut fuzzer, &mut executor, &mut state, manager)?;
    let mutator = HavocScheduledMutator::with_max_stack_pow(
        havoc_mutations().merge(tokens_mutations()),
        STACK,
    );
    let havoc = BatchStage::new(mutator, Power::Scheduled);
    let compare = CompareStage::new(target, way);
    let minimizes = brief.settings.when == When::Inline;
    let ddmin = IfStage::new(|_, _, _, _| Ok(minimizes), tuple_list!(ddmin));
    let mut stages = tuple_list!(calibration, ReportStage, compare, havoc, ddmin);
    let mut looked = Instant::now();
    while executor.heartbeat.left().map_err(|error| fail(&error))? > 0 {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, manager)?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            executor.heartbeat.status = status(&state, &executor);
            executor.hangs.learn_window(executor.timeouts.learned().cpu);
            manager.maybe_report_progress(&mut state, REPORT)?;
        }
    }
    report_rest(&mut fuzzer, &mut executor, &mut state, manager)
}

/// The executor of a worker, with its heartbeat.
fn started(
    brief: &WorkerSettings<'_>,
    remote: &Remote,
    before: u32,
) -> Result<TargetExecutor, Error> {
    let Settings { minimizing, .. } = brief.settings;
    let heartbeat = HeartbeatTimer::begin(remote.clone()).map_err(|error| fail(&error))?;
    let (target, way) = (&minimizing.target, minimizing.way);
    let mut executor =
        TargetExecutor::start(target, way, heartbeat, before).map_err(|error| fail(&error))?;
    executor.linked = brief.settings.network.is_used();
    Ok(executor)
}

/// Applies the last verdicts, and sends the counts that are not reported yet.
fn report_rest<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    apply_verdicts(fuzzer, executor, state, manager)?;
    for (signatures, runs) in executor.hangs.take_unnamed() {
        let counted = executor.heartbeat.remote().count_unnamed(signatures, runs);
        counted.map_err(|error| fail(&error))?;
    }
    executor.heartbeat.status = status(state, executor);
    executor
        .heartbeat
        .send_heartbeat()
        .map_err(|error| fail(&error))?;
    manager.send_exiting()
}

/// A share as whole percent, at least one.
fn percent(share: Share) -> u8 {
    (share.part() * 100.0).round().clamp(1.0, 100.0) as u8
}

/// Files that are read before they are run.
const AT_ONCE: usize = 64;
/// Inputs of the classic generator that a campaign begins with that has no other.
const GENERATED: u64 = 64;
/// The longest of them, in bytes: a short one is mutated more thoroughly.
const LENGTH: u64 = 1024;

/// Runs what the corpus of the output directory holds, and the seeds; where none passes, the empty
/// input and some of the classic generator. From all these the limit on the time of a run is
/// learned, unless it is given.
pub(super) fn load<Z>(
    brief: &WorkerSettings<'_>,
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let reader = Reader::open(&brief.root).map_err(|error| fail(&error))?;
    let files = reader.corpus().map_err(|error| fail(&error))?;
    for files in files.chunks(AT_ONCE) {
        let inputs: Vec<BytesInput> = files
            .iter()
            .filter_map(|file| read(file, brief.max_len))
            .collect();
        evaluate(fuzzer, executor, state, manager, &inputs, AfterHang::Run)?;
    }
    for seeds in brief.settings.seeds.all().chunks(AT_ONCE) {
        let inputs: Vec<BytesInput> = seeds
            .iter()
            .map(|seed| BytesInput::new(seed.bytes.clone()))
            .collect();
        evaluate(fuzzer, executor, state, manager, &inputs, AfterHang::Run)?;
    }
    if state.corpus().is_empty() {
        begin_with_nothing(brief, fuzzer, executor, state, manager)?;
    }
    if brief.settings.minimizing.learn_limit {
        executor.timeouts.learn();
    }
    Ok(())
}

/// The empty input, and inputs of the classic generator, until one passes.
fn begin_with_nothing<Z>(
    brief: &WorkerSettings<'_>,
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let empty = [BytesInput::new(Vec::new())];
    evaluate(fuzzer, executor, state, manager, &empty, AfterHang::Run)?;
    let plan = Plan {
        seed: brief.settings.seed,
        max_len: brief.max_len.min(LENGTH),
    };
    let mut run = 0;
    loop {
        let inputs: Vec<BytesInput> = (run..run + GENERATED)
            .map(|run| {
                let mut bytes = Vec::new();
                plan.input(run).write_into(&mut bytes);
                BytesInput::new(bytes)
            })
            .collect();
        evaluate(fuzzer, executor, state, manager, &inputs, AfterHang::Run)?;
        run += GENERATED;
        let left = executor.heartbeat.left().map_err(|error| fail(&error))?;
        if left == 0 || !state.corpus().is_empty() {
            return Ok(());
        }
    }
}

/// A file of the corpus; one that is gone, or too long, is left out.
fn read(path: &Path, max_len: u64) -> Option<BytesInput> {
    let length = path.metadata().ok()?.len();
    let bytes = (length <= max_len).then(|| std::fs::read(path).ok())??;
    Some(BytesInput::new(bytes))
}

/// Between two questions for only_minimize.
const IDLE: Duration = Duration::from_millis(100);
/// How long it waits for room on the disk.
const PAUSE: Duration = Duration::from_secs(2);

/// Minimizes one group after the other until it is told to end. What is under way then is continued
/// by the main process, from its log: the end of the fuzzing and Ctrl-C look the same here.
pub(super) fn only_minimize(
    settings: &Settings,
    remote: &Remote,
    manager: &mut Manager,
) -> Result<(), Error> {
    let mut desk = remote.clone();
    let shelf = Mutex::new(remote.clone());
    let stop = AtomicBool::new(false);
    while !remote
        .send_heartbeat(Heartbeat::default())
        .map_err(|error| fail(&error))?
        .stop
    {
        let Some(id) = desk.claim().map_err(|error| fail(&error))? else {
            std::thread::sleep(IDLE);
            continue;
        };
        let began = Instant::now();
        let mut watch = || {
            let told = remote.send_heartbeat(Heartbeat::default());
            stop.store(told.map_or(true, |order| order.stop), Ordering::Relaxed);
        };
        let done = minimize_entry(&shelf, &settings.minimizing, &stop, &id, &mut watch);
        desk.release(&id, done.is_ok(), began.elapsed())
            .map_err(|error| fail(&error))?;
        match done {
            Ok(()) | Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
            Err(error) if error.full_at().is_some() => std::thread::sleep(PAUSE),
            Err(error) => return Err(fail(&error)),
        }
    }
    manager.send_exiting()
}

/// The content of the next heartbeat.
pub(super) fn status(state: &State, executor: &TargetExecutor) -> Heartbeat {
    let history = state
        .named_metadata_map()
        .get::<MapFeedbackMetadata<u8>>(EDGES);
    let unstable = state.metadata_map().get::<UnstableEntriesMetadata>();
    Heartbeat {
        corpus: state.corpus().count() as u64,
        edges: history.map_or(0, |history| history.num_covered_map_indexes as u64),
        edges_of: executor.executor.places().unwrap_or(0) as u64,
        unstable: unstable.map_or(0, |unstable| unstable.unstable_entries().len() as u64),
        ..executor.heartbeat.status
    }
}

/// Has what goes to the corpus stored, as `corpus/HASH` of the output directory.
pub(super) struct CorpusFeedback {
    name: Cow<'static, str>,
    remote: Remote,
}

impl CorpusFeedback {
    /// Stores through `remote`.
    pub(super) fn new(remote: Remote) -> CorpusFeedback {
        CorpusFeedback {
            name: Cow::Borrowed("kept"),
            remote,
        }
    }
}

impl Named for CorpusFeedback {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}

impl<S> StateInitializer<S> for CorpusFeedback {}

impl<EM, OT, S> Feedback<EM, BytesInput, OT, S> for CorpusFeedback {
    fn is_interesting(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _input: &BytesInput,
        _observers: &OT,
        _exit_kind: &ExitKind,
    ) -> Result<bool, Error> {
        Ok(true)
    }

    fn append_metadata(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _observers: &OT,
        testcase: &mut Testcase<BytesInput>,
    ) -> Result<(), Error> {
        match testcase.input() {
            Some(input) => self
                .remote
                .keep(input.as_ref())
                .map_err(|error| fail(&error)),
            None => Ok(()),
        }
    }
}

/// The counters of the last run, by ranges of their values.
pub(super) type Map =
    ExplicitTracking<HitcountsMapObserver<StdMapObserver<'static, u8, false>>, true, false>;

/// What is observed of a run.
pub(super) type Observers = (Map, (EndObserver, ()));

/// A worker's state.
pub(super) type State =
    StdState<InMemoryCorpus<BytesInput>, BytesInput, StdRand, InMemoryCorpus<BytesInput>>;

/// A worker's link to the others.
pub(super) type Manager = LlmpEventManager<(), BytesInput, State, UnixShMem, UnlinkedShMem>;
