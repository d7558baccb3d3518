//! Runs many inputs at once, and passes to LibAFL those that are new or did not pass: the stage
//! that mutates ([`BatchStage`]) and what it shares with other stages.

use std::time::Instant;

use libafl::Error;
use libafl::corpus::{Corpus, CorpusId, HasCurrentCorpusId};
use libafl::events::{Event, EventFirer, EventWithStats};
use libafl::executors::{ExitKind, HasObservers};
use libafl::fuzzer::{ExecuteInputResult, ExecutionProcessor};
use libafl::inputs::{BytesInput, Input};
use libafl::mutators::{MutationResult, Mutator};
use libafl::observers::ObserversTuple;
use libafl::schedulers::TestcaseScore;
use libafl::schedulers::testcase_score::CorpusPowerTestcaseScore;
use libafl::stages::{Restartable, Stage};
use libafl::state::{HasCorpus, HasCurrentTestcase, HasExecutions};

use super::executor::{NotedRun, TargetExecutor, fail};
use super::hangs::{HangAction, HangRates};
use super::wire::Request;
use super::worker::{Manager, Observers, State};
use crate::CrashSink;
use ddfuzz_exec::{Ended, Stuck};

/// What becomes of the inputs after one that hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterHang {
    /// They are run all the same.
    Run,
    /// They are left out while hangs have taken more than their share.
    Spare,
}

/// How many inputs were run, and which of them hung.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) runs: usize,
    pub(super) hung: Vec<usize>,
    /// Whether the others were left out.
    pub(super) spared: bool,
}

/// Runs `inputs` as far as the worker may.
///
/// Most runs pass and reach nothing new. They cost no look at their coverage here, and no call of
/// a feedback: the process of the target compares its counters itself.
pub(super) fn evaluate<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    inputs: &[BytesInput],
    after_hang: AfterHang,
) -> Result<Done, Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let mut done = Done::default();
    while done.runs < inputs.len() && !done.spared {
        let left = executor.heartbeat.left().map_err(|error| fail(&error))?;
        let some = executor.at_once().min(inputs.len() - done.runs);
        let some = some.min(usize::try_from(left).unwrap_or(usize::MAX));
        if some == 0 {
            break;
        }
        let batch = &inputs[done.runs..done.runs + some];
        let bytes: Vec<&[u8]> = batch.iter().map(|input| &input.as_ref()[..]).collect();
        let began = Instant::now();
        let told = executor.run_some(&bytes).map_err(|error| fail(&error))?;
        let hangs = told
            .last()
            .is_some_and(|told| told.run.ended == Ended::Timeout);
        executor.took(told.len(), began.elapsed(), hangs);
        executor.heartbeat.ran(told.len() as u64);
        *state.executions_mut() += told.len() as u64;
        done.runs += told.len();
        if hangs {
            done.hung.push(done.runs - 1);
        }
        for (input, told) in batch.iter().zip(told) {
            match told.run.ended {
                Ended::Timeout => hangs_at(fuzzer, executor, state, manager, input)?,
                _ => process_run(fuzzer, executor, state, manager, input, &told)?,
            }
        }
        done.spared = hangs && after_hang == AfterHang::Spare && executor.hangs.are_over_share();
    }
    apply_verdicts(fuzzer, executor, state, manager)?;
    Ok(done)
}

/// Does what is to be done about the last run, which was stopped.
fn hangs_at<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let stuck = executor.executor.stuck();
    match executor.hangs.meet(&stuck, input.as_ref().len()) {
        HangAction::Count => Ok(()),
        HangAction::HandIn { number, first } => {
            executor.hangs.keep(number, input, &stuck.counters);
            submit(executor, state, manager, input, stuck, (number, first))
        }
        HangAction::RunOn => run_on(fuzzer, executor, state, manager, input),
    }
}

/// Hands a run that was stopped to the main process.
fn submit(
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
    stuck: Stuck,
    (number, first): (u64, bool),
) -> Result<(), Error> {
    let request = Request::Hang {
        number,
        first,
        signatures: stuck.signatures,
        run: state.executions().saturating_sub(1),
        name: input.generate_name(None),
    };
    let told = executor.heartbeat.remote().tell(&request, input.as_ref());
    told.map_err(|error| fail(&error))?;
    match executor.linked {
        true => share(state, manager, input, ExitKind::Timeout),
        false => Ok(()),
    }
}

