//! The runs of one utility: the workers that make the runs, and the commits (counting and storing)
//! of the results that they report.

mod hangs;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use super::engine::StudyEngine;
use super::plan::{Call, StudyInput, StudyPlan};
use super::utility::{Invocation, RunEnvironment, SkipReason, Utility};
use crate::until::CLASSIFICATION_TIME;
use crate::{CampaignError, Classified, Finding, RunClassifier, StopCondition, group_of};
use ddfuzz_exec::{
    AbandonWhen, Ended, ExecError, Executor, Freshness, Limits, Target, TargetRecord, Way, start,
};
use ddfuzz_model::pool::{self, TaskPool};
use ddfuzz_store::{GroupTally, Kind, Tally};
use ddfuzz_triage::Subject;

pub(super) use hangs::Hangs;

/// Number of chunks (results of up to 64 runs each) that may wait to be committed (counted and
/// stored) before the workers pause.
const BACKLOG: usize = 1 << 12;
/// Longest wait for a report of a worker thread before the progress on the user's screen is
/// updated.
const TICK: Duration = Duration::from_millis(200);
/// Size of the range of run numbers reserved for each utility of a study. Run `i` of the utility at
/// position `p` of the whole list, both counted from 0, has the number `p * SPAN + i`.
const SPAN: u64 = 1_000_000_000;

