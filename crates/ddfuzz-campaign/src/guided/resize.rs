//! [`SizedResize`], the mutator that inserts or deletes bytes behind a number that counts them, and
//! corrects the number.

use std::borrow::Cow;
use std::ops::Range;

use libafl::Error;
use libafl::corpus::CorpusId;
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator};
use libafl::state::{HasMaxSize, HasRand};
use libafl_bolts::Named;
use libafl_bolts::rands::Rand;

use super::worker::State;

/// Number of random places of an input at which a size is looked for.
const PLACES: usize = 16;
/// Greatest number of bytes that are inserted at a time, unless what is counted is doubled.
const MAX_INSERTED: usize = 16;

/// Greatest number of bytes between a size and what it counts, which may be a name.
const MAX_HEADER: usize = 4;

/// A LibAFL mutator that takes a number in the input for the size of the bytes behind it, as in most
/// binary formats: it inserts copies of some of these bytes, or deletes some, and corrects the number.
/// It skips where no number may be a size.
pub(super) struct SizedResize;

/// A number in an input that may be the size, in bytes, of what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    at: usize,
    width: usize,
    is_big_endian: bool,
    value: usize,
}

impl Size {
    /// Reads the number at index `at` of `input`; `None` if it is 0, or more than the bytes behind it.
    fn read(input: &[u8], at: usize, width: usize, is_big_endian: bool) -> Option<Size> {
        let bytes = input.get(at..at + width)?;
        let fold = |value: usize, byte: &u8| value << 8 | usize::from(*byte);
        let value = match is_big_endian {
            true => bytes.iter().fold(0, fold),
            false => bytes.iter().rev().fold(0, fold),
        };
        let is_size = (1..=input.len() - at - width).contains(&value);
        is_size.then_some(Size {
            at,
            width,
            is_big_endian,
            value,
        })
    }

    /// Returns the place of the bytes that the size counts.
    fn counted(self) -> Range<usize> {
        let begin = self.at + self.width;
        begin..begin + self.value
    }

    /// Replaces `place`, at most as many bytes as are counted, by `new`, and the size by the new one. Returns
    /// false, and changes nothing, if the size does not fit into its width.
    fn replace(self, input: &mut Vec<u8>, place: Range<usize>, new: Vec<u8>) -> bool {
        let size = self.value - place.len() + new.len();
        if size >> (8 * self.width) != 0 {
            return false;
        }
        input.splice(place, new);
        let mut bytes = size.to_le_bytes()[..self.width].to_vec();
        if self.is_big_endian {
            bytes.reverse();
        }
        input[self.at..self.at + self.width].copy_from_slice(&bytes);
        true
    }
}

impl Named for SizedResize {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("SizedResize")
    }
}

impl Mutator<BytesInput, State> for SizedResize {
    fn mutate(
        &mut self,
        state: &mut State,
        input: &mut BytesInput,
    ) -> Result<MutationResult, Error> {
        let room = state.max_size().saturating_sub(input.as_ref().len());
        let mut random = |below: usize| state.rand_mut().below_or_zero(below);
        let input = input.as_mut();
        let found = (0..PLACES).find_map(|_| {
            let (at, width) = (random(input.len()), 1 << random(3));
            Size::read(input, at, width, random(2) == 0)
        });
        let Some(size) = found else {
            return Ok(MutationResult::Skipped);
        };
        let counted = size.counted();
        let end = counted.end + random(input.len() - counted.end + 1).min(MAX_HEADER);
        let at = counted.start + random(end - counted.start + 1);
        let is_mutated = match random(3) {
            0 if at < end => {
                let count = 1 + random(size.value.min(end - at));
                size.replace(input, at..at + count, Vec::new())
            }
            kind => {
                let count = match kind {
                    1 => size.value,
                    _ => 1 + random(MAX_INSERTED),
                };
                let from = random(size.value);
                let copied = input[counted]
                    .iter()
                    .cycle()
                    .skip(from)
                    .take(count.min(room));
                let copied = copied.copied().collect();
                size.replace(input, at..at, copied)
            }
        };
        Ok(match is_mutated {
            true => MutationResult::Mutated,
            false => MutationResult::Skipped,
        })
    }

    fn post_exec(&mut self, _state: &mut State, _new: Option<CorpusId>) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_counts_what_is_behind_it() {
        let size = Size::read(b"\x00\x03abcd", 0, 2, true).unwrap();
        assert_eq!((size.value, size.counted()), (3, 2..5));
        assert_eq!(Size::read(b"\x03\x00abcd", 0, 2, false).unwrap().value, 3);
        assert_eq!(Size::read(b"\x00\x05abcd", 0, 2, true), None);
        assert_eq!(Size::read(b"\x00\x00abcd", 0, 2, true), None);
        assert_eq!(Size::read(b"\x03", 0, 2, true), None);
    }

    #[test]
    fn a_size_is_corrected_with_what_it_counts() {
        let mut input = b"\x00\x03abcd".to_vec();
        let size = Size::read(&input, 0, 2, true).unwrap();
        assert!(size.replace(&mut input, 3..4, b"xyz".to_vec()));
        assert_eq!(input, b"\x00\x05axyzcd");
        let mut input = [&[255][..], &[7; 255]].concat();
        let size = Size::read(&input, 0, 1, true).unwrap();
        let before = input.clone();
        assert!(!size.replace(&mut input, 1..1, vec![7]));
        assert_eq!(input, before);
        assert!(size.replace(&mut input, 1..56, Vec::new()));
        assert_eq!(input, [&[200][..], &[7; 200]].concat());
    }
}
