//! Runs contents on a started target, with an adaptive time limit. A run that was killed is
//! repeated alone in a new process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::{MeasureError, MeasureSettings};
use crate::Features;
use crate::journal::Observation;
use ddfuzz_exec::{
    CoverageReporting, Ended, ExecError, Executor, Freshness, Limits, NotCovered, Program,
    RefusalReason, Run, RunCoverage, Target, TimeLimit, is_script, start, start_covered,
};
use ddfuzz_model::pool::lock;
use ddfuzz_triage::Triager;

/// Maximum number of inputs that one request asks the target to run.
pub(super) const MANY: usize = 128;
/// Wall time that a request of several inputs to the target should take at most; after a longer
/// one, the next request has fewer inputs.
const LONGEST: Duration = Duration::from_millis(100);

/// Tells from the ending of a run (exit status, signal or limit) whether the run may have failed.
/// Which exit statuses count (that of a panic, one that is declared as a crash) is set once for a
/// target.
#[derive(Clone, Copy, Debug)]
struct CrashSuspicion {
    crash_exit: Option<i32>,
    /// Whether the exit status of a Rust panic (101) shows that a run may have failed.
    panics: bool,
}

impl CrashSuspicion {
    /// Returns which endings of runs may be failures of the target, as the pool of `settings`
    /// knows. Without a pool, or if it does not know yet, finds this out from the target's program.
    fn of(settings: &MeasureSettings<'_>) -> Result<CrashSuspicion, ExecError> {
        let pool = settings.runners.map(|pool| &pool.suspicion);
        if let Some(known) = pool.and_then(OnceLock::get) {
            return Ok(*known);
        }
        let found = CrashSuspicion::read(settings)?;
        Ok(pool.map_or(found, |pool| *pool.get_or_init(|| found)))
    }

    fn read(settings: &MeasureSettings<'_>) -> Result<CrashSuspicion, ExecError> {
        let crash_exit = settings.target.crash_exit;
        let triager = Triager::of_target(settings.target, settings.way)?;
        let status = Ended::Exit(ddfuzz_exec::RUST_PANIC);
        Ok(CrashSuspicion {
            crash_exit,
            panics: triager.suspects(status),
        })
    }

    fn falls_on(self, ended: Ended) -> bool {
        !ended.is_exit()
            || ended.is_crash(self.crash_exit)
            || self.panics && ended.is_suspect(self.crash_exit)
    }
}

/// Pool of idle started instances of one target, since a start costs as much as many runs.
#[derive(Default)]
pub struct Runners {
    idle: Mutex<Vec<Runner>>,
    /// An instance of the target that was started, shares its processes, and has not run anything
    /// for this pool yet; the first runner takes it.
    started: Mutex<Option<Box<dyn Executor>>>,
    /// Which endings of runs may be crashes; set when the first instance of the target is started.
    suspicion: OnceLock<CrashSuspicion>,
    /// Whether some run in a process shared by many inputs was found to differ from a run of the
    /// same input in a new process.
    differed: AtomicBool,
}

impl Runners {
    /// Creates a pool of runners. The first one takes over `started`, an executor of the target
    /// that may run many inputs in one process; others start their own.
    pub fn with(started: Box<dyn Executor>) -> Runners {
        Runners {
            started: Mutex::new(Some(started)),
            ..Runners::default()
        }
    }

    /// Returns a started target: one from the pool of `settings` whose runs share processes or not
    /// as requested; if there is none, a new one.
    pub(super) fn take(settings: &MeasureSettings<'_>) -> Result<Runner, ExecError> {
        let started = settings.runners.and_then(|runners| {
            let mut idle = lock(&runners.idle);
            let fits = |runner: &Runner| runner.requested == settings.freshness;
            let at = idle.iter().position(fits)?;
            Some(idle.swap_remove(at))
        });
        started.map_or_else(|| Runner::start(settings), Ok)
    }

    /// Puts a target that is idle again back into the pool that `settings` name; does nothing if
    /// they name none. Records in the pool if runs of the target in a shared process were found to
    /// differ from runs in a new one.
    pub(super) fn give_back(settings: &MeasureSettings<'_>, runner: Runner) {
        if let Some(runners) = settings.runners {
            let mut refusals = runner.executor.refusals().into_iter();
            if refusals.any(|(reason, _)| reason == RefusalReason::Differs) {
                runners.differed.store(true, Ordering::Relaxed);
            }
            lock(&runners.idle).push(runner);
        }
    }

    /// Stops all idle targets of the pool, empties it, and resets [`Runners::have_differed`].
    pub fn clear(&self) {
        lock(&self.idle).clear();
        self.differed.store(false, Ordering::Relaxed);
    }

    /// Returns true if, since the pool was last cleared, some run in a process shared by many
    /// inputs was found to differ from a run of the same input in a new process.
    pub fn have_differed(&self) -> bool {
        self.differed.load(Ordering::Relaxed)
    }
}

