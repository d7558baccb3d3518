//! Cells of pages of SQLite: rows, entries of indices, and references to other pages.

use std::ops::Range;

use super::sqlite::{Database, Kind, SchemaRow};
use super::sqlite_statements::indexed_clauses;
use crate::node::{Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Number of bytes that a cell takes at least.
const LEAST: usize = 4;
/// Largest number of columns of the table that lists tables and indices.
const SCHEMA: usize = 5;

/// A cell that was read.
pub struct Cell {
    pub label: Label,
    /// Where the cell stands in its page.
    pub place: Range<usize>,
    pub nodes: Vec<Node>,
    /// Number of the page below the cell.
    pub child: Option<usize>,
    /// Number of the page with the rest of the cell.
    pub rest: Option<usize>,
    pub record: Record,
}

/// What a cell is.
pub enum Record {
    /// A row of a table, with its number.
    Row(u64),
    /// An entry of an index, with the number of the row if it ends with one.
    Entry(Option<u64>),
    /// A row of the schema.
    Schema(SchemaRow),
    Other,
}

/// A column of a record: its kind as it is written, and its value, which begins at offset `at`.
struct Column<'a> {
    kind: u64,
    raw: &'a [u8],
    at: usize,
    value: &'a [u8],
}

/// A number in the head of a cell, and where it stands.
type Stated = (u64, Range<usize>);

/// Reads the cell at offset `at` of a page with the bytes `bytes`.
pub fn cell(
    database: &Database<'_>,
    reader: &mut Reader,
    kind: Kind,
    bytes: &[u8],
    at: usize,
    is_schema: bool,
) -> Option<Cell> {
    let mut cell = Cell {
        label: reader.label(),
        place: at..at,
        nodes: Vec::new(),
        child: None,
        rest: None,
        record: Record::Other,
    };
    let (size, row, from) = cell.head(database, reader, kind, bytes)?;
    let Some((stated, size)) = size else {
        cell.nodes.push(Node::fixed(&bytes[row?.1]));
        return finish(cell, bytes, from);
    };
    let stated = usize::try_from(stated).ok()?;
    let local = local(database.usable, stated, kind.is_table);
    let end = from.checked_add(local)?;
    let payload = bytes.get(from..end)?;
    let group = reader.label();
    cell.nodes.push(match local == stated {
        true => {
            let meaning = Meaning::Length(group);
            reader.number(Encoding::VarintBig, meaning, 0, &bytes[size])
        }
        false => Node::fixed(&bytes[size]),
    });
    let number = row
        .iter()
        .map(|(_, place)| Node::fixed(&bytes[place.clone()]));
    cell.nodes.extend(number);
    let row = row.map(|(row, _)| row);
    if local < stated {
        let nodes = cell.front(database, reader, payload, is_schema);
        cell.nodes.extend(nodes);
        let raw = bytes.get(end..end + 4)?;
        let rest = Encoding::Big(4).read_at(raw, 0)? as usize;
        cell.nodes.push(database.reference(reader, rest, raw));
        cell.rest = Some(rest);
        if !matches!(cell.record, Record::Schema(_)) {
            cell.record = row.map_or(Record::Entry(None), Record::Row);
        }
        return finish(cell, bytes, end + 4);
    }
    let nodes = cell.payload(database, reader, payload, row, is_schema);
    cell.nodes.push(Group::new(group, nodes).into());
    finish(cell, bytes, end)
}

impl Cell {
    /// Reads the head of the cell: the page below it, the size of its record, and the number of the row.
    /// Returns the last two, as far as there are any, and the offset after the head.
    fn head(
        &mut self,
        database: &Database<'_>,
        reader: &Reader,
        kind: Kind,
        bytes: &[u8],
    ) -> Option<(Option<Stated>, Option<Stated>, usize)> {
        let mut at = self.place.start;
        if !kind.is_leaf {
            let raw = bytes.get(at..at + 4)?;
            let child = Encoding::Big(4).read_at(raw, 0)? as usize;
            self.nodes.push(database.reference(reader, child, raw));
            self.child = Some(child);
            at += 4;
        }
        let mut numbers = [None, None];
        let has = [kind.is_leaf || !kind.is_table, kind.is_table];
        for (number, _) in numbers.iter_mut().zip(has).filter(|(_, has)| *has) {
            let (stated, width) = Encoding::VarintBig.read(bytes.get(at..)?)?;
            *number = Some((stated, at..at + width));
            at += width;
        }
        let [size, row] = numbers;
        Some((size, row, at))
    }

