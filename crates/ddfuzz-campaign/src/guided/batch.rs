//! The stage that mutates: many mutants at once, of which LibAFL hears where they are new.

use libafl::Error;
use libafl::corpus::{CorpusId, HasCurrentCorpusId};
use libafl::fuzzer::ExecutionProcessor;
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator};
use libafl::schedulers::TestcaseScore;
use libafl::schedulers::testcase_score::CorpusPowerTestcaseScore;
use libafl::stages::{Restartable, Stage};
use libafl::state::HasCurrentTestcase;

use super::evaluate::{Behind, evaluate};
use super::executor::{TargetExecutor, fail};
use super::hangs::Proneness;
use super::parts::{Manager, Observers, State};

/// Mutants that are made before they are run.
const AT_ONCE: usize = 128;
/// For each of them so many may be left out because they are likely to hang, and others made.
const LEFT_OUT: usize = 3;

/// How many mutants of an input a stage makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Power {
    /// As many as the power schedule says.
    Scheduled,
    /// So many, where there is something to try.
    Fixed(usize),
}

/// Mutates the input that is scheduled, and runs the mutants.
pub(super) struct BatchStage<M> {
    mutator: M,
    power: Power,
    /// The mutants of a batch; kept, for their memory.
    mutants: Vec<BytesInput>,
    proneness: Proneness,
}

impl<M> BatchStage<M> {
    /// A stage that mutates so.
    pub(super) fn new(mutator: M, power: Power) -> BatchStage<M> {
        BatchStage {
            mutator,
            power,
            mutants: Vec::new(),
            proneness: Proneness::default(),
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
            let hangs = |id| self.proneness.may_hang(id, input.as_ref(), mutant);
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
        self.proneness.rests(id, &executor.hangs)
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
                Ok(((score as usize).max(1) * self.proneness.turns()).max(least))
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
        while left > 0 && executor.pulse.left().map_err(|error| fail(&error))? > 0 {
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
            let done = evaluate(fuzzer, executor, state, manager, inputs, Behind::Spare)?;
            let of = (id, &input.as_ref()[..]);
            self.proneness.note(of, &inputs[..done.runs], &done.hung);
            if done.spared && self.proneness.rests(id, &executor.hangs) {
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
