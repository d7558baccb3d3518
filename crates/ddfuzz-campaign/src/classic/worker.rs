//! A worker of a classic campaign: runs inputs, classifies crashes, and reports chunk by chunk.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::inputs::{Inputs, RunInput};
use crate::until::classifying;
use crate::{Finding, Mutation, RunClassifier, Settings, StopCondition};
use ddfuzz_exec::{ExecError, Executor, Freshness, RefusalReason, start};

/// The results of up to 16 successive runs, which a worker reports together.
pub(super) struct Chunk {
    /// Number of the first run of the chunk (successive runs reported together), counted from the
    /// start of the campaign.
    pub(super) first: u64,
    /// Number of runs that the worker was asked to make for the chunk (successive runs reported
    /// together).
    pub(super) planned: u64,
    /// Number of runs made for the chunk; fewer than planned only if the worker was stopped
    /// meanwhile.
    pub(super) runs: u64,
    pub(super) findings: Vec<Finding>,
    /// Number of runs since this worker's last chunk that were refused by the way `snapshot` (many
    /// runs in one process) and made in new processes instead, for each reason.
    pub(super) refusals: Vec<(RefusalReason, u64)>,
}

/// Number of successive runs in a chunk, which a worker takes and reports at once.
const CHUNK: u64 = 16;

/// The inputs, the number of runs and the stop condition that all worker threads of a classic
/// campaign share.
pub(super) struct WorkerContext<'a> {
    pub(super) inputs: Inputs,
    /// Number of the run before which the workers stop: it and later runs are not made.
    pub(super) end: u64,
    pub(super) stop_condition: StopCondition<'a>,
}

impl WorkerContext<'_> {
    /// Divides the runs from `next` to the end into chunks, and returns the number of the first run
    /// of each chunk.
    pub(super) fn chunks(&self, next: u64) -> impl Iterator<Item = u64> {
        (next..self.end).step_by(CHUNK as usize)
    }
}

/// A worker: a thread that runs inputs on its own instance of the target.
pub(super) struct Worker<'a> {
    shared: &'a WorkerContext<'a>,
    executor: Box<dyn Executor>,
    /// Mutates seeds to make inputs; `None` if the campaign has no seeds.
    mutation: Option<Mutation>,
    classifier: RunClassifier,
    /// Counts of refused runs ([`Executor::refusals`]) when the last chunk was reported, so that
    /// each chunk reports only new refusals.
    reported_refusals: BTreeMap<RefusalReason, u64>,
}

impl Worker<'_> {
    /// Makes the runs of the chunk that begins with run number `first` (counted from the start of
    /// the campaign), at most 16, and returns their results. If the worker is stopped meanwhile,
    /// this call abandons the current run and returns the results of the runs before that one; the
    /// engine then commits no chunk after this one.
    pub(super) fn run_chunk(&mut self, first: u64) -> Result<Chunk, ExecError> {
        let count = CHUNK.min(self.shared.end - first);
        let mut chunk = Chunk {
            first,
            planned: count,
            runs: 0,
            findings: Vec::new(),
            refusals: Vec::new(),
        };
        match self.fill(&mut chunk) {
            // The run that was abandoned is not counted, and the next call makes it again.
            Ok(()) | Err(ExecError::Abandoned) => {}
            Err(error) => return Err(error),
        }
        chunk.refusals = self.new_refusals();
        Ok(chunk)
    }

    /// Makes and classifies the planned runs of `chunk`, which has none yet, and adds their number
    /// and their findings to `chunk`. Returns early when the worker is stopped; fails with
    /// [`ExecError::Abandoned`] if a run was abandoned for this reason.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<(), ExecError> {
        let (first, count) = (chunk.first, chunk.planned);
        // A target that is started for each run takes one input at a time.
        let at_once = match self.executor.freshness() {
            Freshness::Shared => count,
            Freshness::Fresh => 1,
        };
        let mut waiting: VecDeque<(RunInput, Vec<u8>)> = VecDeque::new();
        while chunk.runs < count && !self.shared.stop_condition.is_over() {
            while (waiting.len() as u64) < at_once.min(count - chunk.runs) {
                waiting.push_back(self.make(first + chunk.runs + waiting.len() as u64));
            }
            let inputs: Vec<&[u8]> = waiting.iter().map(|(_, input)| &input[..]).collect();
            for run in self.executor.run_some(&inputs)? {
                let Some((name, input)) = waiting.pop_front() else {
                    break;
                };
                if !self.shared.stop_condition.may_classify(run.ended) {
                    return Ok(());
                }
                let what = self.classifier.judge(run.ended, &input, &*self.executor)?;
                let finding = what.map(|what| Finding {
                    run: first + chunk.runs,
                    name: name.to_string(),
                    input: if what.has_full_record() {
                        input
                    } else {
                        Vec::new()
                    },
                    what,
                });
                chunk.findings.extend(finding);
                chunk.runs += 1;
            }
            self.add_corrected(chunk)?;
        }
        Ok(())
    }

    /// Returns, for each reason, the number of runs that were refused by the way `snapshot` (many
    /// runs in one process), made in new processes, and not reported with any chunk yet.
    fn new_refusals(&mut self) -> Vec<(RefusalReason, u64)> {
        let counted = self.executor.refusals();
        let new = counted.into_iter().filter_map(|(reason, count)| {
            let reported = self.reported_refusals.insert(reason, count).unwrap_or(0);
            (count > reported).then(|| (reason, count - reported))
        });
        new.collect()
    }

    /// Adds to a chunk the findings of earlier runs that the executor has repeated in new
    /// processes, because it learned that their results were wrong. They count as findings of the
    /// chunk's last run.
    fn add_corrected(&mut self, chunk: &mut Chunk) -> Result<(), ExecError> {
        for (input, run) in self.executor.corrected() {
            let what = self.classifier.judge(run.ended, &input, &*self.executor)?;
            chunk.findings.extend(what.map(|what| Finding {
                run: chunk.first + chunk.runs.saturating_sub(1),
                name: "an earlier run, made again".to_owned(),
                input: if what.has_full_record() {
                    input
                } else {
                    Vec::new()
                },
                what,
            }));
        }
        Ok(())
    }

    /// Builds the input of run `run` (from 0) of the campaign; returns its name, from which it can
    /// be rebuilt, and its bytes.
    fn make(&mut self, run: u64) -> (RunInput, Vec<u8>) {
        let Inputs { plan, seeds, .. } = &self.shared.inputs;
        let drawn = plan.draw(run, seeds);
        if let (RunInput::FromSeed(name), Some(mutation)) = (&drawn, &mut self.mutation)
            && let Some(input) = mutation.build(name)
        {
            return (drawn, input);
        }
        let name = plan.input(run);
        let mut input = Vec::new();
        name.write_into(&mut input);
        (RunInput::Generated(name), input)
    }
}

/// Starts the target for a worker thread, and creates the worker that runs inputs on it.
pub(super) fn start_worker<'a>(
    shared: &'a WorkerContext<'a>,
    settings: &Settings,
) -> Result<Worker<'a>, ExecError> {
    let Settings { minimizing, .. } = settings;
    let target = (shared.stop_condition).abandoning(&minimizing.target, Duration::ZERO);
    let started = start(&target, Some(minimizing.way), Freshness::Shared)?;
    Ok(Worker {
        shared,
        executor: started.executor,
        mutation: shared.inputs.mutation(),
        classifier: RunClassifier::of_target(&classifying(&target), minimizing.way),
        reported_refusals: BTreeMap::new(),
    })
}
