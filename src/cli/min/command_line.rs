//! `--args`, `--env-vars`: minimizes the command line and the input in alternating phases, each
//! with the other parts fixed, until no phase changes anything (like `process_args` of the
//! Debugging Book).

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::call_script::{CallFiles, call_line, call_script, write_slip_script};
use super::job::FileJob;
use super::{MinArgs, MinScreen};
use crate::campaign::{Finished, Minimizing};
use crate::cli::results::{recorded_path, remove_useless_log, store_slip};
use crate::cli::run::workers;
use crate::cli::{Exit, Failure};
use crate::delta::Ddmin;
use crate::exec::{Program, Target, Way};
use crate::files::atomic;
use crate::minimize::log::{CallRecord, ContentHash, Log, OsText, Part, StartLine};
use crate::minimize::{
    BoxedOracle, Call, CallOracle, CallResult, CallbackError, Claim, Counts, HeldCrash, Journal,
    MinRecord, Options, Oracle, OracleOfCall, PhaseRecord, Proved, Slip, SlipRecord, Warning,
    Workers, minimize_by_workers, wall_time,
};
use crate::triage::Crash;

/// Number of kinds of parts of a command line that are minimized in turn: whole arguments, their
/// characters, environment variables, and the input.
const STEPS: usize = 4;

/// The part that one minimization search works on while all others are fixed: a part of the command
/// line with its index, or (`None`) the input.
pub(super) type PhaseSubject = Option<(Part, usize)>;

/// A minimization of a command line and its input: one search (phase) for each part in turn, with
/// the others fixed, until nothing changes.
pub(super) struct CallMinimization<'a> {
    pub(super) args: &'a MinArgs,
    pub(super) screen: &'a MinScreen<'a>,
    pub(super) crash: &'a Crash,
    pub(super) way: Way,
    /// The original input of the minimization as (path, content); `None` if the user gave no input.
    pub(super) original: Option<(&'a Path, &'a [u8])>,
    pub(super) result: &'a Path,
    pub(super) files: CallFiles,
    /// The target with the command line and environment that are the smallest so far.
    pub(super) target: Target,
    /// The smallest input of the program so far.
    pub(super) input: Vec<u8>,
    /// Wall time of the runs that have shown the crash; it counts for `--budget-time`.
    pub(super) shown_in: Duration,
    pub(super) done: Vec<Phase>,
}

/// One finished search in the minimization of a command line: it minimized one part while all
/// others stayed fixed.
pub(super) struct Phase {
    pub(super) subject: PhaseSubject,
    /// The target with its command line as it was after this search; the same part is minimized
    /// again only if the command line or the input has changed since.
    pub(super) target: Target,
    pub(super) input: Vec<u8>,
    pub(super) finished: Finished,
    pub(super) record: MinRecord,
    /// Time that the search took, including the time of test runs that an earlier call made for the
    /// same search, as the log records them.
    pub(super) spent: Duration,
}

