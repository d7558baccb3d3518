//! Havoc: random mutations of bytes, by LibAFL's mutators.

use std::borrow::Cow;

use libafl::Error;
use libafl::corpus::CorpusId;
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator, havoc_mutations, tokens_mutations};
use libafl::state::HasRand;
use libafl_bolts::Named;
use libafl_bolts::rands::Rand;
use libafl_bolts::tuples::{IntoVec, Merge};

use super::worker::State;

/// Number of values of the exponent e, drawn at random from 1 to 3: a mutant gets 2^e mutations.
/// LibAFL's default of 7 makes 36 mutations on average, which takes longer than most targets run
/// and leaves little of a short input.
const MAX_STACK_POWER: usize = 3;

/// Number of mutations that a call of [`Havoc`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HavocDepth {
    /// One mutation, used where a mutant is changed further to give the next mutant.
    One,
    /// Two, four or eight mutations, used where each mutant is made directly from a corpus entry.
    Stacked,
}

/// A LibAFL mutator that applies random havoc and token mutations of LibAFL.
///
/// LibAFL's own scheduled mutators hold the mutations in a tuple, in which the mutation with index
/// N is found by N calls; this mutator holds them in a list.
pub(super) struct Havoc {
    mutations: Vec<Box<dyn Mutator<BytesInput, State>>>,
    depth: HavocDepth,
}

impl Havoc {
    pub(super) fn new(depth: HavocDepth) -> Havoc {
        let mutations = havoc_mutations().merge(tokens_mutations()).into_vec();
        Havoc { mutations, depth }
    }
}

impl Named for Havoc {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("havoc")
    }
}

impl Mutator<BytesInput, State> for Havoc {
    fn mutate(
        &mut self,
        state: &mut State,
        input: &mut BytesInput,
    ) -> Result<MutationResult, Error> {
        let power = match self.depth {
            HavocDepth::One => 0,
            HavocDepth::Stacked => 1 + state.rand_mut().below_or_zero(MAX_STACK_POWER),
        };
        let mut result = MutationResult::Skipped;
        for _ in 0..1 << power {
            let index = state.rand_mut().below_or_zero(self.mutations.len());
            if self.mutations[index].mutate(state, input)? == MutationResult::Mutated {
                result = MutationResult::Mutated;
            }
        }
        Ok(result)
    }

    fn post_exec(&mut self, state: &mut State, new: Option<CorpusId>) -> Result<(), Error> {
        let mut all = self.mutations.iter_mut();
        all.try_for_each(|mutation| mutation.post_exec(state, new))
    }
}
