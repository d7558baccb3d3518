//! Reads the cells of SQLite's b-tree pages: rows of tables, entries of indices, and references to
//! child pages.

use std::ops::Range;

use super::sqlite::{Database, Kind, SchemaRow};
use super::sqlite_statements::indexed_clauses;
use crate::node::{Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Minimum size of a cell, in bytes; a shorter one is filled up with zeros.
const LEAST: usize = 4;
/// Number of columns of the schema table (`sqlite_schema`).
const SCHEMA: usize = 5;

/// A cell that was read from a b-tree page, with its nodes and the pages that it refers to.
pub struct Cell {
    pub label: Label,
    /// Range of the cell in its page, in bytes.
    pub place: Range<usize>,
    pub nodes: Vec<Node>,
    /// Number of the left child page of a cell of an interior page; `None` for a cell of a leaf
    /// page.
    pub child: Option<usize>,
    /// Number of the first overflow page, on which the cell's record continues; `None` if the whole
    /// record is in the cell.
    pub rest: Option<usize>,
    pub record: Record,
}

/// What the record in a cell is: a row of a table, an entry of an index, or a row of the schema.
pub enum Record {
    /// A row of a table, with its rowid.
    Row(u64),
    /// An entry of an index, with the rowid of the table's row to which it leads; `None` if the
    /// entry does not end with an integer.
    Entry(Option<u64>),
    /// A row of the schema table (`sqlite_schema`).
    Schema(SchemaRow),
    Other,
}

/// A column of a record: the number `kind` that states type and size of its value (serial type),
/// the bytes `raw` of this number, and the bytes `value`, which begin at offset `at` of the record.
struct Column<'a> {
    kind: u64,
    raw: &'a [u8],
    at: usize,
    value: &'a [u8],
}

/// A number that was read at the front of a cell: its value, and its range in the page.
type Stated = (u64, Range<usize>);

/// Reads the cell at offset `at` of a b-tree page of the kind `kind` with the bytes `bytes`;
/// `is_schema` says that the page belongs to the schema table. `None` if the cell cannot be read.
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
    /// Reads the numbers at the front of the cell, and makes the tree node of the first of them,
    /// the number of the left child page. Returns the size of the cell's record, the rowid (each
    /// `None` if cells of this kind do not have it), and the offset in the page after these
    /// numbers.
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

    /// Returns the tree nodes of `front`, the bytes in a cell whose record continues on overflow
    /// pages. They are fixed, except that in a row of the schema table (`is_schema`) the number of
    /// the root page is computed anew; that row is then noted as the cell's record.
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

    /// Returns the tree nodes of `payload`, the bytes of a record that is completely in its cell.
    /// Notes in `self.record` whether it is a row of a table, an entry of an index or, if
    /// `is_schema`, a row of the schema table. `row` is the rowid, if the cell has one.
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

/// Returns the completed cell whose content ends at offset `end` of the page `bytes`: adds the
/// bytes that fill it up to the minimum size of 4 bytes. `None` if the page ends before.
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

/// Returns how many of the `size` bytes of a record are stored in its cell; the others are on
/// overflow pages. `usable` is the usable size of a page; `is_table` says whether the b-tree is
/// that of a table.
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

/// Reads the columns of the record `payload`. Returns them and the size, in bytes, of the number at
/// the front of the record, which states the size of the record's header. If `is_whole`, the
/// columns must take the entire record, or the result is `None`. Otherwise `payload` may be the
/// front of a record, and only the columns that are completely in it are returned.
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

/// Returns the integer that a column holds; `None` if its value is of another type.
fn integer(column: &Column<'_>) -> Option<u64> {
    match column.kind {
        1..=6 => Encoding::Big(column.value.len()).read_at(column.value, 0),
        8 | 9 => Some(column.kind - 8),
        _ => None,
    }
}

/// Makes a row of the schema table from its columns; `label` is the label (id in the file's tree)
/// of the cell that holds the row. Also returns the range of the record in which the number of the
/// root page stands. `None` if there are fewer than four columns.
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

/// Returns the number of the root page that `record`, a row of the schema table, states, and the
/// range of the record in which this number stands; `None` if the row has no root page.
pub fn root_of(record: &[u8]) -> Option<(usize, Range<usize>)> {
    let (columns, _) = columns(record, false)?;
    let (row, place) = schema_row(0, &columns)?;
    (row.page > 1 && !place.is_empty()).then_some((row.page, place))
}

/// Returns the tree nodes of the record `payload`: the serial types of its `columns`, and their
/// values, of which texts and blobs are payloads (changeable bytes). `head` is the size of the
/// number at the record's front. In a row of the schema table, `root` is the root page that the
/// fourth column states, and `clauses` are the ranges of the SQL statement in the fifth column that
/// become deletable parts, with their labels (ids in the file's tree).
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

/// Returns the tree nodes of an SQL statement. Each of `clauses` is a range and a label (id in the
/// file's tree): the text in the range becomes a deletable part with this label. The text between
/// these ranges becomes payloads (changeable bytes).
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