impl CallMinimization<'_> {
    /// Minimizes one part of the command line or the input after another until no search changes
    /// anything, or a budget is used up; returns the combined result.
    pub(super) fn run(mut self) -> Result<(Finished, MinRecord), Failure> {
        self.screen.say_crash(self.crash, self.way);
        let before = self.target.clone();
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for step in 0..STEPS {
                for subject in self.subjects(step) {
                    // The input has its turn in any case, so that there is a result.
                    let is_first_of_input = subject.is_none() && !self.had_phase(None);
                    let may = is_first_of_input || !self.is_spent();
                    if may && !self.is_settled(subject) {
                        self.run_phase(subject)?;
                        goes_on = true;
                    }
                }
            }
        }
        let all = (0..STEPS)
            .flat_map(|step| self.subjects(step))
            .collect::<Vec<_>>();
        let settled = all.into_iter().all(|subject| self.is_settled(subject));
        self.conclude(&before, settled)
    }

    /// Returns the parts that the step with the number `step` minimizes, one search each: 0 the
    /// whole arguments, 1 the characters of each argument, 2 the environment variables, 3 the
    /// input.
    fn subjects(&self, step: usize) -> Vec<PhaseSubject> {
        let places = Call::places(&self.target, self.args.args, self.args.env_vars);
        let of_part = |part: Part| {
            let places = places.iter().filter(move |(one, _)| *one == part);
            places.map(|place| Some(*place)).collect()
        };
        match step {
            0 => of_part(Part::Args),
            1 => of_part(Part::Argument),
            2 => of_part(Part::Env),
            _ => self.original.map(|_| None).into_iter().collect(),
        }
    }

    fn had_phase(&self, subject: PhaseSubject) -> bool {
        self.done.iter().any(|done| done.subject == subject)
    }

    /// Returns true if `subject`, a part of the command line or the input, needs no further search:
    /// it is empty, or neither the command line nor the input has changed since its last search.
    /// Else false.
    fn is_settled(&self, subject: PhaseSubject) -> bool {
        let last = self.done.iter().rev().find(|done| done.subject == subject);
        let is_empty = subject
            .is_some_and(|(part, at)| Call::new(self.target.clone(), part, at).text().is_empty());
        is_empty || last.is_some_and(|done| done.target == self.target && done.input == self.input)
    }

    fn run_phase(&mut self, subject: PhaseSubject) -> Result<(), Failure> {
        let log = self.files.next_log(subject);
        let file = self.input_file()?;
        let start = self.start_line(subject, file.as_deref());
        self.remove_outdated(&log, &start)?;
        let (before, began) = (time_of(&log, workers(self.args.jobs)), Instant::now());
        let (finished, record) = match subject {
            Some((part, at)) => self.shrink_call(part, at, start, file.as_deref(), &log)?,
            None => self.shrink_input(start, file.as_deref(), &log)?,
        };
        let spent = before + began.elapsed();
        let (target, input) = (self.target.clone(), self.input.clone());
        self.done.push(Phase {
            subject,
            target,
            input,
            finished,
            record,
            spent,
        });
        self.write_script()
    }

    /// Returns the first line of the log of a search for the part `subject`, which begins with the
    /// current command line and input. `file`: path of the input; `None` if there is none.
    fn start_line(&self, subject: PhaseSubject, file: Option<&Path>) -> StartLine {
        match subject {
            Some((part, at)) => {
                let call = Call::new(self.target.clone(), part, at);
                self.start_of_call(&call, part, at, file)
            }
            None => {
                let minimizing = self.args.minimizing(self.target.clone(), self.way);
                minimizing.start_line(&self.input, self.crash)
            }
        }
    }

    /// Removes the file `log` if it is of the same crash, build and algorithm as this search, but
    /// begins with another command line or input than `start`, the first line that the log would
    /// get now. This happens after an earlier search was resumed with a larger budget and came to
    /// another result. Leaves any other log alone, since resuming it is refused anyway.
    fn remove_outdated(&self, log: &Path, start: &StartLine) -> Result<(), Failure> {
        let is_outdated = |logged: StartLine| {
            let is_ours = (&logged.key, &logged.search, logged.build)
                == (&start.key, &start.search, start.build);
            let is_same = logged.target.same_target(&start.target)
                && logged.call == start.call
                && logged.input_blake3 == start.input_blake3;
            is_ours && !is_same
        };
        if self.done.is_empty() || !Log::read_start(log).is_some_and(is_outdated) {
            return Ok(());
        }
        std::fs::remove_file(log).map_err(|error| {
            Failure::new(
                Exit::Usage,
                "output",
                format!("cannot remove the log: {error}"),
            )
            .path(log)
        })
    }

    fn shrink_input(
        &mut self,
        start: StartLine,
        file: Option<&Path>,
        log: &Path,
    ) -> Result<(Finished, MinRecord), Failure> {
        let minimizing = self.args.minimizing(self.target.clone(), self.way);
        let into = FileJob {
            path: file.unwrap_or(Path::new("input")),
            input: &self.input,
            result: self.result,
            log,
            screen: self.screen,
            call: Some(&self.target),
        };
        let mut options = minimizing.options(self.screen.stop);
        (options.budget_tests, options.budget_time) = self.left();
        options.shown_in = Some(Duration::ZERO);
        let done = into.minimize(start, options, |input, journal, options| {
            minimizing.minimize(input, self.crash, journal, options)
        })?;
        self.input = done.0.minimized.text.clone();
        Ok(done)
    }

    /// Returns the path of a file that has the current input and keeps it: the user's file, or a
    /// stored copy. `None` if there is no input.
    pub(super) fn input_file(&self) -> Result<Option<PathBuf>, Failure> {
        match self.original {
            None => Ok(None),
            Some((path, bytes)) if bytes == self.input => Ok(Some(path.to_owned())),
            Some(_) => {
                let kept = self.files.store_input(&self.input);
                let failed = |error| Failure::new(Exit::Usage, "output", error);
                Ok(Some(kept.map_err(failed)?))
            }
        }
    }

    /// Returns the path of the file with the smallest input so far: the result file, or the user's
    /// file if the input was not minimized yet. `None` if there is no input.
    fn best_input(&self) -> Option<&Path> {
        let (original, _) = self.original?;
        match self.had_phase(None) {
            true => Some(self.result),
            false => Some(original),
        }
    }

    fn write_script(&self) -> Result<(), Failure> {
        let Some(text) = call_script(&self.target, self.best_input(), self.crash) else {
            return Ok(());
        };
        let path = self.files.script();
        atomic::write_program(&path, &text).map_err(|error| Failure::unwritten(&path, error))
    }

    /// Returns what is left of `--budget-tests` and `--budget-time` after all finished searches;
    /// `None` means no limit.
    pub(super) fn left(&self) -> (Option<u64>, Option<Duration>) {
        let tests: u64 = self
            .done
            .iter()
            .map(|done| done.record.tests.executed)
            .sum();
        let time: Duration = self.done.iter().map(|done| done.spent).sum();
        let (all_tests, all_time) = (
            self.args.results.budget_tests,
            self.args.results.budget_time,
        );
        (
            all_tests.map(|all| all.saturating_sub(tests)),
            all_time.map(|all| all.saturating_sub(self.shown_in + time)),
        )
    }

    fn is_spent(&self) -> bool {
        let (tests, time) = self.left();
        tests == Some(0) || time == Some(Duration::ZERO)
    }

    /// Combines the searches of all parts of the command line into one result, and returns the last
    /// search with it. The result is called 1-minimal if `settled` is true (no part needs a further
    /// search) and the last search of each part has proved that. `before` is the original target.
    /// Fails if there was nothing to search.
    fn conclude(&self, before: &Target, settled: bool) -> Result<(Finished, MinRecord), Failure> {
        let Some(last) = self.done.last() else {
            let message = "there is nothing to minimize: no input is given, and there are no \
                           arguments or variables to remove";
            return Err(Failure::usage(message).hint("give an input"));
        };
        let finals: Vec<&Phase> = (self.done.iter().enumerate())
            .filter(|(at, done)| {
                !self.done[at + 1..]
                    .iter()
                    .any(|l| l.subject == done.subject)
            })
            .filter(|(_, done)| done.target == self.target && done.input == self.input)
            .map(|(_, done)| done)
            .collect();
        let claim = match settled
            && finals
                .iter()
                .all(|done| done.record.claim != Claim::BestSoFar)
        {
            true => Claim::OneMinimal,
            false => Claim::BestSoFar,
        };
        let sum = |of: fn(&Proved) -> u64| finals.iter().map(|done| of(&done.record.proved)).sum();
        let mut record = last.record.clone();
        record.claim = claim;
        record.proved = Proved {
            done: sum(|proved| proved.done),
            of: sum(|proved| proved.of),
        };
        record.search = self.args.search.clone();
        record.tests = self
            .done
            .iter()
            .map(|done| done.record.tests)
            .fold(Counts::default(), add);
        record.size_before = self.original.map_or(0, |(_, bytes)| bytes.len() as u64);
        record.size_after = self.input.len() as u64;
        record.output = self.original.and_then(|_| recorded_path(self.result));
        let of_input = self.done.iter().find(|done| done.subject.is_none());
        record.log = of_input.unwrap_or(&self.done[0]).record.log.clone();
        record.slips = self.slips();
        record.call = Some(self.call_result(before));
        let mut finished = last.finished.clone();
        finished.minimized.text = self.input.clone();
        finished.minimized.warnings = self.warnings();
        Ok((finished, record))
    }

    fn call_result(&self, before: &Target) -> CallResult {
        let pair = |(name, value): &(OsString, OsString)| (OsText::from(name), OsText::from(value));
        let program = match &self.target.program {
            Program::Path(path) => OsText::from(path),
            Program::Bundled(name) => OsText::from(name),
        };
        let is_path = matches!(self.target.program, Program::Path(_));
        let args = self.target.args.iter().map(OsText::from);
        CallResult {
            args: std::iter::once(program).chain(args).collect(),
            env: self.target.env.iter().map(pair).collect(),
            args_before: before.args.len() as u64,
            env_before: before.env.len() as u64,
            command: call_line(&self.target, self.original.map(|_| self.result)),
            script: is_path
                .then(|| recorded_path(&self.files.script()))
                .flatten(),
            phases: self.done.iter().map(phase_record).collect(),
        }
    }

    /// Returns all slips (other crashes) that the searches of all parts of the command line found,
    /// without duplicates.
    fn slips(&self) -> Vec<SlipRecord> {
        let mut slips: Vec<SlipRecord> = Vec::new();
        for slip in self.done.iter().flat_map(|done| &done.record.slips) {
            let same = |one: &SlipRecord| (&one.major, &one.minor) == (&slip.major, &slip.minor);
            if !slips.iter().any(same) {
                slips.push(slip.clone());
            }
        }
        slips
    }

    /// Returns the warnings of all searches, each once. The warning that the empty candidate fails
    /// is returned only for the input, since arguments and variables may all be superfluous.
    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for done in &self.done {
            for warning in &done.finished.minimized.warnings {
                let is_of_empty = matches!(
                    warning,
                    Warning::EmptyInputFails | Warning::MemoryLimit { .. }
                );
                let of_call = done.subject.is_some() && is_of_empty;
                if !of_call && !warnings.contains(warning) {
                    warnings.push(*warning);
                }
            }
        }
        warnings
    }
}

