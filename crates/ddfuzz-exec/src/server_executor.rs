//! The executor of all methods of execution that use ddfuzz's own protocol. The methods differ in
//! the server; requests, limits and restarts are the same.

mod runner;

use ddfuzz_delta::Comparison;
use nix::errno::Errno;
use std::{collections::HashSet, io, sync::Arc, time::Duration};

use crate::blocks::BlockCoverage;
use crate::descendants::Untraced;
use crate::input::{InputBatch, InputChannel, RunnerInput};
use crate::launch::{Inject, Launch, Role, RunnerFiles};
use crate::observations::{CoverageReporting, RunCoverage, RunObservations};
use crate::output_capture::OutputCapture;
use crate::private_dir::PrivateDir;
use crate::program::not_executed;
use crate::protocol::{ForkPoint, flag};
use crate::refusals::RefusalReason;
use crate::retry::{Failure, RUNS_PER_SERVER, Retriable};
use crate::server::{Answer, RequestError, Server};
use crate::{
    CoveredCode, Ended, ExecError, Executor, Freshness, Limits, NotCovered, Run, Signature, Stuck,
    Target, TimeLimit, Way, crash_snapshots::CrashSnapshots, hang_detector::HangDetector,
    prepared_target::PreparedTarget, retry, scratch::LastChange, scratch::Scratch,
    shared_page::PageLayout, terminal::Console,
};

/// An executor of a target behind a fork server that speaks ddfuzz's own protocol.
pub(crate) struct ServerExecutor {
    // The first field: the server ends before its directory and control group are removed.
    server: Option<Server>,
    /// Number of runs for which the current fork server has forked a process.
    runs: u64,
    way: Way,
    layout: PageLayout,
    /// Whether the target's program may start processes, according to its ELF file.
    pub(crate) may_fork: bool,
    pub(crate) forked: bool,
    limits: Limits,
    launch: Launch,
    input_channel: InputChannel,
    /// The terminal at which inputs are typed; `None` if the target has no terminal.
    console: Option<Console>,
    observations: RunObservations,
    /// The breakpoints by which runs report the basic blocks that they reach; `None` if runs do not
    /// report them.
    blocks: Option<BlockCoverage>,
    /// Memory to which a process that runs many inputs writes a snapshot of itself when it crashes;
    /// `None` if the target has no such process.
    copies: Option<Arc<CrashSnapshots>>,
    /// Captures the output of runs; `None` for servers without a runner (a process that makes many
    /// runs), whose outputs cannot be redirected between runs.
    capture: Option<OutputCapture>,
    /// Whether the next request to the runner (the process that makes many runs) captures what its
    /// runs write to stdout and stderr.
    captures: bool,
    /// Whether the target's stdout and stderr are captured from the start of the program, not only
    /// during runs.
    captures_all: bool,
    /// Why the runner (the process that makes many runs) has refused the last run, which a fork of
    /// the server then made; `None` if it has not.
    refused: Option<RefusalReason>,
    detector: HangDetector,
    /// Whether the process of the last run has died, and so may have written a crash snapshot.
    died: bool,
    /// Whether a request for several runs, each in a new process, has changed the working
    /// directory, so that later runs may have seen files of earlier ones. Since then each such run
    /// has a request of its own.
    writes_files: bool,
    scratch: Scratch,
}

impl ServerExecutor {
    /// Makes the executor of the `prepared` target for the method of execution `way`, and starts
    /// its fork server at once, so that a target that cannot be run fails here. `role`, `inject`:
    /// what the launcher process becomes, and how runs begin in a program with a preloaded library.
    pub(crate) fn start(
        target: &Target,
        prepared: PreparedTarget,
        way: Way,
        role: Role,
        inject: Option<Inject>,
    ) -> Result<ServerExecutor, ExecError> {
        let mut executor = ServerExecutor::unstarted(target, prepared, way, role, inject)?;
        executor.server()?;
        Ok(executor)
    }

