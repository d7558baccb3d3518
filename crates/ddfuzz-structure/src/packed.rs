//! Compressed parts of files, and the methods of compression: deflate with and without zlib, LZW of
//! GIF and TIFF, PackBits, rows with predictors, and LZMA2; bytes in hexadecimal digits or Base64.

use std::io::{Read, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, ZlibEncoder};

use lzma_rust2::{EncodeMode, Lzma2Options, Lzma2Reader, Lzma2Writer, LzmaOptions, MfType};
use weezl::{BitOrder, LzwStatus};

use crate::base64;
use crate::node::{ByLabel, Group, Label, Node};

/// Maximum size of decompressed content, in bytes: a stream with larger content is left compressed,
/// as a payload (changeable bytes).
const LARGEST: u64 = 1 << 22;

/// Maximum total size, in bytes, of the decompressed content of all streams of a file; further
/// streams are left compressed. The limit is needed because a few kilobytes can hold many nested
/// streams, each of megabytes of zeros.
const MOST_UNPACKED: u64 = 1 << 24;

/// Maximum size, in bytes, of a block that deflate stores without compression.
const BLOCK: usize = 0xffff;

/// Size of decompressed content, in bytes, above which deflate compresses at its default level
/// instead of the best one, because the content is compressed again for each candidate.
const QUICKLY: usize = 1 << 16;

/// A compression method of parts of files: deflate, zlib, LZW of GIF or TIFF, PackBits, LZMA2, or
/// zlib around rows that were subtracted from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Deflate without a header (RFC 1951).
    Deflate,
    /// Deflate with the header and the checksum of zlib (RFC 1950).
    Zlib,
    /// LZW as in GIF: first a byte with the minimum code size in bits, then blocks of up to 255
    /// bytes, each after a byte with its size, and an empty block at the end.
    Gif,
    /// LZW as in TIFF: codes of 9 to 12 bits, packed from the highest bit of a byte on.
    Tiff,
    /// PackBits: a header byte states how many bytes are copied, and these follow, or how often the
    /// one byte that follows is repeated.
    PackBits,
    /// zlib around rows of this many bytes, each after a byte which says whether the row above was
    /// subtracted from it (predictors of PDF and PNG).
    Rows(usize),
    /// LZMA2, as in xz, with a dictionary of at most this many bytes.
    Lzma2(u32),
    /// Two hexadecimal digits for each byte.
    Hex {
        /// True if letters among the digits are capitals.
        is_upper: bool,
    },
    /// Base64 with padding, in lines of as many characters as the field says; in one line if it is
    /// 0.
    Base64(usize),
}

/// Whether numbers refer across the border of a compressed node: from outside to groups of nodes
/// inside of its content, or from its content to groups outside.
#[derive(Clone, Debug, Default)]
pub enum Linked {
    /// No number refers across the border, except that numbers outside may state something about
    /// the content as a whole, such as its size.
    #[default]
    No,
    /// Numbers outside state sizes or indices of groups of nodes in the content; the values are in
    /// [`Inside`].
    Into(Arc<Inside>),
    /// Numbers in the content state something about groups of nodes outside, so that the content is
    /// compressed only after these groups were written.
    Outwards,
}

/// Sizes and indices of the groups of nodes inside of a compressed node, by the labels (ids in the
/// file's tree) of the groups. Sizes are in bytes; for indices see
/// [`Meaning::Index`](crate::node::Meaning::Index).
#[derive(Debug, Default)]
pub struct Inside {
    pub sizes: ByLabel<usize>,
    pub indices: ByLabel<u64>,
}

/// A node whose bytes are compressed in the file: the tree of its content, and its bytes before and
/// after compression.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Method by which the bytes of the node are compressed in the file.
    pub codec: Codec,
    /// Tree of nodes into which the decompressed content was parsed.
    pub content: Group,
    /// Bytes of the node's content when decompressed.
    pub bytes: Arc<[u8]>,
    /// Bytes of the node as they are in the file, compressed.
    pub packed: Arc<[u8]>,
    /// Nodes that take the place of this node where its content is not parsed: payloads (changeable
    /// bytes) with the compressed bytes.
    pub closed: Vec<Node>,
    /// Label (id in the file's tree) of the group of nodes in the file that says that the node is
    /// compressed: if that group is deleted, the content is written uncompressed. `None` if the
    /// node is always compressed.
    pub method: Option<Label>,
    /// How numbers in the file connect the content with groups of nodes outside of the node.
    pub linked: Linked,
}

