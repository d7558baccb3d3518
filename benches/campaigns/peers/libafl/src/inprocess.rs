//! A fuzzer of LibAFL's own parts that calls the harness in its own process, and ends with the
//! first crash: map of inline 8-bit counters, calibration, comparisons to input (I2S), havoc with
//! tokens by MOpt, power schedule, corpus in memory.

mod order;

use std::time::Duration;

use libafl::Error;
use libafl::corpus::{Corpus, InMemoryCorpus, OnDiskCorpus};
use libafl::events::SimpleEventManager;
use libafl::executors::{ExitKind, InProcessExecutor, ShadowExecutor};
use libafl::feedbacks::{CrashFeedback, MaxMapFeedback};
use libafl::fuzzer::{Fuzzer, StdFuzzer};
use libafl::inputs::{BytesInput, HasTargetBytes};
use libafl::monitors::NopMonitor;
use libafl::mutators::{
    HavocScheduledMutator, StdMOptMutator, havoc_mutations, token_mutations::I2SRandReplace,
    tokens_mutations,
};
use libafl::observers::{CanTrack, HitcountsMapObserver, StdMapObserver, TimeObserver};
use libafl::schedulers::{
    IndexesLenTimeMinimizerScheduler, StdWeightedScheduler, powersched::PowerSchedule,
};
use libafl::stages::{
    CalibrationStage, ShadowTracingStage, StdMutationalStage, StdPowerMutationalStage,
};
use libafl::state::{HasCorpus, HasExecutions, HasMaxSize, StdState};
use libafl_bolts::rands::StdRand;
use libafl_bolts::tuples::{Merge, tuple_list};
use libafl_targets::{CmpLogObserver, extra_counters};

use order::Order;

unsafe extern "C" {
    fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> core::ffi::c_int;
}

/// What the linker takes for the program's `main`.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> core::ffi::c_int {
    match Order::of_command_line().and_then(|order| fuzz(&order)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {error}");
            2
        }
    }
}

/// Where the code of each counter stands, which nobody here asks for.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(_start: *const usize, _end: *const usize) {}

fn harness(input: &BytesInput) -> ExitKind {
    let bytes = input.target_bytes();
    // SAFETY: the harness reads no more than it is given.
    unsafe { LLVMFuzzerTestOneInput(bytes.as_ptr(), bytes.len()) };
    ExitKind::Ok
}

fn counters() -> Result<StdMapObserver<'static, u8, false>, Error> {
    // SAFETY: the harness is the only module with counters, and they live as long as the process.
    let mut maps = unsafe { extra_counters() };
    match maps.as_mut_slice() {
        // SAFETY: as above; the executor alone reads them, and only between two runs.
        [map] => Ok(unsafe { StdMapObserver::from_mut_ptr("edges", map.as_mut_ptr(), map.len()) }),
        maps => Err(Error::unsupported(format!(
            "{} maps of counters",
            maps.len()
        ))),
    }
}

fn fuzz(order: &Order) -> Result<(), Error> {
    let edges = counters()?;
    let edges = HitcountsMapObserver::new(edges).track_indices();
    let coverage = MaxMapFeedback::new(&edges);
    let calibration = CalibrationStage::new(&coverage);
    let (mut feedback, mut objective) = (coverage, CrashFeedback::new());
    let mut state = StdState::new(
        StdRand::with_seed(order.seed),
        InMemoryCorpus::<BytesInput>::new(),
        OnDiskCorpus::new(order.work.join("crashes"))?,
        &mut feedback,
        &mut objective,
    )?;
    state.set_max_size(order.longest);
    let mutator = StdMOptMutator::new(
        &mut state,
        havoc_mutations().merge(tokens_mutations()),
        7,
        5,
    )?;
    let power: StdPowerMutationalStage<_, _, BytesInput, _, _, _> =
        StdPowerMutationalStage::new(mutator);
    let i2s = StdMutationalStage::new(HavocScheduledMutator::new(tuple_list!(
        I2SRandReplace::new()
    )));
    let weighted =
        StdWeightedScheduler::with_schedule(&mut state, &edges, Some(PowerSchedule::fast()));
    let scheduler = IndexesLenTimeMinimizerScheduler::new(&edges, weighted);
    let mut fuzzer = StdFuzzer::new(scheduler, feedback, objective);
    let mut manager = SimpleEventManager::new(NopMonitor::new());
    let mut harness = harness;
    let executor = InProcessExecutor::builder()
        .timeout(Duration::from_secs(1))
        .harness(&mut harness)
        .observers(tuple_list!(edges, TimeObserver::new("time")))
        .fuzzer(&mut fuzzer)
        .state(&mut state)
        .event_mgr(&mut manager)
        .build()?;
    let comparisons = CmpLogObserver::new("comparisons", true);
    let mut executor = ShadowExecutor::new(executor, tuple_list!(comparisons));
    let mut stages = tuple_list!(calibration, ShadowTracingStage::new(), i2s, power);
    let folders = [order.seeds.clone()];
    state.load_initial_inputs(&mut fuzzer, &mut executor, &mut manager, &folders)?;
    while *state.executions() < order.runs {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, &mut manager)?;
    }
    println!(
        "{{\"runs\":{},\"corpus\":{}}}",
        state.executions(),
        state.corpus().count()
    );
    Ok(())
}