    /// Makes the executor of the `prepared` target for the method of execution `way`. Its fork
    /// server starts with the first run. `role`, `inject`: what the launcher process becomes, and
    /// how runs begin in a program with a preloaded library.
    pub(crate) fn unstarted(
        target: &Target,
        prepared: PreparedTarget,
        way: Way,
        role: Role,
        inject: Option<Inject>,
    ) -> Result<ServerExecutor, ExecError> {
        let mut launch = prepared.launch(target, role, inject);
        launch.freeze_start = target.freeze_start && way == Way::Snapshot;
        let may_fork = prepared.may_fork();
        let (mut copies, mut capture) = (None, None);
        let (layout, input_channel) = match inject {
            Some(Inject::Loop(entry)) => {
                let counters = entry.counter_count();
                let inputs = InputBatch::create()
                    .map_err(ExecError::system("creating a memory file for inputs"))?;
                copies = Some(launch.leave_snapshots()?);
                (PageLayout::Loop { counters }, InputChannel::Batch(inputs))
            }
            Some(Inject::Restore) => {
                let inputs = RunnerInput::new(prepared.input)
                    .map_err(ExecError::system("creating a memory file for inputs"))?;
                let pipes = OutputCapture::open(&*PrivateDir::get()?);
                let pipes = pipes.map_err(ExecError::system("making pipes"))?;
                capture = Some(pipes);
                let layout = PageLayout::Loop { counters: 0 };
                (layout, InputChannel::Runner(inputs))
            }
            _ => (PageLayout::Single, InputChannel::Single(prepared.input)),
        };
        let console = Console::of(target, launch.identity);
        Ok(ServerExecutor {
            server: None,
            runs: 0,
            way,
            layout,
            may_fork,
            forked: false,
            limits: target.limits,
            launch,
            input_channel,
            console,
            observations: RunObservations::default(),
            blocks: None,
            copies,
            capture,
            captures: false,
            captures_all: false,
            refused: None,
            detector: HangDetector::default(),
            died: false,
            writes_files: false,
            scratch: prepared.scratch,
        })
    }

    /// Makes each run of this executor start a new process, also where its server could run many
    /// inputs in one process.
    pub(crate) fn with_fresh_runs(mut self) -> ServerExecutor {
        self.observations.fresh = true;
        self
    }

    /// Returns the point in the program (such as `main`, or its first read) at which the fork
    /// server forks its runs.
    pub(crate) fn fork_point(&self) -> ForkPoint {
        let server = self.server.as_ref();
        server.map_or(ForkPoint::Main, |server| server.fork_point)
    }

    /// Returns how many of the program's comparison callbacks are observed in later runs.
    pub(crate) fn observed_callbacks(&self) -> usize {
        self.observations.callbacks()
    }

    fn is_loop(&self) -> bool {
        self.layout != PageLayout::Single
    }

    /// Whether the fork server has a runner: one process that runs many inputs of the program's
    /// `main`, and refuses the runs whose changes it cannot undo.
    pub(crate) fn has_runner(&self) -> bool {
        self.capture.is_some()
    }

    fn is_shared(&self) -> bool {
        self.is_loop() && !self.observations.fresh
    }

    /// Whether the process that makes the last run of the current call of the executor ends after
    /// that run: each run has a new process, or the runs of the next call need a new one.
    fn ends_process(&self) -> bool {
        !self.is_shared() || self.observations.last
    }

    /// Returns how many inputs the next request may have: any number, or 1. It is 1 if each run is
    /// to report its comparisons or all of its blocks. It is also 1 if each run needs a new process
    /// and could see files that an earlier run of the request wrote, unless a new change of the
    /// working directory would be noticed: its last one, `changed` (`None`: unknown), is long ago.
    fn most_at_once(&self, changed: Option<LastChange>) -> usize {
        if self.observations.compares() || self.covers_one() {
            return 1;
        }
        let notices = || !self.writes_files && changed.is_some_and(LastChange::is_past);
        match self.observations.fresh && !(self.is_loop() && notices()) {
            true => 1,
            false => usize::MAX,
        }
    }

    /// Returns the result of the first run of a request for several runs, each in a new process. It
    /// takes the place of `answer`, which is about the last run. This is necessary if a run has
    /// written files in the working directory, which later runs may have seen; from now on each
    /// such run has a request to itself.
    fn only_the_first(&mut self, answer: Answer) -> Result<Answer, ExecError> {
        self.writes_files = true;
        let Some(server) = &self.server else {
            return Ok(answer);
        };
        let first = server.returned_answer(0);
        first.map_err(|error| ExecError::Server {
            path: self.launch.program.clone(),
            why: error.to_string(),
        })
    }

