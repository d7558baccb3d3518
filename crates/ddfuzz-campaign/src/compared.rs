//! What a run has compared, in the form of LibAFL's mutators (`CmpValuesMetadata`).
//!
//! Which operand is a constant nobody tells: neither is said to be one, so that each is looked for
//! in the input and replaced by the other.

use libafl::observers::cmp::{CmpValues, CmpValuesMetadata, CmplogBytes};

use ddfuzz_delta::Comparison;

/// Most bytes of an operand (LibAFL's `CmplogBytes`).
const MOST: usize = 32;

/// The comparisons of one run.
#[derive(Debug, Default)]
pub struct Compared {
    /// Pairs of values, one of which may stand in the input.
    pub values: CmpValuesMetadata,
    /// Operands of two bytes or more, of functions that compare bytes, that do not stand in the
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
            if operand.len() > 1 && !stands_in(operand, input) && !self.words.contains(&word) {
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

fn stands_in(part: &[u8], whole: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}