impl Codec {
    /// Decompresses `packed`, and adds the number of decompressed bytes to `unpacked`, which counts
    /// those of the whole file. Returns `None` if `packed` is not compressed by this method, if
    /// other bytes follow the compressed ones, if the content exceeds 4 MiB, or if `unpacked` would
    /// exceed 16 MiB.
    pub fn unpack(self, packed: &[u8], unpacked: &mut u64) -> Option<Vec<u8>> {
        let (content, used) = self.unpack_front(packed, unpacked)?;
        (used == packed.len()).then_some(content)
    }

    /// Decompresses the stream at the beginning of `packed`; returns its content, and the size of
    /// the compressed stream in bytes. `None` if there is no such stream, or if its content is
    /// larger than 4 MiB, or makes the total of the file larger than 16 MiB; `unpacked` counts that
    /// total and is raised.
    pub fn unpack_front(self, packed: &[u8], unpacked: &mut u64) -> Option<(Vec<u8>, usize)> {
        let limit = LARGEST.min(MOST_UNPACKED.saturating_sub(*unpacked));
        let mut content = Vec::new();
        let used = self.unpack_into(&mut content, packed, limit);
        *unpacked = unpacked.saturating_add(content.len() as u64);
        Some((content, used?))
    }

    /// Decompresses the stream at the beginning of `packed`, and appends its content to `content`;
    /// returns the size of the compressed stream in bytes. Returns `None` if there is no such
    /// stream, or if its content exceeds `limit` bytes; decompression then stops soon after the
    /// limit.
    fn unpack_into(self, content: &mut Vec<u8>, packed: &[u8], limit: u64) -> Option<usize> {
        let used = match self {
            Codec::Deflate => {
                let mut decoder = DeflateDecoder::new(packed);
                read(&mut decoder, content, limit)?;
                decoder.total_in()
            }
            Codec::Zlib => {
                let head = packed.first_chunk::<2>()?;
                if head[0] & 0x0f != 8 || u16::from_be_bytes(*head) % 31 != 0 {
                    return None;
                }
                let mut decoder = ZlibDecoder::new(packed);
                read(&mut decoder, content, limit)?;
                decoder.total_in()
            }
            Codec::Rows(columns) => {
                let mut rows = Vec::new();
                let used = Codec::Zlib.unpack_into(&mut rows, packed, limit)?;
                unpredict(content, &rows, columns)?;
                return Some(used);
            }
            Codec::Lzma2(dictionary) => {
                let size = dictionary.min(LARGEST as u32);
                let mut decoder = Lzma2Reader::new(packed, size, None);
                read(&mut decoder, content, limit)?;
                return Some(packed.len() - decoder.inner().len());
            }
            Codec::Gif => return unpack_gif(content, packed, limit),
            Codec::Tiff => {
                let mut decoder = weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
                return unpack_codes(&mut decoder, content, packed, limit);
            }
            Codec::PackBits => return unpack_bits(content, packed, limit),
            Codec::Hex { is_upper } => return unpack_hex(content, packed, is_upper, limit),
            Codec::Base64(width) => {
                let bytes = base64::decode(packed, width);
                content.extend(bytes.filter(|bytes| bytes.len() as u64 <= limit)?);
                return Some(packed.len());
            }
        };
        usize::try_from(used).ok()
    }

