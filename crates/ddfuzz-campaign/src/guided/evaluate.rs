//! Runs many inputs, and has LibAFL hear of those that are new or did not pass.

use std::time::Instant;

use libafl::Error;
use libafl::corpus::Corpus;
use libafl::events::{Event, EventFirer, EventWithStats};
use libafl::executors::{ExitKind, HasObservers};
use libafl::fuzzer::{ExecuteInputResult, ExecutionProcessor};
use libafl::inputs::{BytesInput, Input};
use libafl::observers::ObserversTuple;
use libafl::stages::{Restartable, Stage};
use libafl::state::{HasCorpus, HasCurrentTestcase, HasExecutions};

use super::executor::{TargetExecutor, Told, fail};
use super::hangs::Act;
use super::parts::{Manager, Observers, State};
use super::wire::Request;
use crate::Desk;
use ddfuzz_exec::{Ended, Stuck};

/// What becomes of the inputs behind one that hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
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
    behind: Behind,
) -> Result<Done, Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let mut done = Done::default();
    while done.runs < inputs.len() && !done.spared {
        let left = executor.pulse.left().map_err(|error| fail(&error))?;
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
        executor.pulse.ran(told.len() as u64);
        *state.executions_mut() += told.len() as u64;
        done.runs += told.len();
        if hangs {
            done.hung.push(done.runs - 1);
        }
        for (input, told) in batch.iter().zip(told) {
            match told.run.ended {
                Ended::Timeout => hangs_at(fuzzer, executor, state, manager, input)?,
                _ => hear(fuzzer, executor, state, manager, input, &told)?,
            }
        }
        done.spared = hangs && behind == Behind::Spare && executor.hangs.are_over_share();
    }
    hear_judged(fuzzer, executor, state, manager)?;
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
        Act::Count => Ok(()),
        Act::HandIn { number, first } => {
            executor.hangs.keep(number, input, &stuck.counters);
            hand_in(executor, state, manager, input, stuck, (number, first))
        }
        Act::RunOn => run_on(fuzzer, executor, state, manager, input),
    }
}

/// Hands a run that was stopped to the main process.
fn hand_in(
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
    let told = executor.pulse.remote().tell(&request, input.as_ref());
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
    if !executor.patience.has_time() || !executor.patience.doubts() {
        return Ok(());
    }
    let began = Instant::now();
    let told = (executor.run_patiently(input.as_ref())).map_err(|error| fail(&error))?;
    let heard = match told.run.ended {
        Ended::Timeout => {
            let stuck = executor.executor.stuck();
            let number = executor.hangs.next_number();
            hand_in(executor, state, manager, input, stuck, (number, true))
        }
        _ => hear(fuzzer, executor, state, manager, input, &told),
    };
    executor.patience.spend(began.elapsed());
    heard
}

/// Takes in what the main process has found out about hangs, and tells it what was counted.
pub(super) fn hear_judged<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    for judged in executor.pulse.take_judged() {
        let own = executor.pulse.remote().own(judged.from);
        if let Some(input) = executor.hangs.hear(&judged, own) {
            run_on(fuzzer, executor, state, manager, &input)?;
        }
    }
    for (kind, major, runs) in executor.hangs.take_counts() {
        let counted = executor.pulse.remote().clone().count(kind, major, runs);
        counted.map_err(|error| fail(&error))?;
    }
    Ok(())
}

/// Has LibAFL hear of one run, where it may be of interest.
fn hear<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
    told: &Told,
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
        executor.patience.see(told.run.cpu);
    }
    executor.observe(told.run.ended, counters)?;
    tell(fuzzer, executor, state, manager, input, kind)
}

/// Tells LibAFL of the run that was observed.
fn tell<Z>(
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

/// A stage behind LibAFL's calibration, which only warns of a run that does not pass: such a run
/// is a crash like any other.
pub(super) struct UnheardStage;

impl<Z> Stage<TargetExecutor, Manager, State, Z> for UnheardStage
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
        let Some(ended) = executor.unheard() else {
            return Ok(());
        };
        let input = state.current_input_cloned()?;
        if ended == Ended::Timeout {
            executor.forget_unheard();
            return hangs_at(fuzzer, executor, state, manager, &input);
        }
        executor.observe_end(ended)?;
        let kind = executor.exit_kind(ended);
        tell(fuzzer, executor, state, manager, &input, kind)
    }
}

impl Restartable<State> for UnheardStage {
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
