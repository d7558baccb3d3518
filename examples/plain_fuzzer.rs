//! A coverage-guided fuzzer for programs compiled by `afl-clang-fast`, which read stdin.
//!
//! It is made of LibAFL's own parts only, and saves each crash as a file.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use libafl::corpus::{Corpus, InMemoryCorpus, OnDiskCorpus};
use libafl::events::SimpleEventManager;
use libafl::executors::StdChildArgs;
use libafl::executors::forkserver::ForkserverExecutor;
use libafl::feedbacks::{CrashFeedback, MaxMapFeedback};
use libafl::inputs::BytesInput;
use libafl::monitors::SimpleMonitor;
use libafl::mutators::{HavocScheduledMutator, havoc_mutations};
use libafl::observers::{CanTrack, HitcountsMapObserver, StdMapObserver};
use libafl::schedulers::QueueScheduler;
use libafl::stages::StdMutationalStage;
use libafl::state::{HasCorpus, HasExecutions, HasSolutions, StdState};
use libafl::{Fuzzer, StdFuzzer};
use libafl_bolts::rands::StdRand;
use libafl_bolts::shmem::{ShMem, ShMemProvider, UnixShMemProvider};
use libafl_bolts::tuples::tuple_list;
use libafl_bolts::{StdTargetArgs, ToSliceMut};

/// What the command line says.
struct Args {
    program: PathBuf,
    seeds: PathBuf,
    solutions: PathBuf,
    runs: u64,
    seed: u64,
}

const USAGE: &str = "usage: PROGRAM SEEDS_DIR SOLUTIONS_DIR [--runs N] [--seed N]";

fn args() -> Result<Args, Box<dyn Error>> {
    let (mut paths, mut runs, mut seed) = (Vec::new(), u64::MAX, 1);
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut number = |what: &str| -> Result<u64, Box<dyn Error>> {
            let text = words.next().and_then(|text| text.into_string().ok());
            let number = text.and_then(|text| text.parse().ok());
            Ok(number.ok_or_else(|| format!("{what} needs a number; {USAGE}"))?)
        };
        match word.to_str() {
            Some("--runs") => runs = number("--runs")?,
            Some("--seed") => seed = number("--seed")?,
            _ => paths.push(PathBuf::from(word)),
        }
    }
    let [program, seeds, solutions] = <[PathBuf; 3]>::try_from(paths).map_err(|_| USAGE)?;
    Ok(Args {
        program: program.canonicalize()?,
        seeds,
        solutions,
        runs,
        seed,
    })
}

/// The size of the program's coverage map, in bytes, as its runtime tells it.
fn map_size(args: &Args) -> Result<usize, Box<dyn Error>> {
    let mut command = Command::new(&args.program);
    let said = command.env("AFL_DUMP_MAP_SIZE", "1").output()?.stdout;
    let size: usize = String::from_utf8_lossy(&said).trim().parse()?;
    // LibAFL wants whole blocks of 64.
    Ok(size.next_multiple_of(64))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = args()?;
    let size = map_size(&args)?;
    let mut provider = UnixShMemProvider::new()?;
    let mut memory = provider.new_shmem(size)?;
    // Linux lets the target attach it all the same, and it is gone with us, however we end.
    // SAFETY: takes a number; the last argument is not used by this command.
    unsafe { libc::shmctl(memory.id().into(), libc::IPC_RMID, std::ptr::null_mut()) };
    // SAFETY: no other thread runs yet that could read the environment.
    unsafe { memory.write_to_env("__AFL_SHM_ID")? };
    // SAFETY: the memory outlives the observer, and is written to by the target's processes only,
    // between whose runs it is read.
    let map = unsafe { StdMapObserver::new("edges", memory.to_slice_mut()) };
    let observer = HitcountsMapObserver::new(map).track_indices();

    let mut feedback = MaxMapFeedback::new(&observer);
    let mut objective = CrashFeedback::new();
    let mut state = StdState::new(
        StdRand::with_seed(args.seed),
        InMemoryCorpus::<BytesInput>::new(),
        OnDiskCorpus::new(&args.solutions)?,
        &mut feedback,
        &mut objective,
    )?;
    let monitor = SimpleMonitor::new(|line| eprintln!("{line}"));
    let mut manager = SimpleEventManager::new(monitor);
    let mut fuzzer = StdFuzzer::new(QueueScheduler::new(), feedback, objective);
    let mut executor = ForkserverExecutor::builder()
        .program(&args.program)
        .coverage_map_size(size)
        .timeout(Duration::from_secs(1))
        .build(tuple_list!(observer))?;
    state.load_initial_inputs(&mut fuzzer, &mut executor, &mut manager, &[args.seeds])?;
    if state.corpus().count() == 0 {
        return Err("no seed covers anything: are there any, and do they not crash?".into());
    }

    let mutator = HavocScheduledMutator::new(havoc_mutations());
    let mut stages = tuple_list!(
        // Each round mutates one entry of the corpus.
        StdMutationalStage::new(mutator),
    );
    while *state.executions() < args.runs {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, &mut manager)?;
    }
    let (runs, crashes) = (state.executions(), state.solutions().count());
    println!(
        "{runs} runs, {crashes} crashes in {}",
        args.solutions.display()
    );
    Ok(())
}