    /// Returns `content` compressed by this method, or stored without compression if that is
    /// shorter and the method allows it.
    pub fn pack(self, content: &[u8]) -> Vec<u8> {
        let level = match content.len() {
            0..=QUICKLY => Compression::best(),
            // The fastest level makes a text of much repetition larger than other programs made it, so
            // that hardly any edit of it would make the file smaller.
            _ => Compression::default(),
        };
        let compressed = match self {
            Codec::Deflate => {
                let mut encoder = DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(content).and_then(|()| encoder.finish())
            }
            Codec::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(content).and_then(|()| encoder.finish())
            }
            Codec::Rows(columns) => return Codec::Zlib.pack(&predict(content, columns)),
            Codec::Lzma2(dictionary) => Ok(pack_lzma(content, dictionary).unwrap_or_default()),
            Codec::Gif => return pack_gif(content),
            Codec::Tiff => {
                let mut encoder = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8);
                return encoder.encode(content).unwrap_or_default();
            }
            Codec::PackBits => return pack_bits(content),
            Codec::Hex { is_upper } => return pack_hex(content, is_upper),
            Codec::Base64(width) => return base64::encode(content, width),
        };
        let stored = self.store(content);
        match compressed {
            Ok(compressed) if (1..=stored.len()).contains(&compressed.len()) => compressed,
            _ => stored,
        }
    }

    /// Returns `content` without compression, in the form of this method: in stored blocks of
    /// deflate, with zlib's header and checksum for zlib, or in uncompressed chunks of LZMA2.
    fn store(self, content: &[u8]) -> Vec<u8> {
        let mut stored = match self {
            Codec::Zlib => vec![0x78, 0x01],
            Codec::Lzma2(_) => return store_lzma(content),
            _ => Vec::new(),
        };
        let mut blocks = content.chunks(BLOCK).peekable();
        if blocks.peek().is_none() {
            stored.extend([1, 0, 0, 0xff, 0xff]);
        }
        while let Some(block) = blocks.next() {
            let size = block.len() as u16;
            stored.push(u8::from(blocks.peek().is_none()));
            stored.extend(size.to_le_bytes());
            stored.extend((!size).to_le_bytes());
            stored.extend_from_slice(block);
        }
        if self == Codec::Zlib {
            let sum = ddfuzz_delta::Checksum::Adler32.of(content) as u32;
            stored.extend(sum.to_be_bytes());
        }
        stored
    }
}

/// Appends all bytes that `decoder` gives to `content`; returns `None` on an error, or if there are
/// more than `limit` bytes.
fn read(decoder: &mut dyn Read, content: &mut Vec<u8>, limit: u64) -> Option<()> {
    decoder.take(limit + 1).read_to_end(content).ok()?;
    (content.len() as u64 <= limit).then_some(())
}

/// Filter type of PNG and PDF for rows of compressed data whose bytes are stored as they are.
const PLAIN_ROW: u8 = 0;
/// Filter type of PNG and PDF for rows of compressed data from whose bytes those of the row above
/// were subtracted.
const ABOVE_ROW: u8 = 2;

/// Undoes the row filters of `rows`, each a filter type and `columns` bytes, and appends the
/// resulting bytes to `content`. `None` if a row has another filter type than the two that are
/// known; else `Some`.
fn unpredict(content: &mut Vec<u8>, rows: &[u8], columns: usize) -> Option<()> {
    let mut above = vec![0; columns];
    for row in rows.chunks(columns.checked_add(1)?) {
        let (kind, bytes) = row.split_first()?;
        let is_above = match *kind {
            PLAIN_ROW => false,
            ABOVE_ROW => true,
            _ => return None,
        };
        for (column, byte) in bytes.iter().enumerate() {
            let before = if is_above { above[column] } else { 0 };
            above[column] = byte.wrapping_add(before);
        }
        content.extend_from_slice(&above[..bytes.len()]);
    }
    Some(())
}

/// Divides `content` into rows of `columns` bytes, and returns them in the form that [`unpredict`]
/// reads: each row follows the filter type [`ABOVE_ROW`], and from each of its bytes the byte
/// above, in the row before, is subtracted.
fn predict(content: &[u8], columns: usize) -> Vec<u8> {
    let mut rows = Vec::with_capacity(content.len());
    let mut above = vec![0; columns];
    for row in content.chunks(columns.max(1)) {
        rows.push(ABOVE_ROW);
        for (byte, before) in row.iter().zip(&mut above) {
            rows.push(byte.wrapping_sub(*before));
            *before = *byte;
        }
    }
    rows
}

/// Compresses `content` by LZMA2, with a dictionary of about its size, but of at most `dictionary`
/// bytes; `None` on an error.
fn pack_lzma(content: &[u8], dictionary: u32) -> Option<Vec<u8>> {
    let quickly = content.len() > QUICKLY;
    let options = LzmaOptions {
        dict_size: (content.len().next_power_of_two() as u32)
            .clamp(1 << 12, dictionary.max(1 << 12)),
        mode: if quickly {
            EncodeMode::Fast
        } else {
            EncodeMode::Normal
        },
        nice_len: if quickly { 32 } else { 273 },
        mf: if quickly { MfType::Hc4 } else { MfType::Bt4 },
        depth_limit: 0,
        ..LzmaOptions::with_preset(6)
    };
    let options = Lzma2Options {
        lzma_options: options,
        chunk_size: None,
    };
    let mut writer = Lzma2Writer::new(Vec::new(), options);
    writer.write_all(content).ok()?;
    writer.finish().ok()
}

