//! Havoc mutation of seeds in the classic campaign, with LibAFL's mutators `havoc_mutations()` and
//! `tokens_mutations()`.
//!
//! The mutators get the least state that they require: a random number generator, a greatest
//! length, the seeds as a corpus for crossover, and the words as metadata. No state outlasts a
//! mutation, so the result is a function of the seed, the mutation's number, all seeds, the words
//! and the length; [`MutatedName`] records the first two.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::str::FromStr;

use libafl::corpus::{Corpus, CorpusId, Testcase};
use libafl::inputs::BytesInput;
use libafl::mutators::{
    MutationId, MutatorsTuple, Tokens, havoc_mutations, havoc_mutations_no_crossover,
    tokens_mutations,
};
use libafl::state::{HasCorpus, HasMaxSize, HasRand};
use libafl::{Error, HasMetadata};
use libafl_bolts::rands::{Rand, Xoshiro256PlusPlusRand};
use libafl_bolts::serdeany::SerdeAnyMap;
use libafl_bolts::tuples::Merge;

use crate::{Seeds, Words, generator::NotAName};

/// Number of values of the exponent e, drawn from 0 to 6: a mutant is made by 2^e mutations, one
/// after the other.
const HAVOC_STACK_POWERS: usize = 7;

/// Builds mutated seeds from their names, such as `seed+HASH:SEED`. Each thread has its own
/// `Mutation`; all threads share the seeds.
pub struct Mutation {
    state: MutatorState,
    /// LibAFL's havoc mutators; crossover is left out if there is no second seed, and mutators that
    /// use words are left out if there are no words.
    mutators: Box<dyn MutateAt>,
}

impl Mutation {
    /// Creates a mutator that makes inputs of at most `max_len` bytes out of `seeds`, and writes
    /// `words` into some of them.
    pub fn new(seeds: &Seeds, words: &Words, max_len: u64) -> Mutation {
        let mut metadata = SerdeAnyMap::new();
        let mut tokens = Tokens::new();
        for word in words.all() {
            tokens.add_token(&word.bytes);
        }
        let mutators: Box<dyn MutateAt> = match (seeds.len() > 1, tokens.is_empty()) {
            (true, true) => Box::new(havoc_mutations()),
            (true, false) => Box::new(havoc_mutations().merge(tokens_mutations())),
            (false, true) => Box::new(havoc_mutations_no_crossover()),
            (false, false) => Box::new(havoc_mutations_no_crossover().merge(tokens_mutations())),
        };
        metadata.insert(tokens);
        Mutation {
            state: MutatorState {
                rand: Xoshiro256PlusPlusRand::with_seed(0),
                max_size: usize::try_from(max_len).unwrap_or(usize::MAX),
                corpus: SharedSeeds::new(seeds.clone()),
                metadata,
            },
            mutators,
        }
    }

    /// Builds the input that `name` describes: a seed, mutated or unchanged. `None` if the campaign
    /// does not have the seed whose hash the name contains.
    pub fn build(&mut self, name: &MutatedName) -> Option<Vec<u8>> {
        let place = self.state.corpus.seeds.place_of(&name.hash)?;
        Some(match name.mutation {
            Some(number) => self.mutate(place, number),
            None => self.state.corpus.seeds.all()[place].bytes.clone(),
        })
    }

    /// Mutates the seed at index `place` by LibAFL's havoc with the random seed `number`, and
    /// returns the mutant, which is cut to the greatest length of inputs.
    fn mutate(&mut self, place: usize, number: u64) -> Vec<u8> {
        let MutatorState { rand, corpus, .. } = &mut self.state;
        *rand = Xoshiro256PlusPlusRand::with_seed(number);
        corpus.current = Some(CorpusId(place));
        let mut input = BytesInput::new(corpus.seeds.all()[place].bytes.clone());
        let stack = 1 << rand.below_or_zero(HAVOC_STACK_POWERS);
        for _ in 0..stack {
            let which = self.state.rand.below_or_zero(self.mutators.count());
            self.mutators.mutate_at(which, &mut self.state, &mut input);
        }
        let mut bytes = input.into_inner();
        bytes.truncate(self.state.max_size);
        bytes
    }
}

