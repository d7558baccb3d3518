//! A worker process: its LibAFL fuzzer (scheduler, stages), the inputs that it
//! begins with, and the worker that only minimizes (`--minimize worker`).

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
use libafl::mutators::Tokens;
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
use libafl_bolts::tuples::tuple_list;

use super::compare::Comparer;
use super::evaluate::{AfterFailure, Evaluator, Parents};
use super::executor::{EDGES, EndObserver, STACK_STEPS, TargetExecutor, fail};
use super::messages::{Heartbeat, HeartbeatTimer, MainProcess, Request};
use super::mutants::MutationStage;
use super::process::{OneProcessor, UnlinkedShMem, exit};
use super::reached_code;
use super::structure::StructureMutator;
use crate::{
    CampaignError, CrashSink, DdminStage, DiskFullError, GroupObjective, Minimizing, Passed, Plan,
    Settings, Share, When, minimization_queue::minimize_entry, until::classifying,
};
use ddfuzz_exec::{AbandonWhen, Target, Way};
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::Reader;
use ddfuzz_structure::MutationParser;

/// Time between two updates of the status that the worker's heartbeats report to the main process.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two reports of a worker to LibAFL's monitors.
const REPORT: Duration = Duration::from_secs(5);

/// The settings of all workers of a guided campaign that the main process starts together.
pub(super) struct WorkerSettings<'a> {
    pub(super) settings: &'a Settings,
    /// Path of the output directory, which workers only read.
    pub(super) root: PathBuf,
    /// Path of the socket of the main process, to which workers connect.
    pub(super) socket: PathBuf,
    /// Greatest length of an input in bytes.
    pub(super) max_len: u64,
    /// Number of the campaign's runs that were made before these workers were started.
    pub(super) run_before: u64,
    /// Conditions under which the workers abandon their runs, such as the end of fuzzing.
    pub(super) abandon_when: AbandonWhen,
}

impl WorkerSettings<'_> {
    /// Returns the number of workers that fuzz, without a worker that only minimizes.
    fn fuzzers(&self) -> usize {
        self.settings.jobs.max(1)
    }

    /// Returns the number of workers: those that fuzz, and with `--minimize worker` one that
    /// minimizes.
    pub(super) fn workers(&self) -> usize {
        self.fuzzers() + usize::from(self.settings.when == When::Worker)
    }

    /// Returns the random seed of worker number `worker`. A restarted worker or a resumed campaign
    /// gets a different seed, so that the same mutants are not made again. `before`: number of
    /// earlier processes of the worker.
    fn seed(&self, worker: usize, before: u32) -> u64 {
        let begun = self.run_before.wrapping_add(u64::from(before) << 32);
        let begun = begun.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seed = self.settings.seed.wrapping_add(worker as u64);
        seed.wrapping_add(begun)
    }

    /// Returns the settings for the minimizations that workers make: those of the campaign, with
    /// the addition that runs are abandoned when fuzzing has ended. The main process then continues
    /// the minimizations.
    fn minimizing(&self) -> Minimizing {
        let minimizing = self.settings.minimizing.clone();
        Minimizing {
            target: Target {
                abandon_when: self.abandon_when.clone(),
                ..minimizing.target
            },
            ..minimizing
        }
    }

    /// Returns all words of the campaign, from dictionaries and the program, as LibAFL's tokens.
    fn tokens(&self) -> Tokens {
        let words = self.settings.words.all().iter().map(|word| &word.bytes);
        Tokens::from(words.cloned().collect::<Vec<_>>())
    }
}

/// Runs worker number `worker` of a guided campaign in this process, and then ends the process. The
/// exit status is 0 when the worker has ended or has reported its failure. It differs from 0 when
/// the worker has panicked or cannot connect; the supervisor then restarts the worker. `before`:
/// how many earlier processes of this worker have crashed.
pub(super) fn run(
    brief: &WorkerSettings<'_>,
    mut manager: Manager,
    worker: usize,
    before: u32,
) -> ! {
    let socket = (&brief.socket, &brief.root);
    let Ok(main_process) = MainProcess::connect(socket.0, socket.1, worker) else {
        exit(1)
    };
    let fuzzed = catch_unwind(AssertUnwindSafe(|| match worker > brief.fuzzers() {
        true => only_minimize(brief, &main_process, &mut manager),
        false => {
            let seed = brief.seed(worker, before);
            work(brief, &main_process, &mut manager, (seed, before))
        }
    }));
    // A main process that cannot be reached has ended, so this process ends too.
    match fuzzed {
        Ok(Ok(()) | Err(Error::ShuttingDown)) => exit(0),
        // Its runs were abandoned.
        Ok(Err(_)) if brief.abandon_when.is_met() => exit(0),
        Ok(Err(error)) => {
            drop(main_process.tell(&Request::Failed(error.to_string()), &[]));
            exit(0)
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("it does not say why");
            let note = format!("a worker has panicked: {text}");
            drop(main_process.tell(&Request::Note(note), &[]));
            exit(101)
        }
    }
}

