//! [`TargetExecutor`], a LibAFL executor for all ways of ddfuzz to execute a target, and
//! [`AdaptiveTimeout`], the time limits of its runs.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ddfuzz_exec as exec;
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::inputs::BytesInput;
use libafl::observers::{CanTrack, HitcountsMapObserver, MapObserver, Observer, StdMapObserver};
use libafl::state::HasExecutions;
use libafl_bolts::Named;
use libafl_bolts::tuples::{Handle, Handled, RefIndexable, tuple_list};
use serde::{Deserialize, Serialize};

use super::failures::FailureTime;
use super::hangs::KnownHangs;
use super::messages::HeartbeatTimer;
use super::worker::{Map, Observers};
use crate::{FailedRun, FailedRunSlot};
use ddfuzz_exec::{
    CoverageReporting, Ended, ExecError, Freshness, Limits, Run, RunCoverage, Target, TimeLimit,
    Way,
};
use ddfuzz_model::files::Base64;

/// Name of the LibAFL observer of the coverage map.
pub(super) const EDGES: &str = "edges";
/// Greatest number of inputs that are run in one batch by the way `harness`. Sending a request and
/// its answer takes as long as some hundred runs of a small target.
const MAX_BATCH: usize = 1024;
/// Greatest number of inputs that are run in one batch by the way `snapshot`.
const MAX_SNAPSHOT_BATCH: usize = 128;
/// How often an input is run in one batch when LibAFL's calibration asks for one run of it: the
/// calibration asks again for runs of the same input, and gets the prepared results.
const CALIBRATION_RUNS: usize = 4;
/// Longest time that a batch of inputs should take: between two batches the worker sends heartbeats
/// and learns whether it must end.
const MAX_BATCH_TIME: Duration = Duration::from_millis(100);

/// Number of ranges into which the depth of a run's stack is divided. The coverage map that LibAFL
/// reads has one more entry for each range, after the coverage counters.
pub(super) const STACK_STEPS: usize = 160;

/// Returns the index of the range of stack depths that contains `depth`, given in bytes. Between a
/// depth and its double there are eight ranges, so that in a recursion of up to about eight levels
/// each level has a range of its own.
fn stack_step(depth: u64) -> usize {
    let words = depth / 8;
    let step = match words.checked_ilog2() {
        None | Some(0..3) => words,
        Some(log) => u64::from(log - 2) * 8 + (words >> (log - 3) & 7),
    };
    usize::try_from(step).map_or(STACK_STEPS - 1, |step| step.min(STACK_STEPS - 1))
}

/// Returns the coverage counters of a run, followed by one number for each range of stack depths: 1
/// for the range that the run's deepest stack is in, 0 for all others. All are 0 if the depth is
/// unknown.
fn features(covered: &RunCoverage) -> Vec<u8> {
    let mut features = covered.counters.clone();
    let steps = features.len();
    features.resize(steps + STACK_STEPS, 0);
    if let Some(depth) = covered.stack_depth {
        features[steps + stack_step(depth)] = 1;
    }
    features
}

/// Number of inputs that are run in one batch, adapted so that a batch takes about
/// [`MAX_BATCH_TIME`]. It is 1 at first, since a single run of a slow target may take that long.
struct BatchSize(usize);

impl Default for BatchSize {
    fn default() -> BatchSize {
        BatchSize(1)
    }
}

impl BatchSize {
    /// Adapts the number of inputs in a batch: halves it if the last batch, of `inputs` runs, took
    /// more `time` than [`MAX_BATCH_TIME`], and doubles it if it took less than a quarter of that.
    fn took(&mut self, inputs: usize, time: Duration) {
        if time > MAX_BATCH_TIME {
            self.0 = (inputs / 2).max(1);
        } else if time < MAX_BATCH_TIME / 4 {
            self.0 = (self.0 * 2).min(MAX_BATCH);
        }
    }
}

/// The result of one run in a batch, with its coverage counters if LibAFL has to process them.
pub(super) struct NotedRun {
    pub(super) run: Run,
    /// All coverage counters of the run if it has reached something new; otherwise `None`.
    pub(super) counters: Option<Vec<u8>>,
}

impl NotedRun {
    /// Makes the result of a run whose coverage counters are not known.
    fn of(run: Run) -> NotedRun {
        let counters = None;
        NotedRun { run, counters }
    }
}

