//! Explains a failure: from two runs to an [`Explanation`].

use std::time::{Duration, Instant};

use ddfuzz_exec::{Ended, ExecError, RUST_PANIC, Target};
use ddfuzz_model::files::Base64;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use regex::bytes::Regex;

use crate::alignment::{Matched, matched};
use crate::engine::slices::{Goal, Sliced};
use crate::engine::watchdog::{Allowance, TimeLimit};
use crate::engine::{
    Criterion, Ending, Engine, EngineError, Point, Side, Trace, Unsupported, if_supported,
};
use crate::experiments::Runs;
use crate::failing_facts::{add_facts, add_heap_facts, add_mutants, add_overrun};
use crate::other_words::with_other_words;
use crate::passing::{SimilarInput, candidates, closest, judge_candidate, similar_inputs};
use crate::places::{frame_record, newer_sources, out_of_time, refusal_of};
use crate::recursion::add_first_value;
use crate::refused::{LEAST_MATCHING, not_passing};
use crate::report::{
    EventRecord, Explanation, InputRecord, PointsRecord, Refusal, SliceRecord, input_difference,
};
use crate::stages::{Stage, Stages};
use crate::suspects::suspects;

/// A failure to explain, with its inputs and the options of the explanation.
pub struct Request {
    /// The target (the program and its options) of the passing run.
    pub passing_target: Target,
    /// The target (the program and its options) of the failing run: that of the passing run, or one
    /// with other arguments.
    pub failing_target: Target,
    /// The input with which the program fails.
    pub failing: Vec<u8>,
    /// The input with which the program passes, if the user gives one.
    pub passing: Option<Vec<u8>>,
    /// Inputs from a minimization log that may pass: the best one is taken as the passing input.
    pub others: Vec<Vec<u8>>,
    /// A pattern that the output matches only in the failing run; `None` where the failure is a
    /// crash or an exit status.
    pub wrong: Option<Regex>,
    /// What a critical slice (the executed statements that the failure needs) has to reproduce;
    /// `None` where no slice is requested.
    pub slice: Option<SliceGoal>,
    /// Whether states are compared as registers and words, without variables and types.
    pub raw: bool,
    /// CPU time that the whole explanation may take, including that of the program and its tracer.
    /// On a busy machine, the explanation ends after four times as much wall time.
    pub budget: Duration,
}

/// What a critical slice (the executed statements that the failure needs) has to reproduce: the
/// failure or whole output of the run, or certain lines of its output.
#[derive(Clone, Debug)]
pub enum SliceGoal {
    /// The slice has to reproduce the failure; for a run that does not fail, its whole output.
    Run,
    /// The slice has to reproduce the lines of the run's output that match this pattern.
    Lines(Regex),
}

/// Error: the runs cannot be made, or do not fail and pass as an explanation needs.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The target cannot be run or traced.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The failing run does not fail: how it ended, and a text with the last line of its stderr.
    #[error("the failing run does not fail: it ended with {0}{1}")]
    NotFailing(Ended, String),
    /// The failing run does not fail: its output does not match the pattern of wrong output.
    #[error(
        "the failing run does not fail: its stdout does not match /{pattern}/; it was {output}, and the run ended with {ended}"
    )]
    NotWrong {
        /// The pattern that the output of the failing run had to match.
        pattern: String,
        /// The beginning of the failing run's output, quoted.
        output: String,
        /// How the failing run ended: its exit status or signal.
        ended: Ended,
    },
    /// The passing run does not pass: its output matches the pattern of wrong output.
    #[error(
        "the passing run does not pass: its stdout matches /{pattern}/ as well; it was {output}"
    )]
    WrongAsWell {
        /// The pattern that the output of the passing run must not match.
        pattern: String,
        /// The beginning of the passing run's output, quoted.
        output: String,
    },
    /// The passing run does not pass: it ended as the value says.
    #[error("the passing run does not pass: it ended with {0}")]
    NotPassing(Ended),
    /// The thread that traces the program has panicked.
    #[error("the tracing thread is gone")]
    Gone,
}