/// Returns bytes as chunks of LZMA2 that are not compressed; the first one resets the dictionary.
fn store_lzma(content: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    for (index, chunk) in content.chunks(1 << 16).enumerate() {
        stored.push(if index == 0 { 1 } else { 2 });
        stored.extend((chunk.len() as u16).wrapping_sub(1).to_be_bytes());
        stored.extend_from_slice(chunk);
    }
    stored.push(0);
    stored
}

/// Allowed values of the byte before LZW data of GIF (minimum code size), in bits.
const GIF_WIDTHS: std::ops::RangeInclusive<u8> = 2..=8;
/// Size of the pieces in which LZW data of GIF are decompressed, in bytes.
const PIECE: usize = 1 << 12;

/// Decompresses LZW data of GIF into `content`; returns the size in bytes of the compressed data
/// with all its blocks. `None` if the data are malformed, or their content is larger than `limit`
/// bytes.
fn unpack_gif(content: &mut Vec<u8>, packed: &[u8], limit: u64) -> Option<usize> {
    let width = *packed.first().filter(|width| GIF_WIDTHS.contains(width))?;
    let (mut codes, mut at) = (Vec::new(), 1);
    loop {
        let size = usize::from(*packed.get(at)?);
        codes.extend_from_slice(packed.get(at + 1..at + 1 + size)?);
        at += 1 + size;
        if size == 0 {
            break;
        }
    }
    let mut decoder = weezl::decode::Decoder::new(BitOrder::Lsb, width);
    unpack_codes(&mut decoder, content, &codes, limit)?;
    Some(at)
}

/// Decompresses the LZW codes at the beginning of `codes` into `content`, up to the one that ends
/// them; returns the size of the codes in bytes. `None` if they are malformed, or their content is
/// larger than `limit` bytes.
fn unpack_codes(
    decoder: &mut weezl::decode::Decoder,
    content: &mut Vec<u8>,
    codes: &[u8],
    limit: u64,
) -> Option<usize> {
    let (mut piece, mut used) = ([0; PIECE], 0);
    while content.len() as u64 <= limit {
        let decoded = decoder.decode_bytes(&codes[used..], &mut piece);
        used += decoded.consumed_in;
        content.extend_from_slice(&piece[..decoded.consumed_out]);
        match decoded.status.ok()? {
            LzwStatus::Done => return (content.len() as u64 <= limit).then_some(used),
            LzwStatus::Ok => {}
            LzwStatus::NoProgress => return None,
        }
    }
    None
}

/// Header byte of PackBits that stands alone: it states neither bytes to copy nor a repetition.
const NO_BYTES: u8 = 0x80;
/// Maximum number of decompressed bytes that one header byte of PackBits can state.
const MOST_BITS: usize = 128;

/// Decompresses all of `packed`, which is PackBits, into `content`; returns its size in bytes.
/// `None` if it ends after a header byte, or if the content is larger than `limit` bytes.
fn unpack_bits(content: &mut Vec<u8>, packed: &[u8], limit: u64) -> Option<usize> {
    let mut at = 0;
    while let Some(head) = packed.get(at) {
        at += 1;
        match *head {
            NO_BYTES => {}
            head @ 0..NO_BYTES => {
                let end = at + usize::from(head) + 1;
                content.extend_from_slice(packed.get(at..end)?);
                at = end;
            }
            head => {
                let times = 257 - usize::from(head);
                content.resize(content.len() + times, *packed.get(at)?);
                at += 1;
            }
        }
        (content.len() as u64 <= limit).then_some(())?;
    }
    Some(at)
}

/// Returns bytes compressed by PackBits: three or more equal bytes become a repetition.
fn pack_bits(content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let repeated = |at: usize| {
        let same = content[at..]
            .iter()
            .take_while(|byte| **byte == content[at]);
        same.take(MOST_BITS).count()
    };
    let mut at = 0;
    while at < content.len() {
        let times = repeated(at);
        if times >= 3 {
            packed.extend([(257 - times) as u8, content[at]]);
            at += times;
            continue;
        }
        let most = content.len().min(at + MOST_BITS);
        let end = (at + 1..most)
            .find(|end| repeated(*end) >= 3)
            .unwrap_or(most);
        packed.push((end - at - 1) as u8);
        packed.extend_from_slice(&content[at..end]);
        at = end;
    }
    packed
}