/// A started target with LibAFL's observers. As LibAFL's [`Executor`] it runs one input;
/// [`TargetExecutor::run_some`] runs several at once, and returns the coverage only of runs that
/// reached something new.
pub(super) struct TargetExecutor {
    pub(super) executor: Box<dyn exec::Executor>,
    observers: Observers,
    pub(super) map: Handle<Map>,
    /// Exit status that counts as a crash; `None` if none does.
    crash_exit: Option<i32>,
    /// A slot with what was observed of the last failed run, from which the LibAFL objective reads
    /// it.
    pub(super) failed_run: FailedRunSlot,
    coverage_mode: CoverageReporting,
    batch: BatchSize,
    /// Prepared results for LibAFL's calibration, which asks several times for a run of the same
    /// input: pairs of an input and a result. They were made in one batch at the first request, and
    /// answer the next requests.
    ahead: VecDeque<(Vec<u8>, NotedRun)>,
    /// Coverage counters of the last run for which counters were reported; empty before the first
    /// such run.
    last_counters: Vec<u8>,
    /// Whether inputs that did not pass are sent to linked campaigns on other hosts.
    pub(super) linked: bool,
    /// The time limits of runs: the target's, and a shorter one that is learned.
    pub(super) timeouts: AdaptiveTimeout,
    /// The hangs that this worker knows by their sites in the program.
    pub(super) hangs: KnownHangs,
    /// The time that hangs, and crashes without anything new to store, have taken.
    pub(super) failures: FailureTime,
    /// The number of runs that the worker may make, and when it sends its next heartbeat.
    pub(super) heartbeat: HeartbeatTimer,
    /// For each block of an unmodified program, whether it was reported to the main process as
    /// reached; `None` for an instrumented target.
    pub(super) reported_blocks: Option<Vec<bool>>,
}

impl TargetExecutor {
    /// Starts `target` by the way `way` and turns on the observation of its coverage; does not
    /// check whether the target reports any. `heartbeat` counts the runs that the worker may make.
    /// `before`: how many earlier processes of this worker have crashed, so that this process
    /// numbers its hang submissions differently.
    pub(super) fn start(
        target: &Target,
        way: Way,
        heartbeat: HeartbeatTimer,
        before: u32,
    ) -> Result<TargetExecutor, ExecError> {
        let mut executor = exec::start(target, Some(way), Freshness::Shared)?.executor;
        let places = executor.cover_blocks()?.unwrap_or(1);
        let reported_blocks = executor.code().map(|_| vec![false; places]);
        let map = StdMapObserver::owned(EDGES, vec![0; places + STACK_STEPS]);
        let map = HitcountsMapObserver::new(map).track_indices();
        let handle = map.handle();
        Ok(TargetExecutor {
            executor,
            observers: tuple_list!(map, EndObserver::new()),
            map: handle,
            crash_exit: target.crash_exit,
            failed_run: FailedRunSlot::default(),
            coverage_mode: CoverageReporting::Nothing,
            batch: BatchSize::default(),
            ahead: VecDeque::new(),
            last_counters: Vec::new(),
            linked: false,
            timeouts: AdaptiveTimeout::new(target.limits),
            hangs: KnownHangs::new(before),
            failures: FailureTime::default(),
            heartbeat,
            reported_blocks,
        })
    }

    /// Returns the number of inputs that [`run_some`](TargetExecutor::run_some) is to be given at
    /// once; 1 for ways that make one run at a time.
    pub(super) fn at_once(&self) -> usize {
        match (self.executor.way(), self.executor.freshness()) {
            (Way::Harness, Freshness::Shared) => self.batch.0,
            (Way::Snapshot, Freshness::Shared) => self.batch.0.min(MAX_SNAPSHOT_BATCH),
            _ => 1,
        }
    }

    /// Records that a batch of `inputs` runs took the time `time`, and whether its last run was
    /// stopped as a hang (`stopped`). If no run was stopped, adapts the size of later batches, so
    /// that each takes at most 100 ms.
    pub(super) fn took(&mut self, inputs: usize, time: Duration, stopped: bool) {
        self.failures.took(inputs, time, stopped);
        if !stopped {
            self.batch.took(inputs, time);
        }
    }

