//! Encodings of the numbers in files.

use crate::base64;

/// How a number (length, offset, checksum or other) is encoded in the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The number is little-endian and has this many bytes.
    Little(usize),
    /// The number is big-endian and has this many bytes.
    Big(usize),
    /// Seven bits a byte, the least significant first; each byte but the last has its high bit set
    /// (LEB128, as in protobuf and WebAssembly).
    Varint,
    /// LEB128 in exactly this many bytes, the last of which may add only zeros to the number:
    /// compilers leave room for a length that they do not know yet.
    PaddedVarint(usize),
    /// A length of ASN.1 DER: one byte if it is below 128; else a byte that states how many bytes
    /// follow, and the number in these, big-endian.
    Der,
    /// The head of a CBOR item, with the number in it. The `u8` is the item's major type, which is
    /// in the high three bits of the head's first byte.
    Cbor(u8),
    /// The number is in the header of a MessagePack item of this kind (text, bytes, array or map).
    MessagePack(MessagePackKind),
    /// Octal digits as in tar: this many bytes, with a NUL or a blank at the end.
    Octal(usize),
    /// Decimal digits, padded with blanks at the end to this many bytes, as in `ar`.
    Decimal(usize),
    /// Decimal digits without leading zeros, as many as the number needs, as in PDF.
    Digits,
    /// Hexadecimal digits: as many as the number needs, or a fixed number of them.
    Hex {
        /// True if letters among the digits are capitals.
        is_upper: bool,
        /// Number of digits, padded with zeros at the front; 0 for as many as the number needs.
        width: usize,
    },
    /// Base64 with padding of the number as big-endian bytes, as many as the field says. For a
    /// digest, the field has no effect: all bytes of the digest are written.
    Base64(usize),
    /// Decimal digits, padded with zeros at the front to this many bytes, as in cross-reference
    /// tables of PDF.
    Zeros(usize),
    /// Varint of SQLite: seven bits in each byte, the most significant first; each byte but the
    /// last has its high bit set, and a ninth byte holds eight bits.
    VarintBig,
    /// Serial type of a value in a SQLite record, which states the value's length: twice the length
    /// in bytes, plus 12 for a blob or 13 for a text (the `u64`), written as
    /// [`VarintBig`](Encoding::VarintBig).
    Serial(u64),
    /// A byte of flags with the size of a GIF color table: the exponent of the size in its low
    /// three bits, and a high bit that says whether there is a table. The `u8` holds the other bits
    /// of the byte.
    Colors(u8),
    /// A size or offset in bytes, written as a number of units: short offsets of glyphs, for
    /// example, count units of two bytes.
    Units {
        /// True if the written number is big-endian, false if it is little-endian.
        is_big: bool,
        /// Size, in bytes, of the number as written in the file, which counts units.
        width: usize,
        /// Size in bytes of the unit in which the number counts.
        unit: usize,
    },
    /// A size in bytes, written as a number of words of 4 bytes in half a byte: the high four bits
    /// if `is_high`, else the low ones (header lengths of IP and TCP).
    Words {
        /// True if the number is in the high four bits of the byte.
        is_high: bool,
        /// The four bits of the byte that do not belong to the number, with their value in the
        /// file.
        rest: u8,
    },
    /// A flag of FLAC, in the high bit of a byte, which says that a block is the last one: the
    /// number is how many blocks follow, and the bit is set if that is 0. The `u8` holds the other
    /// bits of the byte.
    Last(u8),
    /// An integer operand in a CFF DICT, in 1, 2, 3 or 5 bytes, as many as the integer needs. If
    /// the `usize` is 3 or 5, smaller integers take that many bytes, too; otherwise it has no
    /// effect.
    Dict(usize),
}

/// Kinds of MessagePack items whose header states a length or a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessagePackKind {
    /// The item is a string; its header states the length of the string in bytes.
    Text,
    /// The item is binary data; its header states the length of the data in bytes.
    Bytes,
    /// The item is an array; its header states the number of elements.
    Array,
    /// The item is a map; its header states the number of pairs of key and value.
    Map,
}

impl Encoding {
    /// Returns the encoding of a number of `width` bytes: big-endian if `is_big`, else
    /// little-endian.
    pub fn fixed(is_big: bool, width: usize) -> Encoding {
        match is_big {
            true => Encoding::Big(width),
            false => Encoding::Little(width),
        }
    }

    /// Returns the encoding that writes the same numbers without padding, so that each takes as few
    /// bytes as it needs; the encoding itself if it never pads.
    pub fn shortest(self) -> Encoding {
        match self {
            Encoding::PaddedVarint(_) => Encoding::Varint,
            Encoding::Dict(3..) => Encoding::Dict(1),
            other => other,
        }
    }

