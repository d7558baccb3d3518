//! A worker: a fuzzer of LibAFL's parts on our executor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use libafl::Error;
use libafl::corpus::InMemoryCorpus;
use libafl::events::{ProgressReporter, SendExiting};
use libafl::executors::HasObservers;
use libafl::feedback_and_fast;
use libafl::feedbacks::MaxMapFeedback;
use libafl::fuzzer::{Fuzzer, HasObjective, StdFuzzer};
use libafl::inputs::BytesInput;
use libafl::mutators::{HavocScheduledMutator, havoc_mutations, tokens_mutations};
use libafl::schedulers::powersched::PowerSchedule;
use libafl::schedulers::{IndexesLenTimeMinimizerScheduler, StdWeightedScheduler};
use libafl::stages::CalibrationStage;
use libafl::state::{HasMaxSize, StdState};
use libafl_bolts::rands::StdRand;
use libafl_bolts::tuples::{Merge, tuple_list};

use super::batch::{BatchStage, Power};
use super::executor::{TargetExecutor, fail};
use super::feedbacks::{Kept, Passed};
use super::findings::Findings;
use super::load::load;
use super::parts::Manager;
use super::process::exit;
use super::pulse::Pulse;
use super::remote::Remote;
use super::standing::standing;
use crate::campaign::Settings;
use crate::triage::Triager;

/// Between two looks at how the worker stands.
const LOOK: Duration = Duration::from_millis(100);
/// Between two messages to the monitors.
const REPORT: Duration = Duration::from_secs(5);

/// What a worker has to know.
pub(super) struct Brief<'a> {
    pub(super) settings: &'a Settings,
    /// The output directory.
    pub(super) root: PathBuf,
    /// Where the hub listens.
    pub(super) socket: PathBuf,
    /// The greatest length of an input, in bytes.
    pub(super) max_len: u64,
}

/// The life of a worker, at the end of which its process ends.
pub(super) fn run(brief: &Brief<'_>, mut manager: Manager, worker: usize) -> ! {
    let socket = (&brief.socket, &brief.root);
    let Ok(remote) = Remote::connect(socket.0, socket.1, worker) else {
        exit(1)
    };
    let fuzzed = catch_unwind(AssertUnwindSafe(|| {
        work(brief, &remote, &mut manager, worker)
    }));
    // Who cannot be reached any more has ended, and this process with it.
    match fuzzed {
        Ok(Ok(()) | Err(Error::ShuttingDown)) => exit(0),
        Ok(Err(error)) => {
            drop(remote.fail(&error.to_string()));
            exit(0)
        }
        Err(_) => {
            drop(remote.note("a worker has panicked, and starts again"));
            exit(101)
        }
    }
}

/// Fuzzes as worker number `worker` until it is told to end.
fn work(
    brief: &Brief<'_>,
    remote: &Remote,
    manager: &mut Manager,
    worker: usize,
) -> Result<(), Error> {
    let Settings { minimizing, .. } = brief.settings;
    let pulse = Pulse::begin(remote.clone()).map_err(|error| fail(&error))?;
    let (target, way) = (&minimizing.target, minimizing.way);
    let mut executor = TargetExecutor::start(target, way, pulse).map_err(|error| fail(&error))?;
    executor.linked = brief.settings.network.is_used();
    let triager = Triager::of_target(target, way).map_err(|error| fail(&error))?;
    let mut findings =
        Findings::new(triager, remote.clone(), target.crash_exit).map_err(|error| fail(&error))?;

    let map = executor.map().clone();
    let observers = executor.observers();
    let coverage = MaxMapFeedback::new(&observers[&map]);
    let calibration = CalibrationStage::new(&coverage);
    let mut feedback = feedback_and_fast!(Passed::new(), coverage, Kept::new(remote.clone()));
    let mut state = StdState::new(
        StdRand::with_seed(brief.settings.seed.wrapping_add(worker as u64)),
        InMemoryCorpus::<BytesInput>::new(),
        InMemoryCorpus::new(),
        &mut feedback,
        &mut findings,
    )?;
    state.set_max_size(usize::try_from(brief.max_len).unwrap_or(usize::MAX));
    let power = Some(PowerSchedule::explore());
    let scheduler = IndexesLenTimeMinimizerScheduler::new(
        &observers[&map],
        StdWeightedScheduler::with_schedule(&mut state, &observers[&map], power),
    );
    drop(observers);
    let mut fuzzer = StdFuzzer::new(scheduler, feedback, findings);

    load(brief, &mut fuzzer, &mut executor, &mut state, manager)?;
    let havoc = HavocScheduledMutator::new(havoc_mutations().merge(tokens_mutations()));
    let mut stages = tuple_list!(calibration, BatchStage::new(havoc, Power::Scheduled));
    let mut looked = Instant::now();
    let mut known = 0;
    while executor.pulse.left().map_err(|error| fail(&error))? > 0 {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, manager)?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            executor.pulse.standing = standing(&state, &executor);
            let findings = fuzzer.objective_mut();
            findings.flush().map_err(|error| fail(&error))?;
            if executor.pulse.known() != known {
                known = executor.pulse.known();
                findings.refresh().map_err(|error| fail(&error))?;
            }
            manager.maybe_report_progress(&mut state, REPORT)?;
        }
    }
    executor.pulse.standing = standing(&state, &executor);
    fuzzer
        .objective_mut()
        .flush()
        .map_err(|error| fail(&error))?;
    executor.pulse.beat().map_err(|error| fail(&error))?;
    manager.send_exiting()
}