    /// Returns how the last failed run ended if no LibAFL objective has evaluated it, which happens
    /// in LibAFL's calibration; `None` if there is no such run.
    pub(super) fn unreported(&self) -> Option<Ended> {
        self.failed_run.ended()
    }

    /// Empties the slot of the last failed run, so that its content is not taken for a failure of
    /// the next run.
    pub(super) fn clear_unreported(&mut self) {
        self.failed_run.put(FailedRun::default());
    }

    /// Sets LibAFL's observers to the result of a run that ended as `ended` says and covered no
    /// code.
    pub(super) fn observe_end(&mut self, ended: Ended) -> Result<(), Error> {
        let (map, (end, ())) = &mut self.observers;
        map.as_mut().reset_map()?;
        end.ended = Some(ended);
        Ok(())
    }

    fn set_coverage_mode(&mut self, coverage_mode: CoverageReporting) {
        if self.coverage_mode != coverage_mode {
            self.executor.report_coverage(coverage_mode);
            self.coverage_mode = coverage_mode;
        }
    }

    /// Runs `inputs` in order within the learned time limit, up to the first run that does not end
    /// normally ([`exec::Executor::run_some`]). Returns the results of the runs made, in order,
    /// with the coverage of each run that reached something new.
    pub(super) fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<NotedRun>, ExecError> {
        self.set_coverage_mode(CoverageReporting::Novel);
        self.executor.limit_time(self.timeouts.learned);
        self.recognise();
        let runs = self.executor.run_some(inputs)?;
        Ok(self.with_coverage(runs))
    }

    /// Returns each result of the runs that the executor has just made, together with the coverage
    /// of that run, if the executor has reported it.
    fn with_coverage(&self, runs: Vec<Run>) -> Vec<NotedRun> {
        let mut noted: Vec<NotedRun> = runs.into_iter().map(NotedRun::of).collect();
        for covered in self.executor.covered() {
            if let Some(noted) = noted.get_mut(covered.run) {
                noted.counters = Some(features(covered));
            }
        }
        noted
    }

    /// Passes the list of known hangs to the executor if it has changed: their signatures (hashes
    /// of the code in which they loop), and after which CPU time a run is compared with them. The
    /// executor stops a run early if the run shows one of these signatures.
    fn recognise(&mut self) {
        if let Some((window, known)) = self.hangs.changed() {
            self.executor.recognise(window, known);
        }
    }

    /// Runs an input that exceeded the learned time limit again within the target's full limit, and
    /// returns the result.
    pub(super) fn run_with_full_limit(&mut self, input: &[u8]) -> Result<NotedRun, ExecError> {
        self.set_coverage_mode(CoverageReporting::Novel);
        self.executor.limit_time(self.timeouts.full);
        // Else a run would be stopped by a signature that is no longer a known hang.
        self.recognise();
        let run = self.executor.run(input)?;
        let counters = self.executor.covered().last();
        Ok(NotedRun {
            run,
            counters: counters.map(features),
        })
    }

    /// Runs `input` within the full time limit, and returns the result with its coverage. To save
    /// time, the first call for an input makes all the runs that calibration needs in one batch,
    /// and returns the first result; the next calls for the same input return the other results
    /// without a run.
    fn run_again(&mut self, input: &[u8]) -> Result<NotedRun, ExecError> {
        if let Some((of, run)) = self.ahead.pop_front()
            && of == input
        {
            return Ok(run);
        }
        self.ahead.clear();
        self.set_coverage_mode(CoverageReporting::Every);
        self.executor.limit_time(self.timeouts.full);
        let inputs = [input; CALIBRATION_RUNS];
        let runs = self
            .executor
            .run_some(&inputs[..self.at_once().min(CALIBRATION_RUNS)])?;
        let mut runs = self.with_coverage(runs).into_iter();
        let first = runs.next();
        self.ahead = runs.map(|noted| (input.to_owned(), noted)).collect();
        match first {
            Some(first) => Ok(first),
            None => self.executor.run(input).map(NotedRun::of),
        }
    }

