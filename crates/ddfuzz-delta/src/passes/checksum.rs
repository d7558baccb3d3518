//! Checksums that formats use.

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
