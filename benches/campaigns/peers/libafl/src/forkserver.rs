//! A fuzzer of LibAFL's own parts for a program of AFL++'s compilers, which it runs by their fork
//! server, until the first crash: calibration, havoc with tokens by MOpt, power schedule, corpus
//! in memory.

mod order;

use std::time::Duration;

use libafl::corpus::{Corpus, InMemoryCorpus, OnDiskCorpus};
use libafl::events::SimpleEventManager;
use libafl::executors::StdChildArgs;
use libafl::executors::forkserver::{AFL_MAP_SIZE_ENV_VAR, ForkserverExecutor};
use libafl::feedbacks::{CrashFeedback, MaxMapFeedback};
use libafl::fuzzer::{Fuzzer, StdFuzzer};
use libafl::inputs::BytesInput;
use libafl::monitors::NopMonitor;
use libafl::mutators::{StdMOptMutator, Tokens, havoc_mutations, tokens_mutations};
use libafl::observers::{CanTrack, HitcountsMapObserver, StdMapObserver, TimeObserver};
use libafl::schedulers::{
    IndexesLenTimeMinimizerScheduler, StdWeightedScheduler, powersched::PowerSchedule,
};
use libafl::stages::{CalibrationStage, StdPowerMutationalStage};
use libafl::state::{HasCorpus, HasExecutions, HasMaxSize, HasSolutions, StdState};
use libafl::{Error, HasMetadata};
use libafl_bolts::StdTargetArgs;
use libafl_bolts::rands::StdRand;
use libafl_bolts::shmem::{ShMem, ShMemProvider, UnixShMemProvider};
use libafl_bolts::tuples::{Merge, tuple_list};

use order::Order;

/// As large as AFL++'s own to begin with; the program says how much of it is used.
const MAP: usize = 65_536;

fn main() -> Result<(), Error> {
    let order = Order::of_command_line()?;
    let [persistent, program] = order.rest.as_slice() else {
        return Err(Error::illegal_argument("persistent (0 or 1) and a program"));
    };
    fuzz(&order, persistent == "1", program)
}

fn fuzz(order: &Order, persistent: bool, program: &str) -> Result<(), Error> {
    let mut memory = UnixShMemProvider::new()?;
    let mut map = memory.new_shmem(MAP)?;
    // SAFETY: there is one thread.
    unsafe {
        map.write_to_env("__AFL_SHM_ID")?;
        std::env::set_var(AFL_MAP_SIZE_ENV_VAR, MAP.to_string());
    }
    // SAFETY: the map outlives the observer, and nobody else reads it.
    let edges = unsafe { StdMapObserver::new("edges", &mut map) };
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
    let weighted =
        StdWeightedScheduler::with_schedule(&mut state, &edges, Some(PowerSchedule::fast()));
    let scheduler = IndexesLenTimeMinimizerScheduler::new(&edges, weighted);
    let mut fuzzer = StdFuzzer::new(scheduler, feedback, objective);
    let mut manager = SimpleEventManager::new(NopMonitor::new());
    let mut tokens = Tokens::new();
    let mut executor = ForkserverExecutor::builder()
        .program(program)
        .shmem_provider(&mut memory)
        .autotokens(&mut tokens)
        .coverage_map_size(MAP)
        .is_persistent(persistent)
        .timeout(Duration::from_secs(1))
        .build_dynamic_map(edges, tuple_list!(TimeObserver::new("time")))?;
    state.add_metadata(tokens);
    let folders = [order.seeds.clone()];
    state.load_initial_inputs(&mut fuzzer, &mut executor, &mut manager, &folders)?;
    let mut stages = tuple_list!(calibration, power);
    while *state.executions() < order.runs && state.solutions().count() == 0 {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, &mut manager)?;
    }
    println!(
        "{{\"runs\":{},\"corpus\":{}}}",
        state.executions(),
        state.corpus().count()
    );
    Ok(())
}