/// Starts the target and fuzzes with the random seed `seed` until the main process ends the worker,
/// then reports the last counts, without the run that was abandoned then. `before`: how many earlier processes of this worker have crashed.
fn work(
    brief: &WorkerSettings<'_>,
    main_process: &MainProcess,
    manager: &mut Manager,
    (seed, before): (u64, u32),
) -> Result<(), Error> {
    let minimizing = brief.minimizing();
    let (target, way) = (&minimizing.target, minimizing.way);
    let heartbeat = HeartbeatTimer::begin(main_process.clone()).map_err(fail)?;
    let executor = TargetExecutor::start(target, way, heartbeat, before);
    let mut executor = executor.map_err(fail)?;
    executor.linked = brief.settings.network.is_used();
    let sink = Arc::new(Mutex::new(main_process.clone()));
    let mut objective = GroupObjective::new(Arc::clone(&sink), &classifying(target), way)
        .map_err(fail)?
        .reading(executor.failed_run.clone())
        .storing_unclassified();
    let ddmin =
        DdminStage::new(sink, minimizing.clone(), percent(brief.settings.share)).map_err(fail)?;

    let map = executor.map.clone();
    let observers = executor.observers();
    let coverage = MaxMapFeedback::new(&observers[&map]);
    let calibration = CalibrationStage::new(&coverage);
    let mut feedback =
        feedback_and_fast!(Passed, coverage, CorpusFeedback::new(main_process.clone()));
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
    let mut evaluator = Evaluator {
        fuzzer: &mut fuzzer,
        executor: &mut executor,
        state: &mut state,
        manager,
    };
    let loaded = load(brief, &mut evaluator);
    let structure = brief.settings.mutated_structure.as_deref();
    let mutator = StructureMutator::new(structure.and_then(MutationParser::named));
    let mutation = MutationStage::new(Comparer::new(target, way), mutator);
    let minimizes = brief.settings.when == When::Inline;
    let ddmin = IfStage::new(|_, _, _, _| Ok(minimizes), tuple_list!(ddmin));
    let mut stages = tuple_list!(calibration, mutation, ddmin);
    let fuzzed = loaded.and_then(|()| fuzz(&mut evaluator, &mut stages));
    if !brief.abandon_when.is_met() {
        fuzzed?;
    }
    report_rest(&mut evaluator)
}

/// Runs LibAFL's fuzzing loop until the main process ends the worker; renews the status that the
/// worker's heartbeats report ten times a second.
fn fuzz<Z, ST>(evaluator: &mut Evaluator<'_, Z>, stages: &mut ST) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>
        + Fuzzer<TargetExecutor, Manager, BytesInput, State, ST>,
{
    let mut looked = Instant::now();
    let is_forkserver = evaluator.executor.executor.way() == Way::Forkserver;
    let mut processor = is_forkserver.then(OneProcessor::new).transpose()?;
    while evaluator.runs_left()? > 0 {
        if let Some(processor) = &mut processor {
            processor.choose();
        }
        let Evaluator {
            fuzzer,
            executor,
            state,
            manager,
        } = evaluator;
        fuzzer.fuzz_one(stages, executor, state, manager)?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            executor.heartbeat.status = status(state, executor);
            report_reached(state, executor)?;
            executor.hangs.learn_window(executor.timeouts.learned.cpu);
            manager.maybe_report_progress(state, REPORT)?;
        }
    }
    Ok(())
}

/// Reports, when the worker ends, everything that it has not reported yet: applies the last
/// verdicts about suspected hangs, and sends the counts of runs, the reached blocks and the last
/// heartbeat.
fn report_rest<Z>(evaluator: &mut Evaluator<'_, Z>) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    evaluator.apply_verdicts()?;
    let executor = &mut *evaluator.executor;
    for (signatures, runs) in executor.hangs.take_unclassified() {
        let request = Request::CountUnclassified { signatures, runs };
        let main_process = &executor.heartbeat.main_process;
        main_process.ask_done(&request, &[]).map_err(fail)?;
    }
    executor.heartbeat.status = status(evaluator.state, executor);
    report_reached(evaluator.state, executor)?;
    executor.heartbeat.send_heartbeat().map_err(fail)?;
    evaluator.manager.send_exiting()
}

/// Converts a share (a fraction) to whole percent, at least 1.
fn percent(share: Share) -> u8 {
    (share.part() * 100.0).round().clamp(1.0, 100.0) as u8
}