/// Runs an input within the limit that findings are held to, where there is time for that: one
/// that was over the learned limit, where others have ended by themselves.
fn run_on<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    if !executor.timeouts.has_time() || !executor.timeouts.doubts() {
        return Ok(());
    }
    let began = Instant::now();
    let told = (executor.run_patiently(input.as_ref())).map_err(|error| fail(&error))?;
    let processed = match told.run.ended {
        Ended::Timeout => {
            let stuck = executor.executor.stuck();
            let number = executor.hangs.next_number();
            submit(executor, state, manager, input, stuck, (number, true))
        }
        _ => process_run(fuzzer, executor, state, manager, input, &told),
    };
    executor.timeouts.spend(began.elapsed());
    processed
}

/// Applies the verdicts of the main process about hangs, and sends it the counts of runs.
pub(super) fn apply_verdicts<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    for judged in executor.heartbeat.take_judged() {
        let own = executor.heartbeat.remote().own(judged.from);
        if let Some(input) = executor.hangs.apply(&judged, own) {
            run_on(fuzzer, executor, state, manager, &input)?;
        }
    }
    for (kind, major, runs) in executor.hangs.take_counts() {
        let counted = executor.heartbeat.remote().clone().count(kind, major, runs);
        counted.map_err(|error| fail(&error))?;
    }
    Ok(())
}

/// Reports one run to LibAFL, where it may be of interest.
fn process_run<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
    told: &NotedRun,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let kind = executor.exit_kind(told.run.ended);
    let counters = match (&told.counters, kind) {
        (Some(counters), _) => &counters[..],
        (None, ExitKind::Ok) => return Ok(()),
        (None, _) => &[],
    };
    if kind == ExitKind::Ok {
        executor.timeouts.see(told.run.cpu);
    }
    executor.observe(told.run.ended, counters)?;
    report_to_libafl(fuzzer, executor, state, manager, input, kind)
}

/// Tells LibAFL of the run that was observed.
fn report_to_libafl<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
    kind: ExitKind,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    executor
        .observers_mut()
        .post_exec_all(state, input, &kind)?;
    let observers = executor.observers();
    let (result, _) = fuzzer.evaluate_execution(state, manager, input, &*observers, &kind, true)?;
    if result == ExecuteInputResult::Solution && executor.linked {
        share(state, manager, input, kind)?;
    }
    Ok(())
}

/// A stage after LibAFL's calibration, which only warns of a run that does not pass: such a run
/// is a crash like any other.
pub(super) struct ReportStage;

impl<Z> Stage<TargetExecutor, Manager, State, Z> for ReportStage
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    fn perform(
        &mut self,
        fuzzer: &mut Z,
        executor: &mut TargetExecutor,
        state: &mut State,
        manager: &mut Manager,
    ) -> Result<(), Error> {
        let Some(ended) = executor.unreported() else {
            return Ok(());
        };
        let input = state.current_input_cloned()?;
        if ended == Ended::Timeout {
            executor.clear_unreported();
            return hangs_at(fuzzer, executor, state, manager, &input);
        }
        executor.observe_end(ended)?;
        let kind = executor.exit_kind(ended);
        report_to_libafl(fuzzer, executor, state, manager, &input, kind)
    }
}

impl Restartable<State> for ReportStage {
    /// A worker that starts again has a new state: there is nothing to go on with.
    fn should_restart(&mut self, _state: &mut State) -> Result<bool, Error> {
        Ok(true)
    }

    fn clear_progress(&mut self, _state: &mut State) -> Result<(), Error> {
        Ok(())
    }
}

/// Gives other hosts an input that did not pass. Their brokers forward new test cases, and keep
/// what LibAFL calls objectives to themselves.
fn share(
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
    exit_kind: ExitKind,
) -> Result<(), Error> {
    let event = Event::NewTestcase {
        input: input.clone(),
        observers_buf: None,
        exit_kind,
        corpus_size: state.corpus().count(),
        client_config: <Manager as EventFirer<BytesInput, State>>::configuration(manager),
        forward_id: None,
    };
    let executions = *state.executions();
    manager.fire(state, EventWithStats::with_current_time(event, executions))
}

/// Mutants that are made before they are run.
const AT_ONCE: usize = 128;
/// For each of them so many may be left out because they are likely to hang, and others made.
const LEFT_OUT: usize = 3;

/// How many mutants of an input a stage makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Power {
    /// As many as the power schedule says.
    Scheduled,
    /// This number, where there is something to try.
    Fixed(usize),
}

/// Mutates the input that is scheduled, and runs the mutants.
pub(super) struct BatchStage<M> {
    mutator: M,
    power: Power,
    /// The mutants of a batch; kept, for their memory.
    mutants: Vec<BytesInput>,
    hang_rates: HangRates,
}