impl StudyEngine<'_> {
    /// Fuzzes the utility whose record has the index `at` until its runs or its share of the time
    /// are used up, or the user stops. `baselines`: what each invocation of the utility does with
    /// an empty input.
    pub(super) fn fuzz(
        &mut self,
        utility: &Utility,
        program: &Path,
        at: usize,
        baselines: &[Baseline],
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        self.running = Some(began);
        let share = self.share();
        let shared = WorkerContext {
            utility,
            program,
            baselines,
            plan: &self.settings.plan,
            environment: &self.settings.environment,
            end: self.state().end(at),
            stop_condition: StopCondition::new(
                self.session.stop,
                share.and_then(|share| began.checked_add(share)),
                self.session.gate,
            ),
        };
        let done = self
            .repeat_undecided(&shared, at)
            .and_then(|()| self.run_workers(&shared, at));
        // What is committed after the deadline was run before it.
        self.running = None;
        self.fuzzed += began.elapsed().min(share.unwrap_or(Duration::MAX));
        done
    }

    /// Repeats the undecided runs of the utility whose record has the index `at`: runs that
    /// exceeded their time limit in an earlier call that was stopped before it knew whether they
    /// hang. Commits them (stores their findings and counts them). Runs that this call cannot
    /// repeat, because of the user's stop or the time limit, are left to the next call.
    fn repeat_undecided(
        &mut self,
        shared: &WorkerContext<'_>,
        at: usize,
    ) -> Result<(), CampaignError> {
        let mut worker = Worker::new(shared);
        while let Some(run) = self.state().undecided[at].first().copied()
            && shared.stop_condition.go_on()
        {
            // The workers report a program that can no longer be started.
            let Ok(mut chunk) = worker.run_chunk(run, 1) else {
                return Ok(());
            };
            let abandon_when = &shared.environment.abandon_when;
            let undecided = take_out_slow(&mut chunk, &mut self.state().hangs[at], abandon_when);
            if chunk.runs == 0 || !undecided.is_empty() {
                return Ok(());
            }
            self.state().repeat(at, run);
            self.commit(shared, chunk, at)?;
            self.tick()?;
        }
        Ok(())
    }

    /// Runs all worker threads on one utility, and commits the chunks (results of successive runs)
    /// that they report, in the order of the runs. When a time limit ends the runs, all chunks that
    /// were begun are committed, and the next call of ddfuzz begins with the runs after them.
    /// Otherwise, all chunks after an incomplete one are dropped, and the next call makes their
    /// runs again, so that results remain a function of the seed.
    fn run_workers(&mut self, shared: &WorkerContext<'_>, at: usize) -> Result<(), CampaignError> {
        let pool = TaskPool {
            jobs: self.settings.jobs,
            backlog: BACKLOG,
            tick: TICK,
            goes_on: &|| shared.stop_condition.go_on(),
        };
        let work = |worker: &pool::Worker<'_, _, Chunk, ExecError>| {
            let mut target = Worker::new(shared);
            while let Some((first, count)) = worker.next_task() {
                worker.report(target.run_chunk(first, count)?);
            }
            Ok(())
        };
        let (mut waiting, mut cut_short) = (BTreeMap::new(), false);
        pool.run(shared.chunks(self.state().next(at)), work, |report| {
            let done = self.take_report(report, shared, &mut waiting, &mut cut_short, at);
            shared.stop_condition.break_off_if(done.is_err());
            done
        })?;
        self.commit_rest(shared, waiting, at)
    }

    /// Takes a worker's report (`None`: no worker has reported for a while), and commits all chunks
    /// (results of successive runs) whose turn has come. If the utility can no longer be started,
    /// records this and stops its workers. Also updates the screen and saves the state when due.
    /// `waiting`: chunks that wait for earlier ones.
    fn take_report(
        &mut self,
        report: Option<Result<Chunk, ExecError>>,
        shared: &WorkerContext<'_>,
        waiting: &mut BTreeMap<u64, Chunk>,
        cut_short: &mut bool,
        at: usize,
    ) -> Result<(), CampaignError> {
        match report {
            Some(Ok(chunk)) => drop(waiting.insert(chunk.first, chunk)),
            Some(Err(ExecError::Abandoned)) => {}
            // The user's Ctrl-C may have reached a starting target, too.
            Some(Err(_)) if self.session.stopped() => {}
            Some(Err(error)) => {
                // A utility that can no longer be run does not end the study.
                self.skip_utility(at, &SkipReason::NotStarting(error.to_string()));
                shared.stop_condition.break_off_if(true);
                *cut_short = true;
            }
            None => {}
        }
        while !*cut_short && let Some(mut chunk) = waiting.remove(&self.state().next(at)) {
            if self.decide_hangs(shared, &mut chunk, at) {
                *cut_short = !self.commit(shared, chunk, at)?;
            } else {
                waiting.insert(chunk.first, chunk);
                *cut_short = true;
            }
        }
        self.tick()
    }

    /// Commits, when all workers have ended, the chunks that still wait because chunks of earlier
    /// runs are missing, and counts the missing runs as skipped. If no time limit ended the runs,
    /// drops the waiting chunks instead; the next call of ddfuzz repeats their runs.
    fn commit_rest(
        &mut self,
        shared: &WorkerContext<'_>,
        waiting: BTreeMap<u64, Chunk>,
        at: usize,
    ) -> Result<(), CampaignError> {
        if !self.loses_nothing(shared, at) {
            return Ok(());
        }
        for (first, mut chunk) in waiting {
            if !self.decide_hangs(shared, &mut chunk, at) {
                break;
            }
            let gap = first.saturating_sub(self.state().next(at));
            self.state().skip(at, gap);
            self.commit(shared, chunk, at)?;
        }
        Ok(())
    }

    /// Decides for each run of a chunk (results of successive runs) that exceeded its time limit
    /// whether it hangs or is only slow; the user's stop may leave some undecided. Returns true if
    /// the chunk may be committed. If a time limit ends the utility's runs (`at`: index of its
    /// record), undecided runs are taken out of the chunk, and the next call of ddfuzz repeats
    /// them. Otherwise, a chunk with undecided runs may not be committed, and the next call repeats
    /// all of it.
    fn decide_hangs(&mut self, shared: &WorkerContext<'_>, chunk: &mut Chunk, at: usize) -> bool {
        let all = self.loses_nothing(shared, at);
        let abandon_when = &shared.environment.abandon_when;
        let undecided = take_out_slow(chunk, &mut self.state().hangs[at], abandon_when);
        if all {
            chunk.take_out(&undecided);
            self.state().undecided[at].extend(&undecided);
        }
        all || undecided.is_empty()
    }

    /// Returns true if a time limit ends the runs of a utility, so that all its runs count, even
    /// those after a run that was left out. Returns false if their number ends the runs, so that
    /// only runs before the first one that was left out count. `at`: index of the utility's record
    /// in the study.
    fn loses_nothing(&mut self, shared: &WorkerContext<'_>, at: usize) -> bool {
        self.state().is_timed(at) || shared.stop_condition.is_late()
    }

    /// Commits a chunk (results of successive runs) as a whole: stores its findings and counts its
    /// runs for the utility whose record has the index `at`. Returns true if later chunks may be
    /// committed, too: the chunk is complete, or a time limit ends the runs. Returns false if the
    /// chunk is incomplete and later chunks must be dropped.
    fn commit(
        &mut self,
        shared: &WorkerContext<'_>,
        chunk: Chunk,
        at: usize,
    ) -> Result<bool, CampaignError> {
        let all = self.loses_nothing(shared, at);
        let left = chunk.planned - chunk.runs;
        let place = self.state().utilities[at].place;
        let way = chunk.subject.target.way;
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
        for finding in chunk.findings {
            let finding = Finding {
                run: place * SPAN + finding.run,
                ..finding
            };
            self.commit_finding(finding, &chunk.subject, at)?;
        }
        let record = &mut self.state().utilities[at];
        for one in chunk.tallies {
            add(&mut record.tallies, one);
        }
        if all {
            self.state().skip(at, left);
        }
        Ok(all || left == 0)
    }

    fn commit_finding(
        &mut self,
        mut finding: Finding,
        subject: &Subject,
        at: usize,
    ) -> Result<(), CampaignError> {
        if let Classified::Crash(crash) | Classified::Flaky(crash) = &mut finding.what {
            crash.of = Some(Box::new(subject.clone()));
        }
        let (kind, major) = group_of(&finding.what);
        let stored = self.session.with_space(|| self.campaign.commit(&finding));
        self.unstored += u64::from(stored.is_err() && self.session.disk_wait.is_given_up());
        let stored = stored?;
        count(&mut self.state().utilities[at].groups, kind, major);
        match stored.filter(|stored| stored.founds) {
            Some(stored) => self.session.show_new(&stored.id),
            None => Ok(()),
        }
    }
}