/// A started instance of the target that runs inputs, with its adaptive time limit.
pub(super) struct Runner {
    executor: Box<dyn Executor>,
    /// Why runs of the target report no coverage; `None` if they report it, or the reason is not
    /// known.
    not_covered: Option<NotCovered>,
    timeout: AdaptiveTimeout,
    suspicion: CrashSuspicion,
    /// Greatest number of inputs in the next request to the target, adapted to the time that the
    /// last one took.
    batch: usize,
    /// Whether runs of the target may share a process, as requested when it was started.
    requested: Freshness,
    /// Whether each run that exits must report the basic blocks that it reached.
    by_blocks: bool,
}

impl Runner {
    /// Starts a target for running inputs, with coverage if it reports any.
    fn start(settings: &MeasureSettings<'_>) -> Result<Runner, ExecError> {
        let suspicion = CrashSuspicion::of(settings)?;
        let Target { limits, .. } = settings.target;
        let mut executor = match settings.freshness {
            Freshness::Fresh => start_covered(settings.target, settings.way)?,
            Freshness::Shared => {
                let started = settings.runners.and_then(|pool| lock(&pool.started).take());
                let mut executor = match started {
                    Some(started) => started,
                    None => start(settings.target, Some(settings.way), Freshness::Shared)?.executor,
                };
                executor.report_coverage(CoverageReporting::Every);
                executor
            }
        };
        let is_script = matches!(&settings.target.program, Program::Path(path) if is_script(path));
        let not_covered = match settings.blocks {
            true if is_script => Some("it is a script, whose blocks are those of its interpreter"),
            true => executor.cover_blocks()?.err(),
            false => None,
        };
        Ok(Runner {
            by_blocks: settings.cover_by_blocks(executor.counter_count()),
            executor,
            not_covered,
            timeout: AdaptiveTimeout::new(*limits, settings.learn_limit),
            suspicion,
            batch: MANY,
            requested: settings.freshness,
        })
    }

    /// Returns the number of instrumented places (edges) of the target; `None` if it reports no
    /// coverage.
    pub(super) fn counter_count(&self) -> Option<usize> {
        self.executor.counter_count()
    }

    /// Returns why runs of the target report no coverage; `None` if they report coverage, or the
    /// reason is not known.
    pub(super) fn not_covered(&self) -> Option<NotCovered> {
        self.not_covered
    }

    /// Returns whether several runs of the target share a process, or each has a separate one.
    pub(super) fn freshness(&self) -> Freshness {
        self.executor.freshness()
    }

    /// Runs `inputs` from the first on: at most 128, and fewer if requests take long. Calls `each`
    /// with the index and the observation of each run, and returns how many inputs were run.
    /// `ends`: whether the target's process ends after the last of `inputs`. Fails at the first run
    /// of an uninstrumented program for which it is unknown which basic blocks it reached.
    pub(super) fn run_some(
        &mut self,
        inputs: &[&[u8]],
        ends: bool,
        each: &mut dyn FnMut(usize, Observation),
    ) -> Result<usize, MeasureError> {
        let some = &inputs[..inputs.len().min(self.batch)];
        if ends && some.len() == inputs.len() {
            self.executor.end_process();
        }
        self.executor.limit_time(self.timeout.first());
        let began = Instant::now();
        let runs = self.executor.run_some(some)?;
        let took = began.elapsed();
        self.adapt_batch(runs.len(), took);
        let share = took / u32::try_from(runs.len()).unwrap_or(1).max(1);
        // A repeated run overwrites the coverage; only the last run can be repeated, so it is last.
        let mut told = self.executor.covered().iter().peekable();
        let mut last = None;
        for (number, run) in runs.iter().enumerate() {
            let covered = told.next_if(|covered| covered.run == number);
            let seen = self.observation(run, share, covered);
            match number + 1 == runs.len() {
                true => last = Some(seen),
                false => each(number, seen),
            }
            if run.ended.is_exit() {
                self.timeout.see(seen_time(run, share));
            }
        }
        if let Some(seen) = last {
            let number = runs.len() - 1;
            let seen = self.ask_again(some[number], seen)?;
            // By blocks, a request makes one run.
            if self.by_blocks && seen.ended.is_exit() && seen.features.is_none() {
                return Err(MeasureError::LacksCoverage);
            }
            each(number, seen);
        }
        Ok(runs.len())
    }

    fn observation(
        &self,
        run: &Run,
        share: Duration,
        covered: Option<&RunCoverage>,
    ) -> Observation {
        let counters = covered.map(|covered| &covered.counters[..]);
        let work = |counters: &[u8]| counters.iter().map(|count| u64::from(*count)).sum();
        Observation {
            ended: run.ended,
            alone: None,
            suspicious: self.suspicion.falls_on(run.ended),
            time: seen_time(run, share),
            work: counters.map_or(0, work),
            read: run.read,
            stack_depth: covered.and_then(|covered| covered.stack_depth),
            features: counters.map(Features::of_counters),
        }
    }

