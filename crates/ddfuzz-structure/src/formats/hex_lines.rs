//! Reader for lines of hexadecimal digits that end with a checksum of the bytes before it, such as
//! Intel HEX and Motorola S-records.

use std::collections::HashSet;

use ddfuzz_delta::Checksum;

use super::counted::lines;
use super::summed::LEAST_BITS;
use crate::node::{Group, Meaning, Node};
use crate::number::Encoding;
use crate::packed::{Codec, Packed};
use crate::reader::Reader;
use crate::sum::Sum;

/// Minimum number of bytes that the digits of a line state.
const FEWEST: usize = 4;
/// Maximum number of characters before the digits of a line.
const LONGEST_MARK: usize = 2;
/// Maximum number of a line's bytes, besides the length itself, that the length does not count.
const MOST_UNCOUNTED: usize = 5;
/// Number of lines at the beginning of a text of which one must be of digits.
const FIRST: usize = 4;
/// The checksums of a line's bytes that are tried: the function, and a constant that is added to
/// its result.
const SUMS: [(Checksum, i64); 4] = [
    (Checksum::Negated, 0),
    (Checksum::Negated, -1),
    (Checksum::Sum, 0),
    (Checksum::Xor, 0),
];

/// How lines of digits are written: the case of letters among them, the number of characters before the digits, the checksum in the
/// last byte, and how many bytes the length in the first byte does not count.
#[derive(Clone, Copy, PartialEq)]
struct Style {
    is_upper: bool,
    mark: usize,
    sum: (Checksum, i64),
    /// Number of bytes of the line that its first byte does not count; `None` if the first byte is
    /// no length.
    uncounted: Option<usize>,
}

impl Style {
    /// Returns all styles that fit one line. Of those that fit a text equally well, the last is
    /// taken: with the more capitals, and without a length only if none fits.
    fn all_of(line: &[u8]) -> Vec<Style> {
        let lengths = std::iter::once(None).chain((1..=MOST_UNCOUNTED).map(Some));
        let marks = lengths.flat_map(|length| (0..=LONGEST_MARK).map(move |mark| (length, mark)));
        let styles = marks.flat_map(|(uncounted, mark)| {
            SUMS.into_iter().flat_map(move |sum| {
                [false, true].map(|is_upper| Style {
                    is_upper,
                    mark,
                    sum,
                    uncounted,
                })
            })
        });
        styles.filter(|style| style.read(line).is_some()).collect()
    }

    /// Reads the bytes of a line, which may end with a newline, in this style; `None` if it is not
    /// written so.
    fn read(self, line: &[u8]) -> Option<Vec<u8>> {
        let digits = line.trim_ascii_end().get(self.mark..)?;
        let bytes = self.codec().unpack(digits, &mut 0)?;
        let (sum, covered) = bytes.split_last().filter(|_| bytes.len() >= FEWEST)?;
        let (checksum, bias) = self.sum;
        let is_right = checksum.of(covered).wrapping_add_signed(bias) as u8 == *sum;
        let counted = self
            .uncounted
            .is_none_or(|uncounted| usize::from(bytes[0]) + uncounted == bytes.len());
        (is_right && counted).then_some(bytes)
    }

    fn codec(self) -> Codec {
        Codec::Hex {
            is_upper: self.is_upper,
        }
    }

    /// Returns the number of bits of a line that agree with others: its checksum and its length. A
    /// line that begins as in Intel HEX or as an S-record is surely one.
    fn bits(self, line: &[u8]) -> usize {
        let is_known = match (line.first(), self.mark, self.uncounted) {
            (Some(b':'), 1, Some(5)) => self.sum == SUMS[0],
            (Some(b'S'), 2, Some(1)) => self.sum == SUMS[1],
            _ => false,
        };
        let length = if self.uncounted.is_some() { 8 } else { 0 };
        if is_known { LEAST_BITS } else { 8 + length }
    }

    /// Returns the tree nodes of a line in this style: its digits are a compressed node, whose
    /// content is a length, what the length does not count, a payload, and the checksum.
    fn nodes(self, reader: &mut Reader, line: &[u8], bytes: &[u8]) -> Vec<Node> {
        let byte = Encoding::Big(1);
        let end = bytes.len() - 1;
        let (of, summed) = (reader.label(), reader.label());
        let mut covered = Vec::new();
        let start = match self.uncounted {
            // The length counts the checksum.
            Some(1) => {
                covered.push(reader.number(byte, Meaning::Length(of), 1, &bytes[..1]));
                1
            }
            Some(uncounted) => {
                covered.push(reader.number(byte, Meaning::Length(of), 0, &bytes[..1]));
                covered.push(Node::fixed(&bytes[1..uncounted - 1]));
                uncounted - 1
            }
            None => 0,
        };
        covered.push(Group::new(of, reader.payload(&bytes[start..end])).into());
        let check = Meaning::Check(Sum::Low(self.sum.0, 1), summed);
        let content = vec![
            Group::new(summed, covered).into(),
            reader.number(byte, check, self.sum.1, &bytes[end..]),
        ];
        let digits = self.mark..self.mark + 2 * bytes.len();
        let packed = Packed::read(
            self.codec(),
            Group::new(reader.label(), content),
            bytes,
            &line[digits.clone()],
        );
        vec![
            Node::fixed(&line[..digits.start]),
            Node::Packed(packed),
            Node::fixed(&line[digits.end..]),
        ]
    }
}

/// Returns true if a line consists of hexadecimal digits, but for the characters before them.
fn is_of_digits(line: &[u8]) -> bool {
    let digits = line.trim_ascii_end().get(LONGEST_MARK..);
    let is_digit = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    digits.is_some_and(|digits| digits.len() + LONGEST_MARK >= 2 * FEWEST && is_digit(digits))
}

/// Reads a text with lines of hexadecimal digits, each of which ends with a checksum of its other
/// bytes. Each line is a deletable part. `None` if the checksums may be there by chance.
pub fn hex_lines(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let all = || text.split_inclusive(|byte| *byte == b'\n');
    let is_read = |style: Style| move |line: &&[u8]| style.read(line).is_some();
    let bits = |style: &Style| -> usize {
        // Equal lines say no more than one of them.
        let read: HashSet<&[u8]> = all().filter(is_read(*style)).collect();
        read.into_iter().map(|line| style.bits(line)).sum()
    };
    let is_meant = |style: &Style| {
        let read = all().filter(is_read(*style)).count();
        bits(style) >= LEAST_BITS && read * 4 >= all().count() * 3
    };
    let first = all().take(FIRST).find(|line| is_of_digits(line))?;
    let styles = Style::all_of(first).into_iter();
    let style = styles.max_by_key(bits).filter(is_meant)?;
    let mut nodes = Vec::new();
    for line in all() {
        match style.read(line).filter(|_| reader.count_part()) {
            Some(bytes) => {
                let inner = style.nodes(reader, line, &bytes);
                nodes.push(Group::part(reader.label(), inner).into());
            }
            None => nodes.extend(lines(reader, line)),
        }
    }
    Some(nodes)
}