/// Removes the findings of a chunk that are slow runs and no hangs, and counts them as slow. To
/// tell slow runs from hangs, repeats runs that exceeded their time limit with a longer limit, and
/// records the outcome in `hangs`. Returns the numbers, ascending, of the runs that are undecided
/// because the longer run was abandoned (`abandon_when`); their findings stay in the chunk.
fn take_out_slow(chunk: &mut Chunk, hangs: &mut Hangs, abandon_when: &AbandonWhen) -> Vec<u64> {
    let mut undecided = Vec::new();
    for finding in std::mem::take(&mut chunk.findings) {
        let is_hang = match &finding.what {
            Classified::Crash(crash) if Kind::of_class(&crash.class) == Kind::Hang => {
                hangs.is_hang(&finding.input, crash, &chunk.subject, abandon_when)
            }
            _ => Some(true),
        };
        match is_hang {
            Some(true) => {}
            Some(false) => {
                let tally = &mut chunk.tallies[(finding.run - chunk.first) as usize];
                (tally.hangs, tally.slow) = (0, 1);
                continue;
            }
            None => undecided.push(finding.run),
        }
        chunk.findings.push(finding);
    }
    undecided
}

fn count(groups: &mut Vec<GroupTally>, kind: Kind, major: String) {
    let same = |held: &&mut GroupTally| held.kind == kind && held.major == major;
    match groups.iter_mut().find(same) {
        Some(held) => held.runs += 1,
        None => groups.push(GroupTally {
            kind,
            major,
            runs: 1,
            replayed: None,
        }),
    }
}

/// Greatest number of started targets that a worker keeps for later chunks of runs; when there are
/// more, it drops the one used least recently.
const MAX_STARTED: usize = 8;

/// The results of successive runs of a utility with the same invocation and options, which a worker
/// reports together.
struct Chunk {
    /// Number of the first run of the chunk, counted from the utility's first run.
    first: u64,
    /// Number of runs that a worker was asked to make for the chunk (successive runs reported
    /// together).
    planned: u64,
    /// Number of runs made for the chunk; fewer than planned if the user or a time limit stopped
    /// the worker, or another worker failed.
    runs: u64,
    findings: Vec<Finding>,
    /// Counts (crash, hang, slow, …) of each run of the chunk, in the order of the runs.
    tallies: Vec<Tally>,
    /// The utility, and the target with its arguments, that were run in the chunk.
    subject: Subject,
}

