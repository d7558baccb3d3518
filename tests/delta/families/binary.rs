//! Families of binary formats.

use ddfuzz::delta::{Comparison, Outcome};

use super::bytes::{fails_if, has_in_order};
use super::count::Case;
use super::random::Random;

/// Reads a number of `width` bytes; advances the text.
fn number(text: &mut &[u8], width: usize, big: bool) -> Option<usize> {
    let (bytes, rest) = text.split_at_checked(width)?;
    *text = rest;
    let add = |number: usize, byte: &u8| number << 8 | usize::from(*byte);
    Some(match big {
        true => bytes.iter().fold(0, add),
        false => bytes.iter().rev().fold(0, add),
    })
}

fn put(text: &mut Vec<u8>, number: usize, width: usize, big: bool) {
    let mut bytes = number.to_le_bytes()[..width].to_vec();
    if big {
        bytes.reverse();
    }
    text.extend(bytes);
}

/// The shape of a file of records.
#[derive(Clone, Copy)]
pub struct Records {
    pub magic: &'static [u8],
    pub count: (usize, bool),
    pub kind: usize,
    pub length: (usize, bool),
}

/// The records of a text, if it is whole.
fn records(shape: Records, mut text: &[u8]) -> Option<Vec<Vec<u8>>> {
    text = text.strip_prefix(shape.magic)?;
    let count = number(&mut text, shape.count.0, shape.count.1)?;
    let mut records = Vec::new();
    for _ in 0..count {
        text = text.get(shape.kind..)?;
        let length = number(&mut text, shape.length.0, shape.length.1)?;
        let (body, rest) = text.split_at_checked(length)?;
        records.push(body.to_vec());
        text = rest;
    }
    text.is_empty().then_some(records)
}

/// A count and length-prefixed records, one with a bad byte.
pub fn record_file(seed: u64, size: usize, shape: Records) -> Case {
    let mut random = Random::new(seed);
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    let mut left = size;
    while left > 70 && bodies.len() < 250 {
        let length = 1 + random.below(60);
        let body = random.bytes(length).iter().map(|byte| byte % 250).collect();
        left -= length + shape.kind + shape.length.0;
        bodies.push(body);
    }
    let bad = random.below(bodies.len());
    let at = random.below(bodies[bad].len());
    bodies[bad][at] = 0xff;
    let mut input = shape.magic.to_vec();
    put(&mut input, bodies.len(), shape.count.0, shape.count.1);
    for body in &bodies {
        input.extend(random.bytes(shape.kind));
        put(&mut input, body.len(), shape.length.0, shape.length.1);
        input.extend(body);
    }
    Case::new(input, move |text| {
        let records = records(shape, text).unwrap_or_default();
        fails_if(records.iter().any(|body| body.contains(&0xff)))
    })
}

/// Records of a tag, a length byte and a payload, and no count of them; one has a bad payload.
pub fn tagged_records(seed: u64, size: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = Vec::new();
    let bad = size / 4 + random.below(size / 2);
    let mut has_bad = false;
    while input.len() < size {
        let length = 8 + random.below(33);
        let mut payload: Vec<u8> = random.bytes(length).iter().map(|byte| byte | 1).collect();
        if input.len() >= bad && !has_bad {
            payload[0] = 0;
            has_bad = true;
        }
        input.push(b"CVN#"[random.below(4)]);
        put(&mut input, length, 1, false);
        input.extend(payload);
    }
    Case::new(input, |text| {
        let bad = |records: Vec<Vec<u8>>| records.iter().any(|payload| payload.first() == Some(&0));
        fails_if(tagged(text).is_some_and(bad))
    })
}

/// The length of all records, and then records of a type, a length of two bytes and a payload; one
/// has a bad type and payload. What is no whole record is refused before any record is looked at.
pub fn framed_records(seed: u64, count: usize) -> Case {
    let mut random = Random::new(seed);
    let bad = 1 + random.below(count - 2);
    let mut all = Vec::new();
    for nth in 0..count {
        let length = 2 + random.below(40);
        let mut payload = random.bytes(length);
        if nth == bad {
            payload[..2].copy_from_slice(&[0xde, 0xad]);
        }
        all.push(if nth == bad { 1 } else { 2 });
        put(&mut all, length, 2, false);
        all.extend(payload);
    }
    let mut input = b"TLV1".to_vec();
    put(&mut input, all.len(), 4, true);
    input.extend(all);
    Case::new(input, |text| {
        let is_bad =
            |(kind, payload): &(u8, Vec<u8>)| *kind == 1 && payload.starts_with(&[0xde, 0xad]);
        fails_if(framed(text).is_some_and(|all| all.iter().any(is_bad)))
    })
}

/// Types and payloads of records with a length of them all; `None` if the text is not made of them.
fn framed(text: &[u8]) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut rest = text.strip_prefix(b"TLV1")?;
    let total = number(&mut rest, 4, true)?;
    let mut all = Vec::new();
    if rest.len() != total {
        return None;
    }
    while let [kind, behind @ ..] = rest {
        rest = behind;
        let length = number(&mut rest, 2, false)?;
        let (payload, behind) = rest.split_at_checked(length)?;
        all.push((*kind, payload.to_vec()));
        rest = behind;
    }
    Some(all)
}

