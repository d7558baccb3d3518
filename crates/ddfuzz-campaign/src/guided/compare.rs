//! The stage that puts into inputs what the target has looked for in them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use libafl::corpus::{CorpusId, HasCurrentCorpusId};
use libafl::fuzzer::ExecutionProcessor;
use libafl::inputs::BytesInput;
use libafl::mutators::{HavocScheduledMutator, Tokens};
use libafl::observers::cmp::{CmpValues, CmpValuesMetadata};
use libafl::stages::{Restartable, Stage};
use libafl::state::HasCurrentTestcase;
use libafl::{Error, HasMetadata};
use libafl_bolts::tuples::tuple_list;

use super::batch::{BatchStage, Power};
use super::executor::TargetExecutor;
use super::operand::{self, OperandReplace};
use super::parts::{Manager, Observers, State};
use crate::Compared;
use ddfuzz_exec::observe::{self, Observer};
use ddfuzz_exec::{Target, Way};

/// The part of a worker's time that observing may take: one of so many.
const SHARE: u32 = 8;
/// So much it may take at once.
const CREDIT: Duration = Duration::from_millis(500);
/// Inputs whose comparisons are kept.
const MOST_KEPT: usize = 4096;
/// Words that comparisons add to the dictionary.
const MOST_WORDS: usize = 2048;
/// Operands put into one mutant: 2 to the power of at most this.
const STACK: usize = 1;
/// Mutants for each comparison, and of one input at most.
const MUTANTS: (usize, usize) = (4, 512);

type Replace = HavocScheduledMutator<(OperandReplace, ())>;

/// Observes which comparisons an input makes, once, and tries the operands in its place.
pub(super) struct CompareStage {
    target: Target,
    way: Way,
    /// `None` before the first input, and for a target that cannot be observed.
    observer: Option<Box<dyn Observer>>,
    tried: bool,
    kept: HashMap<CorpusId, Vec<CmpValues>>,
    words: usize,
    began: Instant,
    spent: Duration,
    batch: BatchStage<Replace>,
}

impl CompareStage {
    /// A stage for a target that is run in this way.
    pub(super) fn new(target: &Target, way: Way) -> CompareStage {
        let mutator = HavocScheduledMutator::with_max_stack_pow(tuple_list!(OperandReplace), STACK);
        CompareStage {
            target: target.clone(),
            way,
            observer: None,
            tried: false,
            kept: HashMap::new(),
            words: 0,
            began: Instant::now(),
            spent: Duration::ZERO,
            batch: BatchStage::new(mutator, Power::Fixed(0)),
        }
    }

    /// Whether there is time to observe a run.
    fn has_time(&self) -> bool {
        self.spent < self.began.elapsed() / SHARE + CREDIT
    }

    /// What a run on `input` compares; `None` where that cannot be had now, or ever.
    fn observe(&mut self, input: &[u8]) -> Option<Compared> {
        if !self.has_time() {
            return None;
        }
        let began = Instant::now();
        if !self.tried {
            self.tried = true;
            // Who cannot be observed is fuzzed all the same.
            self.observer = observe::start(&self.target, self.way).ok().flatten();
        }
        let observed = self.observer.as_mut()?.observe(input);
        self.spent += began.elapsed();
        match observed {
            Ok((_, comparisons)) => {
                let mut compared = Compared::of(&comparisons, input);
                let list = &mut compared.values.list;
                list.retain(|values| operand::stands_in(values, input));
                Some(compared)
            }
            Err(_) => {
                self.observer = None;
                None
            }
        }
    }

    /// The comparisons of the input that is scheduled.
    fn comparisons(&mut self, state: &mut State) -> Result<Vec<CmpValues>, Error> {
        let Some(id) = state.current_corpus_id()? else {
            return Ok(Vec::new());
        };
        if let Some(values) = self.kept.get(&id) {
            return Ok(values.clone());
        }
        let input = state.current_input_cloned()?;
        let Some(compared) = self.observe(input.as_ref()) else {
            return Ok(Vec::new());
        };
        if self.words < MOST_WORDS {
            let tokens = state.metadata_or_insert_with(Tokens::new);
            for word in &compared.words {
                self.words += usize::from(tokens.add_token(word));
            }
        }
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        self.kept.insert(id, compared.values.list.clone());
        Ok(compared.values.list)
    }
}

impl<Z> Stage<TargetExecutor, Manager, State, Z> for CompareStage
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
        let id = state.current_corpus_id()?;
        if id.is_some_and(|id| self.batch.rests(id, executor)) {
            return Ok(());
        }
        let list = self.comparisons(state)?;
        if list.is_empty() {
            return Ok(());
        }
        let times = match state.current_testcase()?.scheduled_count() {
            0 => MUTANTS.0,
            _ => 1,
        };
        self.batch
            .set_power(Power::Fixed((list.len() * times).min(MUTANTS.1)));
        state.add_metadata(CmpValuesMetadata { list });
        self.batch.perform(fuzzer, executor, state, manager)
    }
}

impl Restartable<State> for CompareStage {
    /// A worker that starts again has a new state: there is nothing to go on with.
    fn should_restart(&mut self, _state: &mut State) -> Result<bool, Error> {
        Ok(true)
    }

    fn clear_progress(&mut self, _state: &mut State) -> Result<(), Error> {
        Ok(())
    }
}
