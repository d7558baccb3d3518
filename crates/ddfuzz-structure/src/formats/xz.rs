//! Reader for xz files: streams of blocks that are compressed by LZMA2, each stream with an index
//! of its blocks.

use std::ops::Range;

use super::image::rest;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::packed::Codec;
use crate::reader::Reader;
use crate::sum::Sum;

/// Magic bytes at the beginning of an xz stream.
pub const HEAD: &[u8] = b"\xfd7zXZ\0";
/// Magic bytes at the end of an xz stream.
const FOOT: &[u8] = b"YZ";
/// Size of the stream header, and of the stream footer, in bytes.
const ENDS: usize = 12;
/// Block headers, compressed data and the index are padded with zeros to a multiple of this number
/// of bytes.
const ALIGN: usize = 4;
/// Two bits of a block's flags: the first is set if the block header states the compressed size,
/// the second if it states the uncompressed size.
const SIZES: [u8; 2] = [0x40, 0x80];
/// Mask of the bits of a block's flags that hold the number of the block's filters, less 1.
const FILTERS: u8 = 0x03;
/// Beginning of a filter's description in a block header if the filter is LZMA2: its id, and the
/// size of its properties, which is one byte.
const LZMA2: &[u8] = b"\x21\x01";
/// Largest value of the byte that encodes the dictionary size of LZMA2.
const LARGEST_DICTIONARY: u8 = 40;
/// Maximum number of blocks of a file that are decompressed, because each of them needs the memory
/// of a dictionary.
const MOST_BLOCKS: usize = 256;

/// A block of an xz stream, as its index refers to it: the labels (ids in the file's tree) of the
/// whole block, of the bytes whose size the index states as "unpadded size", and of the
/// uncompressed content.
struct Block {
    label: Label,
    unpadded: Label,
    content: Label,
}

/// State of reading an xz stream: its blocks so far, and the kind of their checks.
struct Stream<'a> {
    text: &'a [u8],
    /// Size in bytes and algorithm of the check after each block; no algorithm if blocks have no
    /// check.
    check: (usize, Option<Sum>),
    blocks: Vec<Block>,
}

/// Reads an xz file into the nodes of its tree; `None` if no block can be decompressed.
pub fn xz(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let (mut nodes, mut at, mut blocks) = (Vec::new(), 0, 0);
    while text.get(at..).is_some_and(|rest| rest.starts_with(HEAD)) && blocks < MOST_BLOCKS {
        let before = at;
        let mut stream = Stream {
            text,
            check: (0, None),
            blocks: Vec::new(),
        };
        let mut inner = Vec::new();
        let end = stream.read(reader, &mut at, &mut inner, MOST_BLOCKS - blocks);
        blocks += stream.blocks.len();
        if stream.blocks.is_empty() && end.is_none() || !reader.count_part() {
            at = before;
            break;
        }
        let label = reader.label();
        nodes.push(Group::part(label, inner).into());
        if end.is_none() {
            break;
        }
        // Streams are followed by zeros in words of 4 bytes.
        let zeros = text[at..].iter().take_while(|byte| **byte == 0).count();
        if zeros > 0 {
            let padding = Group {
                part: Part::With(label),
                ..Group::new(reader.label(), vec![Node::payload(&text[at..at + zeros])])
            };
            nodes.push(padding.into());
            at += zeros;
        }
    }
    (blocks > 0).then(|| rest(nodes, text, at))
}

/// Returns the tree node of the number at offset `at`, which states `meaning`, and the offset after
/// the number; `None` if no number can be read at this offset.
fn number(
    reader: &Reader,
    text: &[u8],
    at: usize,
    encoding: Encoding,
    meaning: Meaning,
) -> Option<(Node, usize)> {
    let (_, size) = encoding.read(text.get(at..)?)?;
    let raw = &text[at..at + size];
    Some((reader.number(encoding, meaning, 0, raw), at + size))
}

const CRC32: Encoding = Encoding::Little(4);

