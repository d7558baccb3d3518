//! The executor of the method of execution `snapshot`: one process, the runner, makes many runs of
//! a program's `main` and undoes what each run has changed (`runtime/restore.h`). Checks show
//! whether its runs are like those of new processes.
//!
//! Each of the first runs is made twice, by the runner and by a fork of the server, to compare how
//! both end and what they write. Later, one run in a thousand is made twice. If both differ, and a
//! second fork agrees with the first, the runner is not used any more, and the runs since the last
//! check are made again by forks. If a run takes too long in the runner, inputs of about that
//! length are run by forks.

use std::collections::{BTreeMap, VecDeque};

use crate::descendants::Untraced;
use crate::launch::Inject;
use crate::output_capture::Written;
use crate::program_trust::{Differing, EndReason, ProgramTrust, RUNNER_CPU};
use crate::protocol::ForkPoint;
use crate::refusals::RefusalReason;
use crate::server_executor::ServerExecutor;
use crate::{
    CoverageReporting, CoveredCode, Ended, ExecError, Executor, Freshness, NotCovered, Run,
    RunCoverage, TimeLimit, Way,
};

/// Number of runs after which the next one is checked: it is made also in a new process, and both
/// are compared.
const CHECK_EVERY: u64 = 1000;
/// Maximum total size, in bytes, of the inputs remembered since the last check, to be run again if
/// a check finds a difference. When it is exceeded, the next run is checked.
const MOST_KEPT: usize = 16 << 20;

/// Inputs shorter than this, in bytes, are always run by the runner (the process that makes many
/// runs). Longer ones are run by forks once the runner took too long for an input not much longer.
/// [`check_now`](Executor::check_now) prefers such a short input to check the runner.
const LEAST_LONG: usize = 16 << 10;
/// A factor of lengths: after a run has taken too long in the runner (the process that makes many
/// runs), each input at least as long as that run's input divided by this factor is run by a fork.
const LONG_FACTOR: usize = 4;

/// A function that starts a server for one program; its argument says how the server makes runs: by
/// forks ([`Inject::Defer`]), or by a runner, a process that makes many runs ([`Inject::Restore`]).
pub(crate) type StartServer = Box<dyn Fn(Inject) -> Result<ServerExecutor, ExecError> + Send>;

/// An executor that makes many runs in one process, which undoes the changes of each run, and that
/// makes some of them again in new processes to compare both.
pub(crate) struct SnapshotExecutor {
    /// Server whose process (the runner) makes many runs and undoes what each has changed.
    runner: ServerExecutor,
    /// Server that forks for each run, used once `runner` (one process for many runs) is no longer
    /// used; `None` until it is started.
    forking: Option<ServerExecutor>,
    start_server: StartServer,
    /// What all executors of the program have learned about running many of its inputs in one
    /// process, and whether this may still be done.
    trust: ProgramTrust,
    /// Whether this executor has stopped using the runner (the process that makes many runs).
    is_ended: bool,
    /// Number of inputs that this executor has run both in the runner (the process that makes many
    /// runs) and in a new process, with the same result.
    compared: u32,
    time: Option<TimeLimit>,
    /// Number of runs of the runner since one of them was last compared with the run of a new
    /// process.
    runs_since_check: u64,
    /// For each reason, the number of runs that the runner (the process that makes many runs) has
    /// refused. New processes have made these runs instead.
    refusals: BTreeMap<RefusalReason, u64>,
    /// Inputs of all runs since the last run that was compared with that of a new process, oldest
    /// first, and how each of these runs ended.
    recent: VecDeque<(Vec<u8>, Ended)>,
    /// Total size, in bytes, of the inputs in `recent`, which are kept since the last check.
    recent_bytes: usize,
    /// Minimum length, in bytes, of the inputs that are run by forks and not by the runner: a
    /// quarter of the length of the shortest input whose run took too long in the runner, but
    /// exited when a fork made it; at least [`LEAST_LONG`].
    min_long_input: usize,
    /// Runs for which the runner (the process that makes many runs) gave a wrong result: each
    /// input, with its run in a new process, which ended in another way.
    corrected: Vec<(Vec<u8>, Run)>,
    /// Whether breakpoints at the basic blocks of the program report coverage.
    covers_blocks: bool,
    /// Which runs report the basic blocks that they reach: all, none, or those that reach something
    /// new.
    reporting: CoverageReporting,
    /// Whether the last call of this executor made its runs by `forking`, the server that forks,
    /// not by `runner`; the coverage of these runs is then read from `forking`.
    covered_by_fork: bool,
    /// Whether each run reports length and hash of what it writes to stdout and stderr.
    reports: bool,
    /// Length and hash of what the last run has written to stdout and to stderr; `None` if the last
    /// run did not report its output.
    written: Option<[Written; 2]>,
}