fn phase_record(done: &Phase) -> PhaseRecord {
    let part = match done.subject {
        None => "input",
        Some((Part::Args, _)) => "args",
        Some((Part::Argument, _)) => "argument",
        Some((Part::Env, _)) => "env",
    };
    PhaseRecord {
        part: part.to_owned(),
        before: done.record.size_before,
        after: done.record.size_after,
        claim: done.record.claim,
        proved: done.record.proved,
        tests: done.record.tests,
        log: done.record.log.clone(),
    }
}

fn add(one: Counts, other: Counts) -> Counts {
    Counts {
        executed: one.executed + other.executed,
        cached: one.cached + other.cached,
        repeated: one.repeated + other.repeated,
        predicted: one.predicted + other.predicted,
        speculative: one.speculative + other.speculative,
        checks: one.checks + other.checks,
    }
}

/// Returns the wall time of all tests that the log records, if `jobs` workers made them; zero if
/// there is no log.
fn time_of(log: &Path, jobs: usize) -> Duration {
    let lines = Log::read(log).map(|log| log.lines).unwrap_or_default();
    wall_time(&lines, jobs.try_into().unwrap_or(u32::MAX))
}

impl CallMinimization<'_> {
    /// Minimizes one part of the command line with all others fixed: the one of the kind `part`
    /// with the index `at`. Continues that search if the file `log` exists. `start`: first line of
    /// a new log. `file`: the file with the current input; `None` if there is none. Returns the
    /// finished search, and its result for JSON.
    pub(super) fn shrink_call(
        &mut self,
        part: Part,
        at: usize,
        start: StartLine,
        file: Option<&Path>,
        log: &Path,
    ) -> Result<(Finished, MinRecord), Failure> {
        let call = Call::new(self.target.clone(), part, at);
        let begun = log.exists();
        let mut journal =
            Journal::resume(log, start).map_err(|error| Failure::unresumable(error, log))?;
        let start: StartLine = journal.start().clone();
        let held = HeldCrash::from(self.crash);
        let learn_limit = self.args.target.timeout.is_none();
        let oracle = || -> BoxedOracle<'_> {
            let (call, input) = (call.clone(), self.input.clone());
            Box::new(oracle_of_call(call, input, held.clone(), learn_limit))
        };
        let make = || Ok(oracle());
        let workers = Workers::new(oracle(), &make, workers(self.args.jobs));
        let slips = RefCell::new(Vec::new());
        let (budget_tests, budget_time) = self.left();
        let options = Options {
            budget_tests,
            budget_time,
            shown_in: Some(Duration::ZERO),
            stop: Some(self.screen.stop),
            log_inputs: self.args.results.log_inputs,
            ..Options::default()
        };
        let mut options = Options {
            on_reduce: Box::new(|best| self.write_best_script(&call, best, file)),
            on_slip: Box::new(|slip, _| {
                slips.borrow_mut().push(self.store_call_slip(&call, slip)?);
                Ok(())
            }),
            ..self.screen.screen.watch(options, true)
        };
        let minimized = minimize_by_workers(call.text(), workers, &mut journal, &mut options);
        let minimized = minimized.map_err(|error| {
            if !begun {
                remove_useless_log(log, &error);
            }
            Failure::from(error)
        })?;
        drop(options);
        let mut record = MinRecord::new(&minimized, &start, Duration::ZERO);
        record.log = recorded_path(log);
        self.screen
            .name_slips(&mut record, self.result, &slips.into_inner());
        // The result of the search was run, so that it is a valid command line.
        if let Some(target) = call.target(&minimized.text) {
            self.target = target;
        }
        Ok((Finished::new(start, minimized), record))
    }

    fn start_of_call(&self, call: &Call, part: Part, at: usize, input: Option<&Path>) -> StartLine {
        let mut minimizing = Minimizing::of_target(self.target.clone(), Way::Command, Ddmin::NAME);
        minimizing.no_cache = self.args.results.no_cache;
        minimizing.learn_limit = self.args.target.timeout.is_none();
        let mut start = minimizing.start_line(call.text(), self.crash);
        start.call = Some(CallRecord {
            part,
            at: at as u64,
            input_blake3: ContentHash::of(&self.input),
        });
        let absolute = input.and_then(|path| std::path::absolute(path).ok());
        start.input = absolute.map(|path| OsText(path.into()));
        start
    }

    /// Writes the shell script that reproduces the crash with `best`, the smallest command line so
    /// far; called at each reduction.
    fn write_best_script(
        &self,
        call: &Call,
        best: &[u8],
        input: Option<&Path>,
    ) -> Result<(), CallbackError> {
        let target = call.target(best);
        let text = target.and_then(|target| call_script(&target, input, self.crash));
        match text {
            Some(text) => Ok(atomic::write_program(&self.files.script(), &text)?),
            None => Ok(()),
        }
    }

    /// Stores the input of a slip (another crash, found while the command line was minimized), and
    /// a script that shows it with the command line of `call`; returns the path of the input.
    fn store_call_slip(&self, call: &Call, slip: &Slip) -> Result<PathBuf, CallbackError> {
        let path = store_slip(self.result, &self.input, &slip.keys)?;
        if let (Some(target), Some(crash)) = (call.target(&slip.input), &slip.crash) {
            write_slip_script(&target, &path, crash)?;
        }
        Ok(path)
    }
}

/// Creates an oracle for candidate command lines. It runs the target with each candidate in a new
/// process, on `input`; a candidate fails if it shows the crash `held`. `learn_limit`: whether the
/// time limit of a run adapts to the target.
pub(in crate::cli) fn oracle_of_call(
    call: Call,
    input: Vec<u8>,
    held: HeldCrash,
    learn_limit: bool,
) -> CallOracle {
    let make: OracleOfCall = Box::new(move |target: Target| {
        let mut minimizing = Minimizing::of_target(target, Way::Command, Ddmin::NAME);
        minimizing.learn_limit = learn_limit;
        let oracle = minimizing.oracle(held.clone())?;
        Ok(Box::new(oracle) as Box<dyn Oracle + Send>)
    });
    CallOracle::new(call, input, make)
}