impl Chunk {
    /// Removes runs from the chunk, with their findings and counts. `runs`: their numbers, in
    /// ascending order.
    fn take_out(&mut self, runs: &[u64]) {
        self.findings.retain(|finding| !runs.contains(&finding.run));
        for run in runs.iter().rev() {
            self.tallies.remove((run - self.first) as usize);
            self.runs -= 1;
        }
    }
}

/// The inputs, limits and stop condition that all worker threads share while one utility is run.
struct WorkerContext<'a> {
    utility: &'a Utility,
    program: &'a Path,
    baselines: &'a [Baseline],
    plan: &'a StudyPlan,
    environment: &'a RunEnvironment,
    /// Number of the first run of the utility that the workers do not make.
    end: u64,
    stop_condition: StopCondition<'a>,
}

impl WorkerContext<'_> {
    /// Returns how the utility is called (invocation and options) in run `run`.
    fn call_of(&self, run: u64) -> Call {
        let chunk = run / self.plan.chunk(self.utility);
        self.plan.call(self.utility, chunk)
    }

    /// Divides the runs of the utility, from number `next` to the last one to be made, into chunks
    /// (groups of successive runs). Returns for each chunk the number of its first run, and its
    /// number of runs.
    fn chunks(&self, next: u64) -> impl Iterator<Item = (u64, u64)> {
        let chunk = self.plan.chunk(self.utility);
        let ends = move |first: &u64| (first / chunk + 1) * chunk;
        let first = (next < self.end).then_some(next);
        let firsts = std::iter::successors(first, move |first| {
            Some(ends(first)).filter(|next| *next < self.end)
        });
        firsts.map(move |first| (first, ends(&first).min(self.end) - first))
    }
}

/// Greatest number of inputs that are built for one request to the target.
const MAX_READY: usize = 32;
/// Total size, in bytes, of the inputs built for one request to the target; when it is reached, no
/// more inputs are added.
const MAX_READY_BYTES: usize = 256 << 10;

/// The inputs of a chunk (successive runs of a utility) that were not run yet.
struct WaitingInputs<'a> {
    shared: &'a WorkerContext<'a>,
    /// Numbers of the runs of the chunk whose inputs were not built yet.
    runs: Range<u64>,
    ready: VecDeque<(StudyInput, Vec<u8>)>,
}

impl<'a> WaitingInputs<'a> {
    fn new(shared: &'a WorkerContext<'a>, runs: Range<u64>) -> WaitingInputs<'a> {
        WaitingInputs {
            shared,
            runs,
            ready: VecDeque::new(),
        }
    }

    /// Builds inputs for the next runs, ready to be sent to the target: as many as one request
    /// should have if runs may share a process (`freshness`), otherwise one.
    fn fill(&mut self, freshness: Freshness) {
        let most = match freshness {
            Freshness::Shared => MAX_READY,
            Freshness::Fresh => 1,
        };
        let mut size: usize = self.ready.iter().map(|(_, bytes)| bytes.len()).sum();
        while self.ready.len() < most
            && size < MAX_READY_BYTES
            && let Some(run) = self.runs.next()
        {
            let input = self.shared.plan.input(self.shared.utility, run);
            let bytes = input.build();
            size += bytes.len();
            self.ready.push_back((input, bytes));
        }
    }

    fn bytes(&self) -> Vec<&[u8]> {
        self.ready.iter().map(|(_, bytes)| &bytes[..]).collect()
    }
}

/// A worker: a thread that runs a utility chunk by chunk (up to 64 runs with the same options).
struct Worker<'a> {
    shared: &'a WorkerContext<'a>,
    /// Targets that the worker has started and keeps for later chunks, the most recently used last.
    started: VecDeque<StartedUtility>,
}

/// A utility that was started for one way of calling it: with one invocation and the options drawn
/// for it.
struct StartedUtility {
    call: Call,
    executor: Box<dyn Executor>,
    classifier: RunClassifier,
    subject: Subject,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a WorkerContext<'a>) -> Worker<'a> {
        Worker {
            shared,
            started: VecDeque::new(),
        }
    }