/// Returns, in words for users, the point `from` of the program where runs begin; adds
/// `--freeze-start` in brackets if runs would begin later with that option.
fn start_in_words(from: ForkPoint) -> String {
    match from.is_later_if_frozen() {
        true => format!("{from} (later with --freeze-start)"),
        false => from.to_string(),
    }
}

impl SnapshotExecutor {
    /// Makes the executor over a server that `start_server` starts: one with a runner (a process
    /// that makes many runs), unless `trust`, the record of the program, says that none is used.
    /// Returns also how runs are made, in a few words for users.
    pub(crate) fn start(
        trust: ProgramTrust,
        start_server: StartServer,
    ) -> Result<(SnapshotExecutor, String), ExecError> {
        let (server, how) = match trust.end_reason() {
            Some(end) => {
                let forking = start_server(Inject::Defer)?;
                let from = start_in_words(forking.fork_point());
                let how = format!("forked {from}: {}", end.text());
                (forking, how)
            }
            None => {
                let runner = start_server(Inject::Restore)?;
                let from = start_in_words(runner.fork_point());
                let how = format!("with many runs in one process, each from the point {from}");
                (runner, how)
            }
        };
        Ok((SnapshotExecutor::new(server, trust, start_server), how))
    }

    fn new(
        runner: ServerExecutor,
        trust: ProgramTrust,
        start_server: StartServer,
    ) -> SnapshotExecutor {
        SnapshotExecutor {
            runner,
            forking: None,
            start_server,
            is_ended: false,
            trust,
            compared: 0,
            time: None,
            runs_since_check: 0,
            refusals: BTreeMap::new(),
            recent: VecDeque::new(),
            recent_bytes: 0,
            min_long_input: usize::MAX,
            corrected: Vec::new(),
            covers_blocks: false,
            covered_by_fork: false,
            reporting: CoverageReporting::Nothing,
            reports: false,
            written: None,
        }
    }

    fn forking(&mut self) -> Result<&mut ServerExecutor, ExecError> {
        if !self.runner.has_runner() {
            return Ok(&mut self.runner);
        }
        match &mut self.forking {
            Some(forking) => Ok(forking),
            empty => {
                let mut forking = (self.start_server)(Inject::Defer)?;
                if let Some(time) = self.time {
                    forking.limit_time(time);
                }
                if self.covers_blocks {
                    let _ = forking.cover_blocks()?; // they are covered already, by the runner
                    forking.report_coverage(self.reporting);
                }
                Ok(empty.insert(forking))
            }
        }
    }

    /// Checks the runner, the process that makes many runs: runs `input` by it and by a fork of the
    /// server, and compares the runs. Returns one run, that of the fork. A difference that the
    /// runner causes is recorded in `trust`, so that all executors of the program stop using
    /// runners.
    fn check(&mut self, input: &[u8]) -> Result<Vec<Run>, ExecError> {
        self.runner.begin_call();
        let run = self.compare(input)?;
        self.runner.end_call(&[input], vec![run])
    }

    /// Runs `input` by the runner (the process that makes many runs) and by a fork of the server,
    /// compares both, and returns the fork's run, without reporting its coverage. If the runner
    /// refuses the input, nothing is compared. If both runs differ, a second fork shows whether
    /// that is due to the runner or to the program; the result is recorded in `trust`.
    fn compare(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        let restored = self.runner.run_captured(input, false)?;
        if let Some(reason) = self.runner.refused() {
            // A fork has made it already.
            self.count(&[input], &[restored.0], Some(reason));
            return Ok(restored.0);
        }
        self.count(&[input], &[restored.0], None);
        let forked = self.runner.run_captured(input, true)?;
        if self.trust.are_alike(differing(&restored, &forked)) {
            self.passed_check(&forked.0);
            return Ok(forked.0);
        }
        let again = self.runner.run_captured(input, true)?;
        let differing = differing(&forked, &again);
        if self.trust.are_alike(differing) {
            self.trust.record_difference();
        } else {
            self.trust.unstable(differing); // the program itself is not the same in each run
        }
        Ok(forked.0)
    }

