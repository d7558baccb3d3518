//! [`ComparisonSolver`], a mutator that changes an input so that two values compared by its run may
//! become equal. It looks for a compared value in the input and replaces it with the other value
//! (input-to-state, as in REDQUEEN and CmpLog), also where the value is written as text. It also
//! adds the difference of two compared numbers to numbers in the input.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use libafl::Error;
use libafl::corpus::CorpusId;
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator};
use libafl::observers::cmp::CmpValues;
use libafl::state::{HasMaxSize, HasRand};
use libafl_bolts::rands::Rand;
use libafl_bolts::{Named, ToSlice};

use super::worker::State;

/// Greatest difference of two compared numbers that the solver adds to numbers in the input;
/// greater differences are mostly between a number and an address or a hash.
const MAX_DIFFERENCE: u64 = 0xffff;
/// Number of differences of compared numbers that count as much as one comparison with a value that
/// occurs in the input, when the number of mutants of an input is determined.
const DIFFERENCES: usize = 4;
/// Greatest number of comparisons whose two values one mutant is to make equal.
const MAX_SOLVED: usize = 2;

/// The comparisons of the run on an input, divided by what [`ComparisonSolver`] can do about them:
/// replace a compared value that occurs in the input, or add a difference to a number of the input.
/// In a sanitized program most comparisons are the sanitizer's own, and their values do not occur
/// in the input.
#[derive(Debug, Default)]
pub(super) struct SolvableComparisons {
    /// Comparisons with at least one value that occurs in the input.
    occurring: Vec<CmpValues>,
    /// The differences of two compared numbers in the run, each difference once.
    differences: Vec<i64>,
    /// All comparisons of the run.
    all: Vec<CmpValues>,
}

impl SolvableComparisons {
    /// Prepares `all` comparisons of the run on `input` for solving them: selects those with a
    /// value that occurs in `input`, and lists the differences of compared numbers.
    pub(super) fn of(all: Vec<CmpValues>, input: &[u8]) -> SolvableComparisons {
        let differences: BTreeSet<i64> = all.iter().filter_map(difference).collect();
        let occurs = |values: &&CmpValues| !replacing_edits(values, input, 0).is_empty();
        SolvableComparisons {
            occurring: all.iter().filter(occurs).cloned().collect(),
            differences: differences.into_iter().collect(),
            all,
        }
    }

    /// Returns the first replacement, of at least two bytes of `input` (a mutant), that makes the
    /// two values of a comparison equal; `None` if there is none. `compared`: the comparisons of
    /// the mutant's run; those that the run on the unchanged input also made are ignored.
    pub(super) fn repairing_edit(
        &self,
        compared: &[CmpValues],
        input: &[u8],
    ) -> Option<Replacement> {
        let new = compared.iter().filter(|values| !self.all.contains(values));
        let mut edits = new.flat_map(|values| replacing_edits(values, input, 0));
        edits.find(|(place, _)| place.len() > 1)
    }

    /// Returns a measure of how many mutants to make: the number of comparisons with a value that
    /// occurs in the input, plus one for every [`DIFFERENCES`] differences, rounded up.
    pub(super) fn weight(&self) -> usize {
        self.occurring.len() + self.differences.len().div_ceil(DIFFERENCES)
    }

    /// Picks at random a comparison, or a difference of two compared numbers, and returns several
    /// replacements in `input`, each of which alone may make the compared values equal. The bytes
    /// to replace are searched from the index `from` on.
    fn edits(&self, state: &mut State, input: &[u8], from: usize) -> Vec<Replacement> {
        let picked = state.rand_mut().below_or_zero(self.weight());
        if let Some(values) = self.occurring.get(picked) {
            return replacing_edits(values, input, from);
        }
        let which = state.rand_mut().below_or_zero(self.differences.len());
        let difference = self.differences.get(which);
        difference.map_or(Vec::new(), |difference| {
            shifting_edits(*difference, input, from)
        })
    }
}

