//! Our ways of execution as one executor of LibAFL, and how long runs may take.

use std::borrow::Cow;
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

use super::hangs::Hangs;
use super::remote::HeartbeatTimer;
use super::worker::{Map, Observers};
use crate::{Seen, Sight};
use ddfuzz_exec::{
    CoverageReporting, Ended, ExecError, Freshness, Limits, Run, Target, TimeLimit, Way,
};
use ddfuzz_model::files::Base64;

/// The name of the map of coverage.
pub(super) const EDGES: &str = "edges";
/// Inputs that a target that is started for each run gets at once: one.
const ONE: usize = 1;
/// Inputs that a loop is given at once, at most.
const MANY: usize = 128;
/// They are fewer where they would take longer: in between the worker reports, and learns that it is
/// to end.
const LONGEST: Duration = Duration::from_millis(100);

/// One run of a batch that LibAFL may have to process.
pub(super) struct NotedRun {
    pub(super) run: Run,
    /// What it has reached that no run had reached before, as all counters.
    pub(super) counters: Option<Vec<u8>>,
}

/// A started target with LibAFL's observers. One input at a time it is an executor like any
/// other; several at once go by [`TargetExecutor::run_some`], which reports only what is new.
pub(super) struct TargetExecutor {
    pub(super) executor: Box<dyn exec::Executor>,
    observers: Observers,
    map: Handle<Map>,
    /// Exit statuses of Rust programs that have panicked, or that the user calls a crash.
    crash_exit: Option<i32>,
    /// Where the objective reads what LibAFL does not report of a run.
    sight: Sight,
    telling: CoverageReporting,
    /// How many inputs a loop is given at once, by how long the last took.
    many: usize,
    /// Whether other hosts are to get what did not pass.
    pub(super) linked: bool,
    /// How long runs may take.
    pub(super) timeouts: AdaptiveTimeout,
    /// What is known of those that do not end.
    pub(super) hangs: Hangs,
    /// How many more runs the worker may make, and when it has to report.
    pub(super) heartbeat: HeartbeatTimer,
}

impl TargetExecutor {
    /// Starts `target`, which has to report its coverage. `before`: how many workers have died in the
    /// place of this one.
    pub(super) fn start(
        target: &Target,
        way: Way,
        heartbeat: HeartbeatTimer,
        before: u32,
    ) -> Result<TargetExecutor, ExecError> {
        let executor = exec::start(target, Some(way), Freshness::Shared)?.executor;
        let places = executor.places().unwrap_or(1);
        let map = StdMapObserver::owned(EDGES, vec![0; places]);
        let map = HitcountsMapObserver::new(map).track_indices();
        let handle = map.handle();
        Ok(TargetExecutor {
            executor,
            observers: tuple_list!(map, EndObserver::new()),
            map: handle,
            crash_exit: target.crash_exit,
            sight: Sight::default(),
            telling: CoverageReporting::Nothing,
            many: MANY,
            linked: false,
            timeouts: AdaptiveTimeout::new(target.limits),
            hangs: Hangs::new(before),
            heartbeat,
        })
    }

    /// The handle of the map.
    pub(super) fn map(&self) -> &Handle<Map> {
        &self.map
    }

    /// How many inputs [`run_some`](TargetExecutor::run_some) takes at once.
    pub(super) fn at_once(&self) -> usize {
        match (self.executor.way(), self.executor.freshness()) {
            (Way::Harness, Freshness::Shared) => self.many,
            _ => ONE,
        }
    }

    /// Records how long inputs took, and whether the last one was stopped.
    pub(super) fn took(&mut self, inputs: usize, time: Duration, stopped: bool) {
        self.hangs.took(inputs, time, stopped);
        if stopped {
            return;
        }
        if time > LONGEST {
            self.many = (inputs / 2).max(1);
        } else if time < LONGEST / 4 {
            self.many = (self.many * 2).min(MANY);
        }
    }

    /// How a run has ended that did not pass, and that no objective has received: one by which
    /// LibAFL has calibrated an input.
    pub(super) fn unreported(&self) -> Option<Ended> {
        self.sight.ended()
    }

    /// It is not reported.
    pub(super) fn clear_unreported(&mut self) {
        self.sight.leave(Seen::default());
    }

    /// Puts into the observers that a run has ended so, and nothing else.
    pub(super) fn observe_end(&mut self, ended: Ended) -> Result<(), Error> {
        let (map, (end, ())) = &mut self.observers;
        map.as_mut().reset_map()?;
        end.ended = Some(ended);
        Ok(())
    }

    /// Where it leaves what it has seen of runs that did not pass.
    pub(super) fn sight(&self) -> Sight {
        self.sight.clone()
    }

    fn tell(&mut self, telling: CoverageReporting) {
        if self.telling != telling {
            self.executor.report_coverage(telling);
            self.telling = telling;
        }
    }

    /// Runs the first of `inputs` and as many after it as come back; see
    /// [`exec::Executor::run_some`].
    pub(super) fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<NotedRun>, ExecError> {
        self.tell(CoverageReporting::Novel);
        self.executor.limit_time(self.timeouts.learned());
        self.recognise();
        let runs = self.executor.run_some(inputs)?;
        let mut told: Vec<NotedRun> = runs
            .into_iter()
            .map(|run| NotedRun {
                run,
                counters: None,
            })
            .collect();
        for covered in self.executor.covered() {
            if let Some(told) = told.get_mut(covered.run) {
                told.counters = Some(covered.counters.clone());
            }
        }
        Ok(told)
    }

    /// Has runs stopped early that are known for hangs.
    fn recognise(&mut self) {
        if let Some((window, known)) = self.hangs.changed() {
            self.executor.recognise(window, known);
        }
    }