/// Appends the bytes that the hexadecimal digits `packed` state to `content`; returns the number of
/// digits. `None` if there are other characters, letters of the other case, an odd number of digits,
/// or more than `limit` bytes.
fn unpack_hex(content: &mut Vec<u8>, packed: &[u8], is_upper: bool, limit: u64) -> Option<usize> {
    let digit = |byte: &u8| match (byte, is_upper) {
        (b'0'..=b'9', _) => Some(byte - b'0'),
        (b'a'..=b'f', false) => Some(byte - b'a' + 10),
        (b'A'..=b'F', true) => Some(byte - b'A' + 10),
        _ => None,
    };
    (packed.len().is_multiple_of(2) && packed.len() as u64 / 2 <= limit).then_some(())?;
    for two in packed.chunks_exact(2) {
        content.push(digit(&two[0])? << 4 | digit(&two[1])?);
    }
    Some(packed.len())
}

/// Returns bytes as hexadecimal digits, two for each.
fn pack_hex(content: &[u8], is_upper: bool) -> Vec<u8> {
    let digits: &[u8; 16] = match is_upper {
        true => b"0123456789ABCDEF",
        false => b"0123456789abcdef",
    };
    let two = |byte: &u8| [byte >> 4, byte & 0xf].map(|digit| digits[usize::from(digit)]);
    content.iter().flat_map(two).collect()
}

/// Returns bytes compressed as LZW data of GIF, with the smallest minimum code size that all bytes
/// fit in.
fn pack_gif(content: &[u8]) -> Vec<u8> {
    let most = content.iter().copied().max().unwrap_or_default();
    let width = (8 - most.leading_zeros() as u8).clamp(*GIF_WIDTHS.start(), *GIF_WIDTHS.end());
    let mut packed = vec![width];
    let mut encoder = weezl::encode::Encoder::new(BitOrder::Lsb, width);
    let codes = encoder.encode(content).unwrap_or_default();
    for block in codes.chunks(0xff) {
        packed.push(block.len() as u8);
        packed.extend_from_slice(block);
    }
    packed.push(0);
    packed
}

#[cfg(test)]
mod tests {
    use super::Codec;

    const ALL: [Codec; 9] = [
        Codec::Hex { is_upper: false },
        Codec::Hex { is_upper: true },
        Codec::Rows(5),
        Codec::Lzma2(1 << 23),
        Codec::Deflate,
        Codec::Zlib,
        Codec::Gif,
        Codec::Tiff,
        Codec::PackBits,
    ];

    /// Makes bytes that contain runs of all lengths up to `size`, as a test input.
    fn runs(size: usize) -> Vec<u8> {
        let runs = (0..size).map(|run| vec![(run * run % 251) as u8; (run * 7) % size]);
        runs.collect::<Vec<_>>().concat()
    }

    #[test]
    fn what_is_compressed_is_decompressed_to_the_same() {
        let contents = [
            vec![7],
            vec![9; 1000],
            (0..=255).collect(),
            runs(300),
            runs(3),
        ];
        for (codec, content) in ALL
            .iter()
            .flat_map(|codec| contents.iter().map(move |content| (codec, content)))
        {
            let packed = codec.pack(content);
            let unpacked = codec.unpack(&packed, &mut 0);
            assert_eq!(unpacked.as_ref(), Some(content), "{codec:?}");
        }
        assert_eq!(Codec::PackBits.pack(&[5; 128]), [129, 5]);
        assert_eq!(Codec::PackBits.pack(b"abbb"), [0, b'a', 254, b'b']);
    }

    #[test]
    fn content_that_is_too_large_or_cut_off_stays_compressed() {
        let large = vec![0; 1 << 20];
        assert_eq!(Codec::Hex { is_upper: true }.unpack(b"0f", &mut 0), None);
        assert_eq!(Codec::Hex { is_upper: true }.unpack(b"0F1", &mut 0), None);
        for codec in ALL {
            let packed = codec.pack(&large);
            let used = &mut (15 << 20 | 1);
            assert_eq!(codec.unpack(&packed, used), None, "{codec:?}");
            assert!(*used <= 17 << 20);
        }
        assert_eq!(Codec::PackBits.unpack(&[3, 1, 2], &mut 0), None);
        assert_eq!(Codec::PackBits.unpack(&[129], &mut 0), None);
        let packed = Codec::Tiff.pack(&runs(40));
        let half = &packed[..packed.len() / 2];
        assert_eq!(Codec::Tiff.unpack(half, &mut 0), None);
    }
}