/// Number of corpus files or seeds that are loaded before they are run together.
const AT_ONCE: usize = 64;
/// Number of inputs of the classic generator that a worker runs together, before it decides whether
/// to generate more.
const GENERATED: u64 = 64;
/// For an unmodified (not instrumented) program: if this many generated inputs in a row have not
/// entered the corpus, a worker stops generating inputs, unless the corpus is empty.
const BARREN: u64 = 512;
/// A worker that fuzzes an unmodified (not instrumented) program generates at most this many
/// inputs, provided that at least one input has entered the corpus by then.
const MOST_GENERATED: u64 = 8192;
/// Greatest lengths, in bytes, of the inputs of the classic generator that a worker runs while none
/// of its inputs has passed. For an unmodified program the lengths take turns, 64 inputs each, so
/// that coverage of a short input is not attributed to a longer one; short inputs are mutated more
/// thoroughly. For an instrumented program, only the last length is used.
const GENERATED_LENGTHS: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

/// Fills the worker's corpus: runs the corpus of the output directory and then the seeds; if no
/// input enters the worker's corpus, also the empty input and inputs of the classic generator.
/// Learns the time limit of runs from all these inputs, unless the user has set the limit.
fn load<Z>(brief: &WorkerSettings<'_>, evaluator: &mut Evaluator<'_, Z>) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let reader = Reader::open(&brief.root).map_err(fail)?;
    let files = reader.corpus().map_err(fail)?;
    for files in files.chunks(AT_ONCE) {
        let read = |file: &PathBuf| read(file, brief.max_len);
        let inputs: Vec<BytesInput> = files.iter().filter_map(read).collect();
        evaluator.evaluate(&inputs, Parents::default(), AfterFailure::Run)?;
    }
    for seeds in brief.settings.seeds.all().chunks(AT_ONCE) {
        let inputs = seeds.iter().map(|seed| BytesInput::new(seed.bytes.clone()));
        evaluator.evaluate(
            &inputs.collect::<Vec<_>>(),
            Parents::default(),
            AfterFailure::Run,
        )?;
    }
    if evaluator.state.corpus().is_empty() {
        generate(brief, evaluator)?;
    }
    if brief.settings.minimizing.learn_limit {
        evaluator.executor.timeouts.learn();
    }
    Ok(())
}

/// Runs the empty input, and then 64 inputs of the classic generator at a time. Ends when one has
/// entered the corpus, and for an unmodified (not instrumented) program when the inputs no longer
/// reach anything new; also ends when the worker must end.
fn generate<Z>(brief: &WorkerSettings<'_>, evaluator: &mut Evaluator<'_, Z>) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    evaluator.evaluate(
        &[BytesInput::new(Vec::new())],
        Parents::default(),
        AfterFailure::Run,
    )?;
    let plan = Plan {
        seed: brief.settings.seed,
        max_len: brief.max_len,
    };
    let is_unmodified = evaluator.executor.reported_blocks.is_some();
    let (mut run, mut fruitful) = (0, 0);
    loop {
        let before = evaluator.state.corpus().count();
        let longest = match is_unmodified {
            true => GENERATED_LENGTHS[(run / GENERATED) as usize % GENERATED_LENGTHS.len()],
            false => GENERATED_LENGTHS[GENERATED_LENGTHS.len() - 1],
        };
        let inputs = (run..run + GENERATED).map(|run| {
            let mut name = plan.input(run);
            name.length = name.length.min(longest);
            let mut bytes = Vec::new();
            name.write_into(&mut bytes);
            BytesInput::new(bytes)
        });
        evaluator.evaluate(
            &inputs.collect::<Vec<_>>(),
            Parents::default(),
            AfterFailure::Run,
        )?;
        run += GENERATED;
        let count = evaluator.state.corpus().count();
        if count > before {
            fruitful = run;
        }
        let goes_on = is_unmodified && run < MOST_GENERATED && run - fruitful < BARREN;
        if evaluator.runs_left()? == 0 || count > 0 && !goes_on {
            return Ok(());
        }
    }
}

/// Reads an input from a file of the corpus; `None` if the file cannot be read or is longer than
/// `max_len` bytes.
fn read(path: &Path, max_len: u64) -> Option<BytesInput> {
    let length = path.metadata().ok()?.len();
    let bytes = (length <= max_len).then(|| std::fs::read(path).ok())??;
    Some(BytesInput::new(bytes))
}

/// Time between two requests of the minimizing worker for an entry to minimize, while no entry is
/// to be minimized.
const IDLE: Duration = Duration::from_millis(100);
/// Time that the minimizing worker waits, while the disk is full, before it tries again.
const PAUSE: Duration = Duration::from_secs(2);