    /// Runs an input that was over the learned limit within the one that findings are held to.
    pub(super) fn run_patiently(&mut self, input: &[u8]) -> Result<NotedRun, ExecError> {
        self.tell(CoverageReporting::Novel);
        self.executor.limit_time(self.timeouts.full());
        // What is known by now to end there would be stopped else.
        self.recognise();
        let run = self.executor.run(input)?;
        let counters = self.executor.covered().last();
        Ok(NotedRun {
            run,
            counters: counters.map(|covered| covered.counters.clone()),
        })
    }

    /// Puts what is known of one run into the observers.
    pub(super) fn observe(&mut self, ended: Ended, counters: &[u8]) -> Result<(), Error> {
        self.observe_end(ended)?;
        let (map, _) = &mut self.observers;
        let map = map.as_mut();
        for (place, count) in counters.iter().enumerate().take(map.usable_count()) {
            if *count != 0 {
                map.set(place, *count);
            }
        }
        if !ended.is_exit() || ended.is_suspect(self.crash_exit) {
            let preceding = self.executor.preceding();
            self.sight.leave(Seen {
                ended: Some(ended),
                copies: self.executor.copies(),
                preceding: preceding.into_iter().map(Base64).collect(),
            });
        }
        Ok(())
    }

    /// How LibAFL calls this ending.
    pub(super) fn exit_kind(&self, ended: Ended) -> ExitKind {
        match ended {
            Ended::Timeout => ExitKind::Timeout,
            Ended::OutOfMemory => ExitKind::Oom,
            // A status that only may be a crash passes, for LibAFL, until triage has looked.
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
        self.tell(CoverageReporting::Every);
        self.executor.limit_time(self.timeouts.full());
        let run = self
            .executor
            .run(input.as_ref())
            .map_err(|error| fail(&error))?;
        let covered = self.executor.covered().last();
        let counters = covered.map_or(Vec::new(), |covered| covered.counters.clone());
        self.observe(run.ended, &counters)?;
        let kind = self.exit_kind(run.ended);
        if kind == ExitKind::Ok {
            self.hangs.see(run.cpu);
        }
        Ok(kind)
    }
}

/// An error of ours as one of LibAFL.
pub(super) fn fail(error: &impl std::fmt::Display) -> Error {
    Error::unknown(error.to_string())
}

/// How the last run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EndObserver {
    name: Cow<'static, str>,
    /// `None` before the first run.
    pub(super) ended: Option<Ended>,
}

impl EndObserver {
    /// An observer that has seen nothing.
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

/// How much longer than the mean run of the corpus any other may take.
const FACTOR: u32 = 10;
/// The least limit in CPU time: the kernel counts it in steps of some milliseconds.
const LEAST: Duration = Duration::from_millis(50);
/// The part of a worker's time that looking at runs over the limit may take: one of so many.
const SHARE: u32 = 5;
/// How much it may take at once.
const CREDIT: Duration = Duration::from_secs(3);

/// The time limits of a worker: shorter than the target's, after what its runs take.
///
/// A program that loops easily would else be waited for most of the time: each hang takes the
/// whole limit, and twice that again to be named. So runs get a limit that is learned from those
/// of the corpus. One that is over it is no hang yet: it is made once more within the limit that
/// findings are held to, and named, where there is time for that, and else forgotten.
#[derive(Debug)]
pub(super) struct AdaptiveTimeout {
    /// What findings are held to.
    full: TimeLimit,
    /// What other runs are.
    learned: TimeLimit,
    /// How many runs were learned from, and their CPU time.
    runs: u32,
    cpu: Duration,
    began: Instant,
    spent: Duration,
}

impl AdaptiveTimeout {
    /// As patient as the limits say.
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

    /// A run that passed and reached something new took this CPU time.
    pub(super) fn see(&mut self, cpu: Duration) {
        self.runs += 1;
        self.cpu += cpu;
    }

    /// Learns the limit from what was seen, if anything was.
    pub(super) fn learn(&mut self) {
        if let Some(mean) = self.cpu.checked_div(self.runs) {
            let limit = Limits::with_cpu(mean.saturating_mul(FACTOR).max(LEAST));
            self.learned = TimeLimit {
                cpu: self.full.cpu.min(limit.cpu),
                wall: self.full.wall.min(limit.wall),
            };
        }
    }

    /// The limit that findings are held to.
    pub(super) fn full(&self) -> TimeLimit {
        self.full
    }

    /// The limit on other runs.
    pub(super) fn learned(&self) -> TimeLimit {
        self.learned
    }

    /// Whether a run over the learned limit may be within the full one.
    pub(super) fn doubts(&self) -> bool {
        self.learned != self.full
    }

    /// Whether there is time to look at a run that is over its limit.
    pub(super) fn has_time(&self) -> bool {
        self.spent < self.began.elapsed() / SHARE + CREDIT
    }

    /// Records time that was taken by that.
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
    fn ten_times_the_mean_run_is_enough_within_the_full_limit() {
        let cpu = |runs_ms: &[u64]| timeouts(runs_ms).learned().cpu;
        assert_eq!(cpu(&[10, 30]), Duration::from_millis(200));
        assert_eq!(cpu(&[0, 1]), LEAST);
        assert_eq!(cpu(&[900]), Duration::from_secs(1));
        assert_eq!(cpu(&[]), Duration::from_secs(1));
        assert!(timeouts(&[1]).doubts() && !timeouts(&[]).doubts());
    }

    #[test]
    fn slow_runs_are_looked_at_until_their_share_is_spent() {
        let mut timeouts = timeouts(&[1]);
        assert!(timeouts.has_time());
        timeouts.spend(CREDIT + Duration::from_secs(3600));
        assert!(!timeouts.has_time());
    }
}