    fn server(&mut self) -> Result<&mut Server, ExecError> {
        if self.runs >= RUNS_PER_SERVER {
            self.server = None;
            self.runs = 0;
        }
        match &mut self.server {
            Some(server) => Ok(server),
            empty => {
                let page = self.launch.page(self.layout)?;
                let observed = self.observations.begin_server(&page);
                self.launch.observed =
                    observed.map_err(|source| self.launch.sharing_error(source))?;
                if let Some(copies) = &self.copies {
                    let cleared = copies.clear();
                    cleared.map_err(|source| self.launch.sharing_error(source))?;
                }
                if let Some(console) = &mut self.console {
                    let renewed = console.renew();
                    let theirs = renewed.map_err(|source| self.launch.terminal_error(source))?;
                    self.launch.terminal = Some(theirs);
                }
                self.launch.inputs = self.input_channel.identities();
                let runner = runner_files(&self.input_channel, self.capture.as_ref());
                self.launch.runner = runner.map_err(|source| self.launch.sharing_error(source))?;
                let capture = self.capture.as_ref().filter(|_| self.captures_all);
                let stderr = capture.map(|capture| capture.stderr.writer());
                let mut started =
                    Server::start(&self.launch, self.input_channel.file(), stderr, page)?;
                let entered = self.scratch.enter(started.take_scratch());
                entered.map_err(|source| self.launch.directory_error(source))?;
                if let Some(blocks) = &mut self.blocks {
                    blocks.server_started();
                }
                started.output_readers = (self.capture.as_ref()).map_or(vec![], |it| it.readers());
                Ok(empty.insert(started))
            }
        }
    }

    /// Returns the results of the runs of one request: those of the earlier runs, which the shared
    /// memory describes, and then that of the last run, which `answer` describes.
    fn finish(&mut self, answer: Answer) -> Result<Vec<Run>, ExecError> {
        let (mut runs, mut last) = (Vec::with_capacity(answer.number + 1), answer.cpu);
        let has_page = self.is_loop()
            && (answer.number > 0 || self.observations.reporting != CoverageReporting::Nothing);
        if let (true, Some(server)) = (has_page, &self.server) {
            let outcomes = server.page.outcomes(answer.number + 1);
            let outcomes = outcomes.map_err(|source| self.launch.sharing_error(source))?;
            let returned = answer.number + usize::from(answer.ended.is_exit());
            let mut kept = server.page.kept(&outcomes);
            for (number, outcome) in outcomes.into_iter().enumerate().take(returned) {
                self.observations.take(number, &mut kept, &outcome);
                match number < answer.number {
                    true => runs.push(Run {
                        cpu: outcome.cpu,
                        ..Run::ended(Ended::from_wait_status(outcome.status))
                    }),
                    // The answer describes the last run in more detail.
                    false => last = answer.cpu.max(outcome.cpu),
                }
            }
        }
        if self.ends_process() || !answer.ended.is_exit() || answer.refused.is_some() {
            self.clean()?;
        }
        runs.push(Run {
            ended: answer.ended,
            cpu: last,
            read: self.input_channel.read_so_far(),
        });
        // Where one process runs many inputs, the server has waited for it and killed its
        // descendants.
        let served = self.is_loop() && self.server.is_some();
        let is_gone = served && answer.ended == Ended::Timeout;
        if matches!(answer.ended, Ended::Timeout | Ended::OutOfMemory) && !is_gone {
            self.renew_input()?;
        }
        Ok(runs)
    }

    /// Replaces the input files by new ones, because a process that could not be killed at once may
    /// still hold the old ones open.
    fn renew_input(&mut self) -> Result<(), ExecError> {
        self.server = None;
        self.input_channel
            .renew()
            .map_err(ExecError::system("creating a new input"))
    }
}

/// Returns the files that a fork server must inherit for its runner, the process that makes many
/// runs: those for the inputs and for what runs write to stdout and stderr. `None` if the server
/// has no runner.
fn runner_files(
    inputs: &InputChannel,
    capture: Option<&OutputCapture>,
) -> io::Result<Option<RunnerFiles>> {
    let (InputChannel::Runner(inputs), Some(capture)) = (inputs, capture) else {
        return Ok(None);
    };
    let (writers, batch) = inputs.files()?;
    Ok(Some(RunnerFiles {
        writers,
        batch,
        captures: [
            capture.stdout.writer().try_clone()?,
            capture.stderr.writer().try_clone()?,
        ],
    }))
}

