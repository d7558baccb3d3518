//! Mutation of inputs along their structure, in addition to havoc: a LibAFL mutator over
//! `ddfuzz-structure`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use libafl::Error;
use libafl::corpus::{Corpus, CorpusId};
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator};
use libafl::random_corpus_id;
use libafl::state::{HasCorpus, HasMaxSize, HasRand};
use libafl_bolts::Named;
use libafl_bolts::rands::Rand;

use super::havoc::{Havoc, HavocDepth};
use super::worker::State;
use ddfuzz_structure::{MutationParser, MutationSource, ParsedInput};

/// Greatest number of corpus entries whose trees (parsed inputs) are kept; when there are more, all
/// are dropped.
const MOST_TREES: usize = 256;
/// One mutant in this many is made by changing the tree (parsed form) of the input, if the input
/// can be parsed; havoc makes the others.
const STRUCTURED: usize = 2;

/// A LibAFL mutator that changes inputs by their structure (a file format or language) or by
/// havoc, chosen at random for each mutant.
pub(super) struct StructureMutator {
    havoc: Havoc,
    trees: Option<Trees>,
}

/// The parser for the structure (a file format or language) of inputs, and a cache of the corpus
/// entries that it has parsed to trees; an entry that does not have the structure has `None`.
struct Trees {
    parser: MutationParser,
    of: HashMap<CorpusId, (BytesInput, Option<Arc<ParsedInput>>)>,
}

impl StructureMutator {
    /// Creates the mutator; without a parser for a structure of inputs, each call makes one
    /// mutation of havoc.
    pub(super) fn new(parser: Option<MutationParser>) -> StructureMutator {
        let of = HashMap::new();
        StructureMutator {
            havoc: Havoc::new(match parser {
                Some(_) => HavocDepth::Stacked,
                None => HavocDepth::One,
            }),
            trees: parser.map(|parser| Trees { parser, of }),
        }
    }

    /// Checks whether the mutator has a parser. With a parser, mutants are best made from corpus
    /// entries, whose parsed form is stored, and not from other mutants.
    pub(super) fn parses(&self) -> bool {
        self.trees.is_some()
    }
}

impl Trees {
    /// Returns the tree (parsed input) of `input`, the corpus entry `id`, from the cache or by
    /// parsing it. `None` if the input does not have the structure.
    fn get(&mut self, id: CorpusId, input: &BytesInput) -> Option<Arc<ParsedInput>> {
        if let Some((known, tree)) = self.of.get(&id)
            && known == input
        {
            return tree.clone();
        }
        if self.of.len() >= MOST_TREES {
            self.of.clear();
        }
        let tree = self.parser.parse(input.as_ref()).map(Arc::new);
        self.of.insert(id, (input.clone(), tree.clone()));
        tree
    }

    /// Returns a mutant of the scheduled corpus entry, made by changing its tree and perhaps taking
    /// parts from the tree of a random other entry; `None` if the entry does not have the
    /// structure, or cannot be changed.
    fn mutate(
        &mut self,
        havoc: &mut Havoc,
        state: &mut State,
        input: &BytesInput,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(id) = *state.corpus().current() else {
            return Ok(None);
        };
        let Some(own) = self.get(id, input) else {
            return Ok(None);
        };
        let id = random_corpus_id!(state.corpus(), state.rand_mut());
        let other = state.corpus().cloned_input_for_id(id)?;
        let donor = self.get(id, &other).unwrap_or_else(|| own.clone());
        let mut source = Source {
            havoc,
            state,
            error: None,
        };
        let mutant = own.mutate(&donor, &mut source);
        match source.error {
            Some(error) => Err(error),
            None => Ok(mutant),
        }
    }
}

/// What a mutation of a tree (parsed input) draws on: random numbers from LibAFL's state, and havoc
/// for byte strings that the structure does not divide further.
struct Source<'a> {
    havoc: &'a mut Havoc,
    state: &'a mut State,
    error: Option<Error>,
}

impl MutationSource for Source<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.state.rand_mut().below_or_zero(bound)
    }

    fn mutate_bytes(&mut self, bytes: &mut Vec<u8>) {
        let mut input = BytesInput::new(std::mem::take(bytes));
        let mutated = self.havoc.mutate(self.state, &mut input);
        self.error = mutated.err().or(self.error.take());
        *bytes = input.into_inner();
    }
}

impl Named for StructureMutator {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("structure")
    }
}

impl Mutator<BytesInput, State> for StructureMutator {
    fn mutate(
        &mut self,
        state: &mut State,
        input: &mut BytesInput,
    ) -> Result<MutationResult, Error> {
        if let Some(trees) = &mut self.trees
            && state.rand_mut().below_or_zero(STRUCTURED) == 0
            && let Some(mutant) = trees.mutate(&mut self.havoc, state, input)?
            && mutant.len() <= state.max_size()
        {
            *input.as_mut() = mutant;
            return Ok(MutationResult::Mutated);
        }
        self.havoc.mutate(state, input)
    }

    fn post_exec(&mut self, state: &mut State, new: Option<CorpusId>) -> Result<(), Error> {
        self.havoc.post_exec(state, new)
    }
}
