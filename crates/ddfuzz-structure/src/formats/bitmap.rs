//! Readers for pictures of Windows: BMP, and icons and cursors of several pictures.

use std::ops::Range;

use super::regions::Regions;
use crate::node::{Columns, Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Size of the head of a BMP file, in front of that of the picture.
const HEAD: usize = 14;
/// Sizes of heads of pictures.
const INFOS: [usize; 7] = [12, 40, 52, 56, 64, 108, 124];
/// Size of the oldest head, whose numbers have two bytes.
const OLD: usize = 12;
/// Methods by which pixels are not compressed.
const PLAIN: [u64; 2] = [0, 3];
/// Size of an entry of the list of an icon, and of what precedes the list.
const ENTRY: usize = 16;
const FRONT: usize = 6;

/// The size of a row of pixels is a multiple of this number of bytes.
const ALIGN: usize = 4;

/// Maximum number of bytes of pixels that are taken for indices of colors, each of its own.
const MOST_INDEXED: usize = 1 << 14;

/// Rows of pixels that are not compressed.
struct Rows {
    /// Number of bits of a pixel.
    bits: usize,
    /// Number of bytes of a row that contain pixels.
    used: usize,
    /// Size of a row in bytes, with the zeros at its end.
    size: usize,
    /// Number of rows.
    count: usize,
}

const WORD: Encoding = Encoding::Little(4);

/// Reads a BMP file: its size, the offset of the pixels, colors, and rows of pixels. `None` if the head
/// of the picture is unknown or the pixels are not in the file.
pub fn bmp(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let number = |at: usize, width: usize| Encoding::Little(width).read_at(text, at);
    let size = |at: usize| usize::try_from(number(at, 4)?).ok();
    let info = size(HEAD).filter(|info| INFOS.contains(info))?;
    let colors = HEAD + info;
    let start = size(10)?.max(colors);
    let (root, palette, pixels) = (reader.label(), reader.label(), reader.label());
    text.get(start..)?;
    let mut nodes = vec![
        Node::fixed(&text[..2]),
        reader.number(WORD, Meaning::Length(root), 0, &text[2..6]),
        Node::fixed(&text[6..10]),
        reader.number(WORD, Meaning::Offset(pixels, root), 0, &text[10..HEAD]),
        Node::fixed(&text[HEAD..HEAD + 4]),
    ];
    let rows = match info {
        OLD => {
            nodes.push(Node::payload(&text[HEAD + 4..colors]));
            None
        }
        _ => {
            let rows = rows_of(reader, text, start)?;
            nodes.extend(info_nodes(
                reader,
                &text[HEAD..colors],
                (pixels, palette),
                rows.as_ref(),
            ));
            rows
        }
    };
    let mut known = Vec::new();
    if colors < start {
        let entries = text[colors..start].chunks(if info == OLD { 3 } else { 4 });
        let is_counted = info > OLD && number(HEAD + 32, 4) == Some(entries.len() as u64);
        let entries: Vec<Node> = match is_counted && reader.count_parts(entries.len()) {
            true => color_nodes(reader, entries, &mut known),
            false => vec![Node::payload(&text[colors..start])],
        };
        nodes.push(Group::new(palette, entries).into());
    }
    let rows = pixel_nodes(reader, &text[start..], rows, &known);
    nodes.push(Group::new(pixels, rows).into());
    Some(vec![Group::new(root, nodes).into()])
}

/// Reads the numbers of a picture whose pixels begin at the offset `start`; `Some(None)` if they are
/// compressed, or there are fewer.
fn rows_of(reader: &mut Reader, text: &[u8], start: usize) -> Option<Option<Rows>> {
    let number = |at: usize, width: usize| Encoding::Little(width).read_at(text, at);
    let (width, height) = (number(HEAD + 4, 4)?, number(HEAD + 8, 4)?);
    let plain = number(HEAD + 16, 4).filter(|method| PLAIN.contains(method));
    let bits = number(HEAD + 14, 2)?;
    let used = usize::try_from(width.checked_mul(bits)?.div_ceil(8)).ok()?;
    let size = used.checked_next_multiple_of(ALIGN)?;
    let height = usize::try_from(height)
        .ok()
        .filter(|height| *height < 1 << 31);
    let fits = |rows: &usize| {
        let pixels = size.checked_mul(*rows);
        size > 0 && pixels.is_some_and(|pixels| pixels <= text.len() - start)
    };
    let rows = plain.and(height).filter(fits);
    let rows = rows.filter(|rows| reader.count_parts(*rows));
    Some(rows.map(|count| Rows {
        bits: bits as usize,
        used,
        size,
        count,
    }))
}

/// Makes a part of each color, and appends their labels, which follow each other, to `known`.
fn color_nodes(
    reader: &mut Reader,
    colors: std::slice::Chunks<'_, u8>,
    known: &mut Vec<Label>,
) -> Vec<Node> {
    known.extend(colors.clone().map(|_| reader.label()));
    let colors = colors.zip(&*known);
    let nodes = colors.map(|(color, label)| Group::part(*label, vec![Node::fixed(color)]).into());
    nodes.collect()
}

/// Makes the nodes of the head of a picture after its size: the size of the group `pixels`, the number
/// of colors of the group `palette`, and as height the number of rows, if these are parts.
fn info_nodes(
    reader: &Reader,
    head: &[u8],
    (pixels, palette): (Label, Label),
    rows: Option<&Rows>,
) -> Vec<Node> {
    let width = WORD
        .read_at(head, 4)
        .and_then(|width| usize::try_from(width).ok());
    let mut nodes = match (rows, width) {
        (Some(rows), Some(count)) => vec![
            Node::Columns(Columns {
                encoding: WORD,
                count,
                bits: rows.bits,
                rows: pixels,
            }),
            reader.number(WORD, Meaning::Count(pixels), 0, &head[8..12]),
        ],
        _ => vec![Node::payload(&head[4..8]), Node::payload(&head[8..12])],
    };
    nodes.push(Node::fixed(&head[12..20]));
    nodes.push(reader.number(WORD, Meaning::Length(pixels), 0, &head[20..24]));
    nodes.push(Node::fixed(&head[24..32]));
    nodes.push(reader.number(WORD, Meaning::Count(palette), 0, &head[32..36]));
    nodes.push(Node::fixed(&head[36..]));
    nodes
}

/// Makes the nodes of pixels: a part for each row, or one for all. `colors` are the labels of the colors.
fn pixel_nodes(
    reader: &mut Reader,
    bytes: &[u8],
    rows: Option<Rows>,
    colors: &[Label],
) -> Vec<Node> {
    let Some(rows) = rows else {
        let label = reader.label();
        return vec![Group::part(label, reader.payload(bytes)).into()];
    };
    let (pixels, rest) = bytes.split_at(rows.size * rows.count);
    let is_indexed = rows.bits == 8 && pixels.len() <= MOST_INDEXED;
    let colors = if is_indexed { colors } else { &[] };
    let parts = pixels.chunks(rows.size).map(|row| {
        let nodes = row_nodes(reader, row.split_at(rows.used), colors);
        Group::part(reader.label(), nodes).into()
    });
    let mut nodes: Vec<Node> = parts.collect();
    nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
    nodes
}

/// Makes the nodes of a row of pixels, and of the zeros that fill it up. Where `colors` are given, each
/// pixel is the index of one of them.
fn row_nodes(reader: &mut Reader, (pixels, rest): (&[u8], &[u8]), colors: &[Label]) -> Vec<Node> {
    let of = reader.label();
    // In place of a color that is gone, the pixel gets the next one.
    let color = |pixel: &u8| {
        let first = *colors.first()?;
        let is_known = usize::from(*pixel) <= colors.len();
        is_known.then(|| Meaning::Present(first, first + Label::from(*pixel)))
    };
    let nodes = pixels.iter().map(|pixel| match color(pixel) {
        Some(meaning) => reader.number(Encoding::Little(1), meaning, 0, &[*pixel]),
        None => Node::fixed(&[*pixel]),
    });
    let row = match colors.is_empty() {
        true => Group::new(of, vec![Node::payload(pixels)]),
        false => Group::new(of, nodes.collect()),
    };
    let rest = match rest.iter().all(|byte| *byte == 0) {
        true => Node::Pad {
            of,
            align: ALIGN,
            fill: 0,
        },
        false => Node::fixed(rest),
    };
    vec![row.into(), rest]
}

/// Reads an icon or cursor: a list of pictures, each with offset and size. `None` if a picture is not in
/// the file.
pub fn icon(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let size = |at: usize| usize::try_from(WORD.read_at(text, at)?).ok();
    let count = Encoding::Little(2).read_at(text, 4)? as usize;
    let front = FRONT + count * ENTRY;
    let entries = text.get(FRONT..front).filter(|_| count > 0)?;
    let (root, list) = (reader.label(), reader.label());
    let mut pictures = Regions::default();
    let mut places: Vec<Range<usize>> = Vec::with_capacity(count);
    for at in (FRONT..front).step_by(ENTRY) {
        let start = size(at + 12)?;
        let place = start..start.checked_add(size(at + 8)?)?;
        pictures.refer(reader, place.clone(), front, text.len());
        places.push(place);
    }
    let mut items = Vec::with_capacity(count);
    for (entry, place) in entries.chunks_exact(ENTRY).zip(&places) {
        reader.count_part().then_some(())?;
        let (of, part) = pictures.record(place);
        let mut nodes = vec![Node::fixed(&entry[..8])];
        match of {
            Some(of) => nodes.extend([
                reader.number(WORD, Meaning::Length(of), 0, &entry[8..12]),
                reader.number(WORD, Meaning::Offset(of, root), 0, &entry[12..]),
            ]),
            None => nodes.push(Node::fixed(&entry[8..])),
        }
        items.push(Node::Group(Group {
            part,
            ..Group::new(reader.label(), nodes)
        }));
    }
    // What is no list of pictures has other numbers in place of their offsets.
    places
        .iter()
        .any(|place| pictures.record(place).0.is_some())
        .then_some(())?;
    pictures.read(|place, _| Some(reader.content(&text[place])))?;
    let mut nodes = vec![
        Node::fixed(&text[..4]),
        reader.number(
            Encoding::Little(2),
            Meaning::Count(list),
            0,
            &text[4..FRONT],
        ),
        Group::new(list, items).into(),
    ];
    nodes.extend(pictures.nodes(text, front, text.len())?);
    Some(vec![Group::new(root, nodes).into()])
}