/// Whether `errno`, an error of fork or execve, is temporary: caused by the load of the machine,
/// not by the program.
fn is_temporary(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EAGAIN | Errno::ENOMEM | Errno::ETXTBSY | Errno::EMFILE | Errno::ENFILE
    )
}

impl Retriable for ServerExecutor {
    fn put_in_place(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        self.input_channel.put(inputs)
    }

    fn attempt(&mut self, input: &[u8]) -> Result<Answer, Failure> {
        let mut limits = self.request_limits();
        if self.input_channel.is_replaced(&self.launch.inputs) {
            self.server = None; // the runner would write into a file that is gone
        }
        self.server().map_err(Failure::Start)?;
        if let Some(copies) = &self.copies {
            let forgotten = match self.died {
                true => copies.forget(),
                false => copies.forget_new(),
            };
            forgotten.map_err(|source| Failure::Start(self.launch.sharing_error(source)))?;
        }
        let flags = self.observations.begin_request();
        if let Some(blocks) = &mut self.blocks {
            let begun = blocks.begin_request(self.observations.reporting);
            begun.map_err(|source| Failure::Start(self.launch.sharing_error(source)))?;
        }
        let server = self.server.as_mut();
        let server = server.ok_or(Failure::Request(RequestError::Died))?;
        if let Some(console) = &mut self.console {
            limits.wall = limits.wall.saturating_add(console.extra_wall_time(input));
            let begun = console.begin(input, limits.wall).map_err(|error| {
                RequestError::ProtocolBroken(format!("its terminal cannot be used again: {error}"))
            });
            begun.map_err(Failure::Request)?;
        }
        let answer = match &self.input_channel {
            InputChannel::Single(_) => server.run(input.len(), &limits),
            InputChannel::Batch(many) => {
                self.detector.begin();
                let each = self.observations.fresh && many.places.len() > 1;
                let flags = if each { flags | flag::EACH } else { flags };
                server.run_all(&many.places, flags, &limits, &mut self.detector)
            }
            InputChannel::Runner(inputs) => {
                let flags = inputs.flags() | if self.captures { flag::CAPTURED } else { 0 };
                server.run_all(inputs.places(), flags, &limits, &mut self.detector)
            }
        };
        let first = server.first_run();
        if let Some(blocks) = &mut self.blocks {
            let ended = blocks.end_request(first);
            ended.map_err(|source| Failure::Start(self.launch.sharing_error(source)))?;
        }
        let mut answer = answer.map_err(Failure::Request)?;
        if let Some(console) = &mut self.console {
            answer.ended = console.judge(answer.ended);
        }
        // A server leaks with each fork; runs that return in one process need none.
        let forked = self.ends_process() || !answer.ended.is_exit() || answer.refused.is_some();
        let forks = if self.observations.fresh {
            answer.number as u64 + 1
        } else {
            1
        };
        self.runs += if forked { forks } else { 0 };
        self.died = !matches!(answer.ended, Ended::Exit(_));
        Ok(answer)
    }

    fn lasting(&self, failure: &Failure) -> Option<ExecError> {
        match failure {
            // Where one process runs many inputs, an errno may also mean that the target closed its
            // input.
            Failure::Request(RequestError::Exec(errno))
                if !is_temporary(*errno) && !self.is_loop() =>
            {
                Some(not_executed(&self.program(), *errno as i32))
            }
            _ => None,
        }
    }

    fn stop(&mut self) {
        self.server = None;
    }

    fn launch(&self) -> &Launch {
        &self.launch
    }

    fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

/// The part of the executor that reports, by breakpoints, which blocks of an unmodified program
/// runs reach.
impl ServerExecutor {
    /// Whether blocks can be covered by breakpoints: the fork server runs a program's `main`, and
    /// can map code with breakpoints in place of the program's.
    fn takes_breakpoints(&self) -> bool {
        let by_main = [Inject::Fork, Inject::Defer, Inject::Restore];
        let inject = self.launch.inject;
        inject.is_some_and(|inject| by_main.contains(&inject))
    }

