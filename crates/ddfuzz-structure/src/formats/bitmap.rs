//! Readers for pictures of Windows: BMP files, and icons and cursors, which contain several
//! pictures.

use std::ops::Range;

use super::regions::Regions;
use crate::node::{Columns, Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Size, in bytes, of the file header of a BMP file, which precedes the header of the picture (DIB
/// header).
const HEAD: usize = 14;
/// Known sizes, in bytes, of a picture's header (DIB header).
const INFOS: [usize; 7] = [12, 40, 52, 56, 64, 108, 124];
/// Size of the oldest DIB header (`BITMAPCOREHEADER`), in which width and height have two bytes.
const OLD: usize = 12;
/// Compression methods of BMP for which pixels are stored without compression.
const PLAIN: [u64; 2] = [0, 3];
/// Size, in bytes, of an entry in the directory of an icon.
const ENTRY: usize = 16;
/// Size, in bytes, of the header that precedes the directory of an icon.
const FRONT: usize = 6;

/// The size of a row of pixels is padded to a multiple of this number of bytes.
const ALIGN: usize = 4;

/// Maximum size, in bytes, of pixels that become indices of colors, one node for each pixel.
const MOST_INDEXED: usize = 1 << 14;

/// The rows of a picture whose pixels are not compressed.
struct Rows {
    /// Size of a pixel in bits.
    bits: usize,
    /// Number of bytes of a row that contain pixels.
    used: usize,
    /// Size of a row in bytes, including the zeros that pad it.
    size: usize,
    /// Number of rows of the picture.
    count: usize,
}

const WORD: Encoding = Encoding::Little(4);

/// Reads a BMP file: its size, the offset of the pixels, the color table, and rows of pixels.
/// `None` if the picture's header is of an unknown size, or the pixels are not in the file.
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

/// Reads from the DIB header how the rows of a picture are stored; the pixels begin at offset
/// `start`. `Some(None)` if the pixels are compressed, or not all rows are in the file; `None` if
/// the file ends inside of the header.
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

/// Makes a deletable part of each color of the color table, and appends the labels (ids in the
/// file's tree) of these parts, successive numbers, to `known`.
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

/// Returns the tree nodes of `head`, a DIB header, without its first four bytes: width and height
/// (the numbers of columns and rows, if `rows` are known), the size of the group of nodes `pixels`,
/// and the number of colors in the group `palette`.
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

/// Returns the tree nodes of the pixels of a picture: a deletable part for each row, or one part
/// for all if `rows` is `None`. `colors` are the labels (ids in the file's tree) of the colors in
/// the color table, if they are parts.
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

/// Returns the tree nodes of a row: its pixels, and the bytes `rest` that pad it. If `colors` are
/// given, each pixel is the index of one of these colors, which is computed anew when colors are
/// deleted.
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

/// Reads an icon or cursor: a directory with the offset and size of each picture, and the pictures.
/// `None` if no entry of the directory leads to a picture in the file.
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
