//! Readers for GIF, FLAC and Ogg files: images and sound in which not every block states its length
//! in one number.

use crate::node::{Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::packed::{Codec, Packed};
use crate::reader::Reader;
use crate::sum::Sum;

/// Returns `nodes` followed by a payload (changeable bytes) of the bytes of `text` from offset `at`
/// on; without the payload, if there are no such bytes.
pub fn rest(mut nodes: Vec<Node>, text: &[u8], at: usize) -> Vec<Node> {
    if at < text.len() {
        nodes.push(Node::payload(&text[at..]));
    }
    nodes
}

/// Reads the parts that follow each other from the beginning of `text` on, as many as `one` can
/// read, and returns them followed by a payload of the bytes after the last one; `None` if there is
/// no part. `one` returns the part at the beginning of its text, and its size in bytes.
pub fn series(
    reader: &mut Reader,
    text: &[u8],
    one: impl Fn(&mut Reader, &[u8]) -> Option<(Node, usize)>,
) -> Option<Vec<Node>> {
    let (mut nodes, mut at) = (Vec::new(), 0);
    while at < text.len() && reader.count_part() {
        let Some((part, size)) = one(reader, &text[at..]) else {
            break;
        };
        nodes.push(part);
        at += size;
    }
    (at > 0).then(|| rest(nodes, text, at))
}

/// Reads a GIF file: a color table, extensions and images, each with data blocks that begin with
/// their length. From the first block that cannot be read, all bytes are one payload (changeable
/// bytes); `None` only if the text ends before or inside of the file's color table.
pub fn gif(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let head = text.get(..13)?;
    let table = color_table(head[10]);
    let mut nodes = vec![Node::fixed(&head[..6]), Node::payload(&head[6..10])];
    let mut at = 13 + table;
    let colors = text.get(13..at)?;
    nodes.extend(gif_colors(reader, head[10], &head[11..], colors));
    while at < text.len() && reader.count_part() {
        let Some((block, size)) = gif_block(reader, &text[at..]) else {
            break;
        };
        let label = reader.label();
        nodes.push(Group::part(label, block).into());
        at += size;
    }
    Some(rest(nodes, text, at))
}

/// Returns the size, in bytes, of the GIF color table that the byte `flags` describes; 0 if it says
/// that there is none.
fn color_table(flags: u8) -> usize {
    match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    }
}

/// Returns the tree nodes of a GIF color table and of what precedes it: the byte `flags`, whose low
/// bits state the table's size, the bytes `between`, and the table `colors`. The entire table is a
/// deletable part, and inside of it the colors 2 to 3, 4 to 7, 8 to 15, … are parts.
fn gif_colors(reader: &mut Reader, flags: u8, between: &[u8], colors: &[u8]) -> Vec<Node> {
    let table = reader.label();
    let encoding = Encoding::Colors(flags & !0x87);
    let mut nodes = vec![reader.number(encoding, Meaning::Length(table), 0, &[flags])];
    nodes.push(Node::fixed(between));
    if colors.is_empty() {
        return nodes;
    }
    let mut from = 6;
    let mut halves = vec![Node::fixed(&colors[..from])];
    while from < colors.len() {
        let half = vec![Node::fixed(&colors[from..2 * from])];
        halves.push(Group::part(reader.label(), half).into());
        from *= 2;
    }
    let all = Group::part(reader.label(), halves).into();
    nodes.push(Group::new(table, vec![all]).into());
    nodes
}

/// Reads the block at the beginning of `text` (an extension, an image, or the end of the GIF file);
/// returns its nodes and its size in bytes. `None` if there is none.
fn gif_block(reader: &mut Reader, text: &[u8]) -> Option<(Vec<Node>, usize)> {
    match *text.first()? {
        0x3b => Some((vec![Node::fixed(&text[..1])], 1)),
        0x21 => {
            let mut nodes = vec![Node::fixed(text.get(..2)?)];
            let end = gif_data(reader, text, 2, &mut nodes)?;
            Some((nodes, end))
        }
        0x2c => gif_picture(reader, text),
        _ => None,
    }
}

/// Reads the image at the beginning of `text`, a block of a GIF file: position and size, color
/// table, and LZW-compressed pixels. Returns its nodes and its size in bytes; `None` if the text
/// ends inside of the image.
fn gif_picture(reader: &mut Reader, text: &[u8]) -> Option<(Vec<Node>, usize)> {
    let flags = *text.get(9)?;
    let head = 10 + color_table(flags);
    let mut nodes = vec![Node::fixed(&text[..1]), Node::payload(&text[1..9])];
    let colors = text.get(10..head)?;
    nodes.extend(gif_colors(reader, flags, &[], colors));
    let mut closed = vec![Node::fixed(text.get(head..=head)?)];
    let end = gif_data(reader, text, head + 1, &mut closed)?;
    match Codec::Gif.unpack(&text[head..end], &mut reader.unpacked) {
        Some(content) => {
            let content = Group::new(reader.label(), vec![Node::payload(&content)]);
            let packed = Packed {
                closed,
                packed: text[head..end].into(),
                ..Packed::new(Codec::Gif, content)
            };
            nodes.push(Node::Packed(packed));
        }
        None => nodes.extend(closed),
    }
    Some((nodes, end))
}

