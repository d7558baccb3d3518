//! Readers for tables of fonts whose records lead to data by offsets: `name`, `cmap` (characters to
//! glyphs) and `kern`.

use super::glyphs::Glyphs;
use super::image::rest;
use super::regions::Regions;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Two sizes in bytes: that of the header of the font table `name`, and that of one record in that
/// table.
const NAMES: (usize, usize) = (6, 12);
/// Two sizes in bytes: that of the header of the font table `cmap`, and that of one record in that
/// table.
const MAPS: (usize, usize) = (4, 8);

/// Returns the tree nodes of the table `name`: its records, and the strings to which they refer. If
/// the strings do not begin after the records and inside of the table, returns nodes of the records
/// alone. `None` if the text ends before the first record, or the file has too many parts.
pub fn names(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let number =
        |at: usize| -> Option<usize> { usize::try_from(Encoding::Big(2).read_at(text, at)?).ok() };
    let (head, size) = NAMES;
    let count = number(2)?;
    let front = head + count * size;
    let storage = number(4)?;
    if !(front..=text.len()).contains(&storage) {
        return names_alone(reader, text, count);
    }
    let records = text.get(head..front)?.chunks_exact(size);
    let mut regions = Regions::default();
    let mut places = Vec::new();
    for at in (head..front).step_by(size) {
        let start = storage + number(at + 10)?;
        let place = start..start + number(at + 8)?;
        regions.refer(reader, place.clone(), front.max(storage), text.len());
        places.push(place);
    }
    let (root, list, strings) = (reader.label(), reader.label(), reader.label());
    let mut nodes = Vec::new();
    for (record, place) in records.zip(&places) {
        let (of, part) = regions.record(place);
        let mut inner = vec![Node::fixed(&record[..8])];
        match of {
            Some(of) => inner.extend([
                reader.number(Encoding::Big(2), Meaning::Length(of), 0, &record[8..10]),
                reader.number(
                    Encoding::Big(2),
                    Meaning::Offset(of, strings),
                    0,
                    &record[10..],
                ),
            ]),
            None => inner.push(Node::fixed(&record[8..])),
        }
        nodes.push(Node::Group(Group {
            part,
            ..Group::new(reader.label(), inner)
        }));
        reader.count_part().then_some(())?;
    }
    let mut whole = vec![
        Node::fixed(&text[..2]),
        reader.number(Encoding::Big(2), Meaning::Count(list), 0, &text[2..4]),
        reader.number(
            Encoding::Big(2),
            Meaning::Offset(strings, root),
            0,
            &text[4..6],
        ),
        Group::new(list, nodes).into(),
    ];
    let gap = text.get(front..storage)?;
    whole.extend((!gap.is_empty()).then(|| Node::payload(gap)));
    let strings_nodes = regions.nodes(text, storage, text.len())?;
    whole.push(Group::new(strings, strings_nodes).into());
    Some(vec![Group::new(root, whole).into()])
}

/// Returns the tree nodes of a table `name` whose header states `count` records, without the
/// strings: each record that is in the text is a deletable part, and what follows the records is a
/// payload (changeable bytes). `None` if the text is shorter than the header, or the file has too
/// many parts.
fn names_alone(reader: &mut Reader, text: &[u8], count: usize) -> Option<Vec<Node>> {
    let (head, size) = NAMES;
    let records = text.get(head..)?.chunks_exact(size).take(count);
    let front = head + records.len() * size;
    reader.count_parts(records.len()).then_some(())?;
    let (root, list) = (reader.label(), reader.label());
    let number = match records.len() == count {
        true => reader.number(Encoding::Big(2), Meaning::Count(list), 0, &text[2..4]),
        false => Node::fixed(&text[2..4]),
    };
    let records = records.map(|record| {
        let record = vec![Node::payload(record)];
        Group::part(reader.label(), record).into()
    });
    let records = records.collect();
    let nodes = vec![
        Node::fixed(&text[..2]),
        number,
        Node::fixed(&text[4..head]),
        Group::new(list, records).into(),
        Node::payload(&text[front..]),
    ];
    Some(vec![Group::new(root, nodes).into()])
}

