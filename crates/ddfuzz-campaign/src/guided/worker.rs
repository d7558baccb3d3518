//! A worker: a fuzzer of LibAFL's parts on our executor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libafl::corpus::InMemoryCorpus;
use libafl::events::{ProgressReporter, SendExiting};
use libafl::executors::HasObservers;
use libafl::feedback_and_fast;
use libafl::feedbacks::MaxMapFeedback;
use libafl::fuzzer::{ExecutionProcessor, Fuzzer, StdFuzzer};
use libafl::inputs::BytesInput;
use libafl::mutators::{HavocScheduledMutator, Tokens, havoc_mutations, tokens_mutations};
use libafl::schedulers::powersched::PowerSchedule;
use libafl::schedulers::{IndexesLenTimeMinimizerScheduler, StdWeightedScheduler};
use libafl::stages::{CalibrationStage, IfStage};
use libafl::state::{HasMaxSize, StdState};
use libafl::{Error, HasMetadata};
use libafl_bolts::rands::StdRand;
use libafl_bolts::tuples::{Merge, tuple_list};

use super::batch::{BatchStage, Power};
use super::compare::CompareStage;
use super::evaluate::{UnheardStage, hear_judged};
use super::executor::{TargetExecutor, fail};
use super::kept::Kept;
use super::load::load;
use super::minimizer;
use super::parts::{Manager, Observers, State};
use super::process::exit;
use super::pulse::Pulse;
use super::remote::Remote;
use super::standing::standing;
use crate::{DdminStage, GroupObjective, Passed, Settings, Share, When};

/// Between two looks at how the worker stands.
const LOOK: Duration = Duration::from_millis(100);
/// Between two messages to the monitors.
const REPORT: Duration = Duration::from_secs(5);

/// Mutations of one mutant: 2 to the power of at most this. LibAFL's own 7 makes 36 of them on
/// average, which takes longer than most targets run, and leaves little of a short input.
const STACK: usize = 3;

/// What a worker has to know.
pub(super) struct Brief<'a> {
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

impl Brief<'_> {
    /// How many fuzz.
    fn fuzzers(&self) -> usize {
        self.settings.jobs.max(1)
    }

    /// How many workers there are: those who fuzz, and one who minimizes where that is wanted.
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
pub(super) fn run(brief: &Brief<'_>, mut manager: Manager, worker: usize, before: u32) -> ! {
    let socket = (&brief.socket, &brief.root);
    let Ok(remote) = Remote::connect(socket.0, socket.1, worker) else {
        exit(1)
    };
    let fuzzed = catch_unwind(AssertUnwindSafe(|| match worker > brief.fuzzers() {
        true => minimizer::work(brief.settings, &remote, &mut manager),
        false => {
            let seed = brief.seed(worker, before);
            work(brief, &remote, &mut manager, (seed, before))
        }
    }));
    // Who cannot be reached any more has ended, and this process with it.
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
    brief: &Brief<'_>,
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
    let mut feedback = feedback_and_fast!(Passed, coverage, Kept::new(remote.clone()));
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
    let mut stages = tuple_list!(calibration, UnheardStage, compare, havoc, ddmin);
    let mut looked = Instant::now();
    while executor.pulse.left().map_err(|error| fail(&error))? > 0 {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, manager)?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            executor.pulse.standing = standing(&state, &executor);
            executor.hangs.learn_window(executor.patience.learned().cpu);
            manager.maybe_report_progress(&mut state, REPORT)?;
        }
    }
    take_leave(&mut fuzzer, &mut executor, &mut state, manager)
}

/// The executor of a worker, with its heartbeat.
fn started(brief: &Brief<'_>, remote: &Remote, before: u32) -> Result<TargetExecutor, Error> {
    let Settings { minimizing, .. } = brief.settings;
    let pulse = Pulse::begin(remote.clone()).map_err(|error| fail(&error))?;
    let (target, way) = (&minimizing.target, minimizing.way);
    let mut executor =
        TargetExecutor::start(target, way, pulse, before).map_err(|error| fail(&error))?;
    executor.linked = brief.settings.network.is_used();
    Ok(executor)
}

/// Hears what the last beats have brought, and tells what none has told yet.
fn take_leave<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    hear_judged(fuzzer, executor, state, manager)?;
    for (signatures, runs) in executor.hangs.take_unnamed() {
        let counted = executor.pulse.remote().count_unnamed(signatures, runs);
        counted.map_err(|error| fail(&error))?;
    }
    executor.pulse.standing = standing(state, executor);
    executor.pulse.beat().map_err(|error| fail(&error))?;
    manager.send_exiting()
}

/// A share as whole percent, at least one.
fn percent(share: Share) -> u8 {
    (share.part() * 100.0).round().clamp(1.0, 100.0) as u8
}