    /// Tells LibAFL's observers how a run has `ended` and what its coverage `counters` are. If the
    /// run may have failed, also stores in `failed_run` what is needed to examine it, such as
    /// snapshots of the target's process, which are valid only until the next run.
    pub(super) fn observe(&mut self, ended: Ended, counters: &[u8]) -> Result<(), Error> {
        self.observe_end(ended)?;
        if !counters.is_empty() {
            counters.clone_into(&mut self.last_counters);
        }
        let (map, _) = &mut self.observers;
        let map = map.as_mut();
        for (place, count) in counters.iter().enumerate().take(map.usable_count()) {
            if *count != 0 {
                map.set(place, *count);
            }
        }
        if !ended.is_exit() || ended.is_suspect(self.crash_exit) {
            let preceding = self.executor.preceding();
            self.failed_run.put(FailedRun {
                ended: Some(ended),
                copies: self.executor.crash_snapshots(),
                preceding: preceding.into_iter().map(Base64).collect(),
            });
        }
        Ok(())
    }

    /// Converts how a run ended to LibAFL's exit kind: timeout, out of memory, crash (by a signal,
    /// with the exit status that counts as a crash, or with the exit status of a Rust panic), and
    /// otherwise [`ExitKind::Ok`].
    pub(super) fn exit_kind(&self, ended: Ended) -> ExitKind {
        match ended {
            Ended::Timeout => ExitKind::Timeout,
            Ended::OutOfMemory => ExitKind::Oom,
            // A status that may be a crash is `Ok` for LibAFL until triage has classified the run.
            _ if ended.is_suspect(self.crash_exit) => ExitKind::Crash,
            _ => ExitKind::Ok,
        }
    }
}

impl HasObservers for TargetExecutor {
    type Observers = Observers;

    fn observers(&self) -> RefIndexable<&Observers, Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Observers, Observers> {
        RefIndexable::from(&mut self.observers)
    }
}

impl<EM, S: HasExecutions, Z> Executor<EM, BytesInput, S, Z> for TargetExecutor {
    fn run_target(
        &mut self,
        _fuzzer: &mut Z,
        state: &mut S,
        _manager: &mut EM,
        input: &BytesInput,
    ) -> Result<ExitKind, Error> {
        *state.executions_mut() += 1;
        let NotedRun { run, counters } = self.run_again(input.as_ref()).map_err(fail)?;
        // LibAFL refuses an entry without coverage, which a run that breakpoints would disturb has.
        let is_unknown = run.ended.is_exit() && self.reported_blocks.is_some();
        let counters = counters.or_else(|| is_unknown.then(|| self.last_counters.clone()));
        self.observe(run.ended, &counters.unwrap_or_default())?;
        // The calibration makes further runs before its failed run is reported.
        self.failed_run.keep_copies().map_err(fail)?;
        let kind = self.exit_kind(run.ended);
        if kind == ExitKind::Ok {
            self.hangs.see(run.cpu);
        }
        Ok(kind)
    }
}

/// Converts an error of any type to LibAFL's error, with its text.
pub(super) fn fail(error: impl std::fmt::Display) -> Error {
    Error::unknown(error.to_string())
}

/// A LibAFL observer that holds how the last run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EndObserver {
    name: Cow<'static, str>,
    /// How the last run ended; `None` before the first run.
    pub(super) ended: Option<Ended>,
}

impl EndObserver {
    /// Makes an observer of how runs end, which has seen no run yet.
    pub(super) fn new() -> EndObserver {
        EndObserver {
            name: Cow::Borrowed("ended"),
            ended: None,
        }
    }
}

impl Named for EndObserver {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}

impl<I, S> Observer<I, S> for EndObserver {}

/// Runs over the learned time limit are repeated within the full limit; these repetitions may take
/// at most a worker's time divided by this number.
const SHARE_DIVISOR: u32 = 5;
/// Time that repetitions of runs over the learned time limit may take in addition to their share of
/// a worker's time.
const CREDIT: Duration = Duration::from_secs(3);

/// The time limits of a worker's runs: the target's limit, and a shorter learned one.
///
/// With the target's limit alone, a worker would spend most of its time on hangs: each takes the
/// whole limit, and twice the limit again to be classified. So runs get a limit that is learned
/// from the runs of the corpus. A run over the learned limit does not count as a hang yet: it is
/// repeated within the full limit if there is time for the repetition, and otherwise dropped.
#[derive(Debug)]
pub(super) struct AdaptiveTimeout {
    /// The target's time limit: a run that exceeds it is a hang.
    full: TimeLimit,
    /// The learned time limit of runs, which is at most the target's limit (`full`).
    pub(super) learned: TimeLimit,
    /// Number of runs from whose CPU time the learned time limit is computed.
    runs: u32,
    /// CPU time of all runs together, from which the learned time limit is computed.
    cpu: Duration,
    began: Instant,
    /// Wall time spent so far on repeating runs with the full time limit, after they had exceeded
    /// the learned one.
    spent: Duration,
}