impl From<ExecError> for ExplainError {
    fn from(error: ExecError) -> ExplainError {
        ExplainError::Engine(error.into())
    }
}

/// Returns an explanation of a failure by a cause–effect chain. What cannot be explained is refused
/// in the result, with the reason and what is certain nonetheless.
///
/// # Errors
/// When the program cannot be run, or the runs do not fail and pass as they should.
pub fn explain(request: &Request) -> Result<Explanation, ExplainError> {
    // A thread of its own: what it traces ends with it.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| Explaining::new(request).run());
        thread.join().unwrap_or(Err(ExplainError::Gone))
    })
}

/// Number of times that each of the two runs is made, to see that it always ends in the same way.
const REPLAYS: u32 = 3;
/// Largest number of passing inputs whose traces are compared with that of the failing run.
const TRACED: usize = 8;
/// Divisor of the CPU time of the whole explanation: the search for the chain may take this part.
const CHAIN: u32 = 12;
/// Smallest time limit of a test. The wall time is longer, since a process on a busy machine waits.
const LEAST_TIME: TimeLimit = TimeLimit {
    cpu: Duration::from_millis(20),
    wall: Duration::from_millis(50),
};
/// Largest time limit of a test, in CPU time and in wall time.
const MOST_TIME: Duration = Duration::from_secs(2);

/// Returns the time limit of a test: 20 times `took`, the time of the failing run, but neither
/// shorter than [`LEAST_TIME`] nor longer than [`MOST_TIME`].
fn of_tests(took: TimeLimit) -> TimeLimit {
    TimeLimit {
        cpu: (took.cpu * 20).clamp(LEAST_TIME.cpu, MOST_TIME),
        wall: (took.wall * 20).clamp(LEAST_TIME.wall, MOST_TIME),
    }
}

/// Returns the CPU time of all child processes for which this process has waited; zero if the
/// kernel does not say.
fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    usage.map_or(Duration::ZERO, |usage| {
        let micros = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or_default();
        Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
    })
}

pub(crate) struct Explaining<'a> {
    pub(crate) request: &'a Request,
    began: Instant,
    /// How long the explanation may take.
    pub(crate) time: Allowance,
    /// Parts of the explanation that are not done yet.
    stages: Stages,
    pub(crate) result: Explanation,
    /// Whether the target is a program that can be run without a terminal.
    pub(crate) is_program: bool,
}

/// Why an explanation ends early: it is refused, or an error has occurred.
pub(crate) enum Early {
    Refused(Refusal),
    Error(ExplainError),
}

impl From<EngineError> for Early {
    fn from(error: EngineError) -> Early {
        match error {
            EngineError::Unsupported(why) => Early::Refused(refusal_of(why)),
            EngineError::OutOfTime => Early::Refused(out_of_time()),
            other => Early::Error(other.into()),
        }
    }
}

pub(crate) fn refuse(reason: &str, hint: &str) -> Early {
    Early::Refused(Refusal {
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    })
}

