//! A worker of a study: runs a utility chunk by chunk, each with its own call, and reports.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam::channel::Sender;

use super::plan::{Call, StudyPlan};
use super::utility::{Invocation, RunEnvironment, Utility};
use crate::classifier::{Classified, Finding, RunClassifier};
use crate::until::StopCondition;
use ddfuzz_exec::{Ended, ExecError, Executor, Freshness, Limits, TargetRecord, start};
use ddfuzz_store::{Kind, Tally};
use ddfuzz_triage::Subject;

/// Started calls that a worker keeps: those of the invocations without options come again and again.
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
pub(super) struct WorkerContext<'a> {
    pub(super) utility: &'a Utility,
    pub(super) program: &'a std::path::Path,
    pub(super) baselines: &'a [Baseline],
    pub(super) plan: &'a StudyPlan,
    pub(super) environment: &'a RunEnvironment,
    /// The next run that no worker has taken.
    pub(super) next: AtomicU64,
    /// The first run that is not to be made.
    pub(super) end: u64,
    /// No new chunks are taken when they are over.
    pub(super) stop_condition: StopCondition<'a>,
}

impl WorkerContext<'_> {
    /// The runs after `first` that are to be made in one chunk, up to its end in the plan.
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
    shared: &'a WorkerContext<'a>,
    /// Those used last are last.
    started: VecDeque<StartedUtility>,
}

/// A call that is ready to be run.
struct StartedUtility {
    call: Call,
    executor: Box<dyn Executor>,
    classifier: RunClassifier,
    subject: Subject,
}

impl<'a> Worker<'a> {
    /// A worker with nothing started.
    pub(super) fn new(shared: &'a WorkerContext<'a>) -> Worker<'a> {
        Worker {
            shared,
            started: VecDeque::new(),
        }
    }

    /// Takes chunks until there are none left, or the receiver is gone.
    pub(super) fn work(mut self, reports: &Sender<Result<Chunk, ExecError>>) {
        while self.shared.stop_condition.go_on()
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
        let is_endless = (shared.baselines.get(call.invocation)).is_some_and(|it| it.is_endless());
        let channel = shared.utility.invocations[call.invocation].name();
        let started = self.started(call)?;
        let mut chunk = Chunk {
            first,
            planned: count,
            runs: 0,
            findings: Vec::new(),
            tallies: Vec::new(),
            subject: started.subject.clone(),
        };
        while chunk.runs < count && !shared.stop_condition.is_over() {
            let run = first + chunk.runs;
            let input = shared.plan.input(shared.utility, run);
            let bytes = input.build();
            let ended = started.executor.run(&bytes)?.ended;
            if !shared.stop_condition.may_classify(ended) {
                break;
            }
            let what = match ended {
                Ended::Timeout if is_endless => None,
                _ => (started.classifier).judge(ended, &bytes, &*started.executor)?,
            };
            // What a program does that never ends is no news, however that is found.
            let what = what.filter(|what| !is_endless || kind_of(what) != Kind::Hang);
            let tally = tally_of(&channel, &input.kind(), ended, what.as_ref());
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

    fn started(&mut self, call: Call) -> Result<&mut StartedUtility, ExecError> {
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

    fn start(&self, call: Call) -> Result<StartedUtility, ExecError> {
        let WorkerContext {
            utility,
            program,
            environment,
            baselines,
            ..
        } = self.shared;
        let invocation = &utility.invocations[call.invocation];
        let mut target = environment.target(program.to_path_buf(), invocation, &call.drawn);
        if let Some(baseline) = baselines.get(call.invocation) {
            target.limits = baseline.within(target.limits);
        }
        let executor = start(&target, None, Freshness::Fresh)?.executor;
        let way = executor.way();
        Ok(StartedUtility {
            classifier: RunClassifier::of_target(&target, way)?.with_hangs_in_full(),
            subject: Subject {
                utility: utility.name.clone(),
                target: TargetRecord::new(&target, way),
            },
            call,
            executor,
        })
    }
}

/// How long runs without an end are watched for crashes.
const ENDLESS_CPU: Duration = Duration::from_millis(100);
const ENDLESS_WALL: Duration = Duration::from_millis(250);

/// How a invocation takes an empty input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// It ends.
    Ends,
    /// It goes on without end, computing: its runs have no end to wait for.
    Loops,
    /// It goes on without end, asleep.
    Waits,
    /// It kills itself, and so perhaps the others of its process group.
    Kills,
}

impl Baseline {
    /// The label in reports.
    pub(super) fn label(self) -> Option<&'static str> {
        match self {
            Baseline::Ends => None,
            Baseline::Loops => Some("loops-on-empty-input"),
            Baseline::Waits => Some("waits-on-empty-input"),
            Baseline::Kills => Some("kills-its-process-group"),
        }
    }

    /// The limits on the runs of a invocation that takes an empty input so: for the end of one that
    /// has none, nobody waits long.
    pub(super) fn within(self, limits: Limits) -> Limits {
        match self.is_endless() {
            true => Limits {
                cpu: limits.cpu.min(ENDLESS_CPU),
                wall: limits.wall.min(ENDLESS_WALL),
                ..limits
            },
            false => limits,
        }
    }

    /// Whether running over its time is nothing that its input does.
    pub(super) fn is_endless(self) -> bool {
        matches!(self, Baseline::Loops | Baseline::Waits)
    }
}

