//! Reader for TrueType and OpenType fonts: tables after a directory of their offsets, lengths and
//! checksums.

use super::cff::cff;
use super::font_tables::{kerning, maps, names};
use super::glyphs::Glyphs;
use super::layout::{definitions, layout};
use crate::node::{Group, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;
use crate::sum::Sum;

/// Size of a font's header (offset table), in bytes.
const HEAD: usize = 12;
/// Size of an entry of a font's table directory, in bytes.
const ENTRY: usize = 16;
/// Maximum number of entries of a font's directory; a longer one is not read.
const MOST_TABLES: usize = 1 << 12;

/// A table of a font: the bytes of its entry in the directory, and its offset and size in the file.
struct Table<'a> {
    entry: &'a [u8],
    at: usize,
    size: usize,
    /// Labels (ids in the file's tree) of the group of nodes of the table with its padding, and of
    /// the group of its bytes alone; `None` if the table is not in the file, or overlaps another
    /// one.
    labels: Option<(u32, u32)>,
}

/// Reads a TrueType or OpenType font into the nodes of its tree; `None` if its directory is
/// incomplete or too long, or no table is in the file.
pub fn sfnt(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let count = usize::from(u16::from_be_bytes(*text.get(4..)?.first_chunk()?));
    if count > MOST_TABLES {
        return None;
    }
    let start = HEAD + count * ENTRY;
    let mut tables = tables(reader, text, text.get(HEAD..start)?)?;
    // Tables of fonts begin with a version, as fonts do.
    if tables.iter().all(|table| table.labels.is_none()) {
        return None;
    }
    let root = reader.label();
    let directory = reader.label();
    let entries = tables.iter().map(|table| entry(reader, table, root));
    let entries = entries.collect();
    let number = Meaning::Count(directory);
    let mut nodes = vec![
        Node::fixed(&text[..4]),
        reader.number(Encoding::Big(2), number, 0, &text[4..6]),
        Node::fixed(&text[6..HEAD]),
        Group::new(directory, entries).into(),
    ];
    tables.retain(|table| table.labels.is_some());
    tables.sort_by_key(|table| table.at);
    tables.dedup_by_key(|table| table.labels);
    let glyphs = Glyphs::of(reader, |name| {
        let mut named = tables.iter().filter(|table| table.entry.starts_with(name));
        let table = named.next()?;
        text.get(table.at..table.at + table.size)
    });
    let mut from = start;
    for table in &tables {
        if from < table.at {
            nodes.push(Node::payload(&text[from..table.at]));
        }
        let (node, end) = table_node(reader, text, table, glyphs.as_ref())?;
        nodes.push(node);
        from = end;
    }
    if from < text.len() {
        nodes.push(Node::payload(&text[from..]));
    }
    Some(vec![Group::new(root, nodes).into()])
}

/// Reads the directory of a font into its tables; entries for the same range of the file share the
/// labels (ids in the file's tree) of one table. `None` if an offset or a length is too large for
/// this machine.
fn tables<'a>(reader: &mut Reader, text: &[u8], directory: &'a [u8]) -> Option<Vec<Table<'a>>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    for entry in directory.chunks_exact(ENTRY) {
        let number = |at: usize| Encoding::Big(4).read(&entry[at..]);
        let at = usize::try_from(number(8)?.0).ok()?;
        let size = usize::try_from(number(12)?.0).ok()?;
        let place = at..at.saturating_add(size);
        let known = tables.iter().filter(|one| one.labels.is_some());
        // Several entries may share the bytes of one table.
        let mut shared = known.clone().filter(|one| (one.at, one.size) == (at, size));
        let mut overlapping =
            known.filter(|one| one.at < place.end && place.start < one.at + one.size);
        let is_inside = place.start >= HEAD + directory.len() && text.get(place.clone()).is_some();
        let labels = match (shared.next(), overlapping.next()) {
            (Some(shared), _) => shared.labels,
            (None, None) if is_inside && reader.count_part() => {
                Some((reader.label(), reader.label()))
            }
            (None, _) => None,
        };
        tables.push(Table {
            entry,
            at,
            size,
            labels,
        });
    }
    Some(tables)
}

/// Returns two things about a font's table: its tree node, a deletable part that includes the
/// padding after the table, and the offset after both. `None` if the table is not in the file.
/// `glyphs` (`None`: unknown) are those of the font, to which the table may refer.
fn table_node(
    reader: &mut Reader,
    text: &[u8],
    table: &Table<'_>,
    glyphs: Option<&Glyphs>,
) -> Option<(Node, usize)> {
    let (whole, label) = table.labels?;
    let end = table.at + table.size;
    let filled = text.len().min(end.next_multiple_of(4));
    let bytes = &text[table.at..end];
    let name = &table.entry[..4];
    let nodes = reader.deeper(|reader| match name {
        b"CFF " => cff(reader, bytes, glyphs),
        b"cmap" => maps(reader, bytes, glyphs),
        b"name" => names(reader, bytes),
        b"GSUB" | b"GPOS" => layout(reader, bytes, glyphs, name == b"GSUB"),
        b"GDEF" => definitions(reader, bytes, glyphs),
        b"kern" => kerning(reader, bytes, glyphs),
        _ => glyphs?.table(reader, name, bytes),
    });
    let bytes = nodes.unwrap_or_else(|| reader.payload(bytes));
    let mut nodes = vec![Group::new(label, bytes).into()];
    let padding = &text[end..filled];
    let is_whole = table.size.next_multiple_of(4) - table.size == padding.len();
    let is_padded = is_whole && padding.iter().all(|byte| *byte == 0);
    if is_padded {
        nodes.push(Node::Pad {
            of: label,
            align: 4,
            fill: 0,
        });
    }
    let node = Group::part(whole, nodes).into();
    Some((node, if is_padded { filled } else { end }))
}

/// Returns the tree node of the entry of a table in the directory of a font, which is deleted
/// together with the table. The numbers of the entry, checksum, offset and length of the table, are
/// computed anew. `root` is the label (id in the file's tree) of the group of nodes of the entire
/// font.
fn entry(reader: &mut Reader, table: &Table<'_>, root: u32) -> Node {
    let Some((whole, bytes)) = table.labels else {
        return Group::part(reader.label(), vec![Node::fixed(table.entry)]).into();
    };
    let number = |at: usize, meaning: Meaning| {
        reader.number(Encoding::Big(4), meaning, 0, &table.entry[at..at + 4])
    };
    let nodes = vec![
        Node::fixed(&table.entry[..4]),
        number(4, Meaning::Check(Sum::Words, bytes)),
        number(8, Meaning::Offset(whole, root)),
        number(12, Meaning::Length(bytes)),
    ];
    Node::Group(Group {
        part: Part::With(whole),
        ..Group::new(reader.label(), nodes)
    })
}