/// A LibAFL mutator that picks one or two random comparisons of the input's run. It replaces an
/// operand in the input with the other operand, or adds the difference of two compared numbers to a
/// number in the input (since a compared value may be a sum, or the input's number less a
/// constant). Skips inputs in which there is nothing to change.
#[derive(Default)]
pub(super) struct ComparisonSolver(pub(super) Arc<SolvableComparisons>);

impl Named for ComparisonSolver {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("ComparisonSolver")
    }
}

impl Mutator<BytesInput, State> for ComparisonSolver {
    fn mutate(
        &mut self,
        state: &mut State,
        input: &mut BytesInput,
    ) -> Result<MutationResult, Error> {
        let mut result = MutationResult::Skipped;
        for _ in 0..=state.rand_mut().below_or_zero(MAX_SOLVED) {
            let from = state.rand_mut().below_or_zero(input.as_ref().len());
            let mut edits = self.0.edits(state, input.as_ref(), from);
            if edits.is_empty() {
                continue;
            }
            let (place, new) = edits.swap_remove(state.rand_mut().below_or_zero(edits.len()));
            if input.as_ref().len() - place.len() + new.len() <= state.max_size() {
                input.as_mut().splice(place, new);
                result = MutationResult::Mutated;
            }
        }
        Ok(result)
    }

    fn post_exec(&mut self, _state: &mut State, _new: Option<CorpusId>) -> Result<(), Error> {
        Ok(())
    }
}

/// A change of an input: the range of bytes to replace, and the bytes to put there.
pub(super) type Replacement = (Range<usize>, Vec<u8>);

/// Returns replacements in `input` of either value of a comparison by the other: one replacement for
/// each form (bytes in either order, digits) in which a value occurs. It replaces the first
/// occurrence from the index `from` on, or if there is none, the first one in the whole input.
fn replacing_edits(values: &CmpValues, input: &[u8], from: usize) -> Vec<Replacement> {
    let place = |(old, new): (Vec<u8>, Vec<u8>)| {
        let at = find(input, &old, from)?;
        Some((at..at + old.len(), new))
    };
    forms(values).into_iter().filter_map(place).collect()
}

/// Returns the forms in which the two values of a comparison may occur in an input: as bytes, and
/// for numbers in both byte orders and as decimal and hexadecimal digits. Each element is a pair of
/// the bytes to replace and the bytes that replace them.
fn forms(values: &CmpValues) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = match values {
        CmpValues::Bytes((one, other)) => {
            let (one, other) = (one.to_slice(), other.to_slice());
            let length = one.len().min(other.len());
            vec![(one[..length].to_vec(), other[..length].to_vec())]
        }
        _ => number_forms(values),
    };
    let turned = |(one, other): &(Vec<u8>, Vec<u8>)| (other.clone(), one.clone());
    let back: Vec<_> = pairs.iter().map(turned).collect();
    pairs.into_iter().chain(back).collect()
}

/// Returns the forms of two compared numbers: bytes in little-endian and in big-endian order,
/// signed decimal digits, and hexadecimal digits of the numbers' width, lower and upper case.
fn number_forms(values: &CmpValues) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Some((width, one, other)) = numbers(values) else {
        return Vec::new();
    };
    let bytes = |number: i64| number.to_le_bytes()[..width].to_vec();
    let swapped = |number: i64| bytes(number).into_iter().rev().collect();
    let decimal = |number: i64| number.to_string().into_bytes();
    let lower = |number: i64| hexadecimal(&bytes(number));
    let upper = |number: i64| lower(number).to_ascii_uppercase();
    let mut pairs = vec![(bytes(one), bytes(other))];
    if width > 1 {
        pairs.push((swapped(one), swapped(other)));
    }
    pairs.push((decimal(one), decimal(other)));
    pairs.push((lower(one), lower(other)));
    if lower(one) != upper(one) || lower(other) != upper(other) {
        pairs.push((upper(one), upper(other)));
    }
    pairs
}

/// Returns the hexadecimal digits of a number whose bytes are in little-endian order.
fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().rev().map(|byte| format!("{byte:02x}"));
    digits.collect::<String>().into_bytes()
}