/// Runs a invocation on an empty input.
pub(super) fn baseline(
    environment: &RunEnvironment,
    program: &std::path::Path,
    invocation: &Invocation,
) -> Result<Baseline, ExecError> {
    let target = environment.target(program.to_owned(), invocation, &[]);
    let mut executor = start(&target, None, Freshness::Fresh)?.executor;
    let run = executor.run(b"")?;
    Ok(match run.ended {
        Ended::Timeout if run.cpu >= target.limits.cpu => Baseline::Loops,
        Ended::Timeout => Baseline::Waits,
        // At a terminal a key may do that.
        ended if ended.is_killing() && !invocation.is_terminal() => Baseline::Kills,
        _ => Baseline::Ends,
    })
}

/// The lowest exit status that the studies took for a failure: what shells say of commands that
/// cannot be run, or that die of a signal.
const HIGH_EXIT: i32 = 126;

/// The count of one run, which ended so, and of which that was found.
pub(super) fn tally_of(
    channel: &str,
    kind: &str,
    ended: Ended,
    what: Option<&Classified>,
) -> Tally {
    let found = what.map(kind_of);
    let is = |kind: Kind| u64::from(found == Some(kind));
    let is_high = matches!(ended, Ended::Exit(status) if status >= HIGH_EXIT);
    Tally {
        channel: channel.to_owned(),
        kind: kind.to_owned(),
        runs: 1,
        crashes: is(Kind::Crash),
        hangs: is(Kind::Hang),
        ooms: is(Kind::Oom),
        high_exits: u64::from(found.is_none() && is_high),
        slow: 0,
    }
}

/// Which kind of finding.
pub(super) fn kind_of(what: &Classified) -> Kind {
    match what {
        Classified::Crash(crash) => Kind::of_class(&crash.class),
        Classified::Known { kind, .. } => *kind,
        Classified::Flaky(_) => Kind::Flaky,
    }
}

/// Adds a count to those of its channel and kind.
pub(super) fn add(tallies: &mut Vec<Tally>, one: Tally) {
    let same = |held: &&mut Tally| held.channel == one.channel && held.kind == one.kind;
    match tallies.iter_mut().find(same) {
        Some(held) => held.add(&one),
        None => tallies.push(one),
    }
}

/// Runs that are counted.
pub(super) fn runs(tallies: &[Tally]) -> u64 {
    tallies.iter().map(|tally| tally.runs).sum()
}
