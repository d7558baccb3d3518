//! Fields of binary formats: lengths, counts and checksums, and how they are encoded.

use std::ops::Range;

/// The property of a range of bytes that a number field of a binary format states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The field is a number of bytes; each deleted byte lowers it by one.
    Length,
    /// The field is a number of records; each deleted record lowers it by one.
    Count,
    /// The field is a checksum, computed by the given algorithm, of the bytes that it covers.
    Check(Checksum),
}

/// Encoding of a number in a binary format: its width and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Width of the number in bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// True for big-endian byte order, false for little-endian.
    pub big: bool,
}

impl Form {
    /// The encodings of lengths and counts that are tried, most likely first.
    pub const ALL: [Form; 5] = [
        Form::new(4, false),
        Form::new(4, true),
        Form::new(2, false),
        Form::new(2, true),
        Form::new(1, false),
    ];

    const fn new(width: usize, big: bool) -> Form {
        Form { width, big }
    }

    /// Decodes the number at offset `at` of a text; `None` if the text ends before its last byte.
    pub fn read(self, text: &[u8], at: usize) -> Option<u64> {
        let bytes = text.get(at..at.checked_add(self.width)?)?;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.big {
            true => bytes.iter().fold(0, add),
            false => bytes.iter().rev().fold(0, add),
        })
    }

    /// Encodes `number` in this width and byte order; bits beyond the width are dropped.
    pub fn write(self, number: u64) -> Vec<u8> {
        let mut bytes = number.to_le_bytes()[..self.width].to_vec();
        if self.big {
            bytes.reverse();
        }
        bytes
    }
}

/// A field of a binary format: a number that must agree with a range of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Offset of the field in the text, in bytes.
    pub at: usize,
    /// Encoding of the field: its width and byte order.
    pub form: Form,
    /// Range of the text about which the field states something: how many bytes or records it has,
    /// or its checksum.
    pub scope: Range<usize>,
    /// What the field states of the range `scope`: its length, its number of records, or its
    /// checksum.
    pub meaning: Meaning,
}

impl Field {
    /// Returns the range of the text that the field itself occupies.
    pub fn place(&self) -> Range<usize> {
        self.at..self.at + self.form.width
    }
}

/// The algorithm of a checksum in a binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// The checksum is the sum of all bytes.
    Sum,
    /// The checksum is the exclusive or of all bytes.
    Xor,
    /// The negated sum of all bytes: the sum of the bytes and the checksum is 0 in the width of the
    /// checksum.
    Negated,
    /// CRC-32 as in Ethernet, zip and PNG.
    Crc32,
    /// CRC-16 with polynomial 0x1021 and initial value 0xffff, as in X.25.
    Crc16,
    /// Adler-32, as in zlib.
    Adler32,
    /// The checksum Fletcher-16.
    Fletcher16,
    /// FNV-1a with 32 bits.
    Fnv32,
}

impl Checksum {
    /// All checksums, each with the field widths, in bytes, that may hold it.
    pub const ALL: [(Checksum, &'static [usize]); 8] = [
        (Checksum::Crc32, &[4]),
        (Checksum::Adler32, &[4]),
        (Checksum::Fnv32, &[4]),
        (Checksum::Sum, &[4, 2, 1]),
        (Checksum::Crc16, &[2]),
        (Checksum::Fletcher16, &[2]),
        (Checksum::Negated, &[2, 1]),
        (Checksum::Xor, &[1]),
    ];

    /// Computes the checksum of `bytes` as a number; a field narrower than 8 bytes holds the
    /// number's low bytes.
    pub fn of(self, bytes: &[u8]) -> u64 {
        let sum = || {
            bytes
                .iter()
                .map(|byte| u64::from(*byte))
                .fold(0, u64::wrapping_add)
        };
        match self {
            Checksum::Sum => sum(),
            Checksum::Negated => sum().wrapping_neg(),
            Checksum::Xor => bytes.iter().fold(0, |all, byte| all ^ u64::from(*byte)),
            Checksum::Crc32 => u64::from(!bytes.iter().fold(!0, |crc, byte| {
                crc >> 8 ^ CRC32[usize::from(crc as u8 ^ *byte)]
            })),
            Checksum::Crc16 => u64::from(bytes.iter().fold(0xffff, |crc, byte| crc16(crc, *byte))),
            Checksum::Adler32 => two_sums(bytes, 1, 65521, 16),
            Checksum::Fletcher16 => two_sums(bytes, 0, 255, 8),
            Checksum::Fnv32 => u64::from(bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
            })),
        }
    }
}

/// Table for the fast computation of CRC-32: the CRC of each single byte, without the inversions at
/// its beginning and end.
const CRC32: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = match crc & 1 {
                1 => crc >> 1 ^ 0xedb8_8320,
                _ => crc >> 1,
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc16(crc: u16, byte: u8) -> u16 {
    (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
        0 => crc << 1,
        _ => crc << 1 ^ 0x1021,
    })
}

fn two_sums(bytes: &[u8], begin: u64, modulus: u64, shift: u32) -> u64 {
    // Sums of so few bytes do not overflow before they are divided.
    let (low, high) = bytes.chunks(1 << 12).fold((begin, 0), |sums, chunk| {
        let (low, high) = chunk.iter().fold(sums, |(low, high), byte| {
            let low = low + u64::from(*byte);
            (low, high + low)
        });
        (low % modulus, high % modulus)
    });
    high << shift | low
}