    /// Records that a comparison has found no difference: the runner (the process that makes many
    /// runs) has run an input like the new process in `forked`. Forgets the inputs remembered since
    /// the previous comparison.
    fn passed_check(&mut self, forked: &Run) {
        self.trust.record_match(forked);
        self.compared = self.compared.saturating_add(1);
        self.runs_since_check = 0;
        self.recent.clear();
        self.recent_bytes = 0;
    }

    /// Stops using the runner (the process that makes many runs) if any executor of the program has
    /// recorded that it must not be used. If the reason is a run that differed from one in a new
    /// process, makes the runs since the last comparison again by forks, and adds those that end in
    /// another way to `corrected`.
    fn follow_trust(&mut self) -> Result<(), ExecError> {
        let Some(why) = self.trust.end_reason().filter(|_| !self.is_ended) else {
            return Ok(());
        };
        self.is_ended = true;
        let recent = std::mem::take(&mut self.recent);
        self.recent_bytes = 0;
        if why != EndReason::Difference {
            return Ok(());
        }
        self.refusals.insert(RefusalReason::Differs, 1);
        for (input, ended) in recent {
            let run = self.forking()?.run(&input)?;
            if run.ended != ended {
                self.corrected.push((input, run));
            }
        }
        Ok(())
    }

    /// Records `runs` on `inputs` in `trust`, which decides whether the runner may still be used.
    /// `refused` is why the runner refused the last of `runs`, so that a fork made it; `None` if it
    /// made all runs. Refusals are counted by reason. If the runner was killed because the last run
    /// took too much CPU time, later inputs that are about as long are run by forks.
    fn count(&mut self, inputs: &[&[u8]], runs: &[Run], refused: Option<RefusalReason>) {
        self.trust.count(runs, refused.is_some());
        let Some(reason) = refused else {
            return;
        };
        *self.refusals.entry(reason).or_default() += 1;
        if let (RefusalReason::Died, Some((input, run))) =
            (reason, inputs.iter().zip(runs).next_back())
            && run.ended.is_exit()
            && run.cpu > RUNNER_CPU
        {
            self.min_long_input = self
                .min_long_input
                .min((input.len() / LONG_FACTOR).max(LEAST_LONG));
        }
    }

    fn keep(&mut self, inputs: &[&[u8]], runs: &[Run]) {
        for (input, run) in inputs.iter().zip(runs) {
            self.recent_bytes += input.len();
            self.recent.push_back((input.to_vec(), run.ended));
        }
        self.runs_since_check += runs.len() as u64;
    }

    /// Whether the next run is made both by the runner (the process that makes many runs) and by a
    /// fork, to compare them.
    fn is_due(&self) -> bool {
        self.runs_since_check >= CHECK_EVERY
            || self.recent_bytes > MOST_KEPT
            || self.trust.is_on_probation(self.compared)
    }

    /// Makes the run on `input` by a fork. The runner is not tried: it took too much time for an
    /// input of similar length (at most four times as long).
    fn run_long(&mut self, input: &[u8]) -> Result<Vec<Run>, ExecError> {
        *self.refusals.entry(RefusalReason::Long).or_default() += 1;
        self.runner.run_by_fork(input)
    }

    fn run_trusted(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        let inputs = inputs
            .split(|input| input.len() >= self.min_long_input)
            .next();
        let inputs = inputs.unwrap_or_default();
        let runs = self.runner.run_some(inputs)?;
        let refused = self.runner.refused();
        self.count(inputs, &runs, refused);
        let restored = runs.len() - usize::from(refused.is_some());
        self.keep(inputs, &runs[..restored]);
        Ok(runs)
    }
}