/// Returns the width, in bytes, and the values of two compared numbers, read as signed; `None` for
/// byte strings.
fn numbers(values: &CmpValues) -> Option<(usize, i64, i64)> {
    match *values {
        CmpValues::U8((one, other, _)) => Some((1, (one as i8).into(), (other as i8).into())),
        CmpValues::U16((one, other, _)) => Some((2, (one as i16).into(), (other as i16).into())),
        CmpValues::U32((one, other, _)) => Some((4, (one as i32).into(), (other as i32).into())),
        CmpValues::U64((one, other, _)) => Some((8, one as i64, other as i64)),
        CmpValues::Bytes(_) => None,
    }
}

/// Returns the distance of two compared numbers; `None` if they are equal or more than 65,535
/// apart, or if the values are byte strings.
fn difference(values: &CmpValues) -> Option<i64> {
    let (_, one, other) = numbers(values)?;
    let difference = one.abs_diff(other);
    let is_small = (1..=MAX_DIFFERENCE).contains(&difference);
    is_small.then_some(difference as i64)
}

/// Returns replacements of numbers in `input`: each number is replaced alone, once with itself plus
/// `difference` and once with itself minus `difference`. The numbers are the first decimal number
/// at or behind the index `from`, and the numbers of 1, 2 and 4 bytes at `from`, in both byte
/// orders.
fn shifting_edits(difference: i64, input: &[u8], from: usize) -> Vec<Replacement> {
    let mut edits = Vec::new();
    for difference in [difference, -difference] {
        if let Some((place, number)) = decimal_number(input, from) {
            let sum = number.wrapping_add(difference);
            edits.push((place, sum.to_string().into_bytes()));
        }
        for width in [1, 2, 4] {
            let Some(bytes) = input.get(from..from + width) else {
                continue;
            };
            let mut word = [0; 8];
            word[..width].copy_from_slice(bytes);
            let sum = i64::from_le_bytes(word).wrapping_add(difference);
            edits.push((from..from + width, sum.to_le_bytes()[..width].to_vec()));
            word[..width].reverse();
            let sum = i64::from_le_bytes(word).wrapping_add(difference);
            let bytes = sum.to_le_bytes()[..width].iter().rev().copied().collect();
            edits.push((from..from + width, bytes));
        }
    }
    edits
}

/// Returns the place and the value of the decimal number with the first digit at or behind the
/// index `from`; if there is no digit, of the first decimal number in the whole input. `None` if
/// `input` has no digits, or the number has more than 63 bits.
fn decimal_number(input: &[u8], from: usize) -> Option<(Range<usize>, i64)> {
    let is_digit = |at: &usize| input[*at].is_ascii_digit();
    let digit = (from..input.len()).chain(0..from).find(is_digit)?;
    let begin = (0..digit).rev().take_while(is_digit).last();
    let begin = begin.unwrap_or(digit);
    let begin = match input[..begin].last() {
        Some(b'-') => begin - 1,
        _ => begin,
    };
    let end = (digit..input.len()).take_while(is_digit).last()? + 1;
    let number = str::from_utf8(&input[begin..end]).ok()?.parse().ok()?;
    Some((begin..end, number))
}

