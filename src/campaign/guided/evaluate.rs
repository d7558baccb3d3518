//! Runs many inputs, and has LibAFL hear of those that are new or did not pass.

use std::time::Instant;

use libafl::Error;
use libafl::corpus::Corpus;
use libafl::events::{Event, EventFirer, EventWithStats};
use libafl::executors::{ExitKind, HasObservers};
use libafl::fuzzer::{ExecuteInputResult, ExecutionProcessor};
use libafl::inputs::BytesInput;
use libafl::observers::ObserversTuple;
use libafl::stages::{Restartable, Stage};
use libafl::state::{HasCorpus, HasCurrentTestcase, HasExecutions};

use super::executor::{TargetExecutor, Told, fail};
use super::parts::{Manager, Observers, State};
use crate::exec::Ended;

/// Runs `inputs` as far as the worker may, and gives how many it has run.
///
/// Most runs pass and reach nothing new. They cost no look at their coverage here, and no call of
/// a feedback: the process of the target compares its counters itself.
pub(super) fn evaluate<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    inputs: &[BytesInput],
) -> Result<usize, Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    let mut done = 0;
    while done < inputs.len() {
        let left = executor.pulse.left().map_err(|error| fail(&error))?;
        let some = executor.at_once().min(inputs.len() - done);
        let some = some.min(usize::try_from(left).unwrap_or(usize::MAX));
        if some == 0 {
            break;
        }
        let batch = &inputs[done..done + some];
        let bytes: Vec<&[u8]> = batch.iter().map(|input| &input.as_ref()[..]).collect();
        let began = Instant::now();
        let told = executor.run_some(&bytes).map_err(|error| fail(&error))?;
        executor.took(told.len(), began.elapsed());
        executor.pulse.ran(told.len() as u64);
        *state.executions_mut() += told.len() as u64;
        done += told.len();
        for (input, told) in batch.iter().zip(told) {
            match told.run.ended {
                Ended::Timeout => doubt(fuzzer, executor, state, manager, input, told)?,
                _ => hear(fuzzer, executor, state, manager, input, &told)?,
            }
        }
    }
    Ok(done)
}

/// Looks at a run that was over its limit, where there is time for that: whether it hangs, and
/// where.
fn doubt<Z>(
    fuzzer: &mut Z,
    executor: &mut TargetExecutor,
    state: &mut State,
    manager: &mut Manager,
    input: &BytesInput,
    mut told: Told,
) -> Result<(), Error>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    if !executor.patience.has_time() {
        return Ok(());
    }
    let began = Instant::now();
    if executor.patience.doubts() {
        told = (executor.run_patiently(input.as_ref())).map_err(|error| fail(&error))?;
    }
    let heard = hear(fuzzer, executor, state, manager, input, &told);
    executor.patience.spend(began.elapsed());
    heard
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