    /// Forgets the coverage that the previous call of the executor has reported; called before the
    /// runs of each call.
    pub(crate) fn begin_call(&mut self) {
        self.observations.forget();
        if let Some(blocks) = &mut self.blocks {
            blocks.begin_call();
        }
    }

    /// Ends a call of the executor, begun by `begin_call`, that has made `runs` on the first of
    /// `inputs`, and returns their results. If breakpoints may have changed how the last run ended,
    /// makes that run again without breakpoints, and returns the new result instead. Stores which
    /// blocks the runs reached, for `covered`.
    pub(crate) fn end_call(
        &mut self,
        inputs: &[&[u8]],
        mut runs: Vec<Run>,
    ) -> Result<Vec<Run>, ExecError> {
        if let Some(last) = runs.pop() {
            let number = runs.len();
            runs.push(self.resolve_doubt(number, inputs[number], last)?);
        }
        if let Some(blocks) = &mut self.blocks {
            let covered = blocks.end_call(&runs, self.observations.reporting);
            self.observations.set_covered(covered);
        }
        Ok(runs)
    }

    /// Repeats the run `run` on `input` without breakpoints if they may have changed how it ended,
    /// and returns the repeated run; otherwise returns `run`. `number`: index of the run within the
    /// present call of the executor. Fails when the input cannot be run again.
    fn resolve_doubt(&mut self, number: usize, input: &[u8], run: Run) -> Result<Run, ExecError> {
        let Some(blocks) = &mut self.blocks else {
            return Ok(run);
        };
        if !blocks.is_in_doubt(number, run.ended) {
            return Ok(run);
        }
        blocks.is_paused = true;
        if self.captures {
            self.clear_capture();
        }
        let again = self.run_alone(input);
        if let Some(blocks) = &mut self.blocks {
            blocks.is_paused = false;
            if let Ok(again) = &again {
                blocks.compare(number, run.ended, again.ended);
            }
        }
        again
    }

    /// Runs an input in a new process that the server forks, even if the server has a runner (a
    /// process that makes many runs).
    fn run_alone(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        if self.has_runner() {
            let refused = self.refused;
            let run = self.run_forked(input);
            self.refused = refused;
            return run;
        }
        let answer = retry::run(self, &[input])?;
        self.forked = answer.forked;
        let runs = self.finish(answer)?;
        runs.last().copied().ok_or_else(|| self.nothing_run())
    }

    /// Starts a server whose processes run the code in memory that `blocks` shares with them, and
    /// returns true if that works. Otherwise returns false and changes `blocks`: to a coverage of
    /// fewer files, for another try, or to `None` if the code cannot be shared.
    fn share_code(&mut self, blocks: &mut Option<BlockCoverage>) -> Result<bool, ExecError> {
        let Some(sharing) = blocks else {
            return Ok(false);
        };
        let file = sharing.file();
        self.launch.code = Some(file.map_err(|source| self.launch.sharing_error(source))?);
        self.server = None;
        if let Err(error) = self.server() {
            *blocks = None;
            return error.unless_abandoned(false);
        }
        let started = sharing.after_first_start();
        match started.map_err(|source| self.launch.sharing_error(source))? {
            Ok(true) => return Ok(true),
            Ok(false) => *blocks = None,
            Err(fewer) => *blocks = Some(fewer),
        }
        Ok(false)
    }

    /// Whether each request has one input only, because each run must report all of its blocks: a
    /// breakpoint that one run of a request hits is removed for the later ones.
    fn covers_one(&self) -> bool {
        let every = self.observations.reporting == CoverageReporting::Every;
        every && self.blocks.is_some()
    }
}

impl Untraced for ServerExecutor {
    fn forked(&self) -> bool {
        self.forked
    }