    /// Makes the nodes of the bytes `front` of a record whose rest is in pages of its own: only the
    /// page that a row of the schema refers to may change. Notes what such a row describes.
    fn front(
        &mut self,
        database: &Database<'_>,
        reader: &Reader,
        front: &[u8],
        is_schema: bool,
    ) -> Vec<Node> {
        let read = columns(front, false).filter(|_| is_schema);
        let found = read.and_then(|(columns, _)| schema_row(self.label, &columns));
        let Some((row, place)) = found else {
            return vec![Node::fixed(front)];
        };
        let nodes = vec![
            Node::fixed(&front[..place.start]),
            database.reference(reader, row.page, &front[place.clone()]),
            Node::fixed(&front[place.end..]),
        ];
        self.record = Record::Schema(row);
        nodes
    }

    /// Makes the nodes of the record `payload` of a cell, and notes what the cell is.
    fn payload(
        &mut self,
        database: &Database<'_>,
        reader: &mut Reader,
        payload: &[u8],
        row: Option<u64>,
        is_schema: bool,
    ) -> Vec<Node> {
        let (columns, head) = columns(payload, true).unwrap_or((Vec::new(), 0));
        let mut described = match is_schema && columns.len() == SCHEMA {
            true => schema_row(self.label, &columns).map(|(row, _)| row),
            false => None,
        };
        let root = described.as_ref().map(|row| row.page);
        let mut clauses = Vec::new();
        if let Some(row) = described.as_mut().filter(|row| row.kind == b"table") {
            clauses = indexed_clauses(columns[SCHEMA - 1].value);
            row.clauses = clauses.iter().map(|_| reader.label()).collect();
            reader.count_parts(clauses.len());
        }
        let labels = described.iter().flat_map(|row| row.clauses.iter().copied());
        let clauses: Vec<(Range<usize>, Label)> = clauses.into_iter().zip(labels).collect();
        self.record = match (described, row) {
            (Some(described), _) => Record::Schema(described),
            (None, Some(row)) => Record::Row(row),
            (None, None) => Record::Entry(columns.last().and_then(integer)),
        };
        match columns.is_empty() {
            true => vec![Node::payload(payload)],
            false => {
                let described = (root, &clauses[..]);
                record(database, reader, payload, &columns, head, described)
            }
        }
    }
}

/// Completes a cell that ends at offset `end`: a cell has at least 4 bytes.
fn finish(mut cell: Cell, bytes: &[u8], end: usize) -> Option<Cell> {
    let start = cell.place.start;
    let full = end.max(start + LEAST);
    let filled = bytes.get(end..full)?;
    cell.nodes.push(match filled.iter().all(|byte| *byte == 0) {
        true => Node::Gap(LEAST),
        false => Node::fixed(filled),
    });
    cell.place = start..full;
    Some(cell)
}

/// Returns how many of the `size` bytes of a record are in its cell; the others are in pages of their
/// own.
pub fn local(usable: usize, size: usize, is_table: bool) -> usize {
    let most = match is_table {
        true => usable - 35,
        false => (usable - 12) * 64 / 255 - 23,
    };
    if size <= most {
        return size;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let fitting = least + (size - least) % (usable - 4);
    if fitting <= most { fitting } else { least }
}

/// Reads the columns of a record, and the size of the number in front of their kinds. If
/// `is_whole`, `None` if they do not take the whole record; else returns the first columns, as far
/// as they are in `payload`.
fn columns(payload: &[u8], is_whole: bool) -> Option<(Vec<Column<'_>>, usize)> {
    let (size, head) = Encoding::VarintBig.read(payload)?;
    let size = usize::try_from(size).ok()?;
    let kinds = payload.get(head..size)?;
    let (mut at, mut value) = (0, size);
    let mut columns = Vec::new();
    while at < kinds.len() {
        let (kind, width) = Encoding::VarintBig.read(&kinds[at..])?;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => usize::try_from((kind - 12) / 2).ok()?,
        };
        let end = value.checked_add(length)?;
        let Some(bytes) = payload.get(value..end) else {
            break;
        };
        columns.push(Column {
            kind,
            raw: &kinds[at..at + width],
            at: value,
            value: bytes,
        });
        at += width;
        value = end;
    }
    (!is_whole || at == kinds.len() && value == payload.len()).then_some((columns, head))
}

