//! A worker: runs a utility chunk by chunk, each with a call of its own, and reports.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::channel::Sender;

use super::baseline::Baseline;
use super::plan::{Call, StudyPlan};
use super::tally;
use super::utility::{Circumstances, Utility};
use crate::bounds::Bounds;
use crate::finding::Finding;
use crate::namer::Namer;
use ddfuzz_exec::{Ended, ExecError, Executor, Freshness, TargetRecord, start};
use ddfuzz_store::{Kind, Tally};
use ddfuzz_triage::Subject;

/// Started calls that a worker keeps: those of the courses without options come again and again.
const KEPT: usize = 4;

/// Some runs in a row, of one call.
pub(super) struct Chunk {
    /// Index of its first run.
    pub(super) first: u64,
    /// Runs that it should have.
    pub(super) planned: u64,
    /// Runs made: fewer only where the study was stopped.
    pub(super) runs: u64,
    pub(super) findings: Vec<Finding>,
    /// Of each run.
    pub(super) tallies: Vec<Tally>,
    /// What was run.
    pub(super) subject: Subject,
}

/// What the workers of a utility share.
pub(super) struct Shared<'a> {
    pub(super) utility: &'a Utility,
    pub(super) program: &'a std::path::Path,
    pub(super) baselines: &'a [Baseline],
    pub(super) plan: &'a StudyPlan,
    pub(super) circumstances: &'a Circumstances,
    /// The next run that nobody has taken.
    pub(super) next: AtomicU64,
    /// The first run that is not to be made.
    pub(super) end: u64,
    /// No new chunks are taken when they are over.
    pub(super) bounds: Bounds<'a>,
}

impl Shared<'_> {
    /// The runs behind `first` that are to be made in one chunk, up to its end in the plan.
    fn take(&self) -> Option<(u64, u64)> {
        let chunk = self.plan.chunk(self.utility);
        let first = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < self.end).then(|| (next / chunk + 1) * chunk)
            });
        let first = first.ok()?;
        let behind = (first / chunk + 1) * chunk;
        Some((first, behind.min(self.end) - first))
    }
}

/// One worker.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    /// Those used last are last.
    started: VecDeque<Started>,
}

/// A call that is ready to be run.
struct Started {
    call: Call,
    executor: Box<dyn Executor>,
    namer: Namer,
    subject: Subject,
}

impl<'a> Worker<'a> {
    /// A worker with nothing started.
    pub(super) fn new(shared: &'a Shared<'a>) -> Worker<'a> {
        Worker {
            shared,
            started: VecDeque::new(),
        }
    }

    /// Takes chunks until there are none left, or nobody listens.
    pub(super) fn work(mut self, reports: &Sender<Result<Chunk, ExecError>>) {
        while self.shared.bounds.go_on()
            && let Some((first, count)) = self.shared.take()
        {
            let chunk = self.run_chunk(first, count);
            let failed = chunk.is_err();
            if reports.send(chunk).is_err() || failed {
                return;
            }
        }
    }

    /// A chunk that is cut short reports the runs made.
    fn run_chunk(&mut self, first: u64, count: u64) -> Result<Chunk, ExecError> {
        let shared = self.shared;
        let call = (shared.plan).call(shared.utility, first / shared.plan.chunk(shared.utility));
        let is_endless = (shared.baselines.get(call.course)).is_some_and(|it| it.is_endless());
        let channel = shared.utility.courses[call.course].name();
        let started = self.started(call)?;
        let mut chunk = Chunk {
            first,
            planned: count,
            runs: 0,
            findings: Vec::new(),
            tallies: Vec::new(),
            subject: started.subject.clone(),
        };
        while chunk.runs < count && !shared.bounds.are_over() {
            let run = first + chunk.runs;
            let input = shared.plan.input(shared.utility, run);
            let bytes = input.build();
            let ended = started.executor.run(&bytes)?.ended;
            if !shared.bounds.name(ended) {
                break;
            }
            let what = match ended {
                Ended::Timeout if is_endless => None,
                _ => (started.namer).judge(ended, &bytes, &*started.executor)?,
            };
            // What a program does that never ends is no news, however that is found.
            let what = what.filter(|what| !is_endless || tally::kind_of(what) != Kind::Hang);
            let tally = tally::tally_of(&channel, &input.kind(), ended, what.as_ref());
            chunk.tallies.push(tally);
            chunk.findings.extend(what.map(|what| Finding {
                run,
                name: input.to_string(),
                input: if what.is_new() { bytes } else { Vec::new() },
                what,
            }));
            chunk.runs += 1;
        }
        Ok(chunk)
    }

    fn started(&mut self, call: Call) -> Result<&mut Started, ExecError> {
        let at = self.started.iter().position(|started| started.call == call);
        let started = match at.and_then(|at| self.started.remove(at)) {
            Some(started) => started,
            None => self.start(call)?,
        };
        while self.started.len() >= KEPT {
            self.started.pop_front();
        }
        self.started.push_back(started);
        let last = self.started.len() - 1;
        Ok(&mut self.started[last])
    }

    fn start(&self, call: Call) -> Result<Started, ExecError> {
        let Shared {
            utility,
            program,
            circumstances,
            baselines,
            ..
        } = self.shared;
        let course = &utility.courses[call.course];
        let mut target = circumstances.target(program.to_path_buf(), course, &call.drawn);
        if let Some(baseline) = baselines.get(call.course) {
            target.limits = baseline.within(target.limits);
        }
        let executor = start(&target, None, Freshness::Fresh)?.executor;
        let way = executor.way();
        Ok(Started {
            namer: Namer::of_target(&target, way)?.with_hangs_in_full(),
            subject: Subject {
                utility: utility.name.clone(),
                target: TargetRecord::new(&target, way),
            },
            call,
            executor,
        })
    }
}
