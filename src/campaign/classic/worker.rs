//! A worker: runs inputs, names what crashes, and reports chunk by chunk.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crossbeam::channel::Sender;

use super::inputs::Inputs;
use super::plan::RunInput;
use crate::campaign::finding::{Finding, What};
use crate::campaign::mutation::Mutation;
use crate::campaign::room::Gate;
use crate::campaign::settings::Settings;
use crate::exec::{Ended, ExecError, Executor, Freshness, start};
use crate::files::Base64;
use crate::store::Kind;
use crate::triage::{Crash, Key, Quick, Triager, Verdict};

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
pub(super) struct Shared<'a> {
    pub(super) inputs: Inputs,
    /// The next run that nobody has taken.
    pub(super) next: AtomicU64,
    /// The first run that is not to be made.
    pub(super) end: u64,
    /// No new chunks are taken when it is true.
    pub(super) stop: &'a AtomicBool,
    /// The same from this moment on.
    pub(super) deadline: Option<Instant>,
    /// The same when one of us has failed, or what comes behind is not committed.
    pub(super) broken: AtomicBool,
    /// Closed while nothing can be stored. The time of that is not fuzzed.
    pub(super) gate: &'a Gate,
    pub(super) crash_exit: Option<i32>,
}

impl Shared<'_> {
    /// Whether there is more to be done, once it can be stored.
    fn goes_on(&self) -> bool {
        let ended = || self.stop.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed);
        self.gate.pass(ended);
        !self.stopped()
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.broken.load(Ordering::Relaxed)
            || self
                .deadline
                .and_then(|deadline| deadline.checked_add(self.gate.held()))
                .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// One worker with its own target.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) executor: Box<dyn Executor>,
    /// What mutates seeds, where there are any.
    pub(super) mutation: Option<Mutation>,
    pub(super) triager: Triager,
    /// Minor keys that this worker has reported in full. Its runs come in ascending order, so
    /// whoever reads the reports in order knows them too.
    pub(super) reported: HashSet<Key>,
}

impl Worker<'_> {
    /// Takes chunks until there are none left, or nobody listens.
    pub(super) fn work(mut self, reports: &Sender<Result<Chunk, ExecError>>) {
        while self.shared.goes_on() {
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

    /// A chunk that is cut short reports the runs made: those behind it are never committed.
    fn run_chunk(&mut self, first: u64, count: u64) -> Result<Chunk, ExecError> {
        let mut chunk = Chunk {
            first,
            planned: count,
            runs: 0,
            findings: Vec::new(),
        };
        // A process of its own for each run takes no inputs ahead.
        let at_once = match self.executor.freshness() {
            Freshness::Shared => count,
            Freshness::Fresh => 1,
        };
        let mut waiting: VecDeque<(RunInput, Vec<u8>)> = VecDeque::new();
        while chunk.runs < count && !self.shared.stopped() {
            while (waiting.len() as u64) < at_once.min(count - chunk.runs) {
                waiting.push_back(self.make(first + chunk.runs + waiting.len() as u64));
            }
            let inputs: Vec<&[u8]> = waiting.iter().map(|(_, input)| &input[..]).collect();
            for run in self.executor.run_some(&inputs)? {
                let Some((name, input)) = waiting.pop_front() else {
                    break;
                };
                let finding = self.judge(run.ended, &input)?.map(|what| Finding {
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

    fn judge(&mut self, ended: Ended, input: &[u8]) -> Result<Option<What>, ExecError> {
        match ended {
            Ended::Timeout | Ended::OutOfMemory => self.name(ended, input),
            _ if !self.triager.suspects(ended) => Ok(None),
            _ => self.name(ended, input),
        }
    }

    fn name(&mut self, ended: Ended, input: &[u8]) -> Result<Option<What>, ExecError> {
        match self.triager.key(input)? {
            Quick::Crash {
                class,
                major,
                minor,
            } if self.reported.contains(&minor) => {
                let kind = Kind::of_class(&class);
                return Ok(Some(What::Known { kind, major }));
            }
            // Only suspected, and no crash by what it said.
            Quick::Ended(_) if ended.is_exit() && !ended.is_crash(self.shared.crash_exit) => {
                return Ok(None);
            }
            _ => {}
        }
        Ok(Some(match self.triager.examine(input)? {
            Verdict::Crash(crash) => {
                self.reported.insert(crash.keys.minor);
                What::Crash(crash)
            }
            Verdict::Flaky { .. } => What::Flaky(Box::new(Crash {
                // What a shared process remembers of them may be why it died.
                preceding: self.executor.preceding().into_iter().map(Base64).collect(),
                ..self
                    .triager
                    .left_behind(ended, self.executor.copies().as_deref())
            })),
        }))
    }
}

/// A worker of its own executor.
pub(super) fn start_worker<'a>(
    shared: &'a Shared<'a>,
    settings: &Settings,
) -> Result<Worker<'a>, ExecError> {
    let Settings { minimizing, .. } = settings;
    let started = start(&minimizing.target, Some(minimizing.way), Freshness::Shared)?;
    Ok(Worker {
        shared,
        executor: started.executor,
        mutation: shared.inputs.mutation(),
        triager: Triager::of_target(&minimizing.target, minimizing.way)?,
        reported: HashSet::new(),
    })
}