    /// Returns the encoding that writes the same numbers padded to `size` bytes, if there is a
    /// padded form of this encoding; else the encoding itself.
    pub fn padded(self, size: usize) -> Encoding {
        match self {
            Encoding::Varint => Encoding::PaddedVarint(size),
            Encoding::Dict(_) => Encoding::Dict(size),
            other => other,
        }
    }

    /// Returns how many bytes the digits of `number` take in base 256, at least 1.
    pub fn width_of(number: u64) -> usize {
        (8 - number.leading_zeros() as usize / 8).max(1)
    }

    /// Reads the number at offset `at` of `text`; `None` if [`read`](Encoding::read) cannot read a
    /// number at this offset.
    pub fn read_at(self, text: &[u8], at: usize) -> Option<u64> {
        let (number, _) = self.read(text.get(at..)?)?;
        Some(number)
    }

    /// Encodes a number in bytes. High bits that exceed the width of the encoding are dropped.
    pub fn write(self, number: u64) -> Vec<u8> {
        match self {
            Encoding::Little(width) => number.to_le_bytes()[..width.min(8)].to_vec(),
            Encoding::Big(width) => number.to_be_bytes()[8 - width.min(8)..].to_vec(),
            Encoding::Varint => varint(number),
            Encoding::PaddedVarint(width) => {
                let digits = (0..width).map(|digit| number.checked_shr(7 * digit as u32));
                let digits = digits.map(|rest| rest.unwrap_or_default() as u8 | 0x80);
                let mut written: Vec<u8> = digits.collect();
                if let Some(last) = written.last_mut() {
                    *last &= 0x7f;
                }
                written
            }
            Encoding::Der if number < 128 => vec![number as u8],
            Encoding::Der => {
                let bytes = number.to_be_bytes();
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                let mut written = vec![0x80 | (bytes.len() - zeros) as u8];
                written.extend_from_slice(&bytes[zeros..]);
                written
            }
            Encoding::Cbor(major) => cbor(major, number),
            Encoding::MessagePack(kind) => message_pack(kind, number),
            Encoding::Colors(rest) => {
                let size = u8::try_from((number.div_ceil(6)).next_power_of_two().ilog2());
                let size = size.unwrap_or(7).min(7);
                vec![rest | if number > 0 { 0x80 | size } else { 0 }]
            }
            Encoding::Dict(least) => dict(least, number),
            Encoding::Words { is_high, rest } => {
                let words = (number / 4) as u8 & 0xf;
                vec![rest | if is_high { words << 4 } else { words }]
            }
            Encoding::Last(kind) if number == 0 => vec![kind | 0x80],
            Encoding::Last(kind) => vec![kind],
            Encoding::Units {
                is_big,
                width,
                unit,
            } => Encoding::fixed(is_big, width).write(number / unit as u64),
            Encoding::VarintBig => varint_big(number),
            Encoding::Serial(base) => varint_big(number.wrapping_mul(2).wrapping_add(base)),
            _ => self.write_digits(number),
        }
    }

    /// Returns a number in digits, for the encodings that write digits, as
    /// [`write`](Encoding::write) does; empty for all other encodings.
    fn write_digits(self, number: u64) -> Vec<u8> {
        match self {
            Encoding::Decimal(width) => {
                let mut written = number.to_string().into_bytes();
                written.drain(..written.len().saturating_sub(width));
                written.resize(width, b' ');
                written
            }
            Encoding::Digits => number.to_string().into_bytes(),
            Encoding::Hex { is_upper, width } => {
                let mut written = match is_upper {
                    true => format!("{number:0width$X}").into_bytes(),
                    false => format!("{number:0width$x}").into_bytes(),
                };
                if width > 0 {
                    written.drain(..written.len() - width);
                }
                written
            }
            Encoding::Base64(width) => base64::encode(&number.to_be_bytes()[8 - width.min(8)..], 0),
            Encoding::Zeros(width) => {
                let mut written = format!("{number:0width$}").into_bytes();
                written.drain(..written.len().saturating_sub(width));
                written
            }
            Encoding::Octal(width) => {
                let digits = width.saturating_sub(1);
                let mut written = format!("{number:0digits$o}").into_bytes();
                written.drain(..written.len().saturating_sub(digits));
                written.resize(width, 0);
                written
            }
            _ => Vec::new(),
        }
    }

