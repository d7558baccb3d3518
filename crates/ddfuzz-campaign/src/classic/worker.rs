//! A worker: runs inputs, classifies what crashes, and reports chunk by chunk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::channel::Sender;

use super::inputs::{Inputs, RunInput};
use crate::classifier::{Finding, RunClassifier};
use crate::mutation::Mutation;
use crate::settings::Settings;
use crate::until::StopCondition;
use ddfuzz_exec::{ExecError, Executor, Freshness, start};

/// Some runs in a row.
pub(super) struct Chunk {
    /// Index of its first run.
    pub(super) first: u64,
    /// Runs that it should have.
    pub(super) planned: u64,
    /// Runs made: fewer only where the campaign was stopped.
    pub(super) runs: u64,
    pub(super) findings: Vec<Finding>,
}

/// Runs of one chunk.
pub(super) const CHUNK: u64 = 16;

/// What the workers of a campaign share.
pub(super) struct WorkerContext<'a> {
    pub(super) inputs: Inputs,
    /// The next run that no worker has taken.
    pub(super) next: AtomicU64,
    /// The first run that is not to be made.
    pub(super) end: u64,
    /// No new chunks are taken when they are over.
    pub(super) stop_condition: StopCondition<'a>,
}

/// One worker with its own target.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a WorkerContext<'a>,
    pub(super) executor: Box<dyn Executor>,
    /// What mutates seeds, where there are any.
    pub(super) mutation: Option<Mutation>,
    pub(super) classifier: RunClassifier,
}

impl Worker<'_> {
    /// Takes chunks until there are none left, or the receiver is gone.
    pub(super) fn work(mut self, reports: &Sender<Result<Chunk, ExecError>>) {
        while self.shared.stop_condition.go_on() {
            let first = self.shared.next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= self.shared.end {
                return;
            }
            let chunk = self.run_chunk(first, CHUNK.min(self.shared.end - first));
            let failed = chunk.is_err();
            if reports.send(chunk).is_err() || failed {
                return;
            }
        }
    }

    /// A chunk that is cut short reports the runs made: those after it are never committed.
    fn run_chunk(&mut self, first: u64, count: u64) -> Result<Chunk, ExecError> {
        let mut chunk = Chunk {
            first,
            planned: count,
            runs: 0,
            findings: Vec::new(),
        };
        // A target that is started for each run takes no inputs ahead.
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
                    return Ok(chunk);
                }
                let what = self.classifier.judge(run.ended, &input, &*self.executor)?;
                let finding = what.map(|what| Finding {
                    run: first + chunk.runs,
                    name: name.to_string(),
                    input: if what.is_new() { input } else { Vec::new() },
                    what,
                });
                chunk.findings.extend(finding);
                chunk.runs += 1;
            }
        }
        Ok(chunk)
    }

    /// The input of run `run`, with its name.
    fn make(&mut self, run: u64) -> (RunInput, Vec<u8>) {
        let Inputs { plan, seeds, .. } = &self.shared.inputs;
        let drawn = plan.draw(run, seeds);
        if let (RunInput::Mutated(name), Some(mutation)) = (&drawn, &mut self.mutation)
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

/// A worker with its own executor.
pub(super) fn start_worker<'a>(
    shared: &'a WorkerContext<'a>,
    settings: &Settings,
) -> Result<Worker<'a>, ExecError> {
    let Settings { minimizing, .. } = settings;
    let started = start(&minimizing.target, Some(minimizing.way), Freshness::Shared)?;
    Ok(Worker {
        shared,
        executor: started.executor,
        mutation: shared.inputs.mutation(),
        classifier: RunClassifier::of_target(&minimizing.target, minimizing.way)?,
    })
}
