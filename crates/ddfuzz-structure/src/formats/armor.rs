//! Reader for blocks of OpenPGP in ASCII armor: bytes in Base64 between two lines of dashes, with
//! their CRC-24 in the last line.

use std::ops::Range;

use super::counted::lines;
use super::sum_places::line_end;
use crate::base64;
use crate::node::{Group, Meaning, Node};
use crate::number::Encoding;
use crate::packed::Codec;
use crate::reader::Reader;
use crate::sum::Sum;

/// Beginning of the first line of a block of OpenPGP.
const BEGIN: &[u8] = b"-----BEGIN PGP ";
/// Beginning of the last line of a block of OpenPGP.
const END: &[u8] = b"-----END PGP ";
/// Encoding of the checksum, which follows an equals sign: three bytes in Base64.
const CHECKSUM: Encoding = Encoding::Base64(3);
/// Number of characters of the checksum in the text: three bytes in Base64.
const WIDTH: usize = 4;
/// Maximum number of lines between the first line of a block and its content, with the empty line
/// that ends them.
const MOST_HEADS: usize = 16;

/// A block of OpenPGP in ASCII armor whose checksum is right. Ranges are offsets in the text.
struct Block {
    /// Range of all lines of the block, from the one that begins with [`BEGIN`] to the one that
    /// begins with [`END`] or, if the latter does not follow, to the line of the checksum.
    lines: Range<usize>,
    /// Range of the content in Base64, without the newline before the line of the checksum.
    body: Range<usize>,
    /// Range of the Base64 characters of the checksum, behind the equals sign.
    checksum: Range<usize>,
    /// Encoding of the content: Base64 in lines as long as the first line of the block's content.
    codec: Codec,
    /// The content, decoded from Base64.
    bytes: Vec<u8>,
}

impl Block {
    /// Reads the block whose first line begins at the offset `start` of `text`; `None` if the block
    /// is malformed, or its checksum is wrong.
    fn at(text: &[u8], start: usize) -> Option<Block> {
        let mut at = line_end(text, start);
        for _ in 0..MOST_HEADS {
            let end = line_end(text, at);
            let is_empty = &text[at..end] == b"\n";
            at = end;
            if is_empty {
                return Block::behind_heads(text, start, at);
            }
        }
        None
    }

    /// Reads the block whose first line begins at the offset `start` and whose content in Base64
    /// begins at the offset `from`, after the empty line. `None` if the block is malformed, or its
    /// checksum is wrong.
    fn behind_heads(text: &[u8], start: usize, from: usize) -> Option<Block> {
        let digits = text[from..].iter();
        let digits =
            digits.take_while(|byte| base64::is_digit(**byte) || matches!(byte, b'=' | b'\n'));
        let all = &text[..from + digits.count()];
        // The line of the checksum is the last one.
        let line = all.trim_ascii_end();
        let checksum = line.len().checked_sub(WIDTH)?..line.len();
        let front = text[from..checksum.start.max(from)].strip_suffix(b"\n=")?;
        let body = from..from + front.len();
        let width = line_end(text, from).min(body.end) - from;
        let is_broken = front.contains(&b'\n');
        let codec = Codec::Base64(width - usize::from(is_broken && width > 0));
        let bytes = codec
            .unpack(front, &mut 0)
            .filter(|bytes| !bytes.is_empty())?;
        let is_right = CHECKSUM.write(Sum::Crc24.of(&bytes)) == text[checksum.clone()];
        let end = line_end(text, checksum.end);
        let last = line_end(text, end);
        let is_ended = text[end..last].starts_with(END);
        is_right.then_some(Block {
            lines: start..if is_ended { last } else { end },
            body,
            checksum,
            codec,
            bytes,
        })
    }

    /// Returns the tree nodes of the block: its lines up to the content, the content as a packed
    /// node, the checksum as a number, and the bytes between and after these.
    fn nodes(&self, reader: &mut Reader, text: &[u8]) -> Vec<Node> {
        let of = reader.label();
        let packed = reader.packed_as(of, self.codec, &self.bytes, &text[self.body.clone()]);
        let check = Meaning::Check(Sum::Crc24, of);
        let mut nodes = lines(reader, &text[self.lines.start..self.body.start]);
        nodes.push(packed);
        nodes.push(Node::payload(&text[self.body.end..self.checksum.start]));
        nodes.push(reader.number(CHECKSUM, check, 0, &text[self.checksum.clone()]));
        nodes.push(Node::payload(&text[self.checksum.end..self.lines.end]));
        nodes
    }
}

/// Reads a text with blocks of OpenPGP in ASCII armor, and returns its tree nodes; each block with
/// a right checksum becomes a part that can be deleted, unless the text has too many parts. `None`
/// if there is no such block.
pub(super) fn armor(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let begins = memchr::memmem::find_iter(text, BEGIN);
    let begins = begins.filter(|at| *at == 0 || text[at - 1] == b'\n');
    let blocks: Vec<Block> = begins.filter_map(|at| Block::at(text, at)).collect();
    let (mut nodes, mut at) = (Vec::new(), 0);
    for block in &blocks {
        nodes.extend(lines(reader, &text[at..block.lines.start]));
        let inner = block.nodes(reader, text);
        let label = reader.label();
        nodes.push(match reader.count_part() {
            true => Group::part(label, inner).into(),
            false => Group::new(label, inner).into(),
        });
        at = block.lines.end;
    }
    nodes.extend(lines(reader, &text[at..]));
    (!blocks.is_empty()).then_some(nodes)
}