/// Interface to a LibAFL tuple of mutators of any type: the number of its mutators, and a way to
/// apply the one with a given index.
trait MutateAt {
    fn count(&self) -> usize;
    fn mutate_at(&mut self, which: usize, state: &mut MutatorState, input: &mut BytesInput);
}

impl<M: MutatorsTuple<BytesInput, MutatorState>> MutateAt for M {
    fn count(&self) -> usize {
        self.len()
    }

    fn mutate_at(&mut self, which: usize, state: &mut MutatorState, input: &mut BytesInput) {
        // These mutators cannot fail: their errors are those of a corpus on a disk.
        let _ = self.get_and_mutate(MutationId::from(which), state, input);
    }
}

/// The least LibAFL state that LibAFL's havoc mutators require: a random number generator, the
/// greatest length of inputs, the seeds as a corpus for crossover, and the words as metadata.
struct MutatorState {
    rand: Xoshiro256PlusPlusRand,
    max_size: usize,
    corpus: SharedSeeds,
    metadata: SerdeAnyMap,
}

impl HasRand for MutatorState {
    type Rand = Xoshiro256PlusPlusRand;

    fn rand(&self) -> &Self::Rand {
        &self.rand
    }

    fn rand_mut(&mut self) -> &mut Self::Rand {
        &mut self.rand
    }
}

impl HasMaxSize for MutatorState {
    fn max_size(&self) -> usize {
        self.max_size
    }

    fn set_max_size(&mut self, max_size: usize) {
        self.max_size = max_size;
    }
}

impl HasMetadata for MutatorState {
    fn metadata_map(&self) -> &SerdeAnyMap {
        &self.metadata
    }

    fn metadata_map_mut(&mut self) -> &mut SerdeAnyMap {
        &mut self.metadata
    }
}

impl HasCorpus<BytesInput> for MutatorState {
    type Corpus = SharedSeeds;

    fn corpus(&self) -> &SharedSeeds {
        &self.corpus
    }

    fn corpus_mut(&mut self) -> &mut SharedSeeds {
        &mut self.corpus
    }
}

/// The seeds of a campaign as a read-only LibAFL corpus. LibAFL's test cases cannot be shared
/// between threads, and an `InMemoryCorpus` would copy all seeds for each worker; this corpus
/// copies only the seed that is being read.
struct SharedSeeds {
    seeds: Seeds,
    current: Option<CorpusId>,
    shown: RefCell<Testcase<BytesInput>>,
    /// Index of the seed that the field `shown` holds a copy of at present.
    place: Cell<usize>,
}

impl SharedSeeds {
    fn new(seeds: Seeds) -> SharedSeeds {
        SharedSeeds {
            seeds,
            current: None,
            shown: RefCell::default(),
            place: Cell::new(usize::MAX),
        }
    }

    fn id(&self, place: usize) -> Option<CorpusId> {
        (place < self.seeds.len()).then_some(CorpusId(place))
    }

    fn unchanging<T>() -> Result<T, Error> {
        Err(Error::unsupported("the seeds of a campaign do not change"))
    }
}

impl Corpus<BytesInput> for SharedSeeds {
    fn count(&self) -> usize {
        self.seeds.len()
    }

    fn count_disabled(&self) -> usize {
        0
    }

    fn count_all(&self) -> usize {
        self.seeds.len()
    }

    fn add(&mut self, _: Testcase<BytesInput>) -> Result<CorpusId, Error> {
        SharedSeeds::unchanging()
    }

    fn add_disabled(&mut self, _: Testcase<BytesInput>) -> Result<CorpusId, Error> {
        SharedSeeds::unchanging()
    }