/// Reads the data blocks of a GIF file from offset `at`, each after its length, up to an empty
/// block; appends their nodes to `nodes`, and returns the offset after the empty block. `None` if
/// the text ends before it, or the file has too many parts.
fn gif_data(
    reader: &mut Reader,
    text: &[u8],
    mut at: usize,
    nodes: &mut Vec<Node>,
) -> Option<usize> {
    loop {
        let size = usize::from(*text.get(at)?);
        if size == 0 {
            nodes.push(Node::fixed(&[0]));
            return Some(at + 1);
        }
        let bytes = text
            .get(at + 1..at + 1 + size)
            .filter(|_| reader.count_part())?;
        let label = reader.label();
        let length = Meaning::Length(label);
        let block = vec![
            reader.number(Encoding::Little(1), length, 0, &text[at..=at]),
            Group::new(label, vec![Node::payload(bytes)]).into(),
        ];
        let part = reader.label();
        nodes.push(Group::part(part, block).into());
        at += 1 + size;
    }
}

/// Reads a FLAC file: metadata blocks, each with a length, and frames. From the first frame that
/// cannot be read, all bytes are one payload (changeable bytes); `None` only if the text has fewer
/// than four bytes.
pub fn flac(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut nodes = vec![Node::fixed(text.get(..4)?)];
    let mut starts = Vec::new();
    let mut at = 4;
    while let Some(head) = text.get(at..at + 4).filter(|_| reader.count_part()) {
        let (length, _) = Encoding::Big(3).read(&head[1..])?;
        let end = at + 4 + usize::try_from(length).ok()?;
        if end > text.len() {
            break;
        }
        starts.push(at..end);
        at = end;
        if head[0] & LAST_BLOCK != 0 {
            break;
        }
    }
    let root = reader.label();
    let labels: Vec<Label> = starts.iter().map(|_| reader.label()).collect();
    let mut blocks = Vec::new();
    for (index, place) in starts.into_iter().enumerate() {
        let block = flac_block(reader, &text[place], (root, &labels[index..]));
        blocks.push(Group::part(labels[index], block).into());
    }
    nodes.push(Group::new(root, blocks).into());
    while let Some((frame, size)) = text.get(at..).and_then(|text| flac_frame(reader, text)) {
        nodes.push(frame);
        at += size;
    }
    Some(rest(nodes, text, at))
}

/// Bit of the first byte of a FLAC metadata block which says that the block is the last one.
const LAST_BLOCK: u8 = 0x80;

/// Returns the tree nodes of a FLAC metadata block: its kind with the flag of the last block, its
/// length, and its data. `root` is the label (id in the file's tree) of the group of nodes of all
/// blocks; `labels` are the labels of this block and of those after it.
fn flac_block(reader: &mut Reader, text: &[u8], (root, labels): (Label, &[Label])) -> Vec<Node> {
    let (head, data) = text.split_at(4);
    let kind = head[0] & !LAST_BLOCK;
    let first = match labels.get(1) {
        Some(first) => {
            let last = labels[labels.len() - 1];
            let next = Meaning::Next {
                first: *first,
                last,
                from: root,
            };
            reader.number(Encoding::Last(kind), next, 0, &head[..1])
        }
        None => Node::fixed(&head[..1]),
    };
    let label = reader.label();
    let number = reader.number(Encoding::Big(3), Meaning::Length(label), 0, &head[1..]);
    let fields = super::table::flac_block(kind);
    let nodes = fields.and_then(|fields| reader.deeper(|reader| reader.table(fields, data)));
    let nodes = nodes.unwrap_or_else(|| reader.payload(data));
    vec![first, number, Group::new(label, nodes).into()]
}

/// Reads the FLAC frame at the beginning of `text`: a header with a checksum, samples, and a
/// checksum of the frame. Returns the frame with its size in bytes. The frame ends at the first
/// place where its checksum is right and the text ends or another frame begins; `None` if there is
/// no such place among the first [`MOST_ENDS`].
fn flac_frame(reader: &mut Reader, text: &[u8]) -> Option<(Node, usize)> {
    let head = flac_head(text)?;
    let is_end = |end: &usize| {
        let next = &text[*end..];
        next.is_empty() || next[0] == 0xff && flac_head(next).is_some()
    };
    let agrees = |end: &usize| {
        let stated = [text[*end - 2], text[*end - 1]];
        Sum::FlacFrame.of(&text[..*end - 2]) == u64::from(u16::from_be_bytes(stated))
    };
    let end = (head + 3..=text.len())
        .filter(is_end)
        .take(MOST_ENDS)
        .find(agrees);
    let end = end.filter(|_| reader.count_part())?;
    let (whole, summed, start) = (reader.label(), reader.label(), reader.label());
    let head_sum = Meaning::Check(Sum::FlacHead, start);
    let sum = Meaning::Check(Sum::FlacFrame, summed);
    let fields = vec![Node::fixed(&text[..2]), Node::payload(&text[2..head])];
    let frame = vec![
        Group::new(start, fields).into(),
        reader.number(Encoding::Big(1), head_sum, 0, &text[head..=head]),
        Group {
            least: flac_least(text).unwrap_or_default(),
            ..Group::new(
                reader.label(),
                vec![Node::payload(&text[head + 1..end - 2])],
            )
        }
        .into(),
    ];
    let nodes = vec![
        Group::new(summed, frame).into(),
        reader.number(Encoding::Big(2), sum, 0, &text[end - 2..end]),
    ];
    Some((Group::part(whole, nodes).into(), end))
}

