//! Checksums that numbers in files state.

use ddfuzz_delta::Checksum;
use sha2::Digest as _;

use crate::base64;
use crate::number::Encoding;
use crate::packed::Codec;

/// An algorithm for the checksums of a file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sum {
    /// A checksum that the searches of `ddfuzz-delta` also repair in files of unknown formats.
    Known(Checksum),
    /// The sum of the bytes as big-endian words of 32 bits, with zeros appended to a multiple of 4
    /// bytes (OpenType).
    Words,
    /// The sum of all bytes, with blanks in place of the checksum itself (tar).
    Bytes,
    /// CRC-32 with polynomial 0x04c11db7, most significant bit first, initial value 0 (Ogg).
    Ogg,
    /// CRC-64 of ECMA-182, least significant bit first, inverted (xz).
    Crc64,
    /// CRC-24 with polynomial 0x864cfb, most significant bit first, initial value 0xb704ce (OpenPGP).
    Crc24,
    /// CRC-8 with polynomial 0x07, most significant bit first, initial value 0 (frame headers of
    /// FLAC).
    FlacHead,
    /// CRC-16 with polynomial 0x8005, most significant bit first, initial value 0 (frames of FLAC).
    FlacFrame,
    /// The inverted sum of the bytes as big-endian words of 16 bits, with carries added back (IP
    /// headers).
    Internet,
    /// The checksum of UDP, TCP and ICMPv6: computed as [`Internet`](Sum::Internet) over the
    /// content of an IP packet and a pseudo-header of its addresses, protocol and size. The bytes
    /// are those of the IP packet.
    Transport,
    /// The low bytes of a known checksum, as many as the number says.
    Low(Checksum, usize),
    /// A cryptographic digest. Since it has more bits than a number (64), it can be written in
    /// hexadecimal digits or in Base64 only, by [`write`](Sum::write).
    Digest(Digest),
}

/// A cryptographic digest that texts state of their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    /// MD5, 16 bytes.
    Md5,
    /// SHA-1, 20 bytes.
    Sha1,
    /// SHA-256, 32 bytes.
    Sha256,
    /// SHA-384, 48 bytes.
    Sha384,
    /// SHA-512, 64 bytes.
    Sha512,
}

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Digest::Md5 => md5::Md5::digest(bytes).to_vec(),
            Digest::Sha1 => sha1::Sha1::digest(bytes).to_vec(),
            Digest::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
            Digest::Sha384 => sha2::Sha384::digest(bytes).to_vec(),
            Digest::Sha512 => sha2::Sha512::digest(bytes).to_vec(),
        }
    }
}

impl Sum {
    /// The checksum CRC-32, as in zip, gzip and PNG.
    pub const CRC32: Sum = Sum::Known(Checksum::Crc32);

    /// Computes the checksum of `bytes`; of a digest, its first 8 bytes. If `bytes` contain the checksum itself, the caller must
    /// have set its bytes to [`blank`](Sum::blank).
    pub fn of(self, bytes: &[u8]) -> u64 {
        match self {
            Sum::Known(checksum) => checksum.of(bytes),
            Sum::Words => {
                let words = bytes.chunks(4).map(|word| {
                    let mut filled = [0; 4];
                    filled[..word.len()].copy_from_slice(word);
                    u32::from_be_bytes(filled)
                });
                u64::from(words.fold(0, u32::wrapping_add))
            }
            Sum::Bytes => bytes.iter().map(|byte| u64::from(*byte)).sum(),
            Sum::Crc64 => crc64(bytes),
            Sum::Ogg => crc(bytes, 32, 0x04c1_1db7, 0),
            Sum::Crc24 => crc(bytes, 24, 0x86_4cfb, 0xb7_04ce),
            Sum::FlacHead => crc(bytes, 8, 0x07, 0),
            Sum::FlacFrame => crc(bytes, 16, 0x8005, 0),
            Sum::Internet => u64::from(!words(bytes)),
            // 0 stands for no checksum.
            Sum::Transport => match transport(bytes) {
                Some(0) => 0xffff,
                sum => u64::from(sum.unwrap_or_default()),
            },
            Sum::Low(checksum, width) => checksum.of(bytes) & (u64::MAX >> (64 - 8 * width)),
            Sum::Digest(digest) => {
                let first = digest.of(bytes).into_iter().take(8);
                first.fold(0, |number, byte| number << 8 | u64::from(byte))
            }
        }
    }

    /// Returns the text of the checksum of `bytes`, plus `bias`, in the encoding `encoding`. For a
    /// digest, `bias` is ignored, and all bytes are written: in Base64 if `encoding` says so, else
    /// in hexadecimal digits.
    pub fn write(self, bytes: &[u8], bias: i64, encoding: Encoding) -> Vec<u8> {
        let Sum::Digest(digest) = self else {
            return encoding.write(self.of(bytes).wrapping_add_signed(bias));
        };
        if let Encoding::Base64(_) = encoding {
            return base64::encode(&digest.of(bytes), 0);
        }
        let is_upper = matches!(encoding, Encoding::Hex { is_upper: true, .. });
        Codec::Hex { is_upper }.pack(&digest.of(bytes))
    }

    /// Returns the value to which the bytes of the checksum itself are set while it is computed: a
    /// blank for tar, 0 for all others.
    pub fn blank(self) -> u8 {
        match self {
            Sum::Bytes => b' ',
            _ => 0,
        }
    }
}

/// Returns the sum of the bytes as big-endian words of 16 bits, with carries added back.
fn words(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| match *word {
        [high, low] => u16::from_be_bytes([high, low]),
        _ => u16::from_be_bytes([word[0], 0]),
    });
    words.fold(0, |sum: u16, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

/// Computes the checksum [`Sum::Transport`] of the IP packet `ip`; `None` if its header is
/// incomplete.
fn transport(ip: &[u8]) -> Option<u16> {
    let (front, addresses, protocol) = match ip.first()? >> 4 {
        4 => (usize::from(ip[0] & 0xf) * 4, 12..20, 9),
        _ => (40, 8..40, 6),
    };
    let (addresses, content) = (ip.get(addresses)?, ip.get(front..)?);
    let size = u32::try_from(content.len()).ok()?.to_be_bytes();
    let pseudo = [addresses, &size, &[0, 0, 0, ip[protocol]], content].concat();
    Some(!words(&pseudo))
}

/// Table for the fast computation of CRC-64: the CRC of each single byte, without the inversions.
static CRC64: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0xc96c_5795_d787_0f42);
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Computes the checksum CRC-64 of `bytes`, as xz files have it ([`Sum::Crc64`]).
fn crc64(bytes: &[u8]) -> u64 {
    let fold = |crc: u64, byte: &u8| CRC64[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(u64::MAX, fold)
}

/// Computes the cyclic redundancy check of `bytes` with `width` bits, with the given polynomial,
/// most significant bit first. `initial` is the value of the register at the beginning.
fn crc(bytes: &[u8], width: u32, polynomial: u64, initial: u64) -> u64 {
    let mask = u64::MAX >> (64 - width);
    bytes.iter().fold(initial, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte) << (width - 8), |crc, _| {
            match crc >> (width - 1) & 1 {
                0 => crc << 1,
                _ => (crc << 1 ^ polynomial) & mask,
            }
        })
    })
}