    /// Makes `count` runs, beginning with run `first`, and returns their results; if the worker is
    /// stopped meanwhile, returns the results of the runs made so far. If runs have shared a
    /// process and a check shows that sharing changes results, makes all runs again, each in its
    /// own process. Fails with [`ExecError::Abandoned`] if the check was abandoned before the end of
    /// the time for fuzzing: the chunk then counts as nothing, and the next call makes it again.
    fn run_chunk(&mut self, first: u64, count: u64) -> Result<Chunk, ExecError> {
        let chunk = self.try_chunk(first, count)?;
        let started = self.started(self.shared.call_of(first))?;
        match started.executor.check_now() {
            // No later call makes these runs again. Crashes were confirmed in new processes.
            Err(ExecError::Abandoned) if self.shared.stop_condition.is_late() => return Ok(chunk),
            checked => checked?,
        }
        let started = self.started(self.shared.call_of(first))?;
        if started.executor.corrected().is_empty() {
            return Ok(chunk);
        }
        started.classifier.forget_reported();
        self.try_chunk(first, count)
    }

    fn try_chunk(&mut self, first: u64, count: u64) -> Result<Chunk, ExecError> {
        let shared = self.shared;
        let started = self.started(shared.call_of(first))?;
        let mut chunk = Chunk {
            first,
            planned: count,
            runs: 0,
            findings: Vec::new(),
            tallies: Vec::new(),
            subject: started.subject.clone(),
        };
        match started.fill(&mut chunk, shared) {
            // A run that was abandoned is not counted.
            Ok(()) | Err(ExecError::Abandoned) => Ok(chunk),
            Err(error) => Err(error),
        }
    }

    fn started(&mut self, call: Call) -> Result<&mut StartedUtility, ExecError> {
        let at = self.started.iter().position(|started| started.call == call);
        let started = match at.and_then(|at| self.started.remove(at)) {
            Some(started) => started,
            None => self.start(call)?,
        };
        while self.started.len() >= MAX_STARTED {
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
            stop_condition,
            ..
        } = self.shared;
        let invocation = &utility.invocations[call.invocation];
        let mut target = environment.target(program.to_path_buf(), invocation, &call.drawn);
        if let Some(baseline) = baselines.get(call.invocation) {
            target.limits = baseline.within(target.limits);
        }
        let target = stop_condition.abandoning(&target, CLASSIFICATION_TIME);
        let executor = start_many(&target)?;
        // What ends otherwise than by an exit is the run of a process of its own, in both ways.
        let way = match executor.way() {
            Way::Snapshot => Way::Inject,
            way => way,
        };
        Ok(StartedUtility {
            classifier: RunClassifier::of_target(&target, way).with_hangs_in_full(),
            subject: Subject {
                utility: utility.name.clone(),
                target: TargetRecord::new(&target, way),
            },
            call,
            executor,
        })
    }
}

impl StartedUtility {
    /// Makes and classifies the planned runs of `chunk`, which has none yet, and adds their findings
    /// and counts to it. Returns early when the worker is stopped; fails with
    /// [`ExecError::Abandoned`] if a run was abandoned.
    fn fill(&mut self, chunk: &mut Chunk, shared: &WorkerContext<'_>) -> Result<(), ExecError> {
        let (first, count, invocation) = (chunk.first, chunk.planned, self.call.invocation);
        let is_endless = (shared.baselines.get(invocation)).is_some_and(|it| it.is_endless());
        let channel = shared.utility.invocations[invocation].name();
        let mut waiting = WaitingInputs::new(shared, first..first + count);
        while chunk.runs < count && !shared.stop_condition.is_over() {
            waiting.fill(self.executor.freshness());
            for run in self.executor.run_some(&waiting.bytes())? {
                let Some((input, bytes)) = waiting.ready.pop_front() else {
                    break;
                };
                if !shared.stop_condition.may_classify(run.ended) {
                    return Ok(());
                }
                let what = match run.ended {
                    Ended::Timeout if is_endless => None,
                    ended => (self.classifier).judge(ended, &bytes, &*self.executor)?,
                };
                // A program that never ends on an empty input has no hangs.
                let what = what.filter(|what| !is_endless || group_of(what).0 != Kind::Hang);
                let tally = tally_of(&channel, &input.kind(), run.ended, what.as_ref());
                chunk.tallies.push(tally);
                chunk.findings.extend(what.map(|what| Finding {
                    run: first + chunk.runs,
                    name: input.to_string(),
                    input: if what.has_full_record() {
                        bytes
                    } else {
                        Vec::new()
                    },
                    what,
                }));
                chunk.runs += 1;
            }
        }
        Ok(())
    }
}

