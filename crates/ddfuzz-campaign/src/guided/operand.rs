//! The mutator that writes one operand of a comparison over the other, where that one stands.
//!
//! LibAFL's own (`I2SRandReplace`) looks from a random place to the end of the input, so that what
//! stands at the beginning of a long one, a magic number for most, is all but never found.

use std::borrow::Cow;
use std::num::NonZero;

use libafl::corpus::CorpusId;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::mutators::{MutationResult, Mutator};
use libafl::observers::cmp::{CmpValues, CmpValuesMetadata};
use libafl::state::HasRand;
use libafl::{Error, HasMetadata};
use libafl_bolts::rands::Rand;
use libafl_bolts::{Named, ToSlice};

use super::parts::State;

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

/// Whether one of the operands stands in `input`, so that the other can be written over it. Most
/// comparisons of a sanitized program are the sanitizer's, and stand nowhere.
pub(super) fn stands_in(values: &CmpValues, input: &[u8]) -> bool {
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

/// Where `part` stands in `whole`: the first place from `from` on, else the first of all.
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