    /// Reads a number at the beginning of `text`; returns the number, and how many bytes its
    /// encoding takes. `None` if the text is too short, the number has more than 64 bits, or its
    /// first byte belongs to another encoding.
    pub fn read(self, text: &[u8]) -> Option<(u64, usize)> {
        let fold = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            Encoding::Little(width) => {
                let bytes = text.get(..width)?;
                Some((bytes.iter().rev().fold(0, fold), width))
            }
            Encoding::Big(width) => Some((text.get(..width)?.iter().fold(0, fold), width)),
            Encoding::Varint => {
                let size = text.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
                let bits = |number: u64, byte: &u8| number << 7 | u64::from(byte & 0x7f);
                Some((text[..size].iter().rev().fold(0, bits), size))
            }
            Encoding::PaddedVarint(width) => Encoding::Varint
                .read(text)
                .filter(|(_, size)| *size == width),
            Encoding::Der => match *text.first()? {
                short @ 0..0x80 => Some((u64::from(short), 1)),
                long => {
                    let size = usize::from(long & 0x7f);
                    let bytes = text.get(1..1 + size).filter(|_| (1..=8).contains(&size))?;
                    Some((bytes.iter().fold(0, fold), 1 + size))
                }
            },
            Encoding::Cbor(major) => read_cbor(major, text),
            Encoding::MessagePack(kind) => read_message_pack(kind, text),
            Encoding::Colors(rest) => {
                let flags = *text.first().filter(|flags| **flags & !0x87 == rest)?;
                let size = if flags & 0x80 > 0 {
                    6 << (flags & 7)
                } else {
                    0
                };
                Some((size, 1))
            }
            Encoding::Units {
                is_big,
                width,
                unit,
            } => {
                let (units, size) = Encoding::fixed(is_big, width).read(text)?;
                Some((units.checked_mul(unit as u64)?, size))
            }
            Encoding::Dict(_) => read_dict(text),
            Encoding::Words { is_high, .. } => Some((words_in(*text.first()?, is_high), 1)),
            Encoding::Last(kind) => {
                let byte = *text.first()?;
                (byte & 0x7f == kind).then_some((u64::from(byte == kind), 1))
            }
            Encoding::VarintBig => read_varint_big(text),
            Encoding::Serial(base) => {
                let (kind, size) = read_varint_big(text)?;
                let twice = kind.checked_sub(base)?;
                twice.is_multiple_of(2).then_some((twice / 2, size))
            }
            _ => self.read_digits(text),
        }
    }

    /// Reads a number that is written in digits (decimal, octal or hexadecimal, by this encoding)
    /// at the beginning of `text`. Returns it with its size in bytes; `None` if there is none, and
    /// for an encoding without digits.
    fn read_digits(self, text: &[u8]) -> Option<(u64, usize)> {
        match self {
            Encoding::Digits => {
                let size = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
                Some((digits(&text[..size], 10)?, size))
            }
            Encoding::Hex {
                width: width @ 1.., ..
            } => Some((digits(text.get(..width)?, 16)?, width)),
            Encoding::Hex { .. } => {
                let hex = text.iter().take_while(|byte| byte.is_ascii_hexdigit());
                let size = hex.count();
                Some((digits(&text[..size], 16)?, size))
            }
            Encoding::Base64(width) => {
                let size = width.div_ceil(3) * 4;
                let bytes = base64::decode(text.get(..size)?, 0)?;
                (bytes.len() == width).then_some(())?;
                Some((Encoding::Big(width).read(&bytes)?.0, size))
            }
            Encoding::Zeros(width) => {
                let written = text.get(..width)?;
                Some((digits(written, 10)?, width))
            }
            Encoding::Octal(width) => {
                let bytes = text.get(..width)?;
                let end = bytes.iter().position(|byte| matches!(byte, 0 | b' '))?;
                Some((digits(&bytes[..end], 8)?, width))
            }
            Encoding::Decimal(width) => {
                let written = text.get(..width)?.trim_ascii_end();
                Some((digits(written, 10)?, width))
            }
            _ => None,
        }
    }
}

/// Returns the size in bytes that four bits of `byte` state as a number of words of 4 bytes: the
/// high bits if `is_high`, else the low ones.
fn words_in(byte: u8, is_high: bool) -> u64 {
    let half = if is_high { byte >> 4 } else { byte & 0xf };
    u64::from(half) * 4
}

/// Parses `text` as digits in base `radix`; `None` if it contains other characters, or if the
/// number exceeds 64 bits.
fn digits(text: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok()?;
    u64::from_str_radix(digits, radix).ok()
}