/// Starts a target for many runs. Runs share a process only in the way `snapshot`, where a crash is
/// always confirmed in a new process (docs/decisions/0163).
fn start_many(target: &Target) -> Result<Box<dyn Executor>, ExecError> {
    let executor = start(target, None, Freshness::Shared)?.executor;
    match (executor.way(), executor.freshness()) {
        (Way::Snapshot, _) | (_, Freshness::Fresh) => Ok(executor),
        (_, Freshness::Shared) => Ok(start(target, None, Freshness::Fresh)?.executor),
    }
}

/// CPU time after which runs of a program that does not end on an empty input are stopped, on any
/// other input; they count as passed.
const ENDLESS_CPU: Duration = Duration::from_millis(100);
/// Wall time after which runs of a program that does not end on an empty input are stopped, on any
/// other input; they count as passed.
const ENDLESS_WALL: Duration = Duration::from_millis(250);

/// What an invocation of a utility does with an empty input: it ends, computes or sleeps without
/// end, or is killed. This decides how runs of the invocation on other inputs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// The program ends when its input is empty.
    Ends,
    /// The program computes without end when its input is empty.
    Loops,
    /// The program sleeps without end when its input is empty.
    Waits,
    /// The program is killed by a signal such as SIGKILL when its input is empty, perhaps by itself
    /// together with its process group.
    IsKilled,
}

impl Baseline {
    /// Returns the label with which reports say what the program does on an empty input; `None` if
    /// it ends.
    pub(super) fn label(self) -> Option<&'static str> {
        match self {
            Baseline::Ends => None,
            Baseline::Loops => Some("loops-on-empty-input"),
            Baseline::Waits => Some("waits-on-empty-input"),
            Baseline::IsKilled => Some("kills-its-process-group"),
        }
    }

    /// Returns the limits for runs of an invocation on inputs that are not empty: `limits`, but at
    /// most 100 ms of CPU time and 250 ms of wall time if the program does not end on an empty
    /// input.
    fn within(self, limits: Limits) -> Limits {
        match self.is_endless() {
            true => Limits {
                cpu: limits.cpu.min(ENDLESS_CPU),
                wall: limits.wall.min(ENDLESS_WALL),
                ..limits
            },
            false => limits,
        }
    }

    /// Checks whether the program exceeds its time limit on an empty input.
    fn is_endless(self) -> bool {
        matches!(self, Baseline::Loops | Baseline::Waits)
    }
}

/// Runs an invocation of `program` on an empty input, and returns what the program does with it.
pub(super) fn baseline(
    environment: &RunEnvironment,
    program: &Path,
    invocation: &Invocation,
) -> Result<Baseline, ExecError> {
    let target = environment.target(program.to_owned(), invocation, &[]);
    let mut executor = start(&target, None, Freshness::Fresh)?.executor;
    let run = executor.run(b"")?;
    Ok(match run.ended {
        Ended::Timeout if run.cpu >= target.limits.cpu => Baseline::Loops,
        Ended::Timeout => Baseline::Waits,
        // At a terminal, a key such as ^C may kill the program.
        ended if ended.is_killing() && !invocation.is_terminal() => Baseline::IsKilled,
        _ => Baseline::Ends,
    })
}

/// The lowest exit status that the studies counted as a failure: shells use 126 and higher statuses
/// for commands that cannot be run or die of a signal.
const HIGH_EXIT: i32 = 126;

/// Returns the tally (counts for reports) of one run, which ended with `ended`. `channel` is how
/// its input reached the program, such as `stdin`; `kind` is the kind of its input, such as a
/// generator's name or `empty`; `what` is the crash, hang or memory blow-up in which it ended,
/// `None` for other runs.
fn tally_of(channel: &str, kind: &str, ended: Ended, what: Option<&Classified>) -> Tally {
    let found = what.map(|what| group_of(what).0);
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

/// Adds the counts of one run to the counts of all runs with the same channel and kind of input.
fn add(tallies: &mut Vec<Tally>, one: Tally) {
    let same = |held: &&mut Tally| held.channel == one.channel && held.kind == one.kind;
    match tallies.iter_mut().find(same) {
        Some(held) => held.add(&one),
        None => tallies.push(one),
    }
}

#[cfg(test)]
mod tests;