/// Returns the index of the first occurrence of `part` in `whole` at or behind the index `from`; if
/// there is none, of the first occurrence in all of `whole`. `None` if `part` does not occur, or is
/// empty.
fn find(whole: &[u8], part: &[u8], from: usize) -> Option<usize> {
    let first = part.first()?;
    // Most places differ in the first byte, which is compared without a call.
    let stands = |at: &usize| whole[*at] == *first && whole[*at..].starts_with(part);
    let last = whole.len().checked_sub(part.len())?;
    (from..=last)
        .find(stands)
        .or_else(|| (0..=last.min(from)).find(stands))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test helper: returns the inputs that result when each of the replacements `edits` is made
    /// alone in `input`.
    fn edited(input: &[u8], edits: Vec<Replacement>) -> Vec<Vec<u8>> {
        let edit = |(place, new): Replacement| {
            let mut bytes = input.to_vec();
            bytes.splice(place, new);
            bytes
        };
        edits.into_iter().map(edit).collect()
    }

    #[test]
    fn what_stands_before_the_place_is_found_too() {
        assert_eq!(find(b"abcabc", b"bc", 2), Some(4));
        assert_eq!(find(b"abcabc", b"ab", 4), Some(0));
        assert_eq!(find(b"abcabc", b"bc", 5), Some(1));
        assert_eq!(find(b"abc", b"abcd", 1), None);
        assert_eq!(find(b"abc", b"", 1), None);
    }

    #[test]
    fn integers_are_looked_for_in_both_orders_of_bytes_and_as_text() {
        let values = CmpValues::U16((0x0102, 0x0304, false));
        let replaced = |input: &[u8]| edited(input, replacing_edits(&values, input, 0));
        assert_eq!(replaced(&[2, 1]), [[4, 3]]);
        assert_eq!(replaced(&[3, 4]), [[1, 2]]);
        assert_eq!(replaced(b"n=258;"), [b"n=772;"]);
        assert_eq!(replaced(b"0304"), [b"0102"]);
        assert_eq!(replaced(b"nothing"), Vec::<Vec<u8>>::new());
        let values = CmpValues::U8((0x4f, 0xa5, false));
        let sum = |input: &[u8]| edited(input, replacing_edits(&values, input, 0));
        assert_eq!(sum(b"*4F"), [b"*A5"]);
        // The length may change.
        let values = CmpValues::U32((5, 611, false));
        let more = edited(b"add a 5", replacing_edits(&values, b"add a 5", 0));
        assert_eq!(more, [b"add a 611"]);
    }

    #[test]
    fn a_difference_is_added_to_numbers() {
        let values = CmpValues::U32(((5 - 611_i32) as u32, 0, false));
        assert_eq!(difference(&values), Some(606));
        let sums = edited(b"add a 5\n", shifting_edits(606, b"add a 5\n", 1));
        assert!(sums.contains(&b"add a 611\n".to_vec()), "{sums:?}");
        let sums = edited(&[0, 9, 1], shifting_edits(-3, &[0, 9, 1], 0));
        assert!(sums.contains(&vec![0, 6, 1]), "{sums:?}");
        assert_eq!(difference(&CmpValues::U8((3, 3, false))), None);
    }

    #[test]
    fn what_does_not_occur_is_solved_by_its_difference_if_that_is_small() {
        let weight = |values: &[CmpValues], input: &[u8]| {
            SolvableComparisons::of(values.to_vec(), input).weight()
        };
        let far = CmpValues::U32((7, 0x7fff_0000, false));
        assert_eq!(weight(std::slice::from_ref(&far), b"none of them"), 0);
        assert_eq!(weight(&[far], &[0, 0, 0, 7]), 1);
        let near = |by: u32| CmpValues::U32((1000, 1000 + by, false));
        assert_eq!(weight(&[near(1), near(1), near(2)], b"none"), 1);
    }

    #[test]
    fn a_checksum_that_no_longer_fits_is_replaced() {
        let kind = CmpValues::U32((0x5245_4452, 0x5441_4441, false));
        let sum = CmpValues::U32((0x1122_3344, 0x5566_7788, false));
        let solvable = SolvableComparisons::of(vec![kind.clone()], b"");
        let input = [&b"RDER"[..], &[0x55, 0x66, 0x77, 0x88]].concat();
        let edit = solvable.repairing_edit(&[kind.clone(), sum], &input);
        assert_eq!(edit, Some((4..8, vec![0x11, 0x22, 0x33, 0x44])));
        assert_eq!(solvable.repairing_edit(&[kind], &input), None);
        // One byte stands anywhere.
        let byte = CmpValues::U8((b'R', b'S', false));
        assert_eq!(solvable.repairing_edit(&[byte], &input), None);
    }

    #[test]
    fn decimal_numbers_are_read_whole_with_their_sign() {
        assert_eq!(decimal_number(b"a -120,7", 4), Some((2..6, -120)));
        assert_eq!(decimal_number(b"12 ab", 3), Some((0..2, 12)));
        assert_eq!(decimal_number(b"ab", 1), None);
        assert_eq!(decimal_number(b"99999999999999999999", 0), None);
    }
}