impl<'a> Explaining<'a> {
    fn new(request: &'a Request) -> Explaining<'a> {
        Explaining {
            request,
            began: Instant::now(),
            time: Allowance::of_budget(request.budget),
            stages: Stages::default(),
            result: Explanation::default(),
            is_program: false,
        }
    }

    fn run(mut self) -> Result<Explanation, ExplainError> {
        match self.stages() {
            Ok(()) => {}
            Err(Early::Refused(refusal)) => self.result.refused = Some(refusal),
            // What was killed because the time was over cannot be traced any more.
            Err(Early::Error(ExplainError::Engine(_))) if self.time.is_over() => {
                self.result.refused = Some(out_of_time());
            }
            Err(Early::Error(error)) => return Err(error),
        }
        let is_late = self.result.refused.as_ref() == Some(&out_of_time());
        let left = self.stages.left(is_late || self.result.out_of_time);
        self.result.untried.extend(left);
        if self.result.refused.is_some() && self.is_program {
            self.add_given();
        }
        self.result.look_first = suspects(&self.result);
        self.result.wall_ms = self.began.elapsed().as_millis() as u64;
        Ok(self.result)
    }

    fn stages(&mut self) -> Result<(), Early> {
        self.check_target()?;
        let request = self.request;
        let targets = [&request.passing_target, &request.failing_target];
        let inputs = [request.failing.clone(), request.failing.clone()];
        let mut engine = Engine::new(targets, inputs, request.budget)?;
        self.result.newer_sources = newer_sources(&engine);
        engine.watches_exits = request.failing_target.crash_exit.is_some();
        let mut failing = engine.run_to_end(Side::Failing)?;
        if failing.ended == Ended::Exit(RUST_PANIC) && self.panics(&mut engine)? {
            failing = engine.run_to_end(Side::Failing)?;
        }
        let criterion = self.criterion_unless_slice(&mut engine, &failing)?;
        // The first run has more to do.
        let is_crash = matches!(criterion, Some(Criterion::Crash(_)));
        let took = self.replays(&mut engine, Side::Failing, (&mut failing, is_crash))?;
        let limit = of_tests(took);
        engine.test_limit = limit;
        if request.slice.is_some() {
            self.slice(&mut engine, criterion.as_ref(), limit)?;
        }
        let Some(criterion) = criterion else {
            self.result.tests = engine.tests;
            return Ok(());
        };
        let recursion = self.recursion(&mut engine, (&criterion, &failing, limit))?;
        self.check_given(&mut engine, &criterion, &failing)?;
        let budget = request.budget;
        let block = self.part(&mut engine, Stage::Heap, |result, engine| {
            add_heap_facts(result, engine, &criterion, &failing)
        })?;
        let trace = engine.trace(Side::Failing)?;
        let ways = (&criterion, &trace, limit);
        let written = self.part(&mut engine, Stage::Facts, |result, engine| {
            add_first_value(result, engine, recursion.as_ref(), &trace)?;
            add_facts(result, engine, ways, block, budget)
        })?;
        let (mut passing, input) = self.passing(&mut engine, &criterion, &trace)?;
        self.replays(&mut engine, Side::Passing, (&mut passing.ending, is_crash))?;
        self.overrun(&mut engine, ways, &input)?;
        self.mutants(&mut engine, ways, &input)?;
        engine.set_input(Side::Passing, input.clone());
        self.input(&input);
        engine.is_raw = request.raw;
        let mut runs = Runs {
            half_time: engine.half_time(request.budget / CHAIN),
            matched: matched(&passing.points, &trace.points),
            engine,
            criterion,
            passing,
            failing: trace,
            limit,
            states: Default::default(),
            links: Vec::new(),
            following: Vec::new(),
        };
        self.compare(&runs, written);
        self.check_points(&runs)?;
        self.whole_chain(&mut runs)
    }

    /// Finds the chain, and records how many points and tests the search used.
    fn whole_chain(&mut self, runs: &mut Runs) -> Result<(), Early> {
        let found = self.chain(runs);
        self.count(runs);
        if !self.result.out_of_time {
            self.stages.done(Stage::Chain);
        }
        found
    }

    /// Stores in the result a write of the failing run that reaches out of its variable into
    /// another. The failing run is compared with the run of the passing input that the user gave
    /// or, if none was given, of `passing`.
    fn overrun(
        &mut self,
        engine: &mut Engine,
        ways: (&Criterion, &Trace, TimeLimit),
        passing: &[u8],
    ) -> Result<(), EngineError> {
        // One that is closer may overrun the same variable, and pass by chance.
        let given = self.request.passing.as_deref().unwrap_or(passing);
        engine.set_input(Side::Passing, given.to_vec());
        self.part(engine, Stage::Bounds, |result, engine| {
            add_overrun(result, engine, ways)
        })
    }

    /// Stores in the result which mutants of the program avert the failure. The mutants are
    /// compared with the program in runs of other inputs, which are close to the failing input or
    /// to a passing one: to `passing` or, if a pattern tells wrong output, to the passing input
    /// that the user gave, if any.
    fn mutants(
        &mut self,
        engine: &mut Engine,
        ways: (&Criterion, &Trace, TimeLimit),
        passing: &[u8],
    ) -> Result<(), EngineError> {
        let request = self.request;
        // One that was made closer may have wrong output, too, that the pattern does not match.
        let given = request.passing.as_deref();
        let given = given.filter(|_| matches!(ways.0, Criterion::Wrong(_)));
        let passing = given.unwrap_or(passing);
        let mut others = match request.passing_target == request.failing_target {
            true => similar_inputs(&request.failing, passing),
            false => vec![SimilarInput::passing(passing)],
        };
        let first = others.len();
        if request.passing_target == request.failing_target {
            others.extend(with_other_words(&request.failing, passing));
        }
        self.part(engine, Stage::Mutants, |result, engine| {
            add_mutants(result, engine, ways, (&others, first))
        })
    }

    /// Runs the part `stage` of the explanation, `act`, within its share of the time, and returns
    /// its result. If the share is used up first, returns a default; what the part has found so far
    /// is in `self.result`.
    fn part<T: Default>(
        &mut self,
        engine: &mut Engine,
        stage: Stage,
        act: impl FnOnce(&mut Explanation, &mut Engine) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        engine.until = self.time.and(stage.share(self.request.budget));
        let done = act(&mut self.result, engine);
        let is_over = engine.until.is_over();
        (engine.until, engine.facts_until) = (self.time, self.time);
        match done {
            // What was killed because the time was over cannot be traced any more.
            Err(EngineError::OutOfTime | EngineError::System(_)) if is_over => {
                self.stages.cut(stage);
                Ok(T::default())
            }
            done => {
                self.stages.done(stage);
                done
            }
        }
    }

    /// Stores in the result the difference between the failing input and the passing input that the
    /// user gave; does nothing if the user gave none.
    ///
    /// # Errors
    /// When the user's input does not pass.
    fn check_given(
        &mut self,
        engine: &mut Engine,
        criterion: &Criterion,
        failing: &Ending,
    ) -> Result<(), Early> {
        let request = self.request;
        let Some(given) = &request.passing else {
            return Ok(());
        };
        engine.set_input(Side::Passing, given.clone());
        let ending = engine.run_to_end(Side::Passing)?;
        if !judge_candidate(criterion, &ending, failing) {
            return Err(Early::Error(not_passing(request, &ending)));
        }
        self.input(given);
        Ok(())
    }

    /// Returns the criterion that tells which runs fail, derived from the failing run's end
    /// `failing`. If that run has not failed, returns an error or, if the user has requested a
    /// critical slice, `None`, since a slice can also keep the run's output.
    fn criterion_unless_slice(
        &mut self,
        engine: &mut Engine,
        failing: &Ending,
    ) -> Result<Option<Criterion>, Early> {
        let is_slice = self.request.slice.is_some();
        match self.criterion(engine, failing) {
            Err(Early::Error(ExplainError::NotFailing(..) | ExplainError::NotWrong { .. }))
                if is_slice =>
            {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Stores in the result the numbers of tests, changed runs and points, and the examined points.
    fn count(&mut self, runs: &Runs) {
        self.result.tests = runs.engine.tests;
        self.result.changed_runs = runs.engine.changed_runs;
        self.result.points.used = runs.states.values().filter(|states| states.is_used).count();
        let tested = runs.states.values().filter(|states| states.tests > 0);
        self.result.points.skipped = tested.filter(|states| !states.is_used).count();
        self.result.examined = runs.examined();
    }

    /// Searches for the critical slice: the executions of statements that alone reproduce the
    /// failure. Stores it in the result. `limit` is the time limit of each test. Fails if too many
    /// statements are executed, or if executing all of them one by one does not reproduce the run.
    fn slice(
        &mut self,
        engine: &mut Engine,
        criterion: Option<&Criterion>,
        limit: TimeLimit,
    ) -> Result<(), Early> {
        let goal = match (&self.request.slice, criterion) {
            (Some(SliceGoal::Lines(regex)), _) => Goal::Lines(regex.clone()),
            (_, Some(criterion @ Criterion::Crash(_))) => Goal::Failure(criterion.clone()),
            _ => Goal::Output,
        };
        match engine.slice(&goal, limit)? {
            Sliced::Found(tree, slice) => {
                let events = tree.events.iter().zip(&slice.kept).enumerate();
                let kept = events.filter(|(_, (event, kept))| **kept && !event.stays);
                let record = |(index, (event, _)): (usize, (&crate::slice::Event, &bool))| {
                    let place = frame_record(engine, event.pc);
                    EventRecord {
                        event: index + 1,
                        file: place.file,
                        line: place.line,
                    }
                };
                self.result.slice = Some(SliceRecord {
                    events: tree.removable(),
                    kept: kept.map(record).collect(),
                    tests: slice.tests,
                });
                Ok(())
            }
            Sliced::TooMany(events) => Err(refuse(
                &format!("the run executes {events} statements, too many for a critical slice"),
                "give a smaller input, or leave out --slice",
            )),
            Sliced::NotReproduced => Err(refuse(
                "executing the statements one by one does not reproduce the run",
                "compile it with -O0 or -Og, or leave out --slice",
            )),
        }
    }

    /// Makes the run `side`, which has ended as `first` says, twice more. Returns the shorter CPU
    /// time and the shorter wall time of the two new runs. Refuses the explanation if a new run
    /// ends differently or, unless the failure is a crash (`is_crash`), writes another output.
    /// After a crash, the output may differ, as by the time of day or by the content of a freed
    /// block; then sets `varies` of `first`.
    fn replays(
        &mut self,
        engine: &mut Engine,
        side: Side,
        (first, is_crash): (&mut Ending, bool),
    ) -> Result<TimeLimit, Early> {
        let mut least = TimeLimit::of(Duration::MAX);
        for replay in 1..REPLAYS {
            let (before, began) = (cpu_of_children(), Instant::now());
            let again = engine.run_to_end(side)?;
            least.cpu = least.cpu.min(cpu_of_children().saturating_sub(before));
            least.wall = least.wall.min(began.elapsed());
            engine.check_time()?;
            let is_same = (&again.ended, &again.crash, &again.stack)
                == (&first.ended, &first.crash, &first.stack);
            if !is_same || !is_crash && again.output != first.output {
                self.result.crash.replays = if side == Side::Failing {
                    replay
                } else {
                    REPLAYS
                };
                return Err(Early::Refused(refusal_of(Unsupported::Unsteady)));
            }
            first.varies |= again.output != first.output;
        }
        self.result.crash.replays = REPLAYS;
        Ok(least)
    }

    /// Makes the passing run, and returns its trace and its input: the user's input, or a passing
    /// one that is closer to the failing input; if the user gives none, the best that can be found.
    /// Fails if no input passes by `criterion`.
    fn passing(
        &mut self,
        engine: &mut Engine,
        criterion: &Criterion,
        failing: &Trace,
    ) -> Result<(Trace, Vec<u8>), Early> {
        let request = self.request;
        let ending = &failing.ending;
        if let Some(passing) = &request.passing {
            engine.set_input(Side::Passing, passing.clone());
            let trace = engine.trace(Side::Passing)?;
            if !judge_candidate(criterion, &trace.ending, ending) {
                return Err(Early::Error(not_passing(request, &trace.ending)));
            }
            let of_failing = (&*request.failing, failing);
            return Ok(closest(
                engine,
                criterion,
                of_failing,
                (trace, passing.clone()),
            )?);
        }
        let (found, input) = self.found_passing(engine, criterion, failing)?;
        engine.set_input(Side::Passing, input.clone());
        Ok((found, input))
    }

    /// Searches for the passing input whose run shows most of the failing run `failing`, and returns
    /// its trace and the input. Fails if no input passes by `criterion`.
    fn found_passing(
        &self,
        engine: &mut Engine,
        criterion: &Criterion,
        failing: &Trace,
    ) -> Result<(Trace, Vec<u8>), Early> {
        let (request, part) = (self.request, self.time.part(6));
        let places = engine.failing_statements(&failing.points);
        let mut best: Option<(_, Trace, Vec<u8>)> = None;
        let inputs = candidates(
            engine,
            criterion,
            (&failing.ending, &places),
            &request.failing,
            &request.others,
            TRACED,
        )?;
        for input in inputs {
            // Programs of which a trace takes long get the first one.
            if best.is_some() && part.is_over() {
                break;
            }
            engine.set_input(Side::Passing, input.clone());
            let Some(found) = if_supported(engine.trace(Side::Passing).map(Some))? else {
                continue;
            };
            let matching = matched(&found.points, &failing.points).len();
            // Inputs of one length leave everything else where it is.
            let is_close = matching * 100 >= failing.points.len() * LEAST_MATCHING;
            let is_as_long = is_close && input.len() == request.failing.len();
            // A run that comes to the failing statement, and passes there, shows more than one that
            // only leaves out what leads to it.
            let reaches = is_close && found.points.iter().any(|it| places.contains(&it.pc));
            let matching = (reaches, is_as_long, matching);
            if best.as_ref().is_none_or(|(most, ..)| matching > *most) {
                best = Some((matching, found, input));
            }
        }
        let (_, found, input) = best.ok_or_else(|| {
            refuse(
                "no input close to the failing one passes, be it shorter, equally long or longer",
                "give a passing one, on which the program ends by itself: ddfuzz explain FAILING \
                 PASSING -- PROGRAM",
            )
        })?;
        Ok((found, input))
    }

    pub(crate) fn input(&mut self, passing: &[u8]) {
        let failing = &self.request.failing;
        if self.request.passing_target == self.request.failing_target {
            self.result.input = InputRecord {
                difference: input_difference(failing, passing),
                failing: Some(Base64(failing.clone())),
                passing: Some(Base64(passing.to_vec())),
                is_closer: (self.request.passing.as_ref()).is_some_and(|given| given != passing),
            };
        }
    }

    /// Stores in the result what is certain about both runs without tests: the numbers of their
    /// points, the functions that only the failing run enters, and whether both runs pass the point
    /// `written` (the last point before the failing run wrote the value with which it failed).
    fn compare(&mut self, runs: &Runs, written: Option<Point>) {
        if let Some(origin) = &mut self.result.origin {
            let at = |it: &Matched| (it.in_failing.pc, it.in_failing.nth);
            let is_it = |point: Point| {
                runs.matched
                    .iter()
                    .any(|it| at(it) == (point.pc, point.nth))
            };
            origin.in_both = written.is_some_and(is_it);
        }
        self.result.points = PointsRecord {
            failing: runs.failing.points.len(),
            passing: runs.passing.points.len(),
            matching: runs.matched.len(),
            used: 0,
            skipped: 0,
        };
        let mut names: Vec<String> = Vec::new();
        let entered = |trace: &Trace, name: &str| {
            trace
                .points
                .iter()
                .any(|point| runs.engine.function(point.pc) == Some(name))
        };
        for point in &runs.failing.points {
            if let Some(name) = runs.engine.function(point.pc)
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        names.retain(|name| !entered(&runs.passing, name));
        self.result.only_failing = names;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_may_take_longer_in_wall_time_than_in_cpu_time() {
        let limits = |took: Duration| {
            let limit = of_tests(TimeLimit::of(took));
            [limit.cpu, limit.wall].map(|it| it.as_millis())
        };
        assert_eq!(limits(Duration::ZERO), [20, 50]);
        assert_eq!(limits(Duration::from_millis(5)), [100, 100]);
        assert_eq!(limits(Duration::from_secs(9)), [2000, 2000]);
    }
}