impl MessagePackKind {
    /// Returns how the header of a MessagePack item of this kind is encoded. The first two numbers
    /// describe a header of one byte: the mask of the bits that hold the item's number, and the
    /// value of the other bits; the mask is 0 if the kind has no such header. The list describes
    /// longer headers: the first byte of each, and the width in bytes of the number after that
    /// byte.
    fn heads(self) -> (u8, u8, &'static [(u8, usize)]) {
        match self {
            MessagePackKind::Text => (0x1f, 0xa0, &[(0xd9, 1), (0xda, 2), (0xdb, 4)]),
            MessagePackKind::Bytes => (0, 0, &[(0xc4, 1), (0xc5, 2), (0xc6, 4)]),
            MessagePackKind::Array => (0x0f, 0x90, &[(0xdc, 2), (0xdd, 4)]),
            MessagePackKind::Map => (0x0f, 0x80, &[(0xde, 2), (0xdf, 4)]),
        }
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut written = Vec::new();
    while number > 0x7f {
        written.push(number as u8 | 0x80);
        number >>= 7;
    }
    written.push(number as u8);
    written
}

/// Encodes a number as a varint of SQLite ([`Encoding::VarintBig`]).
fn varint_big(number: u64) -> Vec<u8> {
    let mut written = vec![number as u8];
    let mut rest = match number >> 56 {
        0 => {
            written[0] &= 0x7f;
            number >> 7
        }
        _ => number >> 8,
    };
    while rest > 0 || number >> 56 > 0 && written.len() < 9 {
        written.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    written.reverse();
    written
}

/// Reads a varint of SQLite ([`Encoding::VarintBig`]) at the beginning of `text`, and returns it
/// with its size in bytes, 9 at most; `None` if the text ends before.
fn read_varint_big(text: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, byte) in text.iter().take(9).enumerate() {
        if index == 8 {
            return Some((number << 8 | u64::from(*byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

/// Reads the header of a MessagePack item of this kind; returns the number in it, and the size of
/// the header in bytes. `None` if it is the header of another kind.
fn read_message_pack(kind: MessagePackKind, text: &[u8]) -> Option<(u64, usize)> {
    let head = *text.first()?;
    let (mask, base, heads) = kind.heads();
    if mask > 0 && head & !mask == base {
        return Some((u64::from(head & mask), 1));
    }
    let (_, width) = heads.iter().find(|(known, _)| *known == head)?;
    let (number, _) = Encoding::Big(*width).read(text.get(1..)?)?;
    Some((number, 1 + width))
}

/// Reads the head of a CBOR item of the major type `major`; returns the number in it, and the size
/// of the head in bytes. `None` if it is the head of another type.
fn read_cbor(major: u8, text: &[u8]) -> Option<(u64, usize)> {
    let head = *text.first().filter(|head| *head >> 5 == major)?;
    let size = match head & 0x1f {
        short @ 0..24 => return Some((u64::from(short), 1)),
        long @ 24..28 => 1usize << (long - 24),
        _ => return None,
    };
    let (number, _) = Encoding::Big(size).read(text.get(1..)?)?;
    Some((number, 1 + size))
}

/// Reads an integer operand of a CFF DICT; returns it with its size in bytes, `None` if it is
/// negative.
fn read_dict(text: &[u8]) -> Option<(u64, usize)> {
    match *text.first()? {
        byte @ 139..=246 => Some((u64::from(byte - 139), 1)),
        byte @ 247..=250 => {
            let low = u64::from(*text.get(1)?);
            Some(((u64::from(byte - 247) << 8) + low + 108, 2))
        }
        byte @ 28..=29 => {
            let width = if byte == 28 { 2 } else { 4 };
            let (number, _) = Encoding::Big(width).read(text.get(1..)?)?;
            (text[1] & 0x80 == 0).then_some((number, 1 + width))
        }
        _ => None,
    }
}

/// Writes an integer operand of a CFF DICT in as few bytes as possible, but in at least `least`
/// bytes if that is 3 or 5.
fn dict(least: usize, number: u64) -> Vec<u8> {
    match number {
        0..108 if least < 3 => vec![number as u8 + 139],
        108..1132 if least < 3 => {
            let [high, low] = (number as u16 - 108).to_be_bytes();
            vec![high + 247, low]
        }
        0..0x8000 if least < 5 => [&[28], &(number as u16).to_be_bytes()[..]].concat(),
        _ => [&[29], &(number as u32).to_be_bytes()[..]].concat(),
    }
}

fn cbor(major: u8, number: u64) -> Vec<u8> {
    let head = major << 5;
    let width = match number {
        0..24 => return vec![head | number as u8],
        24..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 4,
        _ => 8usize,
    };
    let mut written = vec![head | (24 + width.ilog2() as u8)];
    written.extend(Encoding::Big(width).write(number));
    written
}

fn message_pack(kind: MessagePackKind, number: u64) -> Vec<u8> {
    let (mask, base, heads) = kind.heads();
    if mask > 0 && number <= u64::from(mask) {
        return vec![base | number as u8];
    }
    let fits = |width: &usize| number >> (8 * width) == 0;
    let long = heads.iter().find(|(_, width)| fits(width)).or(heads.last());
    let (head, width) = long.copied().unwrap_or_default();
    let mut written = vec![head];
    written.extend(Encoding::Big(width).write(number));
    written
}