/// Returns the shortest bytes that may stand in place of the samples of the FLAC frame at the
/// beginning of `text`: silence in all channels. `None` if the frame's header does not state the
/// bits of a sample.
fn flac_least(text: &[u8]) -> Option<&'static [u8]> {
    let byte = usize::from(*text.get(3)?);
    let bits = match byte >> 1 & 7 {
        1 => 8,
        2 => 12,
        4 => 16,
        5 => 20,
        6 => 24,
        _ => return None,
    };
    // Each channel has a head of eight bits; the difference of two channels takes a bit more.
    let size = match byte >> 4 {
        channels @ 0..8 => (channels + 1) * (8 + bits),
        _ => 2 * (8 + bits) + 1,
    };
    ZEROS.get(..size.div_ceil(8))
}

/// Zero bytes, from whose beginning the shortest possible samples of a FLAC frame are taken; a
/// frame with the most channels needs all of them.
static ZEROS: [u8; 32] = [0; 32];

/// Maximum number of offsets that are tried as the end of a FLAC frame.
const MOST_ENDS: usize = 16;

/// Returns the size, in bytes, of the header of a FLAC frame at the beginning of `text`, not
/// counting the checksum at the header's end; `None` if there is no header, or its checksum is
/// wrong.
fn flac_head(text: &[u8]) -> Option<usize> {
    let head = text
        .first_chunk::<5>()
        .filter(|head| head[0] == 0xff && head[1] & 0xfe == 0xf8)?;
    let number = match head[4].leading_ones() {
        0 => 1,
        ones @ 2..=7 => ones as usize,
        _ => return None,
    };
    let samples = match head[2] >> 4 {
        6 => 1,
        7 => 2,
        _ => 0,
    };
    let rate = match head[2] & 0xf {
        12 => 1,
        13 | 14 => 2,
        _ => 0,
    };
    let size = 4 + number + samples + rate;
    let sum = u64::from(*text.get(size)?);
    (Sum::FlacHead.of(&text[..size]) == sum).then_some(size)
}

/// Reads an Ogg file: pages, each with a checksum and with segments whose sizes precede them. From
/// the first page that cannot be read, all bytes are one payload (changeable bytes); the result is
/// never `None`.
pub fn ogg(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    series(reader, text, ogg_page).or_else(|| Some(rest(Vec::new(), text, 0)))
}

/// Reads the page at the beginning of `text`, part of an Ogg file; returns the page with its size
/// in bytes. `None` if there is none, or the text ends inside of it.
fn ogg_page(reader: &mut Reader, text: &[u8]) -> Option<(Node, usize)> {
    let head = text.get(..27).filter(|head| head.starts_with(b"OggS"))?;
    let count = usize::from(head[26]);
    let sizes = text.get(27..27 + count)?;
    let size: usize = sizes.iter().map(|size| usize::from(*size)).sum();
    let end = 27 + count + size;
    let data = text.get(27 + count..end)?;
    let label = reader.label();
    let sum = Meaning::Check(Sum::Ogg, label);
    let segments = reader.label();
    let mut nodes = vec![
        Node::fixed(&head[..22]),
        reader.number(Encoding::Little(4), sum, 0, &head[22..26]),
        reader.number(
            Encoding::Little(1),
            Meaning::Count(segments),
            0,
            &head[26..],
        ),
    ];
    // A segment is a part with its size in the table, so that both are deleted together.
    let mut table = Vec::new();
    let mut bodies = Vec::new();
    let mut from = 0;
    for size in sizes {
        let (part, body, to) = (reader.label(), reader.label(), from + usize::from(*size));
        let bytes = Node::payload(&data[from..to]);
        let length = reader.number(Encoding::Little(1), Meaning::Length(body), 0, &[*size]);
        table.push(Node::Group(Group {
            part: crate::node::Part::With(part),
            ..Group::new(reader.label(), vec![length])
        }));
        let inner = vec![Group::new(body, vec![bytes]).into()];
        bodies.push(Node::Group(Group::part(part, inner)));
        from = to;
    }
    nodes.push(Group::new(segments, table).into());
    nodes.extend(bodies);
    Some((Group::part(label, nodes).into(), end))
}