/// Returns the tree nodes of the table `cmap`: records, and the subtables (maps from characters to
/// glyphs) to which they refer. `None` if the text ends inside of the records, or the file has too
/// many parts.
pub fn maps(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let number = |at: usize, width: usize| -> Option<usize> {
        usize::try_from(Encoding::Big(width).read_at(text, at)?).ok()
    };
    let (head, size) = MAPS;
    let front = head + number(2, 2)? * size;
    let mut regions = Regions::default();
    let mut places = Vec::new();
    for at in (head..front).step_by(size) {
        let start = number(at + 4, 4)?;
        let length = match number(start, 2) {
            Some(0..8) => number(start + 2, 2),
            Some(14) => number(start + 2, 4),
            _ => number(start.saturating_add(4), 4),
        };
        let place = start..start.saturating_add(length.unwrap_or_default());
        regions.refer(reader, place.clone(), front, text.len());
        places.push(place);
    }
    let (root, list) = (reader.label(), reader.label());
    let mut nodes = Vec::new();
    for (record, place) in text.get(head..front)?.chunks_exact(size).zip(&places) {
        let (of, part) = regions.record(place);
        let offset = &record[4..];
        let inner = vec![
            Node::fixed(&record[..4]),
            match of {
                Some(of) => reader.number(Encoding::Big(4), Meaning::Offset(of, root), 0, offset),
                None => Node::fixed(offset),
            },
        ];
        nodes.push(Node::Group(Group {
            part,
            ..Group::new(reader.label(), inner)
        }));
        reader.count_part().then_some(())?;
    }
    regions.read(|place, label| map(reader, &text[place], label, glyphs))?;
    let mut whole = vec![
        Node::fixed(&text[..2]),
        reader.number(Encoding::Big(2), Meaning::Count(list), 0, &text[2..4]),
        Group::new(list, nodes).into(),
    ];
    whole.extend(regions.nodes(text, front, text.len())?);
    Some(vec![Group::new(root, whole).into()])
}

/// Returns the tree nodes of a subtable of `cmap`, whose group of nodes has the label `label` (id
/// in the file's tree). `None` if the text ends inside of its header.
fn map(
    reader: &mut Reader,
    text: &[u8],
    label: Label,
    glyphs: Option<&Glyphs>,
) -> Option<Vec<Node>> {
    let length = Meaning::Length(label);
    let (at, width) = match text.get(1)? {
        0..8 | 14 => (2, if text[1] == 14 { 4 } else { 2 }),
        _ => (4, 4),
    };
    let mut nodes = vec![
        Node::fixed(text.get(..at)?),
        reader.number(Encoding::Big(width), length, 0, text.get(at..at + width)?),
    ];
    let rest = &text[at + width..];
    let inner = match text[1] {
        4 => segments(reader, rest, glyphs),
        12 | 13 => ranges(reader, rest, glyphs),
        _ => None,
    };
    match inner {
        Some(inner) => nodes.extend(inner),
        None => nodes.extend((!rest.is_empty()).then(|| Node::payload(rest))),
    }
    Some(nodes)
}

/// Returns the tree nodes of `text`, a subtable of `cmap` in format 12 or 13 from behind its length
/// on: each range of characters is a deletable part, and its first glyph is an index into `glyphs`
/// that is computed anew. `None` if the text is too short, or the file has too many parts.
fn ranges(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let count = usize::try_from(Encoding::Big(4).read_at(text, 4)?).ok()?;
    let list = reader.label();
    let mut parts = Vec::new();
    for range in text.get(8..8 + count.checked_mul(12)?)?.chunks_exact(12) {
        reader.count_part().then_some(())?;
        let glyph = usize::try_from(Encoding::Big(4).read_at(range, 8)?).ok()?;
        let inner = vec![
            Node::fixed(&range[..8]),
            match glyphs.and_then(|glyphs| glyphs.index(glyph)) {
                Some(meaning) => reader.number(Encoding::Big(4), meaning, 0, &range[8..]),
                None => Node::fixed(&range[8..]),
            },
        ];
        parts.push(Group::part(reader.label(), inner).into());
    }
    let rest = &text[8 + count * 12..];
    let mut nodes = vec![
        Node::fixed(&text[..4]),
        reader.number(Encoding::Big(4), Meaning::Count(list), 0, &text[4..8]),
        Group::new(list, parts).into(),
    ];
    nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
    Some(nodes)
}