fn differing(one: &(Run, [Written; 2]), other: &(Run, [Written; 2])) -> Differing {
    Differing {
        ended: one.0.ended != other.0.ended,
        written: [one.1[0] != other.1[0], one.1[1] != other.1[1]],
    }
}

impl Executor for SnapshotExecutor {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        let runs = self.run_some(&[input])?;
        runs.last()
            .copied()
            .ok_or_else(|| self.runner.nothing_run())
    }

    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        self.written = None;
        self.covered_by_fork = false;
        let Some(first) = inputs.first() else {
            return Ok(Vec::new());
        };
        if self.reports {
            self.runner.begin_call();
            let (run, written) = self.runner.run_captured(first, self.is_ended)?;
            self.written = Some(written);
            if let Some(reason) = self.runner.refused().filter(|_| !self.is_ended) {
                *self.refusals.entry(reason).or_default() += 1;
            }
            return self.runner.end_call(&[first], vec![run]);
        }
        self.follow_trust()?;
        let runs = if self.is_ended {
            self.covered_by_fork = true;
            vec![self.forking()?.run(first)?]
        } else if first.len() >= self.min_long_input {
            self.run_long(first)?
        } else if self.is_due() {
            self.check(first)?
        } else {
            self.run_trusted(inputs)?
        };
        self.follow_trust()?;
        Ok(runs)
    }

    fn counter_count(&self) -> Option<usize> {
        self.runner.counter_count()
    }

    fn cover_blocks(&mut self) -> Result<Result<usize, NotCovered>, ExecError> {
        let places = self.runner.cover_blocks()?;
        self.covers_blocks = places.is_ok();
        if let Some(forking) = self.forking.as_mut().filter(|_| self.covers_blocks) {
            let _ = forking.cover_blocks()?; // as above
        }
        Ok(places)
    }

    fn code(&self) -> Option<CoveredCode> {
        self.runner.code()
    }

    fn report_coverage(&mut self, reporting: CoverageReporting) {
        self.reporting = reporting;
        self.runner.report_coverage(reporting);
        if let Some(forking) = &mut self.forking {
            forking.report_coverage(reporting);
        }
    }

    fn covered(&self) -> &[RunCoverage] {
        match &self.forking {
            Some(forking) if self.covered_by_fork => forking.covered(),
            _ => self.runner.covered(),
        }
    }

    fn way(&self) -> Way {
        Way::Snapshot
    }

    fn freshness(&self) -> Freshness {
        // Remains `Shared` even when each run has come to be forked: when that begins depends on
        // times and on other workers, on which the records of runs must not depend.
        Freshness::Shared
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.time = Some(time);
        self.runner.limit_time(time);
        if let Some(forking) = &mut self.forking {
            forking.limit_time(time);
        }
    }

    fn report_output(&mut self, on: bool) -> Result<(), ExecError> {
        self.reports = on;
        let changed = self.runner.capture_all(on);
        changed.map_err(ExecError::system("capturing what a target writes"))
    }

    fn written(&self) -> Option<[Written; 2]> {
        self.written
    }

    fn refusals(&self) -> Vec<(RefusalReason, u64)> {
        let counted = self.refusals.iter();
        counted.map(|(reason, count)| (*reason, *count)).collect()
    }

    fn corrected(&mut self) -> Vec<(Vec<u8>, Run)> {
        std::mem::take(&mut self.corrected)
    }

    fn check_now(&mut self) -> Result<(), ExecError> {
        self.follow_trust()?;
        let mut latest = self.recent.iter().rev();
        let short = latest.find(|(input, _)| input.len() < LEAST_LONG);
        if let Some((input, _)) = short.or(self.recent.back()).cloned() {
            self.check(&input)?;
            self.follow_trust()?;
            // Also if the two runs could not be compared: the next check is only of later inputs.
            self.recent.clear();
            (self.runs_since_check, self.recent_bytes) = (0, 0);
        }
        Ok(())
    }
}

impl Untraced for SnapshotExecutor {
    fn forked(&self) -> bool {
        match &self.forking {
            Some(forking) => forking.forked,
            None => self.runner.forked,
        }
    }

    fn may_fork(&self) -> bool {
        self.runner.may_fork
    }
}