/// Records of two lengths, a name and data, each padded to a multiple of four bytes; one has a bad
/// name and begins with a certain byte twice.
pub fn padded_records(seed: u64, records: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = b"ARC1".to_vec();
    let bad = 2 + random.below(records - 4);
    for nth in 0..records {
        let name = format!("{}{nth}", if nth == bad { "bad" } else { "file" });
        let length = 10 + random.below(60);
        let mut data = random.bytes(length);
        if nth == bad {
            data[1] = data[0];
        }
        put(&mut input, name.len(), 2, false);
        put(&mut input, data.len(), 4, false);
        input.extend([name.as_bytes(), &data].concat());
        input.resize(input.len().next_multiple_of(4), 0);
    }
    Case::new(input, |text| {
        fails_if(has_bad_record(text).is_some_and(|bad| bad))
    })
}

/// Whether padded records have a bad one among them; `None` if the text is not made of them.
fn has_bad_record(text: &[u8]) -> Option<bool> {
    let mut rest = text.strip_prefix(b"ARC1")?;
    let mut found = false;
    while !rest.is_empty() {
        let name = number(&mut rest, 2, false)?;
        let data = number(&mut rest, 4, false)?;
        let (name, behind) = rest.split_at_checked(name).filter(|it| !it.0.is_empty())?;
        let (data, behind) = behind.split_at_checked(data)?;
        found |= name.starts_with(b"bad") && data.len() > 2 && data[0] == data[1];
        let read = text.len() - behind.len();
        let padding = read.next_multiple_of(4) - read;
        rest = behind.get(padding..).unwrap_or_default();
    }
    Some(found)
}

/// The payloads of tagged records, if all of the text is made of them.
fn tagged(mut text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut payloads = Vec::new();
    while let Some((tag, rest)) = text.split_first() {
        let (length, rest) = rest.split_first().filter(|_| b"CVN#".contains(tag))?;
        let (payload, rest) = rest.split_at_checked(usize::from(*length))?;
        payloads.push(payload.to_vec());
        text = rest;
    }
    Some(payloads)
}

pub type Check = fn(&[u8]) -> usize;

/// The shape of a protected frame.
#[derive(Clone, Copy)]
pub struct Frame {
    pub magic: &'static [u8],
    pub length: (usize, bool),
    pub check: (usize, bool, Check),
}

pub fn sum(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(*byte)).sum()
}

/// A checksum that nobody knows.
pub fn odd_hash(bytes: &[u8]) -> usize {
    let hash = bytes.iter().fold(77u32, |hash, byte| {
        hash.rotate_left(5).wrapping_mul(31) ^ u32::from(*byte)
    });
    hash as usize
}

pub fn crc32(bytes: &[u8]) -> usize {
    let crc = bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    !crc as usize
}

/// What of a frame is compared until something differs, and its payload if nothing does.
fn check(shape: Frame, whole: &[u8]) -> Result<Vec<u8>, Option<Comparison>> {
    let differ = |width: usize, one: usize, other: usize| {
        let bytes = |number: usize| number.to_le_bytes()[..width].to_vec();
        match bytes(one) == bytes(other) {
            true => Ok(()),
            false => Err(Some(Comparison {
                left: bytes(one),
                right: bytes(other),
            })),
        }
    };
    let mut text = whole.strip_prefix(shape.magic).ok_or(None)?;
    let length = number(&mut text, shape.length.0, shape.length.1).ok_or(None)?;
    let stored = number(&mut text, shape.check.0, shape.check.1).ok_or(None)?;
    differ(4, length, text.len())?;
    differ(shape.check.0, stored, (shape.check.2)(text))?;
    Ok(text.to_vec())
}

/// A length and a checksum over a payload with four needed bytes.
pub fn protected(seed: u64, size: usize, shape: Frame, observed: bool) -> Case {
    let mut random = Random::new(seed);
    let mut payload: Vec<u8> = random.bytes(size).iter().map(|byte| byte % 250).collect();
    let needle = [0xfa, 0xfb, 0xfc, 0xfd];
    for (at, byte) in random.positions(4, size).into_iter().zip(needle) {
        payload[at] = byte;
    }
    let mut input = shape.magic.to_vec();
    put(&mut input, payload.len(), shape.length.0, shape.length.1);
    put(
        &mut input,
        (shape.check.2)(&payload),
        shape.check.0,
        shape.check.1,
    );
    input.extend(payload);
    let mut case = Case::new(input, move |text| match check(shape, text) {
        Ok(payload) => fails_if(has_in_order(&payload, &needle)),
        Err(_) => Outcome::Pass,
    });
    if observed {
        case.compared = Some(Box::new(move |text| match check(shape, text) {
            Err(Some(comparison)) => vec![comparison],
            _ => Vec::new(),
        }));
    }
    case
}
