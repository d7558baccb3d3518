//! Fields of binary formats: lengths, counts and checksums.

use std::ops::Range;

/// What a field says of its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A size: less by the bytes that go.
    Length,
    /// A number of records: less by those that go.
    Count,
    /// A checksum.
    Check(Checksum),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// Whether the highest byte is first.
    pub big: bool,
}

impl Form {
    /// The forms of lengths and counts, the likelier first.
    pub const ALL: [Form; 5] = [
        Form {
            width: 4,
            big: false,
        },
        Form {
            width: 4,
            big: true,
        },
        Form {
            width: 2,
            big: false,
        },
        Form {
            width: 2,
            big: true,
        },
        Form {
            width: 1,
            big: false,
        },
    ];

    /// The number at a position; `None` where the text ends before.
    pub fn read(self, text: &[u8], at: usize) -> Option<u64> {
        let bytes = text.get(at..at.checked_add(self.width)?)?;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.big {
            true => bytes.iter().fold(0, add),
            false => bytes.iter().rev().fold(0, add),
        })
    }

    /// The bytes of a number, whose higher bytes are dropped.
    pub fn write(self, number: u64) -> Vec<u8> {
        let mut bytes = number.to_le_bytes()[..self.width].to_vec();
        if self.big {
            bytes.reverse();
        }
        bytes
    }
}

/// A number that has to agree with a part of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Where it stands.
    pub at: usize,
    /// How it is written.
    pub form: Form,
    /// What of the text it speaks of.
    pub scope: Range<usize>,
    /// What it says of it.
    pub meaning: Meaning,
}

impl Field {
    /// Where it stands, as a range.
    pub fn place(&self) -> Range<usize> {
        self.at..self.at + self.form.width
    }
}

/// A checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// Sum of the bytes.
    Sum,
    /// Exclusive or of the bytes.
    Xor,
    /// The negated sum: all bytes and the checksum sum up to 0.
    Negated,
    /// CRC-32 of Ethernet, zip and PNG.
    Crc32,
    /// CRC-16 of X.25 families: polynomial 0x1021, from 0xffff.
    Crc16,
    /// Adler-32 of zlib.
    Adler32,
    /// Fletcher-16.
    Fletcher16,
    /// FNV-1a of 32 bits.
    Fnv32,
}

impl Checksum {
    /// All of them with the sizes of fields, in bytes, that hold them.
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

    /// The checksum of some bytes; fields smaller than 8 bytes hold its low bytes.
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
            Checksum::Crc32 => u64::from(!bytes.iter().fold(!0, |crc, byte| crc32(crc, *byte))),
            Checksum::Crc16 => u64::from(bytes.iter().fold(0xffff, |crc, byte| crc16(crc, *byte))),
            Checksum::Adler32 => two_sums(bytes, 1, 65521, 16),
            Checksum::Fletcher16 => two_sums(bytes, 0, 255, 8),
            Checksum::Fnv32 => u64::from(bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
            })),
        }
    }
}

fn crc32(crc: u32, byte: u8) -> u32 {
    (0..8).fold(crc ^ u32::from(byte), |crc, _| match crc & 1 {
        1 => crc >> 1 ^ 0xedb8_8320,
        _ => crc >> 1,
    })
}

fn crc16(crc: u16, byte: u8) -> u16 {
    (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
        0 => crc << 1,
        _ => crc << 1 ^ 0x1021,
    })
}

fn two_sums(bytes: &[u8], begin: u64, modulus: u64, shift: u32) -> u64 {
    let (low, high) = bytes.iter().fold((begin, 0), |(low, high), byte| {
        let low = (low + u64::from(*byte)) % modulus;
        (low, (high + low) % modulus)
    });
    high << shift | low
}
