//! Formats whose fields must agree: counts, lengths, checksums.

use super::{Case, Set};

/// The families `records` and `checksum`.
pub fn cases(set: Set) -> Vec<Case> {
    let records = [("u8 u8", 0), ("u16le u16be", 1), ("types", 2)];
    let checksums = [
        ("crc32 behind", 0),
        ("sum u8 behind", 1),
        ("sum u16 before", 2),
        ("xor behind", 3),
        ("sum u32 before", 4),
    ];
    let records = records.map(|(variant, number)| record(set, variant, number));
    let checksums = checksums.map(|(variant, number)| checksum(set, variant, number));
    records.into_iter().chain(checksums).collect()
}

fn record(set: Set, variant: &'static str, number: usize) -> Case {
    let mut stream = set.stream(800 + number as u64);
    let size = set.size(2048, &mut stream);
    let mut records: Vec<Vec<u8>> = Vec::new();
    while records.iter().map(Vec::len).sum::<usize>() < size && records.len() < 250 {
        let length = 4 + stream.below(28);
        let payload = stream.bytes(length, b"!");
        let length = length as u8;
        let head = match number {
            0 => vec![length],
            1 => vec![0, length],
            _ => vec![stream.below(0x7f) as u8, length],
        };
        records.push([head, payload].concat());
    }
    let chosen = records.len() / 4 + stream.below(records.len() / 2);
    let head = if number == 0 { 1 } else { 2 };
    match number {
        2 => records[chosen][0] = 0x7f,
        _ => {
            let inside = stream.below(records[chosen].len() - head);
            records[chosen][head + inside] = b'!';
        }
    }
    let count = records.len() as u8;
    let mut input = match number {
        1 => vec![count, 0],
        _ => vec![count],
    };
    input.extend(records.concat());
    Case {
        family: "records",
        variant,
        source: "records.c",
        defines: vec![("VARIANT", number.to_string())],
        bug: "record_handler_fails",
        input,
        minimum: match number {
            0 => vec![1, 1, b'!'],
            1 => vec![1, 0, 0, 1, b'!'],
            _ => vec![1, 0x7f, 0],
        },
        is_text: false,
        ending: "",
    }
}

fn checksum(set: Set, variant: &'static str, number: usize) -> Case {
    let mut stream = set.stream(900 + number as u64);
    let size = set.size(1024, &mut stream);
    let needle: &[u8] = match number {
        0 | 4 => b"BUG!",
        2 => b"crash!",
        _ => b"trouble",
    };
    let mut payload = stream.bytes(size, needle);
    let part = size / needle.len();
    for (index, byte) in needle.iter().enumerate() {
        payload[index * part + stream.below(part)] = *byte;
    }
    Case {
        family: "checksum",
        variant,
        source: "checksum.c",
        defines: vec![("VARIANT", number.to_string())],
        bug: "payload_is_trusted",
        input: protect(&payload, number),
        minimum: protect(needle, number),
        is_text: false,
        ending: "",
    }
}

/// The payload with its length and checksum, as `checksum.c` reads them.
fn protect(payload: &[u8], number: usize) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("payloads of this family are short");
    let sum: u32 = payload.iter().map(|byte| u32::from(*byte)).sum();
    let little = length.to_le_bytes();
    let big = length.to_be_bytes();
    match number {
        0 => [&little, payload, &crc32(payload).to_le_bytes()].concat(),
        1 => [&big, payload, &[sum as u8]].concat(),
        2 => [&little, &(sum as u16).to_le_bytes()[..], payload].concat(),
        3 => [
            &big,
            payload,
            &[payload.iter().fold(0, |all, byte| all ^ byte)],
        ]
        .concat(),
        _ => [&little, &sum.to_be_bytes()[..], payload].concat(),
    }
}

/// The checksum of Ethernet, gzip and PNG.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            1 => crc >> 1 ^ 0xedb8_8320,
            _ => crc >> 1,
        })
    })
}
