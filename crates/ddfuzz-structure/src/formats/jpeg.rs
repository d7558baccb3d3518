//! Reader for JPEG files: segments with their lengths, the tables in them, and pixels.

use super::image::rest;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Marker of a segment with quantization tables (DQT).
const QUANTIZATION: u8 = 0xdb;
/// Marker of a segment with Huffman tables (DHT).
const HUFFMAN: u8 = 0xc4;
/// Marker of the segment that precedes compressed pixels (SOS).
const SCAN: u8 = 0xda;
/// Number of different lengths that Huffman codes can have: from 1 to 16 bits.
const CODE_LENGTHS: usize = 16;

/// Reads a JPEG file: segments, each with a marker, a length that includes its own two bytes, and
/// data; compressed pixels follow the segment that starts a scan. From the first segment that
/// cannot be read, all bytes are one payload (changeable bytes); `None` only if the text has fewer
/// than two bytes.
pub fn jpeg(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut nodes = vec![Node::fixed(text.get(..2)?)];
    let mut at = 2;
    while at < text.len() && reader.count_part() {
        let Some((segment, size)) = jpeg_segment(reader, &text[at..]) else {
            break;
        };
        let label = reader.label();
        nodes.push(Group::part(label, segment).into());
        at += size;
    }
    Some(rest(nodes, text, at))
}

/// Reads the segment at the beginning of `text`, part of a JPEG file; returns its nodes and its
/// size in bytes. `None` if there is no marker, or the text ends inside of the segment.
fn jpeg_segment(reader: &mut Reader, text: &[u8]) -> Option<(Vec<Node>, usize)> {
    let marker = *text.get(1).filter(|_| text[0] == 0xff)?;
    if matches!(marker, 0xd0..=0xd9 | 0x01) {
        return Some((vec![Node::fixed(&text[..2])], 2));
    }
    let length = usize::from(u16::from_be_bytes(*text.get(2..)?.first_chunk()?));
    let data = text.get(4..2 + length)?;
    let (counted, label) = (reader.label(), reader.label());
    let inner = match marker {
        QUANTIZATION => quantization(reader, data),
        HUFFMAN => huffman(reader, data),
        _ => None,
    };
    let inner = inner.unwrap_or_else(|| reader.payload(data));
    let number = reader.number(Encoding::Big(2), Meaning::Length(counted), 0, &text[2..4]);
    let counted_nodes = vec![number, Group::new(label, inner).into()];
    let mut nodes = vec![
        Node::fixed(&text[..2]),
        Group::new(counted, counted_nodes).into(),
    ];
    let mut end = 2 + length;
    if marker == SCAN {
        // The picture ends at a marker that is neither a stuffed byte nor a restart.
        let picture = &text[end..];
        let markers = picture.windows(2);
        let is_end = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7);
        let size = markers
            .into_iter()
            .position(is_end)
            .unwrap_or(picture.len());
        if size > 0 {
            nodes.push(Node::payload(&picture[..size]));
        }
        end += size;
    }
    Some((nodes, end))
}

/// Makes a deletable part of each quantization table in a segment: precision and number of the
/// table, and 64 values of one or two bytes. `None` if the segment does not consist of such tables.
fn quantization(reader: &mut Reader, mut data: &[u8]) -> Option<Vec<Node>> {
    let mut tables = Vec::new();
    while let Some(kind) = data.first() {
        let size = 1 + if kind & 0xf0 == 0 { 64 } else { 128 };
        let (table, others) = data.split_at_checked(size)?;
        reader.count_part().then_some(())?;
        tables.push(Group::part(reader.label(), vec![Node::fixed(table)]).into());
        data = others;
    }
    Some(tables)
}

/// Makes a deletable part of each Huffman table in a segment, and of each symbol in a table. A
/// table states its kind and number, how many codes of each length it has, and the symbols of these
/// codes. Codes are numbered in ascending order, so deleting the last symbol of a length leaves the
/// codes before it as they are. `None` if the segment does not consist of such tables.
fn huffman(reader: &mut Reader, mut data: &[u8]) -> Option<Vec<Node>> {
    let mut tables = Vec::new();
    while !data.is_empty() {
        let (head, rest) = data.split_at_checked(1 + CODE_LENGTHS)?;
        let counts = &head[1..];
        let codes: usize = counts.iter().map(|count| usize::from(*count)).sum();
        let (mut values, others) = rest.split_at_checked(codes)?;
        let (mut numbers, mut lists) = (vec![Node::fixed(&head[..1])], Vec::new());
        for count in counts {
            let list: Label = reader.label();
            let (these, later) = values.split_at(usize::from(*count));
            let mut parts = Vec::with_capacity(these.len());
            for value in these {
                reader.count_part().then_some(())?;
                parts.push(Group::part(reader.label(), vec![Node::fixed(&[*value])]).into());
            }
            numbers.push(reader.number(Encoding::Big(1), Meaning::Count(list), 0, &[*count]));
            lists.push(Group::new(list, parts).into());
            values = later;
        }
        reader.count_part().then_some(())?;
        numbers.extend(lists);
        tables.push(Node::Group(Group {
            part: Part::Own,
            ..Group::new(reader.label(), numbers)
        }));
        data = others;
    }
    Some(tables)
}