impl Stream<'_> {
    /// Reads the stream at offset `at`, with at most `most` blocks: appends the nodes of what could
    /// be read to `nodes`, and sets `at` to the offset after that. `Some` if the stream was read to
    /// its end, else `None`.
    fn read(
        &mut self,
        reader: &mut Reader,
        at: &mut usize,
        nodes: &mut Vec<Node>,
        most: usize,
    ) -> Option<()> {
        let head = self.text.get(*at..*at + ENDS)?;
        self.check = match head[7] & 0x0f {
            0 => (0, None),
            1 => (4, Some(Sum::CRC32)),
            4 => (8, Some(Sum::Crc64)),
            10 => (32, None),
            _ => return None,
        };
        // The check of a block that is decompressed must be known.
        (self.check.0 == 0 || self.check.1.is_some()).then_some(())?;
        nodes.push(Node::fixed(head));
        *at += ENDS;
        while self.blocks.len() < most
            && let Some((block, end)) = self.block(reader, *at)
        {
            nodes.push(block);
            *at = end;
        }
        let index = reader.label();
        let (read, end) = self.index(reader, *at, index)?;
        nodes.extend(read);
        nodes.extend(self.foot(reader, end, index)?);
        *at = end + ENDS;
        Some(())
    }

    /// Reads the block at offset `at`: block header, compressed data, padding and check. Returns it
    /// with the offset after it; `None` if there is no block that can be decompressed.
    fn block(&mut self, reader: &mut Reader, at: usize) -> Option<(Node, usize)> {
        let text = self.text;
        let size = usize::from(*text.get(at).filter(|size| **size > 0)?) * ALIGN;
        let start = at + size + ALIGN;
        let [bytes, content, label, unpadded] = [0; 4].map(|_| reader.label());
        let (head, dictionary) = self.head(reader, at..at + size, [bytes, content])?;
        let codec = Codec::Lzma2(dictionary);
        let (unpacked, used) = codec.unpack_front(text.get(start..)?, &mut reader.unpacked)?;
        let end = (start + used).next_multiple_of(ALIGN);
        let check = text.get(end..end + self.check.0)?;
        let zeros = &text[start + used..end];
        reader.count_part().then_some(())?;
        let packed = reader.packed_as(content, codec, &unpacked, &text[start..start + used]);
        let packed = Group::new(bytes, vec![packed]).into();
        let data = head.into_iter().chain([packed]).collect();
        self.blocks.push(Block {
            label,
            unpadded,
            content,
        });
        let mut nodes = vec![Group::new(unpadded, data).into()];
        nodes.push(match zeros.iter().all(|byte| *byte == 0) {
            true => pad(bytes),
            false => Node::fixed(zeros),
        });
        nodes.extend(self.check.1.map(|sum| {
            let encoding = Encoding::Little(self.check.0);
            reader.number(encoding, Meaning::Check(sum, content), 0, check)
        }));
        Some((Group::part(label, nodes).into(), end + self.check.0))
    }

    /// Reads the block header in the range `place`, and the checksum after it. `sizes` are the
    /// labels (ids in the file's tree) of the groups of nodes of the compressed data and of the
    /// uncompressed content, whose sizes the header may state. Returns the nodes and the dictionary
    /// size in bytes; `None` if the block has other filters than LZMA2.
    fn head(
        &self,
        reader: &mut Reader,
        place: Range<usize>,
        sizes: [Label; 2],
    ) -> Option<(Vec<Node>, u32)> {
        let (text, at) = (self.text, place.start);
        let head = text.get(place.clone())?;
        let flags = head[1];
        (flags & FILTERS == 0).then_some(())?;
        let (inner, label) = (reader.label(), reader.label());
        let mut from = at + 2;
        let (mut fields, mut bits) = (Vec::new(), Vec::new());
        for (bit, of) in SIZES.into_iter().zip(sizes) {
            if flags & bit > 0 {
                let meaning = Meaning::Length(of);
                let (field, end) = number(reader, text, from, Encoding::Varint, meaning)?;
                let label = reader.label();
                bits.push((bit, label));
                fields.push(Node::from(Group::part(label, vec![field])));
                from = end;
            }
        }
        let known = bits.iter().fold(0, |all, (bit, _)| all | bit);
        let filters = head.get(from - at..from - at + 3)?;
        let dictionary = dictionary_size(*filters.strip_prefix(LZMA2)?.first()?)?;
        let rest = flags & !known;
        let size = number(reader, text, at, UNITS, Meaning::Length(label))?.0;
        let mut nodes = vec![size, Node::Flags { rest, bits }];
        nodes.extend(fields);
        nodes.push(Node::fixed(filters));
        let zeros = &head[from - at + 3..];
        let nodes = match zeros.len() < ALIGN && zeros.iter().all(|byte| *byte == 0) {
            true => vec![Group::new(inner, nodes).into(), pad(inner)],
            false => [nodes, vec![Node::fixed(zeros)]].concat(),
        };
        let meaning = Meaning::Check(Sum::CRC32, label);
        let (sum, _) = number(reader, text, place.end, CRC32, meaning)?;
        Some((vec![Group::new(label, nodes).into(), sum], dictionary))
    }

    /// Reads the index of the stream at offset `at`, which has a record for each block; a record is
    /// deleted together with its block. `label` is the label (id in the file's tree) that the index
    /// gets. Returns the nodes and the offset after the index; `None` if there is no index, or the
    /// text ends inside of it.
    fn index(&self, reader: &mut Reader, at: usize, label: Label) -> Option<(Vec<Node>, usize)> {
        let text = self.text;
        (*text.get(at)? == 0).then_some(())?;
        let (list, inner) = (reader.label(), reader.label());
        let (count, from) = number(reader, text, at + 1, Encoding::Varint, Meaning::Count(list))?;
        let (records, _) = Encoding::Varint.read(&text[at + 1..])?;
        let (mut nodes, mut from) = (Vec::new(), from);
        for record in 0..records {
            let block = self.blocks.get(usize::try_from(record).ok()?);
            let start = from;
            let (_, size) = Encoding::Varint.read(text.get(from..)?)?;
            let (_, next) = Encoding::Varint.read(text.get(from + size..)?)?;
            from += size + next;
            let Some(block) = block else {
                reader.count_part().then_some(())?;
                let bytes = vec![Node::fixed(&text[start..from])];
                nodes.push(Group::part(reader.label(), bytes).into());
                continue;
            };
            let check = self.check.0 as i64;
            let unpadded = Meaning::Length(block.unpadded);
            let content = Meaning::Length(block.content);
            let raw = [&text[start..start + size], &text[start + size..from]];
            nodes.push(Node::Group(Group {
                part: Part::With(block.label),
                ..Group::new(
                    reader.label(),
                    vec![
                        reader.number(Encoding::Varint, unpadded, check, raw[0]),
                        reader.number(Encoding::Varint, content, 0, raw[1]),
                    ],
                )
            }));
        }
        let end = at + (from - at).next_multiple_of(ALIGN);
        let zeros = text.get(from..end)?;
        let nodes = vec![Node::fixed(&[0]), count, Group::new(list, nodes).into()];
        let index = vec![
            Group::new(inner, nodes).into(),
            match zeros.iter().all(|byte| *byte == 0) {
                true => pad(inner),
                false => Node::fixed(zeros),
            },
        ];
        let meaning = Meaning::Check(Sum::CRC32, label);
        let (sum, end) = number(reader, text, end, CRC32, meaning)?;
        Some((vec![Group::new(label, index).into(), sum], end))
    }

    /// Reads the stream footer at offset `at`: a checksum, the size of the index, and the flags of
    /// the stream header. `index` is the label (id in the file's tree) of the group of nodes of the
    /// index. `None` if there is no footer.
    fn foot(&self, reader: &mut Reader, at: usize, index: Label) -> Option<Vec<Node>> {
        let foot: Range<usize> = at + ALIGN..at + ENDS - FOOT.len();
        self.text.get(foot.end..)?.strip_prefix(FOOT)?;
        let label = reader.label();
        let meaning = Meaning::Check(Sum::CRC32, label);
        let encoding = Encoding::Units {
            is_big: false,
            width: 4,
            unit: ALIGN,
        };
        let (size, from) = number(
            reader,
            self.text,
            foot.start,
            encoding,
            Meaning::Length(index),
        )?;
        let flags = Node::fixed(&self.text[from..foot.end]);
        Some(vec![
            number(reader, self.text, at, CRC32, meaning)?.0,
            Group::new(label, vec![size, flags]).into(),
            Node::fixed(FOOT),
        ])
    }
}

/// Encoding of a block header's size: one byte, which counts words of 4 bytes.
const UNITS: Encoding = Encoding::Units {
    is_big: false,
    width: 1,
    unit: ALIGN,
};

/// Returns a node of zero bytes that pad the group of nodes `of` to a multiple of [`ALIGN`] bytes;
/// their number follows from the size that the group has when the file is written.
fn pad(of: Label) -> Node {
    Node::Pad {
        of,
        align: ALIGN,
        fill: 0,
    }
}

/// Returns the dictionary size, in bytes, that the byte `bits` encodes; `None` if the byte is not
/// valid.
fn dictionary_size(bits: u8) -> Option<u32> {
    match bits {
        0..LARGEST_DICTIONARY => Some((2 | u32::from(bits & 1)) << (bits / 2 + 11)),
        LARGEST_DICTIONARY => Some(u32::MAX),
        _ => None,
    }
}