impl AdaptiveTimeout {
    /// Creates the time limits of a worker's runs: the learned limit is the target's own, since
    /// nothing is learned yet.
    pub(super) fn new(limits: Limits) -> AdaptiveTimeout {
        AdaptiveTimeout {
            full: limits.into(),
            learned: limits.into(),
            runs: 0,
            cpu: Duration::ZERO,
            began: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    /// Adds the CPU time of a run that passed and reached something new to the CPU times from which
    /// the time limit is learned.
    pub(super) fn see(&mut self, cpu: Duration) {
        self.runs += 1;
        self.cpu += cpu;
    }

    /// Sets the learned time limit of runs to ten times the mean CPU time of the recorded runs, at
    /// least 50 ms and at most the target's limit; without recorded runs nothing changes.
    pub(super) fn learn(&mut self) {
        if let Some(mean) = self.cpu.checked_div(self.runs) {
            self.learned = TimeLimit::learned(mean).at_most(self.full);
        }
    }

    /// Checks whether a time limit that is shorter than the target's own limit was learned from
    /// runs.
    pub(super) fn is_learned(&self) -> bool {
        self.learned != self.full
    }

    /// Returns true if the worker may repeat a run that exceeded the learned time limit, because
    /// all repetitions together have not taken more than their share of the worker's time yet.
    pub(super) fn has_time(&self) -> bool {
        self.spent < self.began.elapsed() / SHARE_DIVISOR + CREDIT
    }

    /// Records the time that repeating a run within the full time limit took.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeouts(runs_ms: &[u64]) -> AdaptiveTimeout {
        let mut timeouts = AdaptiveTimeout::new(Limits::with_cpu(Duration::from_secs(1)));
        for ms in runs_ms {
            timeouts.see(Duration::from_millis(*ms));
        }
        timeouts.learn();
        timeouts
    }

    #[test]
    fn a_level_of_a_recursion_is_a_step_of_its_own() {
        assert_eq!([0, 8, 56, 64].map(stack_step), [0, 1, 7, 8]);
        let steps: Vec<usize> = (1..=9).map(|level| stack_step(48 + level * 96)).collect();
        assert!(steps.windows(2).all(|two| two[0] < two[1]), "{steps:?}");
        let doubled = |depth: u64| stack_step(2 * depth) - stack_step(depth);
        assert_eq!([64, 96, 1000, 1 << 20].map(doubled), [8; 4]);
        assert!(stack_step(8 << 20) < STACK_STEPS);
        assert_eq!(stack_step(u64::MAX), STACK_STEPS - 1);
    }

    #[test]
    fn batches_grow_from_one_run_while_they_are_short() {
        let mut batch = BatchSize::default();
        batch.took(1, Duration::from_secs(1));
        assert_eq!(batch.0, 1);
        for _ in 0..20 {
            batch.took(batch.0, Duration::from_millis(1));
        }
        assert_eq!(batch.0, MAX_BATCH);
        batch.took(batch.0, Duration::from_millis(50));
        assert_eq!(batch.0, MAX_BATCH);
        batch.took(64, Duration::from_secs(1));
        assert_eq!(batch.0, 32);
    }

    #[test]
    fn ten_times_the_mean_run_is_enough_within_the_full_limit() {
        let cpu = |runs_ms: &[u64]| timeouts(runs_ms).learned.cpu;
        assert_eq!(cpu(&[10, 30]), Duration::from_millis(200));
        assert_eq!(cpu(&[0, 1]), TimeLimit::MIN_LEARNED);
        assert_eq!(cpu(&[900]), Duration::from_secs(1));
        assert_eq!(cpu(&[]), Duration::from_secs(1));
        assert!(timeouts(&[1]).is_learned() && !timeouts(&[]).is_learned());
    }

    #[test]
    fn slow_runs_are_looked_at_until_their_share_is_spent() {
        let mut timeouts = timeouts(&[1]);
        assert!(timeouts.has_time());
        timeouts.spend(CREDIT + Duration::from_secs(3600));
        assert!(!timeouts.has_time());
    }
}