    fn replace(
        &mut self,
        _: CorpusId,
        _: Testcase<BytesInput>,
    ) -> Result<Testcase<BytesInput>, Error> {
        SharedSeeds::unchanging()
    }

    fn remove(&mut self, _: CorpusId) -> Result<Testcase<BytesInput>, Error> {
        SharedSeeds::unchanging()
    }

    fn get(&self, id: CorpusId) -> Result<&RefCell<Testcase<BytesInput>>, Error> {
        let seed = self.seeds.all().get(id.0);
        let seed = seed.ok_or_else(|| Error::key_not_found(format!("there is no seed {id}")))?;
        if self.place.replace(id.0) != id.0 {
            let input = BytesInput::new(seed.bytes.clone());
            *self.shown.borrow_mut() = Testcase::new(input);
        }
        Ok(&self.shown)
    }

    fn get_from_all(&self, id: CorpusId) -> Result<&RefCell<Testcase<BytesInput>>, Error> {
        self.get(id)
    }

    fn current(&self) -> &Option<CorpusId> {
        &self.current
    }

    fn current_mut(&mut self) -> &mut Option<CorpusId> {
        &mut self.current
    }

    fn next(&self, id: CorpusId) -> Option<CorpusId> {
        self.id(id.0.checked_add(1)?)
    }

    fn peek_free_id(&self) -> CorpusId {
        CorpusId(self.seeds.len())
    }

    fn prev(&self, id: CorpusId) -> Option<CorpusId> {
        self.id(id.0.checked_sub(1)?)
    }

    fn first(&self) -> Option<CorpusId> {
        self.id(0)
    }

    fn last(&self) -> Option<CorpusId> {
        self.id(self.seeds.len().checked_sub(1)?)
    }

    fn nth(&self, nth: usize) -> CorpusId {
        CorpusId(nth)
    }

    fn nth_from_all(&self, nth: usize) -> CorpusId {
        CorpusId(nth)
    }

    fn load_input_into(&self, _: &mut Testcase<BytesInput>) -> Result<(), Error> {
        Ok(()) // `shown` always holds the whole input
    }

    fn store_input_from(&self, _: &Testcase<BytesInput>) -> Result<(), Error> {
        Ok(())
    }
}

/// Number of hex digits of the hash, and of the random seed, in the name of a mutated seed.
const DIGITS: usize = 16;

/// The name of a mutated seed: `seed+HASH:SEED`, or `seed+HASH` for an unchanged seed.
///
/// HASH is the hash of the seed, whose content is in `corpus/HASH` of the output directory. The
/// mutation is a function of SEED, the seeds and words of the campaign and the greatest length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MutatedName {
    /// The first 16 hex digits of the blake3 hash of the seed's content.
    pub hash: String,
    /// Random seed of the mutation; `None` if the seed is unchanged.
    pub mutation: Option<u64>,
}

impl fmt::Display for MutatedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed+{}", self.hash)?;
        match self.mutation {
            Some(mutation) => write!(f, ":{mutation:016x}"),
            None => Ok(()),
        }
    }
}

impl FromStr for MutatedName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<MutatedName, NotAName> {
        let wrong = || NotAName::new(text);
        let name = text.strip_prefix("seed+").ok_or_else(wrong)?;
        let (hash, mutation) = match name.split_once(':') {
            Some((hash, seed)) if is_hex(seed) => (hash, Some(seed)),
            Some(_) => return Err(wrong()),
            None => (name, None),
        };
        if !is_hex(hash) {
            return Err(wrong());
        }
        let mutation = mutation.map(|seed| u64::from_str_radix(seed, 16));
        Ok(MutatedName {
            hash: hash.to_owned(),
            mutation: mutation.transpose().map_err(|_| wrong())?,
        })
    }
}

fn is_hex(text: &str) -> bool {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == DIGITS && text.bytes().all(digit)
}