    fn may_fork(&self) -> bool {
        self.may_fork
    }
}

impl Executor for ServerExecutor {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        let runs = self.run_some(&[input])?;
        runs.last().copied().ok_or_else(|| self.nothing_run())
    }

    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        self.begin_call();
        let fresh = self.observations.fresh;
        let are_fresh = fresh && inputs.len() > 1;
        let before = are_fresh.then(|| self.scratch.last_change()).flatten();
        let inputs = &inputs[..inputs.len().min(self.most_at_once(before))];
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        self.forked = false;
        if self.has_runner() {
            let runs = self.run_restored(inputs)?;
            return self.end_call(inputs, runs);
        }
        let mut answer = retry::run(self, inputs)?;
        if self.observations.fresh && answer.number > 0 && self.scratch.last_change() != before {
            answer = self.only_the_first(answer)?;
        }
        self.forked = answer.forked;
        let runs = self.finish(answer)?;
        let runs = self.end_call(inputs, runs)?;
        if self.is_shared() {
            let lives = answer.ended.is_exit();
            self.observations.recent.ran(&inputs[..runs.len()], lives);
        }
        if std::mem::take(&mut self.observations.last) {
            self.observations.recent.end();
        }
        Ok(runs)
    }

    fn end_process(&mut self) {
        self.observations.last = true;
    }

    fn counter_count(&self) -> Option<usize> {
        match &self.blocks {
            Some(blocks) => Some(blocks.len()),
            None => Some(self.layout.counters()).filter(|count| *count > 0),
        }
    }

    fn cover_blocks(&mut self) -> Result<Result<usize, NotCovered>, ExecError> {
        if let Some(places) = self.counter_count() {
            return Ok(Ok(places));
        }
        if !self.takes_breakpoints() {
            return Ok(Err(
                "blocks are covered by the ways inject and snapshot only",
            ));
        }
        let libraries = self.server()?.libraries();
        let found = BlockCoverage::of(&self.launch.program, &libraries);
        let mut blocks = found.map_err(ExecError::system("sharing the code of a target"))?;
        if blocks.is_none() {
            return Ok(Err(match cfg!(target_arch = "x86_64") {
                true => "its functions are not known: it has neither unwind tables nor symbols",
                false => "breakpoints are set on x86-64 only",
            }));
        }
        while blocks.is_some() {
            if self.share_code(&mut blocks)? {
                self.blocks = blocks;
                return Ok(self.counter_count().ok_or("it has no blocks"));
            }
        }
        self.launch.code = None;
        self.server = None;
        Ok(Err(
            "its code in memory is not that of its file, or it does not start with breakpoints",
        ))
    }

    fn code(&self) -> Option<CoveredCode> {
        self.blocks.as_ref().map(BlockCoverage::code)
    }

    fn report_coverage(&mut self, reporting: CoverageReporting) {
        self.observations.reporting = reporting;
    }

    fn covered(&self) -> &[RunCoverage] {
        self.observations.covered()
    }

    fn report_comparisons(&mut self, on: bool) -> Result<(), ExecError> {
        if self.is_loop() && on != self.observations.compares() {
            let changed = self.observations.compare(on, &self.launch.program);
            changed.map_err(|source| self.launch.sharing_error(source))?;
            self.server = None; // what observes is loaded with the program
        }
        Ok(())
    }

    fn compared(&mut self) -> Vec<Comparison> {
        self.observations.compared()
    }

    fn preceding(&self) -> Vec<Vec<u8>> {
        self.observations.recent.before_the_last()
    }

    fn crash_snapshots(&self) -> Option<Arc<CrashSnapshots>> {
        self.copies.clone().filter(|_| self.died)
    }

    fn run_fresh_some(&mut self, inputs: &[&[u8]]) -> Result<Option<Vec<Run>>, ExecError> {
        if self.has_runner() {
            return Ok(None);
        }
        if self.observations.recent.lives() {
            self.server = self.server.take().and_then(Server::end_process);
            self.observations.recent.end();
            self.clean()?;
        }
        let before = std::mem::replace(&mut self.observations.fresh, true);
        let runs = self.run_some(inputs);
        self.observations.fresh = before;
        runs.map(Some)
    }

    fn way(&self) -> Way {
        self.way
    }

    fn freshness(&self) -> Freshness {
        match self.is_shared() {
            true => Freshness::Shared,
            false => Freshness::Fresh,
        }
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.limits = time.within(self.limits);
    }

    fn recognise(&mut self, window: Duration, known: &HashSet<Signature>) {
        self.detector.recognise(window, known);
    }

    fn stuck(&mut self) -> Stuck {
        self.detector.take()
    }
}