/// Works as the minimizing worker: gets one entry after the other from the main process and
/// minimizes it, until the main process ends the worker. A minimization that is interrupted by this
/// end is continued later from its log.
fn only_minimize(
    brief: &WorkerSettings<'_>,
    main_process: &MainProcess,
    manager: &mut Manager,
) -> Result<(), Error> {
    let minimizing = brief.minimizing();
    let mut sink = main_process.clone();
    let writer = Mutex::new(main_process.clone());
    let stop = AtomicBool::new(false);
    while !main_process
        .send_heartbeat(Heartbeat::default())
        .map_err(fail)?
        .stop
    {
        let Some(id) = sink.claim().map_err(fail)? else {
            std::thread::sleep(IDLE);
            continue;
        };
        let began = Instant::now();
        let mut watch = || {
            let order = main_process.send_heartbeat(Heartbeat::default());
            stop.store(order.map_or(true, |order| order.stop), Ordering::Relaxed);
        };
        let done = minimize_entry(&writer, &minimizing, &stop, &id, &mut watch);
        sink.release(&id, done.is_ok(), began.elapsed())
            .map_err(fail)?;
        match done {
            Ok(()) | Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
            Err(error) if error.full_at().is_some() => std::thread::sleep(PAUSE),
            Err(_) if brief.abandon_when.is_met() => {}
            Err(error) => return Err(fail(&error)),
        }
    }
    manager.send_exiting()
}

/// Returns the status that the worker's next heartbeat reports: sizes of its corpus and of its
/// coverage.
fn status(state: &State, executor: &TargetExecutor) -> Heartbeat {
    let history = state
        .named_metadata_map()
        .get::<MapFeedbackMetadata<u8>>(EDGES);
    let unstable = state.metadata_map().get::<UnstableEntriesMetadata>();
    Heartbeat {
        corpus: state.corpus().count() as u64,
        edges: history.map_or(0, |history| covered_places(history) as u64),
        edges_of: executor.executor.counter_count().unwrap_or(0) as u64,
        unstable: unstable.map_or(0, |unstable| unstable.unstable_entries().len() as u64),
        ..executor.heartbeat.status
    }
}

/// Returns the number of places in the program that the worker's runs have covered. The entries at
/// the end of the coverage map, which stand for depths of the stack, do not count.
fn covered_places(history: &MapFeedbackMetadata<u8>) -> usize {
    let map = &history.history_map;
    let steps = &map[map.len().saturating_sub(STACK_STEPS)..];
    let deep = steps.iter().filter(|count| **count != 0).count();
    history.num_covered_map_indexes.saturating_sub(deep)
}

/// Sends the main process the blocks of an unmodified (not instrumented) program that runs have
/// reached since the last call; does nothing if there are none, or the target is instrumented.
fn report_reached(state: &State, executor: &mut TargetExecutor) -> Result<(), Error> {
    let metadata = state.named_metadata_map();
    let history = metadata.get::<MapFeedbackMetadata<u8>>(EDGES);
    let Some((reported, history)) = executor.reported_blocks.as_mut().zip(history) else {
        return Ok(());
    };
    let places = history.history_map.iter().zip(reported).enumerate();
    let new = places.filter(|(_, (count, reported))| **count != 0 && !**reported);
    let message = reached_code::to_bytes(new.map(|(block, (_, reported))| {
        *reported = true;
        block
    }));
    if message.is_empty() {
        return Ok(());
    }
    let main_process = &executor.heartbeat.main_process;
    main_process.tell(&Request::Reached, &message).map_err(fail)
}

/// A LibAFL feedback that finds every input interesting. When an input enters the worker's corpus,
/// the feedback sends it to the main process, which stores it as `corpus/HASH` in the output
/// directory.
struct CorpusFeedback {
    name: Cow<'static, str>,
    main_process: MainProcess,
}

impl CorpusFeedback {
    /// Creates a feedback that sends inputs which enter the worker's corpus to `main_process`.
    fn new(main_process: MainProcess) -> CorpusFeedback {
        CorpusFeedback {
            name: Cow::Borrowed("kept"),
            main_process,
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
            Some(input) => {
                let kept = self
                    .main_process
                    .tell(&Request::AddToCorpus, input.as_ref());
                kept.map_err(fail)
            }
            None => Ok(()),
        }
    }
}

/// LibAFL's observer of a run's coverage counters, which it classifies by ranges of hit counts.
pub(super) type Map =
    ExplicitTracking<HitcountsMapObserver<StdMapObserver<'static, u8, false>>, true, false>;

/// LibAFL's observers of a run: the coverage map, and how the run ended.
pub(super) type Observers = (Map, (EndObserver, ()));

/// The LibAFL state of a worker's fuzzer.
pub(super) type State =
    StdState<InMemoryCorpus<BytesInput>, BytesInput, StdRand, InMemoryCorpus<BytesInput>>;

/// The LibAFL event manager through which a worker exchanges test cases with the other workers.
pub(super) type Manager = LlmpEventManager<(), BytesInput, State, UnixShMem, UnlinkedShMem>;
