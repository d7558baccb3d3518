//! Numbers inside a binary format.

use std::ops::Range;

use super::checksum::Checksum;

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