/// Returns the integer in a column.
fn integer(column: &Column<'_>) -> Option<u64> {
    match column.kind {
        1..=6 => Encoding::Big(column.value.len()).read_at(column.value, 0),
        8 | 9 => Some(column.kind - 8),
        _ => None,
    }
}

/// Returns what a row of the schema with these columns describes, and where the number of the first page of
/// its tree stands in the record; `None` if it lacks a column.
fn schema_row(label: Label, columns: &[Column<'_>]) -> Option<(SchemaRow, Range<usize>)> {
    let [kind, name, table, page, ..] = columns else {
        return None;
    };
    let number = integer(page).and_then(|page| usize::try_from(page).ok());
    let row = SchemaRow {
        page: number.unwrap_or_default(),
        cell: label,
        kind: kind.value.to_vec(),
        // Case does not matter in names.
        name: name.value.to_ascii_lowercase(),
        table: table.value.to_ascii_lowercase(),
        clauses: Vec::new(),
        has_text: columns.get(4).is_none_or(|text| text.kind > 0),
    };
    Some((row, page.at..page.at + page.value.len()))
}

/// Returns the first page of the tree that the record of a row of the schema states, and where it
/// stands in the record; `None` if it states none.
pub fn root_of(record: &[u8]) -> Option<(usize, Range<usize>)> {
    let (columns, _) = columns(record, false)?;
    let (row, place) = schema_row(0, &columns)?;
    (row.page > 1 && !place.is_empty()).then_some((row.page, place))
}

/// Makes the nodes of a record: kinds of its columns, and values, of which texts and bytes may
/// become shorter. Of a row of the schema, `root` is the page that the fourth column refers to, and
/// the `clauses` of the statement in the fifth one are parts.
fn record(
    database: &Database<'_>,
    reader: &mut Reader,
    payload: &[u8],
    columns: &[Column<'_>],
    head: usize,
    (root, clauses): (Option<usize>, &[(Range<usize>, Label)]),
) -> Vec<Node> {
    let kinds_label = reader.label();
    let meaning = Meaning::Length(kinds_label);
    let size = reader.number(Encoding::VarintBig, meaning, 0, &payload[..head]);
    let (mut kinds, mut values) = (vec![size], Vec::new());
    for (index, column) in columns.iter().enumerate() {
        if column.kind < 12 {
            kinds.push(Node::fixed(column.raw));
            values.push(match root.filter(|_| index == 3) {
                Some(root) => database.reference(reader, root, column.value),
                None => Node::fixed(column.value),
            });
            continue;
        }
        let label = reader.label();
        let base = 12 + column.kind % 2;
        kinds.push(reader.number(
            Encoding::Serial(base),
            Meaning::Length(label),
            0,
            column.raw,
        ));
        let value = match base {
            _ if index + 1 == SCHEMA && !clauses.is_empty() => split(column.value, clauses),
            12 => reader.payload(column.value),
            _ => vec![Node::payload(column.value)],
        };
        values.push(Group::new(label, value).into());
    }
    values.insert(0, Group::new(kinds_label, kinds).into());
    values
}

/// Makes the nodes of a statement of which the `clauses` are parts, each with its label.
fn split(statement: &[u8], clauses: &[(Range<usize>, Label)]) -> Vec<Node> {
    let (mut nodes, mut at) = (Vec::new(), 0);
    for (place, label) in clauses {
        nodes.push(Node::payload(&statement[at..place.start]));
        let clause = vec![Node::payload(&statement[place.clone()])];
        nodes.push(Group::part(*label, clause).into());
        at = place.end;
    }
    nodes.push(Node::payload(&statement[at..]));
    nodes
}