/// Returns the tree nodes of what follows the length in a subtable of `cmap` in format 4: four
/// lists with an item for each segment (last character, first character, distance from a
/// character's number to the index of its glyph, and an offset). The last character is a deletable
/// part; the segment's items in the other lists are deleted together with it. `None` if the text
/// ends before the lists do, or the file has too many parts.
fn segments(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let word = |at: usize| {
        Some(usize::from(u16::from_be_bytes(
            *text.get(at..)?.first_chunk()?,
        )))
    };
    let size = word(2)?;
    // A word without meaning follows the ends.
    let (ends, starts) = (10, 12 + size);
    let (deltas, offsets) = (starts + size, starts + 2 * size);
    let rest = text.get(offsets + size..).filter(|_| size % 2 == 0)?;
    let labels: Vec<Label> = (0..size / 2).map(|_| reader.label()).collect();
    let list = reader.label();
    let mut columns = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for (index, label) in labels.iter().enumerate() {
        reader.count_part().then_some(())?;
        let at = |column: usize| column + 2 * index;
        let bytes = |column: usize| &text[at(column)..at(column) + 2];
        let (start, delta) = (word(at(starts))?, word(at(deltas))?);
        let glyph = (start + delta) & 0xffff;
        let glyph = match word(at(offsets))? {
            0 => glyphs.and_then(|glyphs| glyphs.index(glyph)),
            _ => None,
        };
        let delta = match glyph {
            Some(glyph) => reader.number(Encoding::Big(2), glyph, -(start as i64), bytes(deltas)),
            None => Node::fixed(bytes(deltas)),
        };
        columns[0].push(Group::part(*label, vec![Node::fixed(bytes(ends))]).into());
        let others = [
            Node::fixed(bytes(starts)),
            delta,
            Node::fixed(bytes(offsets)),
        ];
        for (column, node) in columns[1..].iter_mut().zip(others) {
            column.push(Node::Group(Group {
                part: Part::With(*label),
                ..Group::new(reader.label(), vec![node])
            }));
        }
    }
    let [first, others @ ..] = columns;
    let mut nodes = vec![
        Node::fixed(&text[..2]),
        reader.number(Encoding::Big(2), Meaning::Length(list), 0, &text[2..4]),
        Node::fixed(&text[4..10]),
        Group::new(list, first).into(),
        Node::fixed(&text[ends + size..starts]),
    ];
    nodes.extend(others.into_iter().flatten());
    nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
    Some(nodes)
}

/// Returns the tree nodes of the table `kern`: each subtable is a deletable part and, in subtables
/// of format 0, each pair of glyphs. `None` if the text ends inside of a subtable, or the file has
/// too many parts.
pub fn kerning(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let word = |at: usize| Encoding::Big(2).read_at(text, at);
    let count = word(2).filter(|_| word(0) == Some(0))?;
    let list = reader.label();
    let (mut subtables, mut at) = (Vec::new(), 4);
    for _ in 0..count {
        let end = at + usize::try_from(word(at + 2)?).ok()?;
        let body = text.get(at + 6..end)?;
        let own = reader.label();
        let mut nodes = vec![
            Node::fixed(&text[at..at + 2]),
            reader.number(
                Encoding::Big(2),
                Meaning::Length(own),
                0,
                &text[at + 2..at + 4],
            ),
            Node::fixed(&text[at + 4..at + 6]),
        ];
        match text[at + 4] {
            0 => nodes.extend(pairs(reader, body, glyphs)?),
            _ => nodes.push(Node::payload(body)),
        }
        reader.count_part().then_some(())?;
        subtables.push(Group::part(own, nodes).into());
        at = end;
    }
    let nodes = vec![
        Node::fixed(&text[..2]),
        reader.number(Encoding::Big(2), Meaning::Count(list), 0, &text[2..4]),
        Group::new(list, subtables).into(),
    ];
    Some(rest(nodes, text, at))
}

/// Returns the tree nodes of a `kern` subtable of format 0 after its header: each pair of glyphs is
/// a deletable part. `None` if the text ends inside of a pair, or the file has too many parts.
fn pairs(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let count = usize::try_from(Encoding::Big(2).read_at(text, 0)?).ok()?;
    let list = reader.label();
    let mut pairs = Vec::with_capacity(count);
    for pair in text.get(8..8 + 6 * count)?.chunks_exact(6) {
        reader.count_part().then_some(())?;
        let glyph = |raw: &[u8]| {
            let index = usize::from(u16::from_be_bytes([raw[0], raw[1]]));
            match glyphs.and_then(|glyphs| glyphs.index(index)) {
                Some(meaning) => reader.number(Encoding::Big(2), meaning, 0, raw),
                None => Node::fixed(raw),
            }
        };
        let nodes = vec![
            glyph(&pair[..2]),
            glyph(&pair[2..4]),
            Node::fixed(&pair[4..]),
        ];
        pairs.push(Group::part(reader.label(), nodes).into());
    }
    let rest = &text[8 + 6 * count..];
    let mut nodes = vec![
        reader.number(Encoding::Big(2), Meaning::Count(list), 0, &text[..2]),
        Node::fixed(&text[2..8]),
        Group::new(list, pairs).into(),
    ];
    nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
    Some(nodes)
}