impl<M> BatchStage<M> {
    /// A stage that mutates so.
    pub(super) fn new(mutator: M, power: Power) -> BatchStage<M> {
        BatchStage {
            mutator,
            power,
            mutants: Vec::new(),
            hang_rates: HangRates::default(),
        }
    }

    /// From here on so many.
    pub(super) fn set_power(&mut self, power: Power) {
        self.power = power;
    }

    /// Makes up to `count` mutants of `input`; fewer where the mutator has nothing to try, or where
    /// most are likely to hang, as mutants of the input `spared`, and are left out.
    fn mutate(
        &mut self,
        state: &mut State,
        input: &BytesInput,
        count: usize,
        spared: Option<CorpusId>,
    ) -> Result<usize, Error>
    where
        M: Mutator<BytesInput, State>,
    {
        let (mut made, mut tries, mut left_out) = (0, 0, 0);
        while tries < count + left_out {
            tries += 1;
            if self.mutants.len() == made {
                self.mutants.push(BytesInput::new(Vec::new()));
            }
            let mutant = self.mutants[made].as_mut();
            mutant.clear();
            mutant.extend_from_slice(input.as_ref());
            let mutated = self.mutator.mutate(state, &mut self.mutants[made])?;
            let mutant = self.mutants[made].as_ref();
            let hangs = |id| self.hang_rates.may_hang(id, input.as_ref(), mutant);
            if mutated != MutationResult::Mutated {
                continue;
            }
            match spared.is_some_and(hangs) {
                true => left_out = (left_out + 1).min(LEFT_OUT * count),
                false => made += 1,
            }
        }
        Ok(made)
    }

    /// Whether the mutants of an input are left out for now, because they hang more often than
    /// those of others.
    pub(super) fn rests(&mut self, id: CorpusId, executor: &TargetExecutor) -> bool {
        self.hang_rates.rests(id, &executor.hangs)
    }

    /// How many mutants the stage makes. While hangs are over their share they are no fewer than
    /// are run at once: the inputs whose mutants pass get the turns of those that rest.
    fn iterations(&mut self, state: &mut State, over: bool) -> Result<usize, Error> {
        let least = if over { AT_ONCE } else { 1 };
        match self.power {
            Power::Fixed(count) => Ok(count.max(least)),
            Power::Scheduled => {
                let mut testcase = state.current_testcase_mut()?;
                let score = CorpusPowerTestcaseScore::compute(state, &mut testcase)?;
                Ok(((score as usize).max(1) * self.hang_rates.turns()).max(least))
            }
        }
    }
}

impl<M, Z> Stage<TargetExecutor, Manager, State, Z> for BatchStage<M>
where
    M: Mutator<BytesInput, State>,
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    fn perform(
        &mut self,
        fuzzer: &mut Z,
        executor: &mut TargetExecutor,
        state: &mut State,
        manager: &mut Manager,
    ) -> Result<(), Error> {
        let Some(id) = state.current_corpus_id()? else {
            return Ok(());
        };
        if self.rests(id, executor) {
            return Ok(());
        }
        let mut left = self.iterations(state, executor.hangs.are_over_share())?;
        let input = state.current_input_cloned()?;
        while left > 0 && executor.heartbeat.left().map_err(|error| fail(&error))? > 0 {
            let count = left.min(AT_ONCE);
            let spared = executor.hangs.are_over_share().then_some(id);
            let made = self.mutate(state, &input, count, spared)?;
            let inputs = match (made, self.power) {
                // Where there is nothing to mutate (`--max-len 0`), runs are made all the same:
                // so many are wanted.
                (0, Power::Scheduled) => std::slice::from_ref(&input),
                (0, Power::Fixed(_)) => break,
                _ => &self.mutants[..made],
            };
            let done = evaluate(fuzzer, executor, state, manager, inputs, AfterHang::Spare)?;
            let of = (id, &input.as_ref()[..]);
            self.hang_rates.note(of, &inputs[..done.runs], &done.hung);
            if done.spared && self.hang_rates.rests(id, &executor.hangs) {
                break;
            }
            left -= count.min(left);
        }
        Ok(())
    }
}

impl<M> Restartable<State> for BatchStage<M> {
    /// A worker that starts again has a new state: there is nothing to go on with.
    fn should_restart(&mut self, _state: &mut State) -> Result<bool, Error> {
        Ok(true)
    }

    fn clear_progress(&mut self, _state: &mut State) -> Result<(), Error> {
        Ok(())
    }
}