    /// Decides whether `seen`, what a run of `input` did, can be trusted. If not, repeats the run
    /// alone in a new process with the full time limit, and returns the result of the repeated run.
    /// A run is not trusted if it was killed in a process shared with earlier runs, or by the
    /// adaptive time limit. After a crash, the result says how the crash ended even if the repeated
    /// run does not crash. In all other cases returns `seen`.
    fn ask_again(&mut self, input: &[u8], seen: Observation) -> Result<Observation, ExecError> {
        let shared = self.executor.freshness() == Freshness::Shared;
        let limited = matches!(seen.ended, Ended::Timeout | Ended::OutOfMemory);
        let hasty = seen.ended == Ended::Timeout && self.timeout.first() != self.timeout.full();
        if seen.ended.is_exit() || !(shared || hasty) {
            return Ok(seen);
        }
        self.executor.limit_time(self.timeout.full());
        let began = Instant::now();
        self.executor.end_process();
        let run = self.executor.run(input)?;
        let took = began.elapsed();
        if hasty && run.ended != Ended::Timeout {
            self.timeout.was_hasty();
        }
        let again = self.observation(&run, took, self.executor.covered().last());
        Ok(match limited {
            // Earlier runs may have used up the limit, or it was only the adaptive one.
            true => again,
            // A crash counts even if it does not occur again.
            false => Observation {
                ended: seen.ended,
                suspicious: true,
                alone: Some(run.ended),
                ..again
            },
        })
    }

    /// Adapts the number of inputs per request to the wall time of the last request, which ran
    /// `runs` inputs.
    fn adapt_batch(&mut self, runs: usize, time: Duration) {
        if time > LONGEST {
            self.batch = (runs / 2).max(1);
        } else if time < LONGEST / 4 {
            self.batch = (self.batch * 2).min(MANY);
        }
    }
}

/// Returns the CPU time of `run`. If the system has not reported it, returns `share`: the wall time
/// of the request divided among its runs.
fn seen_time(run: &Run, share: Duration) -> Duration {
    match run.cpu.is_zero() {
        true => share,
        false => run.cpu,
    }
}

/// Number of runs that must have ended by themselves before the adaptive time limit is computed, as
/// a multiple of their mean CPU time.
const ENOUGH: u32 = 64;

/// An adaptive time limit, which is derived from earlier runs. A run that exceeds it is repeated
/// with the full limit, which alone decides whether the input hangs.
#[derive(Debug)]
pub(super) struct AdaptiveTimeout {
    full: TimeLimit,
    first: TimeLimit,
    learns: bool,
    runs: u32,
    time: Duration,
}

impl AdaptiveTimeout {
    pub(super) fn new(limits: Limits, learns: bool) -> AdaptiveTimeout {
        AdaptiveTimeout {
            full: limits.into(),
            first: limits.into(),
            learns,
            runs: 0,
            time: Duration::ZERO,
        }
    }

    /// Records the CPU time of a run that ended by itself; after 64 of them, sets the adaptive
    /// limit, unless the limits are fixed.
    pub(super) fn see(&mut self, time: Duration) {
        if !self.learns || self.runs == ENOUGH {
            return;
        }
        self.runs += 1;
        self.time += time;
        if self.runs == ENOUGH {
            self.first = TimeLimit::learned(self.time / ENOUGH).at_most(self.full);
        }
    }

    /// Doubles the adaptive limit (the time limit of an input's first run), but not beyond the full
    /// limit. Called when a run has exceeded the adaptive limit, and its repetition has ended
    /// within the full one.
    pub(super) fn was_hasty(&mut self) {
        let doubled = Limits::with_cpu(self.first.cpu.saturating_mul(2));
        self.first = TimeLimit::from(doubled).at_most(self.full);
    }

    /// Returns the full time limit of a run, which decides whether an input hangs.
    pub(super) fn full(&self) -> TimeLimit {
        self.full
    }

    /// Returns the time limit for the first run of an input, which adapts to earlier runs; a run
    /// that exceeds it is repeated with the full limit.
    pub(super) fn first(&self) -> TimeLimit {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_is_learned_once_and_only_grows_then() {
        let second = Duration::from_secs(1);
        let mut timeout = AdaptiveTimeout::new(Limits::with_cpu(second), true);
        assert_eq!(timeout.first(), timeout.full());
        for _ in 0..2 * ENOUGH {
            timeout.see(Duration::from_micros(10));
        }
        assert_eq!(timeout.first().cpu, TimeLimit::MIN_LEARNED);
        timeout.was_hasty();
        assert_eq!(timeout.first().cpu, 2 * TimeLimit::MIN_LEARNED);
        for _ in 0..10 {
            timeout.was_hasty();
        }
        assert_eq!(timeout.first(), timeout.full());
    }

    #[test]
    fn a_limit_of_the_user_stands() {
        let mut timeout = AdaptiveTimeout::new(Limits::default(), false);
        for _ in 0..2 * ENOUGH {
            timeout.see(Duration::ZERO);
        }
        assert_eq!(timeout.first(), timeout.full());
    }
}
