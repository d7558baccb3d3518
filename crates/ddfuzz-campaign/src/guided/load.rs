//! The inputs that a worker begins with: the corpus so far and the seeds, else what the classic generator gives.

use std::path::Path;

use libafl::Error;
use libafl::corpus::Corpus;
use libafl::fuzzer::ExecutionProcessor;
use libafl::inputs::BytesInput;
use libafl::state::HasCorpus;

use super::evaluate::{Behind, evaluate};
use super::executor::{TargetExecutor, fail};
use super::parts::{Manager, Observers, State};
use super::worker::Brief;
use crate::Plan;
use ddfuzz_store::Reader;

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
    brief: &Brief<'_>,
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
        evaluate(fuzzer, executor, state, manager, &inputs, Behind::Run)?;
    }
    for seeds in brief.settings.seeds.all().chunks(AT_ONCE) {
        let inputs: Vec<BytesInput> = seeds
            .iter()
            .map(|seed| BytesInput::new(seed.bytes.clone()))
            .collect();
        evaluate(fuzzer, executor, state, manager, &inputs, Behind::Run)?;
    }
    if state.corpus().is_empty() {
        begin_with_nothing(brief, fuzzer, executor, state, manager)?;
    }
    if brief.settings.minimizing.learn_limit {
        executor.patience.learn();
    }
    Ok(())
}

/// The empty input, and inputs of the classic generator, until one passes.
fn begin_with_nothing<Z>(
    brief: &Brief<'_>,
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let empty = [BytesInput::new(Vec::new())];
    evaluate(fuzzer, executor, state, manager, &empty, Behind::Run)?;
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
        evaluate(fuzzer, executor, state, manager, &inputs, Behind::Run)?;
        run += GENERATED;
        let left = executor.pulse.left().map_err(|error| fail(&error))?;
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
