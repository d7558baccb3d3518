//! The stage that writes into inputs what the target has compared them with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZero;
use std::time::{Duration, Instant};

use libafl::corpus::{CorpusId, HasCurrentCorpusId};
use libafl::fuzzer::ExecutionProcessor;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::mutators::{HavocScheduledMutator, MutationResult, Mutator, Tokens};
use libafl::observers::cmp::{CmpValues, CmpValuesMetadata, CmplogBytes};
use libafl::stages::{Restartable, Stage};
use libafl::state::{HasCurrentTestcase, HasRand};
use libafl::{Error, HasMetadata};
use libafl_bolts::rands::Rand;
use libafl_bolts::tuples::tuple_list;
use libafl_bolts::{Named, ToSlice};

use super::evaluate::{BatchStage, Power};
use super::executor::TargetExecutor;
use super::worker::{Manager, Observers, State};
use ddfuzz_delta::Comparison;
use ddfuzz_exec::observe::{self, Observer};
use ddfuzz_exec::{Target, Way};

/// The part of a worker's time that observing may take: one of so many.
const SHARE: u32 = 8;
/// How much it may take at once.
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
            // A target that cannot be observed is fuzzed all the same.
            self.observer = observe::start(&self.target, self.way).ok().flatten();
        }
        let observed = self.observer.as_mut()?.observe(input);
        self.spent += began.elapsed();
        match observed {
            Ok((_, comparisons)) => {
                let mut compared = Compared::of(&comparisons, input);
                let list = &mut compared.values.list;
                list.retain(|values| applies_to(values, input));
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

/// Most bytes of an operand (LibAFL's `CmplogBytes`).
const MOST: usize = 32;

/// The comparisons of one run.
#[derive(Debug, Default)]
pub struct Compared {
    /// Pairs of values, one of which may occur in the input.
    pub values: CmpValuesMetadata,
    /// Operands of two bytes or more, of functions that compare bytes, that do not occur in the
    /// input: what may have been looked for. They are words to be written into it whole, which
    /// replacing cannot do where the two differ in length.
    pub words: Vec<Vec<u8>>,
}

impl Compared {
    /// Those of a run on `input`, in their order.
    ///
    /// Operands of equal width, of 1, 2, 4 or 8 bytes, are integers. They stand in their own width
    /// and in the least that holds both: programs compare a character as an `int`. Other operands
    /// are bytes, both cut to the length of the shorter one and to 32, for LibAFL reads as many of
    /// one as it has found of the other.
    pub fn of(comparisons: &[Comparison], input: &[u8]) -> Compared {
        let mut compared = Compared::default();
        for Comparison { left, right } in comparisons {
            match (left.len() == right.len(), left.len()) {
                (true, 1 | 2 | 4 | 8) => compared.integers(left, right),
                _ => compared.bytes(left, right, input),
            }
        }
        compared
    }

    fn integers(&mut self, left: &[u8], right: &[u8]) {
        let fits = |width: &usize| holds(left, *width) && holds(right, *width);
        let least = [1, 2, 4, 8].into_iter().find(fits).unwrap_or(left.len());
        self.push(&left[..least], &right[..least]);
        if least < left.len() {
            self.push(left, right);
        }
    }

    fn push(&mut self, left: &[u8], right: &[u8]) {
        let (one, other) = (number(left), number(right));
        let value = match left.len() {
            1 => CmpValues::U8((one as u8, other as u8, false)),
            2 => CmpValues::U16((one as u16, other as u16, false)),
            4 => CmpValues::U32((one as u32, other as u32, false)),
            _ => CmpValues::U64((one, other, false)),
        };
        self.add(value);
    }

    fn bytes(&mut self, left: &[u8], right: &[u8], input: &[u8]) {
        for operand in [left, right] {
            let word = operand.to_vec();
            if operand.len() > 1 && !is_part_of(operand, input) && !self.words.contains(&word) {
                self.words.push(word);
            }
        }
        let length = left.len().min(right.len()).min(MOST);
        if length > 0 && left[..length] != right[..length] {
            self.add(CmpValues::Bytes((
                cut(&left[..length]),
                cut(&right[..length]),
            )));
        }
    }

    fn add(&mut self, value: CmpValues) {
        if !self.values.list.contains(&value) {
            self.values.list.push(value);
        }
    }
}

/// Whether an integer in little-endian order is the same in `width` bytes, with or without a sign.
fn holds(bytes: &[u8], width: usize) -> bool {
    let Some((low, high)) = bytes.split_at_checked(width) else {
        return true;
    };
    let negative = low[width - 1] & 0x80 != 0;
    let all = |filler: u8| high.iter().all(|byte| *byte == filler);
    all(0) || negative && all(0xff)
}

/// An integer of at most eight bytes in little-endian order.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn cut(bytes: &[u8]) -> CmplogBytes {
    let mut buffer = [0; MOST];
    buffer[..bytes.len()].copy_from_slice(bytes);
    CmplogBytes::from_buf_and_len(buffer, bytes.len() as u8)
}

fn is_part_of(part: &[u8], whole: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

/// Writes one operand over the other.
pub(super) struct OperandReplace;

impl Named for OperandReplace {
    fn name(&self) -> &Cow<'static, str> {
        static NAME: Cow<'static, str> = Cow::Borrowed("OperandReplace");
        &NAME
    }
}

impl Mutator<BytesInput, State> for OperandReplace {
    fn mutate(
        &mut self,
        state: &mut State,
        input: &mut BytesInput,
    ) -> Result<MutationResult, Error> {
        let known = state.metadata_map().get::<CmpValuesMetadata>();
        let count = NonZero::new(known.map_or(0, |known| known.list.len()));
        let size = NonZero::new(input.mutator_bytes().len());
        let (Some(count), Some(size)) = (count, size) else {
            return Ok(MutationResult::Skipped);
        };
        let which = state.rand_mut().below(count);
        let from = state.rand_mut().below(size);
        let Some(known) = state.metadata_map().get::<CmpValuesMetadata>() else {
            return Ok(MutationResult::Skipped);
        };
        for (old, new) in replacements(&known.list[which]) {
            if let Some(at) = place(input.mutator_bytes(), &old, from) {
                input.mutator_bytes_mut()[at..at + new.len()].copy_from_slice(&new);
                return Ok(MutationResult::Mutated);
            }
        }
        Ok(MutationResult::Skipped)
    }

    fn post_exec(&mut self, _state: &mut State, _new: Option<CorpusId>) -> Result<(), Error> {
        Ok(())
    }
}

/// Whether one of the operands occurs in `input`, so that the other can be written over it. Most
/// comparisons of a sanitized program are the sanitizer's, and occur nowhere.
pub(super) fn applies_to(values: &CmpValues, input: &[u8]) -> bool {
    let pairs = replacements(values);
    pairs.iter().any(|(old, _)| place(input, old, 0).is_some())
}

/// What may be written over what, of one comparison: each operand over the other, in both orders
/// of bytes. Both are of one length.
fn replacements(values: &CmpValues) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (one, other) = match values {
        CmpValues::U8((one, other, _)) => (vec![*one], vec![*other]),
        CmpValues::U16((one, other, _)) => (one.to_le_bytes().into(), other.to_le_bytes().into()),
        CmpValues::U32((one, other, _)) => (one.to_le_bytes().into(), other.to_le_bytes().into()),
        CmpValues::U64((one, other, _)) => (one.to_le_bytes().into(), other.to_le_bytes().into()),
        CmpValues::Bytes((one, other)) => {
            let (one, other) = (one.to_slice(), other.to_slice());
            let length = one.len().min(other.len());
            (one[..length].to_vec(), other[..length].to_vec())
        }
    };
    let mut pairs = vec![(one.clone(), other.clone()), (other, one)];
    if !matches!(values, CmpValues::Bytes(_) | CmpValues::U8(_)) {
        let swapped = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
        let turned: Vec<_> = pairs
            .iter()
            .map(|(one, other)| (swapped(one), swapped(other)))
            .collect();
        pairs.extend(turned);
    }
    pairs
}

/// Where `part` occurs in `whole`: the first place from `from` on, else the first of all.
fn place(whole: &[u8], part: &[u8], from: usize) -> Option<usize> {
    let stands = |at: &usize| whole[*at..].starts_with(part);
    let last = whole.len().checked_sub(part.len())?;
    if part.is_empty() {
        return None;
    }
    (from..=last)
        .find(stands)
        .or_else(|| (0..=last.min(from)).find(stands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_place_is_found_too() {
        assert_eq!(place(b"abcabc", b"bc", 2), Some(4));
        assert_eq!(place(b"abcabc", b"ab", 4), Some(0));
        assert_eq!(place(b"abcabc", b"bc", 5), Some(1));
        assert_eq!(place(b"abc", b"abcd", 1), None);
        assert_eq!(place(b"abc", b"", 1), None);
    }

    #[test]
    fn integers_are_looked_for_in_both_orders_of_bytes() {
        let pairs = replacements(&CmpValues::U16((0x0102, 0x0304, false)));
        assert_eq!(pairs[0], (vec![2, 1], vec![4, 3]));
        assert_eq!(pairs[3], (vec![3, 4], vec![1, 2]));
        assert_eq!(replacements(&CmpValues::U8((1, 2, false))).len(), 2);
    }
}
